"""What every engine shares: conditions and candidates.

A filter becomes a list of conditions that must all hold, the book's always first. An adapter only translates them, so
it cannot leave the book out or end up with an empty filter.

Every candidate has both scores. Two searches propose chunks, and a chunk that only one of them found is scored by the
other as well, so that fusion compares equal things.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from lectern.domain.chunks import ChunkId
from lectern.domain.evidence import Candidate
from lectern.domain.scope import ChunkFilter
from lectern.index.schema import TENANT_FIELD

Scores = dict[str, float]  # by the point's name in the engine
Find = Callable[[Collection[str] | None], Awaitable[Scores]]  # among these points, or among all in scope
Named = tuple[ChunkId, str]  # a chunk and its content_hash: all that ranking needs of it
Names = Callable[[Collection[str]], Mapping[str, Named]]


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
    """The field lies between these bounds, both included; None is no bound."""

    key: str
    low: int | None
    high: int | None


Condition = Equals | AnyOf | Within


def conditions_of(where: ChunkFilter) -> list[Condition]:
    """The conditions that a chunk in scope fulfils."""
    found: list[Condition] = [Equals(TENANT_FIELD, where.book_id), Within("hardware_tier", None, where.max_tier)]
    for key, value in (
        ("module", where.module),
        ("lesson", where.lesson),
        ("layer", where.layer),
        ("parent_doc_id", where.parent_doc_id),
    ):
        if value is not None:
            found.append(Equals(key, value))
    if where.chapter_min is not None or where.chapter_max is not None:
        found.append(Within("chapter", where.chapter_min, where.chapter_max))
    if where.levels is not None:
        found.append(AnyOf("proficiency_level", tuple(sorted(where.levels))))
    return found


async def candidates(near: Find, worded: Find, names: Names) -> list[Candidate]:
    """The union of the nearest chunks and those that share most words, each with its cosine and its BM25 score."""
    cosines, bm25s = await near(None), await worded(None)
    found = cosines.keys() | bm25s.keys()
    if missing := found - cosines.keys():
        cosines |= await near(missing)
    if missing := found - bm25s.keys():
        bm25s |= await worded(missing)
    return [
        Candidate(
            id=chunk, content_hash=text, cosine=cosines[point], bm25=bm25s.get(point, 0.0)
        )  # none: no word shared
        for point, (chunk, text) in names(found).items()
        if point in cosines  # one that vanished between two queries belongs to a version that is going
    ]
