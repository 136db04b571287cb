"""Gives the text of headings without their Markdown. Inline Markdown is parsed only in headings, and only in short
ones, so that a hostile text cannot make it slow.

Splits a lesson into sections. A section is the text under one heading, with its anchor and its trail: the headings
from the lesson's title down to it.

Anchors follow the rules of each site generator, so that a citation opens at its section.
Docusaurus: github-slugger on the heading's text (its page title, the first-level heading, has no anchor); MkDocs:
Python-Markdown's toc extension; mdBook 0.5: `id_from_content`, `unique_id`; plain: GitHub's, by github-slugger.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.domain.books import Site
from lectern.reading.blocks import MAX_LOOK, Block, Body, explicit_id
from lectern.reading.markup import clean
from lectern.reading.names import one_line

MAX_TITLE = 200  # characters; a longer heading is cut in titles and trails, not in the text
MAX_INDENT, MAX_LEVEL = 3, 6  # the limits of CommonMark
MAX_INLINE = 400  # characters; a longer heading is not parsed, only its tags are removed
_MARKUP = re.compile(r"[`*_\[\]<>&!\\~]")
_TOP_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")  # opens a listing outside quotes and lists
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>|]|\d+[.)])|<|import\s|export\s|:::|!!!|\{")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_HTML_TITLE = re.compile(r"[ \t]{0,20}<h1(?:\s[^<>]{0,300})?>([^\n]{1,400}?)</h1>", re.IGNORECASE)
_inline = MarkdownIt("commonmark", {"maxNesting": 20}).enable("strikethrough")
_MKDOCS_DROPPED = re.compile(r"[^\w\s-]")
_MKDOCS_GAPS = re.compile(r"[-\s]+")
_MKDOCS_COUNT = re.compile(r"(.*)_([0-9]{1,500})")  # more digits are no count; Python refuses numbers over 4,300 digits
_SLUG_CATEGORIES = ("L", "M", "Nd", "Nl", "Pc")  # letters, marks, digits, letter numbers, underscores
MAX_ANCHOR = 500  # characters; a longer anchor is left out of URLs, and the page opens without it


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


def title_heading(body: str, *, wiki: bool = False) -> str | None:
    """The text of the first heading outside code and comments if it is of the first level, so that it is the title of
    the page; None for another. With `wiki`, it may have links to notes."""
    before: list[str] = []  # lines of the paragraph so far; an underline would make them a heading
    for line in _prose_lines(body):
        heading, first_level = atx(line), line.lstrip(" ").startswith(("# ", "#\t"))
        if heading is None and (tag := _HTML_TITLE.match(line)):
            heading, first_level = tag[1], True
        elif heading is None and before and _UNDERLINE.match(line):
            heading, first_level = " ".join(before), line.strip()[0] == "="
        if heading is not None and (words := heading_text(_cleaned(heading, wiki=wiki))):
            return words if first_level else None
        paragraph = heading is None and line.strip() and not line.startswith("    ") and not _NO_PARAGRAPH.match(line)
        if paragraph:
            before.append(line.strip())
        elif before:
            before = []
    return None


def _cleaned(heading: str, *, wiki: bool) -> str:
    """A heading without markup that is not Markdown."""
    return clean(f"# {heading}", [], wiki=wiki).text[2:] if len(heading) <= MAX_INLINE else heading


def _prose_lines(body: str) -> Iterator[str]:
    fence, comment = "", False
    for line in body.split("\n"):
        if comment or line.lstrip().startswith("<!--"):
            comment = "-->" not in line
        elif fence:
            closing = line.strip()
            fence = "" if closing.startswith(fence) and not closing.strip(fence[0]) else fence
        elif match := _TOP_FENCE.match(line):
            fence = match[1]
        else:
            yield line


def anchors(site: Site, headings: Iterable[tuple[int, str]]) -> list[str]:
    """The anchor of each heading (level, Markdown) of a page, in order; "" if the site gives it none."""
    listed = [(level, *explicit_id(heading)) for level, heading in headings]
    if site == "mkdocs":
        return _mkdocs(listed)
    if site == "mdbook":
        return _mdbook(listed)
    return _github(listed, titled=site == "docusaurus")


def github_slug(text: str) -> str:
    """The slug by github-slugger 2: lower case, only letters, marks, digits, `_` and `-`, hyphens for spaces."""
    characters = [
        char for char in text.lower() if char in " -" or unicodedata.category(char).startswith(_SLUG_CATEGORIES)
    ]
    return "".join(characters).replace(" ", "-")


def _github(listed: list[tuple[int, str, str | None]], *, titled: bool) -> list[str]:
    counts: dict[str, int] = {}
    out: list[str] = []
    for level, heading, explicit in listed:
        if explicit is not None:
            out.append(explicit)  # never counted as a repeat
            continue
        slug = base = github_slug(plain(heading))
        while slug in counts:
            counts[base] += 1
            slug = f"{base}-{counts[base]}"
        counts[slug] = 0
        out.append("" if titled and level == 1 else slug)
    return out


def _mkdocs(listed: list[tuple[int, str, str | None]]) -> list[str]:
    slugs = {explicit for _, _, explicit in listed if explicit is not None}
    next_free: dict[str, int] = {}
    out: list[str] = []
    for _, heading, explicit in listed:
        if explicit is not None:
            out.append(explicit)
            continue
        ascii_only = unicodedata.normalize("NFKD", plain(heading, images=False)).encode("ascii", "ignore").decode()
        slug = _MKDOCS_GAPS.sub("-", _MKDOCS_DROPPED.sub("", ascii_only).strip().lower())
        while slug in slugs or not slug:
            count = _MKDOCS_COUNT.fullmatch(slug)
            base, number = (count[1], int(count[2]) + 1) if count else (slug, 1)
            # MkDocs counts up one by one; for ten thousand repeats that would be slow.
            number = max(number, next_free.get(base, 0))
            next_free[base] = number
            slug = f"{base}_{number}"
        slugs.add(slug)
        out.append(slug)
    return out


def _mdbook(listed: list[tuple[int, str, str | None]]) -> list[str]:
    slugs: set[str] = set()
    counts: dict[str, int] = {}
    out: list[str] = []
    for _, heading, explicit in listed:
        if explicit is not None:
            out.append(explicit)  # never counted as a repeat
            continue
        text = plain(heading, images=False).strip().lower()
        characters = (char for char in text if char.isalnum() or char in "_-" or char.isspace())
        base = "".join("-" if char.isspace() else char for char in characters)
        slug = base
        while slug in slugs:
            counts[base] = counts.get(base, 0) + 1
            slug = f"{base}-{counts[base]}"
        slugs.add(slug)
        out.append(slug)
    return out


@dataclass(slots=True)
class Section:
    """A heading and the blocks up to the next one. Text before the first heading is a section without a title."""

    title: str | None
    trail: tuple[str, ...]
    anchor: str
    blocks: list[Block] = field(default_factory=list)


def sections_of(body: Body, lesson_title: str, site: Site) -> list[Section]:
    """The sections of a lesson in order, without empty ones."""
    headings = [block for block in body.blocks if block.kind == "heading"]
    marks = iter(anchors(site, [(block.level, block.title[:MAX_LOOK]) for block in headings]))
    sections = [Section(None, (lesson_title,), "")]
    above: list[tuple[int, str]] = []
    for block in body.blocks:
        anchor = next(marks) if block.kind == "heading" else ""
        anchor = anchor if len(anchor) <= MAX_ANCHOR else ""
        title = heading_text(block.title) if block.kind == "heading" and block.level else ""
        if title:
            above = [(level, words) for level, words in above if level < block.level] + [(block.level, title)]
            sections.append(Section(title, _trail(lesson_title, above), anchor))
        sections[-1].blocks.append(block)
    return [section for section in sections if section.blocks]


def _trail(lesson_title: str, above: list[tuple[int, str]]) -> tuple[str, ...]:
    trail = [lesson_title]
    for _, words in above:
        if words != trail[-1]:
            trail.append(words)
    return tuple(trail)
