"""The files of the web pages as browsers get them: small, and asked for again only when they changed."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import httpx
import pytest

from lectern.api.app import WEB
from lectern.api.web_files import page_files, web_file
from lectern.api.widget_access import widget_words

SCRIPTS = sorted(file for file in WEB.rglob("*") if file.suffix in (".js", ".css"))
COMMENT = re.compile(r"\s*(?://|/\*(?!.*\*/.*\S)|\*(?:[ /]|$))")
IMPORT = re.compile(r'@import "([^"]+)";')


def code_lines(file: Path) -> list[str]:
    """The lines of a file that are no comments, with those of the style sheets that it imports in their places."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if match := IMPORT.fullmatch(line):
            lines += [*code_lines(file.parent / match[1]), ""]  # the end of its last line, and that of this one
        elif not COMMENT.match(line):
            lines.append(line)
    return lines


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.relative_to(WEB).as_posix())
def test_nothing_but_comments_is_left_out(file: Path) -> None:
    """Every line of code is sent, in its order, and no line that is a comment."""
    sent = web_file(file)

    assert [line for line in sent.content.decode().splitlines() if line] == [line for line in code_lines(file) if line]
    assert gzip.decompress(sent.compressed) == sent.content


def test_files_are_sent_compressed_and_only_when_they_changed(server: str) -> None:
    """A browser that can unpack gets a compressed file, and for the copy that it has a 304 without a body."""
    with httpx.Client(base_url=server) as browser:
        for path in ("/", "/page/main.js", "/style/page.css", "/strings/de.json", "/widget/strings/de.json", "/docs"):
            first = browser.get(path)
            again = browser.get(path, headers={"If-None-Match": first.headers["ETag"]})
            plain = browser.get(path, headers={"Accept-Encoding": "identity"})

            assert (first.status_code, first.headers["Content-Encoding"]) == (200, "gzip"), path
            assert first.headers["Cache-Control"] == "no-cache"
            assert first.headers["Vary"] == "Accept-Encoding"
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["ETag"] == first.headers["ETag"]
            assert "Content-Encoding" not in plain.headers
            assert plain.text == first.text
            assert browser.head(path).status_code == 200


def test_pages_run_nothing_and_show_no_image_of_others(server: str) -> None:
    """The policy allows scripts and images of this server alone; images with a key are made in the browser."""
    policy = httpx.get(server).headers["Content-Security-Policy"]

    assert "img-src 'self' blob:;" in policy
    assert "data:" not in policy
    assert "unsafe" not in policy


def loaded_files() -> dict[str, int]:
    """Every file that some page loads, with its size as it is sent. A style sheet that is only part of others is not
    loaded by itself; those that the widget loads are."""
    texts = {file: file.read_text(encoding="utf-8") for file in SCRIPTS}
    scripts = "".join(text for file, text in texts.items() if file.suffix == ".js")
    parts = {(file.parent / name).resolve() for file, text in texts.items() for name in IMPORT.findall(text)}
    unused = {file for file in parts if f'"{file.relative_to(WEB).as_posix()}"' not in scripts}
    files = {path: file for path, file in page_files(WEB).items() if not path.endswith("/") and file not in unused}
    return {path: len(web_file(file).compressed) for path, file in files.items()}


def test_the_pages_are_small() -> None:
    """Compressed, as they are sent: all that all pages load, in all languages, is below 100 kB; what the reader's page
    loads is below 55, and what the widget loads is below 40."""
    sizes = loaded_files()
    words = {path: len(file.compressed) for path, file in widget_words().items()}
    shared = sum(size for path, size in sizes.items() if path.startswith("/shared/"))
    page = sum(size for path, size in sizes.items() if path.startswith("/page/"))
    sheets = sum(sizes[f"/style/{name}.css"] for name in ("ground", "text"))
    widget = sum(size for path, size in sizes.items() if path.startswith(("/widget/", "/widget.js")))

    assert sum(sizes.values()) + sum(words.values()) < 100_000
    page += sum(sizes[path] for path in ("/index.html", "/style/page.css", "/strings/de.json"))
    assert shared + sheets + page < 55_000
    assert shared + sheets + widget + words["/widget/strings/de.json"] < 40_000
