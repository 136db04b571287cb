"""The heavy part of an ingestion: reading a folder, cutting its lessons into chunks and embedding them. It keeps a core
busy for minutes, so a server has it done by a subprocess and a command does it in its own process. Both use the same
functions of plain values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lectern.domain.books import Manifest, Problem, Survey
from lectern.domain.chunks import Chunk, Vector
from lectern.domain.jobs import Replacement
from lectern.ingestion.languages import with_language
from lectern.ports.index import Embedder
from lectern.reading.chunking import ReadingRules
from lectern.reading.lessons import FileChanged, ReadLesson, read_lesson
from lectern.reading.survey import survey

Passage = tuple[Sequence[str], str]  # a chunk's trail and text
BATCH_CHUNKS = 192  # between two commits: enough to keep every core busy, and little to lose


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOrder:
    """Lessons to read, one after the other, until there are enough chunks for one commit."""

    folder: Path
    manifest: Manifest
    rules: ReadingRules
    replacements: Sequence[Replacement]
    enough: int
    raise_on_change: bool  # if a file changes while it is read; otherwise it is skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReplacement:
    """A replacement whose lessons have been read, by `source_file`."""

    replacement: Replacement
    lessons: Mapping[str, ReadLesson]

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks of all its lessons."""
        return [chunk for lesson in self.lessons.values() for chunk in lesson.chunks]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """The result of a ReadingOrder."""

    replacements: list[ReadReplacement]
    consumed: int  # replacements of the order that are dealt with, read or skipped
    problems: list[Problem]  # of replacements that were skipped


class Worker(Protocol):
    """Does the heavy part of ingestions."""

    @property
    def batch(self) -> int:
        """Chunks between two commits."""

    async def survey(self, folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
        """Survey a folder."""

    async def read(self, order: ReadingOrder) -> BatchRead:
        """Read lessons and cut them into chunks. Raises FileChanged if a file changes and the order says so."""

    async def windows(self, embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
        """The texts that are embedded for each passage."""

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text."""


class InProcess:
    """Does the work in this process; long steps run in a thread."""

    batch = BATCH_CHUNKS

    async def survey(self, folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
        """Survey a folder."""
        return await asyncio.to_thread(survey_book, folder, book_id, rules)

    async def read(self, order: ReadingOrder) -> BatchRead:
        """Read lessons and cut them into chunks."""
        return await asyncio.to_thread(read_batch, order)

    async def windows(self, embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
        """The texts that are embedded for each passage."""
        return await asyncio.to_thread(cut, embedder, passages)

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text."""
        return await embedder.embed(texts, purpose="passage")


def survey_book(folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
    """Survey a folder, and tell the language of its book."""
    return with_language(survey(folder, book_id=book_id, rules=rules))


def read_batch(order: ReadingOrder) -> BatchRead:
    """Read replacements in turn until there are enough chunks."""
    replacements: list[ReadReplacement] = []
    problems: list[Problem] = []
    chunks = consumed = 0
    for replacement in order.replacements:
        consumed += 1
        read_replacement = _read(order, replacement, problems)
        if read_replacement is None:
            continue
        replacements.append(read_replacement)
        chunks += len(read_replacement.chunks)
        if chunks >= order.enough:
            break
    return BatchRead(replacements=replacements, consumed=consumed, problems=problems)


def _read(order: ReadingOrder, replacement: Replacement, problems: list[Problem]) -> ReadReplacement | None:
    """Read the lessons of a replacement; None if a file changes while it is read, and the old version stays."""
    try:
        lessons = {
            source.source_file: read_lesson(order.folder, source, order.manifest, order.rules)
            for source in replacement.lessons
        }
    except FileChanged:
        if order.raise_on_change:
            raise
        message = "it changes while it is being read, so its last version stays; ingest again when it rests"
        names = [source.source_file for source in replacement.lessons]
        problems += [Problem(file=name, line=None, message=message, severity="error") for name in names]
        return None
    return ReadReplacement(replacement=replacement, lessons=lessons)


def cut(embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
    """The windows of each passage. Tokenizing takes long, so it must not run in the event loop."""
    return [embedder.passages(trail, text) for trail, text in passages]
