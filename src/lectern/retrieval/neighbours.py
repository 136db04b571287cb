"""The chunks around a chunk, within its lesson. The chain of chunks is followed one step at a time, for all chunks
together."""

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


async def _walk(view: IndexView, chunks: Mapping[str, Chunk], steps: int, onward: Step) -> dict[str, list[Chunk]]:
    walked: dict[str, list[Chunk]] = {name: [] for name in chunks}
    at = dict(chunks)
    for _ in range(steps):
        wanted = {name: beside for name, chunk in at.items() if (beside := onward(chunk)) is not None}
        if not wanted:
            break
        book_id = next(iter(at.values())).book_id  # a view is asked about one book
        found = await view.by_ids(book_id, list(dict.fromkeys(wanted.values())))
        at = {name: found[beside].chunk for name, beside in wanted.items() if beside in found}
        for name, chunk in at.items():
            walked[name].append(chunk)
    return walked
