"""The chunks around a chunk, within its lesson. Each step along the lessons is one read for all chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lectern.domain.chunks import Chunk, ChunkId
from lectern.domain.evidence import Around
from lectern.ports.index import IndexView

Neighbours = dict[str, Around]
Step = Callable[[Chunk], ChunkId | None]


async def neighbours(view: IndexView, chunks: Mapping[str, Chunk], before: int, after: int) -> Neighbours:
    """This many neighbours on either side of each chunk; fewer at the beginning and end of a lesson."""
    earlier = await _walk(view, chunks, before, lambda chunk: chunk.prev_chunk_id)
    later = await _walk(view, chunks, after, lambda chunk: chunk.next_chunk_id)
    return {name: Around(before=tuple(reversed(earlier[name])), after=tuple(later[name])) for name in chunks}


async def _walk(view: IndexView, chunks: Mapping[str, Chunk], steps: int, step: Step) -> dict[str, list[Chunk]]:
    walked: dict[str, list[Chunk]] = {name: [] for name in chunks}
    current = dict(chunks)
    for _ in range(steps):
        next_ids = {name: next_id for name, chunk in current.items() if (next_id := step(chunk)) is not None}
        if not next_ids:
            break
        book_id = next(iter(current.values())).book_id  # all chunks are of one book
        stored = await view.by_ids(book_id, list(dict.fromkeys(next_ids.values())))
        current = {name: stored[next_id].chunk for name, next_id in next_ids.items() if next_id in stored}
        for name, chunk in current.items():
            walked[name].append(chunk)
    return walked
