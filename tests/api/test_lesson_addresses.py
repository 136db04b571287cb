"""The addresses of lessons that are published nowhere open here, on a real server."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from lectern.reading.routes import spellings
from tests.api.test_pages import BOOK, get, lessons_of


def opened(address: str, path: str) -> dict[str, list[str]]:
    """The book and lesson that a path leads to."""
    response = get(address, path)
    assert response.status_code == 302, path
    target = urlsplit(str(response.next_request.url)) if response.next_request else None
    assert target is not None
    assert target.path == "/"
    return parse_qs(target.query)


def test_every_lesson_opens_at_its_own_address(server: str) -> None:
    """Each address in the outline leads to the page with that lesson, and the page is there."""
    lessons = lessons_of(server, BOOK)
    places = {lesson["url"]: lesson["parent_doc_id"] for lesson in lessons if lesson["url"] != "/"}

    assert len(places) == len(lessons) - 1  # one has the address of the page itself
    for url, parent_doc_id in places.items():
        assert opened(server, url) == {"book": [BOOK], "lesson": [parent_doc_id]}
    page = httpx.get(f"{server}{next(iter(places))}", follow_redirects=True, timeout=120)
    assert page.headers["content-type"].startswith("text/html")


def test_the_url_of_a_citation_opens(server: str) -> None:
    """With its anchor, which a browser keeps, and with the words that it marks."""
    [source] = httpx.post(f"{server}/chat/run", json={"message": "What is URDF?"}, timeout=120).json()["sources"]

    for name in ("url", "fragment_url", "page_url"):
        path = source[name].partition("#")[0]
        assert opened(server, path) == {"book": [BOOK], "lesson": [source["parent_doc_id"]]}


def test_a_lesson_opens_under_every_spelling(server: str) -> None:
    """With and without a slash, a suffix, or the name of the index; and by HEAD."""
    lesson = next(lesson for lesson in lessons_of(server, BOOK) if lesson["url"].endswith("nodes-and-topics"))

    for end in ("/", ".html", "/index.html"):
        assert opened(server, lesson["url"] + end)["lesson"] == [lesson["parent_doc_id"]]
    assert httpx.head(f"{server}{lesson['url']}").status_code == 302


@pytest.mark.parametrize("path", ["/nothing/here", "/module-1-ros2/%00", "/module-1-ros2/%FF", "//nodes-and-topics"])
def test_another_path_is_a_problem(server: str, path: str) -> None:
    """What is no lesson stays unknown, and nothing on the way breaks."""
    response = get(server, path)

    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


def test_a_path_of_the_api_stays_the_apis(server: str) -> None:
    """A lesson of that name does not hide it, and another method of a lesson's path is not a lesson."""
    assert get(server, "/books").json()[0]["book_id"] == BOOK
    assert httpx.post(f"{server}/module-1-ros2/chapter-1-ros-graph/nodes-and-topics").status_code == 404


def test_spellings() -> None:
    """Encoded as addresses are, the given one first."""
    assert spellings("/a b/")[0] == "/a%20b/"
    assert {"/a", "/a/", "/a.html", "/a/index.html"} <= set(spellings("/a.html"))
