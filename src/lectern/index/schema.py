"""The shape of a collection: its name, its vectors, and which payload fields are indexed.

Conditions and candidates, shared by the embedded index and the server's.

A filter becomes a list of conditions that must all hold, the book's first. An adapter translates this list, so it
cannot leave the book out or build an empty filter.

Every candidate has both scores. Two searches propose chunks, and a chunk that only one of them found is scored by the
other too, so that fusion compares the same scores.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from lectern.domain.chunks import ChunkId
from lectern.domain.evidence import Candidate
from lectern.domain.scope import ChunkFilter

TENANT_FIELD = "book_id"
KEYWORD_FIELDS = (
    "module",
    "proficiency_level",
    "layer",
    "parent_doc_id",
    "content_hash",
    "source_file_hash",
)
HASH_FIELD = "content_hash"  # tells texts apart without reading them
INTEGER_FIELDS = ("chapter", "lesson", "hardware_tier")

DENSE = "dense"
LEXICAL = "lexical"
Scores = dict[str, float]  # by the point's id in the engine
ScorePoints = Callable[[Collection[str] | None], Awaitable[Scores]]  # among these points, or among all in scope
ChunkRef = tuple[ChunkId, str]  # a chunk's id and its content_hash: all that ranking needs of it
ReadRefs = Callable[[Collection[str]], Mapping[str, ChunkRef]]  # by the point's id in the engine


def collection_name(stem: str, fingerprint: str) -> str:
    """`{stem}-{fingerprint}`, in characters that file systems and servers take."""
    return f"{stem}-{re.sub(r'[^A-Za-z0-9._]+', '-', fingerprint)}"


@dataclass(frozen=True, slots=True)
class Equals:
    """The field has this value."""

    key: str
    value: str | int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field has one of these values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The field lies between these bounds, both included; None means no bound."""

    key: str
    low: int | None
    high: int | None


Condition = Equals | AnyOf | Within


def conditions_of(where: ChunkFilter) -> list[Condition]:
    """The conditions that a chunk in scope meets."""
    conditions: list[Condition] = [Equals(TENANT_FIELD, where.book_id), Within("hardware_tier", None, where.max_tier)]
    for key, value in (
        ("module", where.module),
        ("lesson", where.lesson),
        ("layer", where.layer),
        ("parent_doc_id", where.parent_doc_id),
    ):
        if value is not None:
            conditions.append(Equals(key, value))
    if where.chapter_min is not None or where.chapter_max is not None:
        conditions.append(Within("chapter", where.chapter_min, where.chapter_max))
    if where.levels is not None:
        conditions.append(AnyOf("proficiency_level", tuple(sorted(where.levels))))
    return conditions


async def candidates(vector_scores: ScorePoints, word_scores: ScorePoints, chunk_refs: ReadRefs) -> list[Candidate]:
    """The union of the nearest chunks and those that share most words, each with its cosine and its BM25 score."""
    cosines, bm25s = await vector_scores(None), await word_scores(None)
    points = cosines.keys() | bm25s.keys()
    if missing := points - cosines.keys():
        cosines |= await vector_scores(missing)
    if missing := points - bm25s.keys():
        bm25s |= await word_scores(missing)
    return [
        # a point without a BM25 score shares no word
        Candidate(id=chunk_id, content_hash=content_hash, cosine=cosines[point], bm25=bm25s.get(point, 0.0))
        for point, (chunk_id, content_hash) in chunk_refs(points).items()
        if point in cosines  # a point that was deleted between the two queries belongs to an old version
    ]
