"""Whether books can be served: their index is really read. One book that cannot be served says nothing about the
others."""

from __future__ import annotations

from collections.abc import Sequence

from lectern.domain.books import BookEntry
from lectern.domain.errors import IndexDamaged, LecternError
from lectern.ports.index import ChunkIndex, Collections

Faults = dict[str, LecternError]  # by the book's id


async def faults_of(entries: Sequence[BookEntry], collections: Collections) -> Faults:
    """Why books cannot be served; nothing of a book that can. Each collection is asked once."""
    faults: Faults = {}
    books_of: dict[str, list[BookEntry]] = {}
    for entry in entries:
        books_of.setdefault(entry.collection_name, []).append(entry)
    for group in books_of.values():
        index: ChunkIndex | None = None
        for entry in group:
            try:
                index = (await collections.serving(entry)).index
            except LecternError as exc:
                faults[entry.manifest.book_id] = exc
        faults |= await _faults_in(index, group) if index is not None else {}
    return faults


async def _faults_in(index: ChunkIndex, entries: Sequence[BookEntry]) -> Faults:
    try:
        book_ids = await index.read(lambda view: view.book_ids())
    except LecternError as exc:
        return {entry.manifest.book_id: exc for entry in entries}
    return {
        entry.manifest.book_id: IndexDamaged(
            f"the index holds nothing of {entry.manifest.book_id!r}; run: lectern doctor --mend"
        )
        for entry in entries
        if entry.total_chunks and entry.manifest.book_id not in book_ids
    }
