"""What a heading says, without its Markdown. Nothing but headings is parsed inline, and only short ones, so that a
string made to be slow costs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.reading.names import one_line

MAX_TITLE = 200  # characters; a longer heading is cut for trails, its line stays whole in the text
MAX_INDENT, MAX_LEVEL = 3, 6  # CommonMark's
MAX_INLINE = 400  # characters of a heading that are parsed inline; a longer one is taken as it is written
_MARKUP = re.compile(r"[`*_\[\]<>&!\\~]")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>|]|\d+[.)])|<|import\s|export\s|:::|!!!|\{")
_ID = re.compile(r"\{:?[ \t]*(?:/\*[ \t]*)?#([^\s{}*]+)[^{}]*\}")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_inline = MarkdownIt("commonmark", {"maxNesting": 20}).enable("strikethrough")


def explicit_id(written: str) -> tuple[str, str | None]:
    """A heading without its explicit id, and the id: `Nodes {#n}`, `Nodes {: #n }`, `Nodes {/* #n */}`."""
    bare = written.rstrip()
    if not bare.endswith("}"):
        return written, None
    start = bare.rfind("{")
    match = _ID.fullmatch(bare, start) if start >= 0 and len(bare) - start < MAX_TITLE else None
    return (bare[:start].rstrip(), match[1]) if match else (written, None)


def heading_text(written: str) -> str:
    """A heading's words: no emphasis marks, link targets, tags or explicit id."""
    return one_line(plain(explicit_id(written)[0]), MAX_TITLE)


def atx(line: str) -> str | None:
    """What an ATX heading says, as written; None for any other line. Plain steps: a regex could be made to crawl."""
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
def plain(written: str, *, images: bool = True) -> str:
    """Inline Markdown as the text that a reader sees; `images` are their descriptions, or nothing."""
    if not _MARKUP.search(written):
        return written
    if len(written) > MAX_INLINE:
        return _TAG.sub("", written)
    (token,) = _inline.parseInline(written)
    return "".join(_seen(child, images=images) for child in token.children or [])


def _seen(token: Token, *, images: bool) -> str:
    if token.type in ("text", "code_inline", "text_special"):
        return token.content
    if token.type in ("softbreak", "hardbreak"):
        return " "
    if token.type == "image" and images:
        return "".join(_seen(child, images=images) for child in token.children or [])
    return ""


def first_heading(body: str) -> str | None:
    """The words of the first heading outside code and comments, of any level; None where there is none."""
    before: list[str] = []  # the paragraph's lines so far; joined only when an underline makes them a heading
    for line in _prose_lines(body):
        written = atx(line)
        if written is None and before and _UNDERLINE.match(line):
            written = " ".join(before)
        if written is not None and (words := heading_text(written)):
            return words
        paragraph = written is None and line.strip() and not line.startswith("    ") and not _NO_PARAGRAPH.match(line)
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
