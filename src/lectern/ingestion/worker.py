"""The workbench: where the heavy part of an ingestion is done. Reading a folder and cutting and embedding its lessons
keep a core busy for minutes, so a server has it done in a process of its own, and a command does it here. What is done
is the same: functions of plain values, that any process can carry out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lectern.domain.books import Manifest, Problem, Survey
from lectern.domain.chunks import Chunk, Vector
from lectern.domain.jobs import Replacement
from lectern.ports.index import Embedder
from lectern.reading.lessons import FileChanged, ReadLesson, read_lesson
from lectern.reading.rules import ReadingRules
from lectern.reading.survey import survey

Passage = tuple[Sequence[str], str]  # a chunk's trail and text
BATCH_CHUNKS = 192  # between two commits: enough to keep every core embedding, little to lose


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOrder:
    """Lessons to be read, one after the other, until there are enough chunks for one commit."""

    folder: Path
    manifest: Manifest
    rules: ReadingRules
    replacements: Sequence[Replacement]
    enough: int
    patient: bool  # a file that changes while it is read is worth another survey


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReplacement:
    """A replacement whose lessons have been read, by `source_file`."""

    replacement: Replacement
    lessons: Mapping[str, ReadLesson]

    @property
    def chunks(self) -> list[Chunk]:
        """Every chunk that will stand there."""
        return [chunk for lesson in self.lessons.values() for chunk in lesson.chunks]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """What was read of an order."""

    read: list[ReadReplacement]
    taken: int  # replacements that were looked at
    problems: list[Problem]  # of those that would not hold still


class Worker(Protocol):
    """Does the heavy part."""

    @property
    def batch(self) -> int:
        """Chunks between two commits."""

    async def survey(self, folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
        """The whole folder in one look."""

    async def read(self, order: ReadingOrder) -> BatchRead:
        """Lessons cut into chunks. Raises FileChanged where the order is patient and a file is not."""

    async def windows(self, embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
        """What is embedded for each passage."""

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """One vector a text."""


class InProcess:
    """In this process; what takes long runs in a thread."""

    batch = BATCH_CHUNKS

    async def survey(self, folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
        """The whole folder in one look."""
        return await asyncio.to_thread(survey, folder, book_id=book_id, rules=rules)

    async def read(self, order: ReadingOrder) -> BatchRead:
        """Lessons cut into chunks."""
        return await asyncio.to_thread(read_batch, order)

    async def windows(self, embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
        """What is embedded for each passage."""
        return await asyncio.to_thread(cut, embedder, passages)

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """One vector a text."""
        return await embedder.embed(texts, purpose="passage")


def read_batch(order: ReadingOrder) -> BatchRead:
    """Read replacements in turn until there are enough chunks."""
    read: list[ReadReplacement] = []
    problems: list[Problem] = []
    chunks = taken = 0
    for replacement in order.replacements:
        taken += 1
        one = _read(order, replacement, problems)
        if one is None:
            continue
        read.append(one)
        chunks += len(one.chunks)
        if chunks >= order.enough:
            break
    return BatchRead(read=read, taken=taken, problems=problems)


def _read(order: ReadingOrder, replacement: Replacement, problems: list[Problem]) -> ReadReplacement | None:
    """The lessons of a replacement; None where one will not hold still, and the old version stays."""
    try:
        lessons = {
            source.source_file: read_lesson(order.folder, source, order.manifest, order.rules)
            for source in replacement.lessons
        }
    except FileChanged:
        if order.patient:
            raise
        message = "it changes while it is being read, so its last version stays; ingest again when it rests"
        names = [source.source_file for source in replacement.lessons]
        problems += [Problem(file=name, line=None, message=message, severity="error") for name in names]
        return None
    return ReadReplacement(replacement=replacement, lessons=lessons)


def cut(embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
    """Every passage's windows; tokenizing takes long enough to keep it off a loop."""
    return [embedder.passages(trail, text) for trail, text in passages]
