"""Does the index hold what the ledger says? The doctor looks at every collection, chunk by chunk and field by field,
and can mend what it finds: what nobody knows is dropped, what is wrong is forgotten and read again from the book's
folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
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
from lectern.ports import BookEntry, Change, ChunkIndex, Intent

Kind = Literal["orphan chunks", "damaged lesson", "unknown book", "left-over collection", "unused vectors"]


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
    for collection in await shop.ledger.collections(book_id):
        if collection != entry.collection_name:
            index = await shop.shelf.index(collection)
            if mend:
                await clear(shop.ledger, index, book_id)
            detail = f"chunks of an earlier embedder are still in {collection!r}"
            yield Finding(kind="left-over collection", book_id=book_id, detail=detail, mended=mend)
    index = await shop.shelf.index(entry.collection_name)
    records = await shop.ledger.records(book_id, entry.collection_name)
    where = ChunkFilter(book_id=book_id)
    held = {str(stored.chunk.id): stored for stored in await index.read(lambda view: view.chunks(where))}
    orphans, damaged = _compare(held, records)
    if orphans or damaged:
        outcome = await _mend(shop, entry, index, orphans, damaged) if mend else ""
        if mend and (mended := await shop.ledger.book(book_id)):
            await shop.shelf.verify(mended)
        if orphans:
            yield Finding(
                kind="orphan chunks", book_id=book_id, detail=f"{len(orphans)} that no lesson has", mended=mend
            )
        for record in damaged:
            detail = f"{record.source_file}{outcome}"
            yield Finding(kind="damaged lesson", book_id=book_id, detail=detail, mended=mend and not outcome)


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


async def _mend(
    shop: Workshop, entry: BookEntry, index: ChunkIndex, orphans: list[str], damaged: list[IngestionRecord]
) -> str:
    """Drop what nobody knows, forget what is wrong, and read it again; says why where that could not be done."""
    book_id = entry.manifest.book_id
    bad = tuple(chunk for record in damaged for chunk in record.chunk_ids)
    gone = Change(put=(), drop=(*orphans, *bad), language=entry.manifest.language)
    retired = tuple(record.source_file for record in damaged)
    await change(shop.ledger, index, book_id, [Intent(change=gone, records=(), retired=retired)])
    if not damaged:
        return ""
    try:
        request = IngestRequest(folder=Path(entry.source), book_id=book_id)
        async for _ in ingest(request, shop):
            pass
    except LecternError as exc:
        return f" was taken out and could not be read again ({exc}); run: lectern ingest PATH --book {book_id}"
    return ""


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
        where = ChunkFilter(book_id=entry.manifest.book_id)
        for stored in await stand.index.read(lambda view, where=where: view.chunks(where)):  # type: ignore[misc]
            windows = stand.embedder.passages(stored.chunk.trail, stored.chunk.text)
            used |= {vector_key(stand.embedder.fingerprint, window) for window in windows}
    pruned = await shop.vectors.prune(used)
    if pruned:
        yield Finding(kind="unused vectors", book_id=None, detail=f"{pruned} that no chunk uses", mended=True)
