"""Gives the text of headings without their Markdown. Inline Markdown is parsed only in headings, and only in short
ones, so that a hostile text cannot make it slow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.reading.names import one_line

MAX_TITLE = 200  # characters; a longer heading is cut in titles and trails, not in the text
MAX_INDENT, MAX_LEVEL = 3, 6  # the limits of CommonMark
MAX_INLINE = 400  # characters; a longer heading is not parsed, only its tags are removed
_MARKUP = re.compile(r"[`*_\[\]<>&!\\~]")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>|]|\d+[.)])|<|import\s|export\s|:::|!!!|\{")
_ID = re.compile(r"\{:?[ \t]*(?:/\*[ \t]*)?#([^\s{}*]+)[^{}]*\}")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_inline = MarkdownIt("commonmark", {"maxNesting": 20}).enable("strikethrough")


def explicit_id(heading: str) -> tuple[str, str | None]:
    """A heading without its explicit id, and the id: `Nodes {#n}`, `Nodes {: #n }`, `Nodes {/* #n */}`."""
    bare = heading.rstrip()
    if not bare.endswith("}"):
        return heading, None
    start = bare.rfind("{")
    match = _ID.fullmatch(bare, start) if start >= 0 and len(bare) - start < MAX_TITLE else None
    return (bare[:start].rstrip(), match[1]) if match else (heading, None)


def heading_text(heading: str) -> str:
    """The text of a heading on one line, without emphasis marks, link targets, tags and explicit id."""
    return one_line(plain(explicit_id(heading)[0]), MAX_TITLE)


def atx(line: str) -> str | None:
    """The Markdown of an ATX heading; None for any other line. No regex, because a hostile line could make it slow."""
    bare = line.lstrip(" ")
    if len(line) - len(bare) > MAX_INDENT or not bare.startswith("#"):
        return None
    words = bare.lstrip("#")
    if len(bare) - len(words) > MAX_LEVEL or (words and words[0] not in " \t"):
        return None
    words = words.strip()
    open_end = words.rstrip("#")
    return open_end.rstrip() if not open_end or open_end[-1] in " \t" else words


@lru_cache(maxsize=4096)
def plain(markup: str, *, images: bool = True) -> str:
    """The visible text of inline Markdown, with the descriptions of images if `images`."""
    if not _MARKUP.search(markup):
        return markup
    if len(markup) > MAX_INLINE:
        return _TAG.sub("", markup)
    (token,) = _inline.parseInline(markup)
    return "".join(_visible_text(child, images=images) for child in token.children or [])


def _visible_text(token: Token, *, images: bool) -> str:
    if token.type in ("text", "code_inline", "text_special"):
        return token.content
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "image" and images:
        return "".join(_visible_text(child, images=images) for child in token.children or [])
    return ""


def first_heading(body: str) -> str | None:
    """The text of the first heading of any level outside code and comments; None if there is none."""
    before: list[str] = []  # lines of the paragraph so far; an underline would make them a heading
    for line in _prose_lines(body):
        heading = atx(line)
        if heading is None and before and _UNDERLINE.match(line):
            heading = " ".join(before)
        if heading is not None and (words := heading_text(heading)):
            return words
        paragraph = heading is None and line.strip() and not line.startswith("    ") and not _NO_PARAGRAPH.match(line)
        if paragraph:
            before.append(line.strip())
        elif before:
            before = []
    return None


def _prose_lines(body: str) -> Iterator[str]:
    fence, comment = "", False
    for line in body.split("\n"):
        if comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
        elif fence:
            closing = line.strip()
            fence = "" if closing.startswith(fence) and not closing.strip(fence[0]) else fence
        elif match := _FENCE.match(line):
            fence = match[1]
        else:
            yield line
