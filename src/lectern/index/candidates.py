"""Both scores for every candidate. Two searches propose chunks; what only one of them found is scored by the other as
well, so that fusion compares like with like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from lectern.domain.chunks import StampedChunk
from lectern.domain.evidence import Candidate


class Scored(Protocol):
    """A point with a score, as every engine gives it."""

    @property
    def id(self) -> object:
        """The point's name in the engine."""

    @property
    def score(self) -> float:
        """How well it matches."""


P = TypeVar("P", bound=Scored)
Find = Callable[[Collection[object] | None], Awaitable[Sequence[P]]]  # among these points, or among all in scope


async def candidates(near: Find[P], worded: Find[P], stored: Callable[[P], StampedChunk]) -> list[Candidate]:
    """The union of what is nearest and what shares most words, each with its cosine and its BM25 score."""
    by_cosine, by_words = await near(None), await worded(None)
    found = {point.id: point for point in (*by_cosine, *by_words)}
    cosines = {point.id: point.score for point in by_cosine}
    bm25s = {point.id: point.score for point in by_words}
    if missing := found.keys() - cosines.keys():
        cosines |= {point.id: point.score for point in await near(missing)}
    if missing := found.keys() - bm25s.keys():
        bm25s |= {point.id: point.score for point in await worded(missing)}
    return [
        Candidate(stored=stored(point), cosine=cosines[name], bm25=bm25s.get(name, 0.0))  # none: no word in common
        for name, point in found.items()
        if name in cosines  # a point that vanished between two queries belongs to a version that is going
    ]
