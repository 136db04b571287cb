"""Lessons as HTML and images of books over HTTP, on a real server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.books import BookEntry
from lectern.domain.errors import UnknownFile
from lectern.domain.jobs import IngestionRecord
from tests.lesson_pages import Visible
from tests.served import LECTERN, lectern, serving

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
BOOK = "physical-ai-robotics"


def get(address: str, path: str, **headers: str) -> httpx.Response:
    """One request, whose path is sent as it is."""
    return httpx.get(httpx.URL(f"{address}{path}"), headers=headers, timeout=120)


def lessons_of(address: str, book: str) -> list[dict]:
    """The lessons of a book, in order."""
    outline = get(address, f"/books/{book}/outline").json()
    chapters = [chapter for module in outline["modules"] for chapter in module["chapters"]]
    return [lesson for chapter in chapters for lesson in chapter["lessons"]]


def test_a_lesson_is_read_as_a_page(server: str) -> None:
    """The page has the lesson's head, its chunks with their lines, its headings, and its neighbours in the outline."""
    lessons = lessons_of(server, BOOK)
    lesson, before, after = lessons[3], lessons[2], lessons[4]
    page = get(server, f"/lessons/{lesson['parent_doc_id']}/page?book_id={BOOK}").json()
    whole = get(server, f"/lessons/{lesson['parent_doc_id']}").json()

    for name in ("parent_doc_id", "book_id", "title", "breadcrumb", "url", "source_file"):
        assert page[name] == whole[name], name
    assert page["from"] == "file"
    assert [chunk["id"] for chunk in page["chunks"]] == [chunk["id"] for chunk in whole["chunks"]]
    assert all(1 <= chunk["line_start"] <= chunk["line_end"] for chunk in page["chunks"])
    assert page["previous"] == {"parent_doc_id": before["parent_doc_id"], "title": before["title"]}
    assert page["next"] == {"parent_doc_id": after["parent_doc_id"], "title": after["title"]}
    visible = Visible(page["html"])
    assert [heading["anchor"] for heading in page["headings"] if heading["anchor"]] == visible.ids
    assert {chunk["line_start"] for chunk in page["chunks"]} <= visible.lines


def test_the_first_and_last_lessons_have_one_neighbour(server: str) -> None:
    """There is nothing before the first lesson and nothing after the last."""
    lessons = lessons_of(server, BOOK)
    first, last = (get(server, f"/lessons/{lessons[at]['parent_doc_id']}/page").json() for at in (0, -1))

    assert (first["previous"], last["next"]) == (None, None)


def test_an_unknown_lesson_has_no_page(server: str) -> None:
    """A lesson or book that does not exist is 404."""
    lesson = lessons_of(server, BOOK)[0]["parent_doc_id"]

    assert get(server, "/lessons/nonsense/page").status_code == 404
    assert get(server, f"/lessons/{lesson}/page?book_id=other").status_code == 404
    assert get(server, "/books/other/files/docs/a.png").status_code == 404


def write_book(folder: Path) -> None:
    """A book with images, and with things beside it and in it that are none."""
    for name, content in {
        "docs/01-one.md": b"# One\n\nText of the first lesson ![plan](img/plan.png)\n",
        "docs/img/plan.png": PNG,
        "docs/img/Logo.SVG": SVG,
        "docs/img/a bü.gif": b"GIF89a",
        "docs/img/page.html": b"<script>",
        "docs/img/secret.png.txt": b"secret",
        "docs/img/no-suffix": PNG,
        "docs/.hidden/a.png": PNG,
        "docs/img/.a.png": PNG,
        "docs/img/big.png": b"0" * (5 * 1024 * 1024 + 1),
        "docs/img/full.png": b"0" * (5 * 1024 * 1024),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "docs/folder.png").mkdir()
    os.mkfifo(folder / "docs/img/pipe.png")
    (folder.parent / "outside.png").write_bytes(PNG)
    (folder / "docs/img/link.png").symlink_to(folder.parent / "outside.png")
    (folder / "docs/img/inside.png").symlink_to(folder / "docs/img/plan.png")
    (folder / "docs/away").symlink_to(folder.parent)


@pytest.fixture(scope="module")
def book_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server on a home with that book, and its folder."""
    base = tmp_path_factory.mktemp("pages")
    folder = base / "pictures"
    write_book(folder)
    home = base / "home"
    lectern("ingest", str(folder), home=home)
    settings = {"LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0"}
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
        yield address, folder


def test_an_image_of_the_book_is_served(book_server: tuple[str, Path]) -> None:
    """It has the type of its name, is never sniffed, is stored for its reader only, and is not sent twice."""
    address, _ = book_server
    page = get(address, f"/lessons/{lessons_of(address, 'pictures')[0]['parent_doc_id']}/page").json()
    [path] = Visible(page["html"]).files
    image = get(address, f"/books/pictures/files/{path}")

    assert (image.status_code, image.content, image.headers["content-type"]) == (200, PNG, "image/png")
    assert image.headers["x-content-type-options"] == "nosniff"
    assert image.headers["cache-control"] == "private, no-cache"
    again = get(address, f"/books/pictures/files/{path}", **{"If-None-Match": image.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", image.headers["etag"])
    assert get(address, f"/books/pictures/files/{path}", **{"If-None-Match": '"x"'}).status_code == 200


def test_an_svg_is_no_active_document(book_server: tuple[str, Path]) -> None:
    """An SVG that is opened by itself runs nothing."""
    image = get(book_server[0], "/books/pictures/files/docs/img/Logo.SVG")

    assert image.headers["content-type"] == "image/svg+xml"
    assert image.headers["content-security-policy"] == "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def test_links_inside_and_odd_names_are_served(book_server: tuple[str, Path]) -> None:
    """A link that stays in the folder, a name with spaces and letters of any script, and exactly 5 MB."""
    for name in ("inside.png", "a%20b%C3%BC.gif", "full.png"):
        assert get(book_server[0], f"/books/pictures/files/docs/img/{name}").status_code == 200, name


@pytest.mark.parametrize(
    "path",
    [
        "docs/img/none.png",
        "docs/img/link.png",
        "docs/away/outside.png",
        "docs/img/../../../outside.png",
        "docs/img/%2e%2e/%2e%2e/%2e%2e/outside.png",
        "..%2foutside.png",
        "%2e%2e/outside.png",
        "docs/img/..%5c..%5coutside.png",
        "/docs/img/plan.png",
        "docs//img/plan.png",
        "docs/./img/plan.png",
        "%00.png",
        "docs/img/plan.png%00.png",
        "docs/img/plan.png/",
        "docs/img/page.html",
        "docs/img/secret.png.txt",
        "docs/img/no-suffix",
        "docs/01-one.md",
        "docs/.hidden/a.png",
        "docs/img/.a.png",
        "docs/img/big.png",
        "docs/img/pipe.png",
        "docs/folder.png",
        "docs",
        "a" * 1000 + ".png",
        ("a/" * 400) + "b.png",
    ],
)
def test_everything_else_is_one_and_the_same_404(book_server: tuple[str, Path], path: str) -> None:
    """Links out of the folder, other kinds of files, hidden and large ones, pipes, folders, and nothing at all."""
    with closing(HTTPConnection(urlsplit(book_server[0]).netloc, timeout=30)) as connection:
        connection.request("GET", f"/books/pictures/files/{path}")  # httpx would resolve the dots itself
        response = connection.getresponse()
        body = json.loads(response.read())

    assert (response.status, body["detail"]) == (404, "the book has no such image")


def test_a_changed_file_is_shown_from_the_index(book_server: tuple[str, Path]) -> None:
    """The text that citations quote stays readable after its file was edited."""
    address, folder = book_server
    file = folder / "docs/01-one.md"
    before = file.read_bytes()
    file.write_text("# One\n\nSomething else.\n", encoding="utf-8")
    try:
        page = get(address, f"/lessons/{lessons_of(address, 'pictures')[0]['parent_doc_id']}/page").json()
    finally:
        file.write_bytes(before)

    assert page["from"] == "index"
    assert "Text of the first lesson" in page["html"]


async def test_a_folder_that_is_no_longer_allowed_is_not_read(tmp_path: Path) -> None:
    """A folder that a caller named is read only while the operator lists it: the page then comes from the index, and
    there are no images."""
    folder = tmp_path / "pictures"
    write_book(folder)
    async with open_lectern(Settings(home=tmp_path / "home")) as opened:
        await opened.ingest(folder)
        [entry] = await opened.books()
        [lesson] = [record.parent_doc_id for record in (await ledger_records(opened, entry)).values()]
        pages = opened.app.pages
        assert (await pages.page(lesson)).page.origin == "file"
        assert (await pages.file("pictures", "docs/img/plan.png")).content == PNG

        await opened.app.library.ledger.save_book(replace(entry, bound=True))

        assert (await pages.page(lesson)).page.origin == "index"
        with pytest.raises(UnknownFile):
            await pages.file("pictures", "docs/img/plan.png")


async def ledger_records(opened: Lectern, entry: BookEntry) -> dict[str, IngestionRecord]:
    """What the ledger has of a book."""
    return await opened.app.library.ledger.records(entry.manifest.book_id, entry.collection_name)
