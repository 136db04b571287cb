"""The page of a lesson: its source as HTML, with the anchors of the site and the line numbers of the file.

A lesson is rendered from its file if that is still the file that was indexed and includes no other, else from the
indexed chunks. Rendering takes time that is linear in the size, runs in a thread, and its last results are kept."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import structlog
from markdown_it.token import Token

from lectern.domain.books import Manifest
from lectern.domain.chunks import Chunk
from lectern.domain.outline import Outline, OutlineLesson
from lectern.reading.blocks import MAX_LOOK, Block, Body, read_body
from lectern.reading.chunking import DEFAULT_RULES
from lectern.reading.files import lesson_text, read_bytes
from lectern.reading.headings import MAX_ANCHOR, anchors, heading_text
from lectern.reading.problems import Unreadable
from lectern.rendering.dialects import readable
from lectern.rendering.elements import parse, without_marks
from lectern.rendering.lesson_parser import lesson_parser
from lectern.rendering.links import LessonLinks
from lectern.rendering.markdown import Context, render_tokens
from lectern.rendering.sanitise import sanitised

MAX_RENDERED, MAX_LINES = 400_000, 10_000  # characters, lines; a longer lesson is shown without inline Markdown
KEPT_PAGES = 16
MAX_KEPT = 500_000  # characters of a page that is kept
AT_ONCE = 2  # lessons that are rendered at the same time

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
    """The page of a lesson, from the bytes of its file or from its chunks. Only the chunks have what a lesson includes
    from other files."""
    if raw is not None and not any(chunk.included for chunk in lesson.chunks):
        try:
            return _from_file(lesson, raw)
        except Unreadable:
            raw = None  # the limits were changed since it was indexed
    return _from_chunks(lesson, "index" if raw is None else "file")


def _from_file(lesson: LessonInBook, raw: bytes) -> LessonPage:
    first = lesson.chunks[0]
    source = lesson_text(first.source_file, raw, DEFAULT_RULES)
    text = _Text(source.body, source.body_line + 1, mdx=first.source_file.lower().endswith(".mdx"))
    body = read_body(source.body, mdx=text.mdx)
    headings = _headings(body, lesson.manifest)
    names = {block.start: heading.anchor for block, heading in headings}
    links = _links(lesson)
    return LessonPage(
        origin="file",
        html=_rendered(text, body, names, links),
        headings=tuple(heading for _, heading in headings if heading.title),
        images=links.images,
    )


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
    if text.last_line is not None:
        _set_lines(tokens, text.last_line - text.first_line + 1)
    context = Context(first_line=text.first_line, lines=True, link=links.link, image=links.image)
    return without_marks(render_tokens(parser, tokens, context))


def _set_lines(tokens: Sequence[Token], count: int) -> None:
    for token in tokens:
        if token.map:
            token.map = [0, count]


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
        lines = (text.first_line + block.start, text.first_line + block.end - 1)
        if text.last_line is not None:
            lines = (text.first_line, text.last_line)
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
