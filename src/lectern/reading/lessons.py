"""Reads one lesson: cuts its file into sections and chunks, and gives the chunks ids and links to their neighbours.
Nothing is shared between lessons, so they can be read in any process and order."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from lectern.domain.books import Inclusion, LessonSource, Manifest, Problem
from lectern.domain.chunks import (
    Chunk,
    ChunkId,
    IncludedLines,
    SectionMark,
    chunk_id,
    content_hash,
    estimate_tokens,
    parent_doc_id,
)
from lectern.reading.blocks import read_body
from lectern.reading.chunking import DEFAULT_RULES, Draft, ReadingRules, drafts_of
from lectern.reading.files import LessonText, lesson_text, read_bytes
from lectern.reading.headings import sections_of
from lectern.reading.includes import Includer, ShownLine
from lectern.reading.problems import Unreadable, error, internal_error

_UNSAFE = re.compile(r"[\x00-\x20\"#%<>\\^`{|}\x7f-\xa0]")
ARROW = " › "


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLesson:
    """The chunks of a lesson; if there are none, an error says why."""

    chunks: tuple[Chunk, ...]
    problems: tuple[Problem, ...] = ()


class FileChanged(Exception):
    """The file is no longer the one that was surveyed; survey the folder again."""

    def __init__(self, source_file: str) -> None:
        self.source_file = source_file
        super().__init__(source_file)


def read_lesson(
    folder: Path, source: LessonSource, manifest: Manifest, rules: ReadingRules = DEFAULT_RULES
) -> ReadLesson:
    """Cut a surveyed file into chunks. Raises FileChanged if its bytes have changed since the survey."""
    try:
        raw = read_bytes(folder, source.source_file, rules.max_file_bytes)
    except Unreadable as exc:
        raise FileChanged(source.source_file) from exc
    if hashlib.sha256(raw).hexdigest() != source.source_file_hash:
        raise FileChanged(source.source_file)
    try:
        return _cut(folder, source, raw, manifest, rules)
    except FileChanged:
        raise
    except Unreadable as exc:
        return ReadLesson(chunks=(), problems=(exc.problem(source.source_file),))
    except Exception as exc:  # noqa: BLE001  # one file never stops the others, whatever is in it
        return ReadLesson(chunks=(), problems=(internal_error(source.source_file, exc),))


def _cut(folder: Path, source: LessonSource, raw: bytes, manifest: Manifest, rules: ReadingRules) -> ReadLesson:
    lesson = lesson_text(source.source_file, raw, rules)
    lines: list[ShownLine] | None = None
    if source.inclusion is not None:
        lines = _expanded(folder, source, source.inclusion, lesson, rules)
    text = lesson.body if lines is None else "\n".join(line.text for line in lines)
    body = read_body(text, mdx=source.source_file.lower().endswith(".mdx"), wiki=source.wiki)
    drafts = drafts_of(body, sections_of(body, source.lesson_title, manifest.site), rules)
    texts = [draft.text() for draft in drafts]
    if not texts or (len(texts) == 1 and len(texts[0]) < rules.min_chars):
        message = f"the lesson has fewer than {rules.min_chars} characters of text; write more or remove the file"
        return ReadLesson(chunks=(), problems=(error(source.source_file, lesson.body_line + 1, message),))
    return ReadLesson(chunks=_chunks(source, drafts, texts, _FileLines(lesson.body_line, lines)))


def _expanded(
    folder: Path, source: LessonSource, inclusion: Inclusion, lesson: LessonText, rules: ReadingRules
) -> list[ShownLine]:
    """The lines of a lesson with what it includes. Raises FileChanged if that has changed since the survey."""
    includer = Includer(folder, inclusion, rules, inclusion.notes)
    expanded = includer.expand(source.source_file, lesson.body, lesson.body_line)
    if expanded is None or expanded.inclusion.digest != inclusion.digest:
        raise FileChanged(source.source_file)
    return expanded.lines


@dataclass(frozen=True, slots=True)
class _FileLines:
    """Which lines of files the lines of a body are."""

    before: int  # lines of the file before the body
    lines: list[ShownLine] | None  # None: the body is that of the file

    def number(self, line: int) -> int:
        """The line of the lesson's file, from 1."""
        return self.before + 1 + (line if self.lines is None else self.lines[line].at)

    def included(self, draft: Draft) -> tuple[IncludedLines, ...]:
        """The parts of a draft that are from other files."""
        parts: list[IncludedLines] = []
        for at, end, number in draft.line_spans() if self.lines is not None else []:
            origin = self.lines[number].origin if self.lines is not None else None
            if origin is None:
                continue
            file, line = origin
            last = parts[-1] if parts else None
            if last and (last.file, last.line_end + 1) == origin and at == last.end + 1:
                parts[-1] = replace(last, end=end, line_end=line)
            else:
                parts.append(IncludedLines(at=at, end=end, file=file, line_start=line, line_end=line))
        return tuple(parts)


def _chunks(source: LessonSource, drafts: list[Draft], texts: list[str], file_lines: _FileLines) -> tuple[Chunk, ...]:
    hashes = [content_hash(text) for text in texts]
    occurrences: Counter[str] = Counter()
    ids: list[ChunkId] = []
    for text_hash in hashes:
        occurrences[text_hash] += 1
        ids.append(chunk_id(source.place, text_hash, occurrences[text_hash]))
    parent = parent_doc_id(source.place)
    return tuple(
        Chunk(
            id=ids[index],
            text=text,
            book_id=source.place.book_id,
            module=source.place.module,
            chapter=source.place.chapter,
            lesson=source.place.lesson,
            source_file=source.source_file,
            parent_doc_id=parent,
            section_title=draft.title,
            trail=draft.trail,
            breadcrumb=_breadcrumb(source, draft.trail),
            line_start=file_lines.number(draft.first),
            line_end=file_lines.number(draft.last),
            hardware_tier=source.hardware_tier,
            proficiency_level=source.proficiency_level,
            layer=source.layer,
            chunk_index=index,
            total_chunks=len(texts),
            prev_chunk_id=ids[index - 1] if index else None,
            next_chunk_id=ids[index + 1] if index + 1 < len(ids) else None,
            page_title=source.page_title,
            module_title=source.module_title,
            chapter_title=source.chapter_title,
            lesson_title=source.lesson_title,
            url=_link(source, draft.anchor),
            sections=tuple(
                SectionMark(at=at, title=title, url=_link(source, anchor)) for at, title, anchor in draft.sections()
            ),
            included=file_lines.included(draft),
            content_hash=hashes[index],
            source_file_hash=source.source_file_hash,
            word_count=(words := len(text.split())),
            token_count=estimate_tokens(words),
            char_count=len(text),
        )
        for index, (draft, text) in enumerate(zip(drafts, texts, strict=True))
    )


def _link(source: LessonSource, anchor: str) -> str:
    return f"{source.url}#{_fragment(anchor)}" if anchor else source.url


def _breadcrumb(source: LessonSource, trail: tuple[str, ...]) -> str:
    """Module, chapter, lesson and headings, without a heading that only repeats the lesson's title."""
    steps = [source.module_title, source.chapter_title, *trail]
    if len(trail) > 1 and _words(trail[1]) in _words(trail[0]):
        del steps[3]
    crumbs = [step for at, step in enumerate(steps) if at == 0 or _words(step) != _words(steps[at - 1])]
    return ARROW.join(crumbs)


def _words(title: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in title.casefold()).split())


def _fragment(anchor: str) -> str:
    """An anchor for a URL: unsafe characters are quoted, letters of any script stay readable."""
    return _UNSAFE.sub(lambda unsafe: quote(unsafe[0]), anchor)
