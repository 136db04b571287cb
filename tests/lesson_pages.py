"""Lessons of a folder as pages, and what can be seen of a page: for tests of rendering."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from structlog.testing import capture_logs

from lectern.domain.chunks import Chunk, parent_doc_id
from lectern.domain.outline import Outline, OutlineChapter, OutlineLesson, OutlineModule
from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey
from lectern.rendering.lessons import LessonInBook, LessonPage, indexed_file, render_lesson

_WORD = re.compile(r"[^\W_]+")
_MARKUP = (  # what a reader of the site does not see either
    (r"^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?:`{3,}|~{3,}).*$", re.MULTILINE),  # the line of a fence
    (r"\]\((?:<[^>\n]*>|(?:[^()\n]|\([^()\n]*\))*)\)|(?<=\])\[[^\]\n]*\]", 0),  # where a link leads
    (r"^[ \t>]*\[[^\]]+\]:[ \t]*(?:\n[ \t]*)?\S*|\[\^[^\]\s]+\]", re.MULTILINE),  # labels of links and footnotes
    (r"^[ \t>]*(?::{2,}|/{3,}|!!!|\?\?\?\+?)[ \t]*[\w-]*|^[ \t>]*\[![A-Z]+\]|^.*--8<--.*$", re.MULTILINE),
    (r"\$\$.*?\$\$|\$(?:[^$`\n]|\n(?!\n))+\$|\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL),  # formulas
    (r"\{:?[ \t]*[.#/][^}\n]*\}", 0),  # ids of headings, attribute lists
    (r"^[ \t>]*(?:[-*+][ \t]+)*\d+[.)](?=\s)", re.MULTILINE),  # numbers of list items
    (r"\*+|~~|\\(?=[!-/:-@\[-`{-~])", 0),
)


@dataclass
class Visible(HTMLParser):
    """What a reader can see of a page, and what a script can find there."""

    html: str
    parts: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    links: list[dict[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the attributes that show or name something."""
        found = {name: value or "" for name, value in attrs}
        self.parts += [found[name] for name in ("alt", "data-label", "title") if found.get(name)]
        self.parts.append("" if tag in ("a", "b", "code", "em", "i", "kbd", "span", "strong", "sub", "sup") else " ")
        if "id" in found:
            self.ids.append(found["id"])
        if "data-lines" in found:
            first, last = map(int, found["data-lines"].split("-"))
            self.lines.update(range(first, last + 1))
        if tag == "a":
            self.links.append(found)
        if "data-file" in found:
            self.files.append(found["data-file"])

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.parts.append(data)

    @property
    def text(self) -> str:
        """All that can be read."""
        return "".join(self.parts)


def missing_words(chunk: str, seen: str) -> set[str]:
    """The words of a chunk, without its markup, that a page does not show."""
    for pattern, flags in _MARKUP:
        chunk = re.sub(pattern, " ", chunk, flags=flags)
    return {word for word in _WORD.findall(unescape(chunk)) if word not in seen}


def lessons_in(folder: Path, step: int = 1) -> Iterator[LessonInBook]:
    """Every `step`-th lesson of a folder, as an ingestion would index it."""
    book = survey(folder)
    lessons = [
        OutlineLesson(
            lesson=source.place.lesson,
            title=source.lesson_title,
            url=source.url,
            parent_doc_id=parent_doc_id(source.place),
            source_file=source.source_file,
            chunk_count=1,
        )
        for source in book.lessons
    ]
    chapter = OutlineChapter(chapter=1, title="", lessons=tuple(lessons))
    module = OutlineModule(module="main", title="", chapters=(chapter,))
    outline = Outline(book_id=book.manifest.book_id, title=book.manifest.title, modules=(module,))
    for source in book.lessons[::step]:
        if chunks := read_lesson(folder, source, book.manifest).chunks:
            yield LessonInBook(chunks=chunks, outline=outline, manifest=book.manifest, folder=folder)


def page_of(lesson: LessonInBook, *, from_file: bool = True) -> LessonPage:
    """A lesson as a page. A fault that the renderer would hide from readers, by showing plain blocks, is an error."""
    with capture_logs() as entries:
        page = render_lesson(lesson, indexed_file(lesson) if from_file else None)
    assert entries == []
    return page


def page_of_text(
    folder: Path, text: str | bytes, *, name: str = "docs/lesson.md", config: str = "docusaurus.config.js"
) -> LessonPage:
    """The page of a single lesson that is written into a folder."""
    (folder / config).write_text("", encoding="utf-8")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    [lesson] = [lesson for lesson in lessons_in(folder) if lesson.chunks[0].source_file == name]
    page = page_of(lesson)
    assert page.origin == "file"
    return page


def anchors_of(chunks: list[Chunk]) -> set[str]:
    """The addresses that citations of these chunks can have."""
    return {mark.url for chunk in chunks for mark in chunk.sections} | {chunk.url for chunk in chunks}
