"""Searching and reading books over HTTP, against a real server on the sample book."""

import os
import shutil
import uuid
from pathlib import Path

import httpx
import pytest

from lectern.api.web_files import SERVER_SENTENCES
from lectern.text.strings import strings_of
from tests.served import LECTERN, serving

QUERY = "quality of service of a camera topic"


def search(server: str, **body: object) -> dict:
    """One search."""
    response = httpx.post(f"{server}/search", json={"text": QUERY, **body}, timeout=120)
    assert response.status_code == 200, response.text
    return response.json()


def test_pages_follow_one_another(server: str) -> None:
    """With an offset the ranks go on where the page before ended, and no result comes twice."""
    first = search(server, limit=5)
    pages = [search(server, limit=5, offset=offset)["results"] for offset in range(0, first["total_found"], 5)]
    ids = [chunk["id"] for page in pages for chunk in page]

    assert [result["rank"] for page in pages for result in page] == list(range(1, first["total_found"] + 1))
    assert len(set(ids)) == len(ids) == first["total_found"]
    assert [result["id"] for result in search(server, limit=12)["results"]] == ids[:12]
    assert search(server, limit=5, offset=99)["results"] == []


def test_neighbours_come_in_the_lessons_order(server: str) -> None:
    """`expand` reads along the chain, before and after, and stops where the lesson does."""
    for result in search(server, limit=10, expand=2)["results"]:
        lesson = httpx.get(f"{server}/lessons/{result['parent_doc_id']}", timeout=120).json()["chunks"]
        ids, at = [chunk["id"] for chunk in lesson], result["chunk_index"]
        assert [chunk["id"] for chunk in result["before"]] == ids[max(0, at - 2) : at]
        assert [chunk["id"] for chunk in result["after"]] == ids[at + 1 : at + 3]


def test_words_of_the_query_are_marked(server: str) -> None:
    """Marks are places in the text, and what stands there is a word of the query, in whatever form."""
    for result in search(server, limit=5)["results"]:
        for begin, end in result["marks"]:
            assert result["text"][begin:end].lower()[:4] in {"qual", "serv", "came", "topi"}
    assert any(result["marks"] for result in search(server, limit=5)["results"])


def test_a_threshold_leaves_out_what_is_less_similar(server: str) -> None:
    """Every result has at least that relevance, whatever its cosine; `total_found` counts what is left."""
    page = search(server, limit=20, similarity_threshold=0.8)

    assert all(result["relevance"] >= 0.8 > result["similarity"] for result in page["results"])
    assert page["total_found"] < search(server, limit=20)["total_found"]


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 21}, {"offset": -1}, {"offset": 100}, {"expand": 6}, {"text": "ab"}]
)
def test_out_of_range_is_an_error(server: str, wrong: dict) -> None:
    """Never a silent cap."""
    assert httpx.post(f"{server}/search", json={"text": QUERY, **wrong}, timeout=120).status_code == 422


def test_a_chunk_is_read_with_its_context(server: str) -> None:
    """One chunk and so many before and after it; a chunk nobody has is unknown, whatever its name looks like."""
    lesson = httpx.get(f"{server}/lessons/{search(server)['results'][0]['parent_doc_id']}", timeout=120).json()
    ids = [chunk["id"] for chunk in lesson["chunks"]]

    context = httpx.get(f"{server}/chunks/{ids[2]}/context", params={"before": 5, "after": 1}, timeout=120).json()

    assert [chunk["id"] for chunk in (*context["before"], context["chunk"], *context["after"])] == ids[:4]
    for unknown in ("nonsense", "00000000-0000-4000-8000-000000000000", ids[2].upper()):
        assert httpx.get(f"{server}/chunks/{unknown}/context", timeout=120).status_code == 404


def test_a_book_is_listed_page_by_page(server: str) -> None:
    """Every chunk once, in order; the outline has every lesson that they are of."""
    chunks, cursor = [], None
    while True:
        params = {"limit": 60, **({"cursor": cursor} if cursor else {})}
        page = httpx.get(f"{server}/books/physical-ai-robotics/chunks", params=params, timeout=120).json()
        chunks += page["chunks"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    [book] = httpx.get(f"{server}/books", timeout=120).json()
    outline = httpx.get(f"{server}/books/physical-ai-robotics/outline", timeout=120).json()
    lessons = [
        lesson_entry
        for module in outline["modules"]
        for chapter in module["chapters"]
        for lesson_entry in chapter["lessons"]
    ]

    assert len({chunk["id"] for chunk in chunks}) == len(chunks) == book["total_chunks"]
    assert {chunk["payload"]["parent_doc_id"] for chunk in chunks} == {lesson["parent_doc_id"] for lesson in lessons}
    wrong = httpx.get(f"{server}/books/physical-ai-robotics/chunks", params={"cursor": "???"}, timeout=120)
    assert wrong.status_code == 422


def test_a_book_introduces_itself(server: str) -> None:
    """What `GET /books` lists of it, and its description, language, filters and first questions."""
    [listed] = httpx.get(f"{server}/books", timeout=120).json()
    book = httpx.get(f"{server}/books/physical-ai-robotics", timeout=120).json()

    assert listed.items() <= book.items()
    assert book["language"] == "en"
    assert book["description"]
    assert book["filters"]["hardware_tiers"] == [1, 2, 3, 4]
    assert {"module": "ros2", "title": "The Robotic Nervous System"} in book["filters"]["modules"]
    assert {choice["chapter"] for choice in book["filters"]["chapters"]} == set(range(1, 9))
    assert 4 <= len(book["suggestions"]) <= 6
    assert httpx.get(f"{server}/books/nothing", timeout=120).status_code == 404


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_sentences_of_a_language_are_served(server: str, language: str) -> None:
    """Those that the pages write themselves, as JSON; the server's own stay there."""
    response = httpx.get(f"{server}/strings/{language}.json", timeout=120)
    sentences = strings_of(language).sentences

    assert response.headers["content-type"] == "application/json"
    assert response.json() == {key: words for key, words in sentences.items() if not key.startswith(SERVER_SENTENCES)}
    assert not all(key in response.json() for key in sentences)
    assert httpx.get(f"{server}/strings/xx.json", timeout=120).status_code == 404


def test_a_refusal_offers_other_questions(server: str) -> None:
    """Questions that the book answers; an answer offers none."""
    refused, answered = (
        httpx.post(f"{server}/chat/run", json={"message": message}, timeout=120).json()
        for message in ("hello", "What is a node?")
    )

    assert (refused["should_answer"], answered["should_answer"]) == (False, True)
    assert len(refused["suggestions"]) == 3
    assert answered["suggestions"] == []


def test_conversations_are_searched(server: str) -> None:
    """By the words of their questions, within a book."""
    marker = uuid.uuid4().hex
    session = httpx.post(f"{server}/chat/run", json={"message": f"What is a node {marker}?"}, timeout=120).json()
    ids = [
        [head["thread_id"] for head in httpx.get(f"{server}/threads", params=params, timeout=120).json()["threads"]]
        for params in (
            {"query": f"NODE {marker}"},
            {"query": marker, "book_id": "physical-ai-robotics"},
            {"query": marker, "book_id": "another"},
            {"query": f"{marker} lidar"},
        )
    ]

    assert ids == [[session["session_id"]], [session["session_id"]], [], []]
    assert httpx.get(f"{server}/threads", params={"query": "a\0b"}, timeout=120).status_code == 422


def test_a_book_is_removed_once(sample_home: Path, tmp_path: Path) -> None:
    """DELETE is 204, then 404, and nothing of the book is found."""
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, "LECTERN_HOME": str(home)}) as address:
        codes = [httpx.delete(f"{address}/books/physical-ai-robotics", timeout=120).status_code for _ in range(2)]
        assert codes == [204, 404]
        assert httpx.get(f"{address}/books", timeout=120).json() == []
        assert httpx.post(f"{address}/search", json={"text": QUERY}, timeout=120).status_code == 404
