"""Chunks and their identity. An id names a *text* in a *lesson*. An unchanged chunk keeps its id and its vectors, even
if the rest of the file moves. An edited chunk is a new chunk. If a text occurs twice in a lesson, a count is added to
the id."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NewType

from lectern.domain.books import LessonPlace

ChunkId = NewType("ChunkId", str)
ParentId = NewType("ParentId", str)

CHUNK_SPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")  # fixed by the design; changing it renames every chunk
TOKENS_PER_WORD = 1.3  # the design's estimate; embedders count with their own tokenizers


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionMark:
    """Where a section begins inside a chunk that holds several, and the link that opens there."""

    at: int  # the character of the chunk's text
    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludedLines:
    """A part of a chunk's text that its lesson includes from another file, without a gap between the lines."""

    at: int  # where it begins in the chunk's text
    end: int
    file: str  # POSIX path from the book's folder; it may begin with `..`
    line_start: int  # 1-based, in that file
    line_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The unit that is embedded, found and cited: its text and everything the index stores about it.

    Flat on purpose: the payload in the index has these very fields, so nothing is lost on the way there or back.
    """

    id: ChunkId
    text: str
    # its place in the book
    book_id: str
    module: str
    chapter: int
    lesson: int
    source_file: str
    parent_doc_id: ParentId
    section_title: str | None
    trail: tuple[str, ...]  # headings from the lesson's title down to this section
    breadcrumb: str
    line_start: int  # 1-based, in the source file
    line_end: int
    # whom it suits
    hardware_tier: int
    proficiency_level: str
    layer: str
    # the chain through its lesson
    chunk_index: int
    total_chunks: int
    prev_chunk_id: ChunkId | None
    next_chunk_id: ChunkId | None
    # how a reader sees and opens it
    page_title: str
    module_title: str
    chapter_title: str
    lesson_title: str
    url: str
    sections: tuple[SectionMark, ...]  # none where all of the text is of one section, which `url` opens
    included: tuple[IncludedLines, ...] = ()  # from other files; `line_start` and `line_end` are then the directive's
    # change detection and size
    content_hash: str
    source_file_hash: str
    word_count: int
    token_count: int
    char_count: int

    @property
    def page_url(self) -> str:
        """The link to the page, without the heading's anchor."""
        return self.url.partition("#")[0]

    @property
    def module_name(self) -> str:
        """The module's slug, as the fifth design document calls it."""
        return self.module

    def section_at(self, place: int) -> SectionMark | None:
        """The section at a position in the text, if the chunk contains several."""
        marks = [mark for mark in self.sections if mark.at <= place]
        return marks[-1] if marks else None


def model_of(fingerprint: str) -> str:
    """The model in an embedder's fingerprint, `provider/model/dimensions`; the model's name may have slashes."""
    return fingerprint.partition("/")[2].rpartition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What depends on when and by what a chunk was indexed. It is left out when an index is compared with a fresh
    one."""

    version: int
    created_at: str
    updated_at: str
    embedded_at: str
    embedding_model: str  # its name, as its provider calls it


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedChunk:
    """A chunk as the index holds it."""

    chunk: Chunk
    stamp: Stamp


def content_hash(text: str) -> str:
    """The lower-case hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def chunk_id(place: LessonPlace, text_hash: str, occurrence: int = 1) -> ChunkId:
    """The id of the `occurrence`-th chunk with this text in the lesson at this place."""
    repeat = "" if occurrence == 1 else f":{occurrence}"
    return ChunkId(str(uuid.uuid5(CHUNK_SPACE, f"{place}:{text_hash[:16]}{place.suffix}{repeat}")))


def parent_doc_id(place: LessonPlace) -> ParentId:
    """The id that all chunks of the lesson at this place share."""
    return ParentId(str(uuid.uuid5(CHUNK_SPACE, f"{place}:parent{place.suffix}")))


def chunks_digest(chunks: Iterable[Chunk]) -> str:
    """One hash over every field of these chunks, whatever their order: equal digests mean equal chunks."""
    whole = hashlib.sha256()
    for chunk in sorted(chunks, key=lambda chunk: chunk.id):
        fields = asdict(chunk)
        if not chunk.included:  # a chunk that was indexed before the field existed has the same digest
            del fields["included"]
        whole.update(json.dumps(fields, sort_keys=True).encode())
    return whole.hexdigest()


def estimate_tokens(words: int) -> int:
    """The design's token estimate for a text of this many words."""
    return round(words * TOKENS_PER_WORD)


Vector = list[float]


def direction_of(windows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """One vector for a chunk, of unit length: the mean of its windows if it has several."""
    if len(windows) == 1:
        return tuple(windows[0])
    summed = [math.fsum(column) for column in zip(*windows, strict=True)]
    length = math.hypot(*summed) or 1.0
    return tuple(value / length for value in summed)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk ready for the index."""

    stored: StampedChunk
    vectors: tuple[Vector, ...]  # one a window; the best window counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One replacement as the index sees it: readers see all of it or nothing."""

    put: tuple[IndexedChunk, ...]  # every chunk of the lessons, changed or not
    drop: tuple[str, ...]  # ids of chunks that are deleted
    language: str
