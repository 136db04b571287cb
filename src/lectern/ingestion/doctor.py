"""Does the index hold what the ledger says? The doctor looks at every collection, chunk by chunk and field by field,
and can mend what it finds: what nobody knows is dropped, what is wrong is forgotten and read again from the book's
folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lectern.domain.chunks import StampedChunk, chunks_digest
from lectern.domain.errors import LecternError
from lectern.domain.filters import ChunkFilter
from lectern.domain.jobs import IngestionRecord
from lectern.ingestion.ingest import IngestRequest, Workshop, ingest
from lectern.ingestion.replacing import change, clear
from lectern.ingestion.stamping import vector_key
from lectern.ports import BookEntry, Change, ChunkIndex, Intent, Stand
from lectern.reading.survey import survey

Kind = Literal[
    "orphan chunks", "outdated points", "damaged lesson", "unknown book", "left-over collection", "unused vectors"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One disagreement, and what became of it."""

    kind: Kind
    book_id: str | None
    detail: str
    mended: bool = False


async def examine(shop: Workshop, *, mend: bool) -> AsyncIterator[Finding]:
    """Every disagreement between index and ledger; with `mend` each is put right."""
    entries = {entry.manifest.book_id: entry for entry in await shop.ledger.books()}
    for entry in entries.values():
        async for finding in _examine_book(shop, entry, mend=mend):
            yield finding
    current = shop.shelf.current.index
    for book_id in sorted(await current.read(lambda view: view.book_ids()) - entries.keys()):
        finding = Finding(
            kind="unknown book", book_id=book_id, detail="the index holds it, the ledger does not know it"
        )
        if mend:
            await clear(shop.ledger, current, book_id)
        yield replace(finding, mended=mend)
    async for finding in _examine_vectors(shop, list(entries.values()), mend=mend):
        yield finding


async def _examine_book(shop: Workshop, entry: BookEntry, *, mend: bool) -> AsyncIterator[Finding]:
    book_id = entry.manifest.book_id
    rebuilt = shop.shelf.current.index.collection  # where an unfinished rebuild goes on
    for collection in await shop.ledger.collections(book_id):
        if collection not in {entry.collection_name, rebuilt}:
            if mend:
                await clear(shop.ledger, await shop.shelf.index(collection), book_id)
            detail = f"chunks of an earlier embedder are still in {collection!r}"
            yield Finding(kind="left-over collection", book_id=book_id, detail=detail, mended=mend)
    index = await shop.shelf.index(entry.collection_name)
    if remnants := await _remnants(shop, index, book_id, drop=mend):
        detail = f"{remnants} of versions that readers no longer see"
        yield Finding(kind="outdated points", book_id=book_id, detail=detail, mended=mend)
    records = await shop.ledger.records(book_id, entry.collection_name)
    where = ChunkFilter(book_id=book_id)
    held = {str(stored.chunk.id): stored for stored in await index.read(lambda view: view.chunks(where))}
    orphans, damaged = await asyncio.to_thread(_compare, held, records)
    if orphans:
        if mend:
            await _drop(shop, entry, index, orphans, ())
        yield Finding(kind="orphan chunks", book_id=book_id, detail=f"{len(orphans)} that no lesson has", mended=mend)
    if damaged:
        trouble = await _read_again(shop, entry, index, damaged) if mend else None
        for record in damaged:
            detail = record.source_file if trouble is None else f"{record.source_file}: {trouble}"
            yield Finding(kind="damaged lesson", book_id=book_id, detail=detail, mended=mend and trouble is None)
    if mend and (mended := await shop.ledger.book(book_id)):
        await shop.shelf.verify(mended)


async def _remnants(shop: Workshop, index: ChunkIndex, book_id: str, *, drop: bool) -> int:
    with shop.alone(book_id):
        pending = {work.number for work in await shop.ledger.unsettled()}
        return await index.remnants(book_id, pending, drop=drop)


def _compare(
    held: dict[str, StampedChunk], records: dict[str, IngestionRecord]
) -> tuple[list[str], list[IngestionRecord]]:
    """Chunks that no record names, and records whose chunks are not, or not all, as they were put there."""
    named = {chunk for record in records.values() for chunk in record.chunk_ids}
    orphans = [chunk for chunk in held if chunk not in named]
    damaged = []
    for record in records.values():
        found = [held[chunk].chunk for chunk in record.chunk_ids if chunk in held]
        if len(found) != record.chunk_count or chunks_digest(found) != record.payload_digest:
            damaged.append(record)
    return orphans, damaged


async def _drop(
    shop: Workshop, entry: BookEntry, index: ChunkIndex, chunks: Sequence[str], retired: Sequence[str]
) -> None:
    book_id = entry.manifest.book_id
    gone = Change(put=(), drop=tuple(chunks), language=entry.manifest.language)
    with shop.alone(book_id):
        await change(shop.ledger, index, book_id, [Intent(change=gone, records=(), retired=tuple(retired))])


async def _read_again(
    shop: Workshop, entry: BookEntry, index: ChunkIndex, damaged: Sequence[IngestionRecord]
) -> str | None:
    """Forget what is wrong and ingest the book; says why where that cannot be done, and then nothing is taken away."""
    book_id, folder = entry.manifest.book_id, Path(entry.source)
    if entry.collection_name != shop.shelf.current.index.collection:
        return f"it is of another embedder; run: lectern ingest {entry.source} --book {book_id}"
    try:
        await asyncio.to_thread(survey, folder, book_id=book_id, rules=shop.rules)
        bad = [chunk for record in damaged for chunk in record.chunk_ids]
        await _drop(shop, entry, index, bad, [record.source_file for record in damaged])
        async for _ in ingest(IngestRequest(folder=folder, book_id=book_id, replace=True), shop):
            pass
    except LecternError as exc:
        return f"it could not be read again ({exc}); run: lectern ingest PATH --book {book_id}"
    return None


async def _examine_vectors(shop: Workshop, entries: list[BookEntry], *, mend: bool) -> AsyncIterator[Finding]:
    """The cache keeps vectors of texts that no book has any more. Only mending looks for them: it means reading all."""
    if not mend:
        return
    used: set[str] = set()
    for entry in entries:
        try:
            stand = await shop.shelf.stand(entry)
        except LecternError:
            return  # an embedder that cannot run here may need its vectors elsewhere
        used |= await _used(stand, entry.manifest.book_id)
        if entry.collection_name != shop.shelf.current.index.collection:
            used |= await _used(shop.shelf.current, entry.manifest.book_id)  # an unfinished rebuild
    pruned = await shop.vectors.prune(used)
    if pruned:
        yield Finding(kind="unused vectors", book_id=None, detail=f"{pruned} that no chunk uses", mended=True)


async def _used(stand: Stand, book_id: str) -> set[str]:
    """The names of all vectors that a book's chunks have in a collection."""
    where = ChunkFilter(book_id=book_id)
    held = await stand.index.read(lambda view: view.chunks(where))

    def names() -> set[str]:
        found: set[str] = set()
        for stored in held:
            windows = stand.embedder.passages(stored.chunk.trail, stored.chunk.text)
            found |= {vector_key(stand.embedder.fingerprint, window) for window in windows}
        return found

    return await asyncio.to_thread(names)
