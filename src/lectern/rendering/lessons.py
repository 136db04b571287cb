"""The page of a lesson: its source as HTML, with the anchors of the site and the line numbers of the file.

A lesson is rendered from its file, with what it includes, if these are still what was indexed; else from the indexed
chunks. Rendering takes time that is linear in the size, runs in a thread, and its last results are kept."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import structlog

from lectern.domain.books import Manifest
from lectern.domain.chunks import Chunk
from lectern.domain.errors import LecternError
from lectern.domain.outline import Outline, OutlineLesson
from lectern.reading.blocks import MAX_LOOK, Block, Body, read_body
from lectern.reading.chunking import DEFAULT_RULES, ReadingRules
from lectern.reading.files import LessonText, lesson_text, read_bytes
from lectern.reading.headings import MAX_ANCHOR, anchors, heading_text
from lectern.reading.includes import ShownLine
from lectern.reading.problems import Unreadable
from lectern.reading.survey import includer_of
from lectern.rendering.dialects import readable
from lectern.rendering.elements import parse, without_marks
from lectern.rendering.lesson_parser import lesson_parser
from lectern.rendering.links import LessonLinks
from lectern.rendering.markdown import Context, render_tokens
from lectern.rendering.sanitise import sanitised
from lectern.text.words import words_of

MAX_RENDERED, MAX_LINES = 400_000, 10_000  # characters, lines; a longer lesson is shown without inline Markdown
KEPT_PAGES = 16
MAX_KEPT = 500_000  # characters of a page that is kept
AT_ONCE = 2  # lessons that are rendered at the same time

_MAY_INCLUDE = re.compile(  # what any site has in a page that it shows otherwise than it is written
    r"\{\{|\{%|\{!|\{\*|8<-|!\[\[|`\}|mdx-code-block|raw-loader!|^import |^::: |(?:```|~~~)rust", re.MULTILINE
)

Origin = Literal["file", "index"]  # "file": the lesson's file is still the one that was indexed
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHeading:
    """A heading of a lesson, with its anchor on the site; "" if it has none."""

    level: int
    title: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonPage:
    """A rendered lesson."""

    origin: Origin
    html: str
    headings: tuple[PageHeading, ...]
    images: tuple[tuple[str, str | None], ...]  # as the lesson names them, and their files in the book's folder


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonInBook:
    """A lesson to be rendered: its chunks in order, and the book around it. `folder` is None if it may not be read."""

    chunks: Sequence[Chunk]
    outline: Outline
    manifest: Manifest
    folder: Path | None
    include_limits: tuple[str, ...] = ()  # a book below one of these folders includes no file from above it


class LessonPages:
    """Renders lessons in threads, and keeps the last ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, ...], LessonPage] = OrderedDict()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def page(self, lesson: LessonInBook) -> LessonPage:
        """The page of a lesson."""
        async with self._turns:
            raw = await asyncio.to_thread(indexed_file, lesson)
            key = _key(lesson, "index" if raw is None else "file")
            kept = self._kept.get(key)
            if kept is not None and await asyncio.to_thread(_has_its_images, lesson, kept):
                self._kept[key] = kept
                self._kept.move_to_end(key)
                return kept
            page = await asyncio.to_thread(render_lesson, lesson, raw)
        if len(page.html) <= MAX_KEPT:
            self._kept[key] = page
            while len(self._kept) > KEPT_PAGES:
                self._kept.popitem(last=False)
        return page


def _key(lesson: LessonInBook, origin: Origin) -> tuple[str, ...]:
    """What a page depends on, apart from its images: the lesson's bytes, how they were cut, the site, and the lessons
    that it can link to."""
    first = lesson.chunks[0]
    entries = [f"{entry.parent_doc_id} {entry.source_file} {entry.url}" for entry in lessons_of(lesson.outline)]
    around = hashlib.sha256("\n".join([*entries, *(chunk.id for chunk in lesson.chunks)]).encode()).hexdigest()
    return first.book_id, first.parent_doc_id, first.source_file_hash, origin, lesson.manifest.site, around


def _has_its_images(lesson: LessonInBook, page: LessonPage) -> bool:
    """Whether the images of a page are where they were when it was rendered, and those that were missing still are."""
    links = _links(lesson)
    return all(links.image(target) == file for target, file in page.images)


def lessons_of(outline: Outline) -> list[OutlineLesson]:
    """All lessons of a book in order."""
    return [lesson for module in outline.modules for chapter in module.chapters for lesson in chapter.lessons]


def indexed_file(lesson: LessonInBook) -> bytes | None:
    """The lesson's file, if it is in the book's folder and still what was indexed."""
    first = lesson.chunks[0]
    if lesson.folder is None:
        return None
    try:
        raw = read_bytes(lesson.folder, first.source_file, DEFAULT_RULES.max_file_bytes)
    except (Unreadable, ValueError, OSError):
        return None
    return raw if hashlib.sha256(raw).hexdigest() == first.source_file_hash else None


def render_lesson(lesson: LessonInBook, raw: bytes | None) -> LessonPage:
    """The page of a lesson, from the bytes of its file or from its chunks."""
    if raw is not None:
        try:
            page = _from_file(lesson, raw)
        except (Unreadable, LecternError, OSError):
            raw = None  # the limits or the configuration were changed since it was indexed
        else:
            if page is not None:
                return page
    return _from_chunks(lesson, "index" if raw is None else "file")


def _from_file(lesson: LessonInBook, raw: bytes) -> LessonPage | None:
    """The page of a lesson as its site shows it; None if what it includes is no longer what was indexed."""
    first = lesson.chunks[0]
    rules = replace(DEFAULT_RULES, include_limits=lesson.include_limits)
    source = lesson_text(first.source_file, raw, rules)
    lines = _shown_lines(lesson, source, rules)
    if not _are_indexed(lesson.chunks, lines or ()):
        return None
    shown = source.body if lines is None else "\n".join(line.text for line in lines)
    places = None if lines is None else tuple(line.at for line in lines)
    text = _Text(shown, source.body_line + 1, mdx=first.source_file.lower().endswith(".mdx"), places=places)
    body = read_body(text.text, mdx=text.mdx)
    headings = _headings(body, lesson.manifest)
    names = {block.start: heading.anchor for block, heading in headings}
    links = _links(lesson)
    return LessonPage(
        origin="file",
        html=_rendered(text, body, names, links),
        headings=tuple(heading for _, heading in headings if heading.title),
        images=links.images,
    )


def _shown_lines(lesson: LessonInBook, source: LessonText, rules: ReadingRules) -> list[ShownLine] | None:
    """The lines of a lesson with what it includes; None if they are those of its file."""
    if lesson.folder is None or not _MAY_INCLUDE.search(source.body):
        return None
    expanded = includer_of(lesson.folder, rules).expand(lesson.chunks[0].source_file, source.body, source.body_line)
    return expanded.lines if expanded else None


def _are_indexed(chunks: Sequence[Chunk], lines: Sequence[ShownLine]) -> bool:
    """Whether the words that chunks have of other files are among the lines of these files."""
    texts = {line.origin: line.text for line in lines if line.origin is not None}
    for chunk in chunks:
        for part in chunk.included:
            own = [texts.get((part.file, line), "") for line in range(part.line_start, part.line_end + 1)]
            if not _words(chunk.text[part.at : part.end]) <= _words("\n".join(own)):
                return False
    return True


def _words(text: str) -> set[str]:
    return set(words_of(text))


def _from_chunks(lesson: LessonInBook, origin: Origin) -> LessonPage:
    pages: list[str] = []
    headings: list[PageHeading] = []
    links = _links(lesson)
    for chunk in lesson.chunks:
        text = _Text(chunk.text, chunk.line_start, chunk.line_end, mdx=chunk.source_file.lower().endswith(".mdx"))
        body = read_body(chunk.text, mdx=text.mdx)
        names = _chunk_anchors(chunk, body)
        pages.append(_rendered(text, body, names, links))
        headings += [
            PageHeading(level=block.level, title=title, anchor=names.get(block.start, ""))
            for block in body.blocks
            if block.kind == "heading" and block.level and (title := heading_text(block.title))
        ]
    return LessonPage(origin=origin, html="".join(pages), headings=tuple(headings), images=links.images)


@dataclass(frozen=True, slots=True)
class _Text:
    """Markdown to be rendered. `last_line` is set for a chunk: its lines may be joined, so all blocks get its range."""

    text: str
    first_line: int
    last_line: int | None = None
    mdx: bool = field(default=False, kw_only=True)
    places: Sequence[int] | None = field(default=None, kw_only=True)  # of its lines in the file, from the first line

    def lines(self, start: int, end: int) -> tuple[int, int]:
        """The first and the last line in the file of the lines from `start` to before `end`."""
        if self.last_line is not None:
            return self.first_line, self.last_line
        first, last = start, max(end - 1, start)
        if self.places is not None:
            first, last = self.places[min(first, len(self.places) - 1)], self.places[min(last, len(self.places) - 1)]
        return self.first_line + first, self.first_line + last


def _headings(body: Body, manifest: Manifest) -> list[tuple[Block, PageHeading]]:
    """The headings of a lesson with the very anchors that its chunks link to."""
    blocks = [block for block in body.blocks if block.kind == "heading"]
    names = anchors(manifest.site, [(block.level, block.title[:MAX_LOOK]) for block in blocks])
    return [
        (
            block,
            PageHeading(
                level=block.level,
                title=heading_text(block.title) if block.level else "",
                anchor=name if len(name) <= MAX_ANCHOR else "",
            ),
        )
        for block, name in zip(blocks, names, strict=True)
    ]


def _chunk_anchors(chunk: Chunk, body: Body) -> dict[int, str]:
    """The anchors of a chunk's headings by their line in its text, as far as its links tell them."""
    if chunk.sections:
        return {chunk.text.count("\n", 0, mark.at): _anchor_of(mark.url) for mark in chunk.sections}
    for block in body.blocks:
        if block.kind == "heading" and heading_text(block.title) == chunk.section_title:
            return {block.start: _anchor_of(chunk.url)}
    return {}


def _anchor_of(url: str) -> str:
    return unquote(url.partition("#")[2])


def _rendered(text: _Text, body: Body, names: Mapping[int, str], links: LessonLinks) -> str:
    if len(text.text) > MAX_RENDERED or text.text.count("\n") > MAX_LINES:
        return _block_by_block(text, body, names)
    try:
        return _markdown_html(text, names, links)
    except Exception:  # a fault of a library may not cost the reader the lesson
        log.exception("the lesson is shown without Markdown", source_file=links.lesson.source_file)
        return _block_by_block(text, body, names)


def _markdown_html(text: _Text, names: Mapping[int, str], links: LessonLinks) -> str:
    site = links.site
    marked, mdx = readable(text.text, site=site, mdx=text.mdx)
    parser = lesson_parser(site, mdx=mdx)
    env = {"anchors": names, "attribute_lists": site == "mkdocs"}
    tokens = parse(parser, marked, env)
    for token in tokens:
        if token.map:
            first, last = text.lines(*token.map)
            token.map = [first - text.first_line, last - text.first_line + 1]
    context = Context(first_line=text.first_line, lines=True, link=links.link, image=links.image)
    return without_marks(render_tokens(parser, tokens, context))


def _links(lesson: LessonInBook) -> LessonLinks:
    first, folder = lesson.chunks[0], lesson.folder
    lessons = lessons_of(lesson.outline)
    unlisted = OutlineLesson(
        lesson=first.lesson,
        title=first.lesson_title,
        url=first.url.partition("#")[0],
        parent_doc_id=first.parent_doc_id,
        source_file=first.source_file,
        chunk_count=len(lesson.chunks),
    )
    entry = next((entry for entry in lessons if entry.parent_doc_id == first.parent_doc_id), unlisted)
    has_file = None if folder is None else lambda path: os.path.isfile(folder / path)  # noqa: PTH113  # never raises
    return LessonLinks(first.book_id, lesson.manifest.site, entry, lessons, has_file)


def _block_by_block(text: _Text, body: Body, names: Mapping[int, str]) -> str:
    """The blocks of a text without inline Markdown."""
    parts: list[str] = []
    for block in body.blocks:
        lines = text.lines(block.start, block.end)
        attributes = f' data-lines="{lines[0]}-{lines[1]}"'
        words = escape("\n".join(body.lines[block.start : block.end]))
        if block.kind == "heading":
            anchor = names.get(block.start)
            name = f' id="{escape(anchor)}"' if anchor else ""
            tag = f"h{block.level or 6}"
            parts.append(f"<{tag}{name}{attributes}>{escape(heading_text(block.title))}</{tag}>")
        else:
            tag = "p" if block.kind == "text" else "pre"
            parts.append(f"<{tag}{attributes}>{words}</{tag}>")
    return sanitised("\n".join(parts))
