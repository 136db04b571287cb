"""Both scores for every candidate. Two searches propose chunks; what only one of them found is scored by the other as
well, so that fusion compares like with like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from lectern.domain.chunks import ChunkId
from lectern.domain.evidence import Candidate

Scores = dict[str, float]  # by the point's name in the engine
Find = Callable[[Collection[str] | None], Awaitable[Scores]]  # among these points, or among all in scope
Named = tuple[ChunkId, str]  # a chunk and its content_hash: all that ranking needs of it
Names = Callable[[Collection[str]], Mapping[str, Named]]


async def candidates(near: Find, worded: Find, names: Names) -> list[Candidate]:
    """The union of what is nearest and what shares most words, each with its cosine and its BM25 score."""
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
