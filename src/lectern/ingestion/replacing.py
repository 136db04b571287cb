"""Changes of the index: an intent is written to the ledger, applied to the index, and settled. If the process is killed
in between, `recover` applies the intent again. An intent that cannot be applied stays in the ledger: its book is not
served until the doctor has mended it, and all other books are served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from lectern.domain.books import BookEntry, LessonSource
from lectern.domain.chunks import Change, Chunk, IndexedChunk, StampedChunk, chunks_digest, model_of
from lectern.domain.clock import utc_now
from lectern.domain.errors import (
    Busy,
    IndexDamaged,
    IndexMismatch,
    LecternError,
    ProviderError,
    StoreUnavailable,
    TakenOver,
)
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.outages import is_outage
from lectern.ingestion.vectors import VectorSource, stamp_chunks
from lectern.ingestion.worker import ReadReplacement
from lectern.ports.index import ChunkIndex, Collections, Serving
from lectern.ports.jobs import BookLocks
from lectern.ports.ledger import Ledger

UNKNOWN_COUNT = -1  # matches no index: for a book whose number of chunks is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckChange:
    """A change that could not be applied, and why."""

    work: Unsettled
    reason: Exception

    @property
    def error(self) -> LecternError:
        """The error for a request that changes the same book."""
        if isinstance(self.reason, ProviderError | StoreUnavailable | TakenOver):
            return self.reason  # waiting may fix it, or another server does
        return IndexDamaged(
            f"an earlier change of {self.work.book_id!r} could not be completed ({self.reason}); "
            "run: lectern doctor --mend"
        )


def without_digests(
    records: Mapping[str, IngestionRecord], files: AbstractSet[str] | None
) -> dict[str, IngestionRecord]:
    """The records, with the digests of these files removed, so that the files count as modified."""
    files = files or frozenset()
    return {name: replace(record, digest="") if name in files else record for name, record in records.items()}


def intent_of(
    read: ReadReplacement,
    stored_chunks: Mapping[str, StampedChunk],
    vectors: VectorSource,
    serving: Serving,
    language: str,
) -> Intent:
    """The intent of one replacement. A lesson without chunks is removed from the index, like a deleted one."""
    model = model_of(serving.embedder.fingerprint)
    chunks = read.chunks
    sources = {lesson.source_file: lesson for lesson in read.replacement.lessons}
    new_ids = {chunk.id for chunk in chunks}
    indexed = tuple(
        IndexedChunk(stored=stored, vectors=vectors.vectors(stored.chunk))
        for stored in stamp_chunks(chunks, stored_chunks, model)
    )
    old_ids = [chunk_id for record in read.replacement.retired for chunk_id in record.chunk_ids]
    drop = tuple(chunk_id for chunk_id in old_ids if chunk_id not in new_ids)
    return Intent(
        change=Change(put=indexed, drop=drop, language=language),
        records=tuple(
            _record(sources[name], lesson.chunks, serving.index.count_terms(lesson.chunks, language))
            for name, lesson in read.lessons.items()
            if lesson.chunks
        ),
        retired=tuple(record.source_file for record in read.replacement.retired),
    )


async def change(
    ledger: Ledger,
    index: ChunkIndex,
    book_id: str,
    intents: Sequence[Intent],
    applied: Callable[[Intent], None] = lambda _: None,
) -> None:
    """Write the intents to the ledger, apply and settle them, and call `applied` for each. This is finished even if the
    caller is cancelled: otherwise a later process would apply the intents again, over newer chunks."""
    if not intents:
        return
    work = asyncio.ensure_future(_change(ledger, index, book_id, intents))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if work.exception() is None:
            for intent in intents:
                applied(intent)
        raise
    for intent in intents:
        applied(intent)


async def _change(ledger: Ledger, index: ChunkIndex, book_id: str, intents: Sequence[Intent]) -> None:
    number = await ledger.intend(book_id, index.collection, intents)
    work = Unsettled(number=number, book_id=book_id, collection=index.collection, intents=tuple(intents))
    await _apply(ledger, index, work)


async def recover_all(ledger: Ledger, collections: Collections, locks: BookLocks) -> None:
    """Apply the unfinished changes of every book, except books that another process has locked: it finishes them."""
    for book_id in dict.fromkeys([work.book_id for work in await ledger.unsettled()]):
        try:
            async with locks.hold(book_id):
                await recover(ledger, collections, book_id)
        except Busy:
            continue


async def recover(ledger: Ledger, collections: Collections, book_id: str) -> list[StuckChange]:
    """Apply the changes that a killed process left unfinished. The caller holds the lock of the book. Returns the
    changes that cannot be applied; they stay in the ledger, and so do later ones of the same collection."""
    stuck: list[StuckChange] = []
    blocked: dict[str, Exception] = {}
    for work in await ledger.unsettled():
        if work.book_id != book_id:
            continue
        if work.collection not in blocked:
            try:
                await _apply_again(ledger, collections, work)
            except Exception as exc:  # noqa: BLE001  # no error may stop the other books from being served
                blocked[work.collection] = exc
        if work.collection in blocked:
            stuck.append(StuckChange(work=work, reason=blocked[work.collection]))
    return stuck


async def _apply_again(ledger: Ledger, collections: Collections, work: Unsettled) -> None:
    if not work.intents:
        raise IndexMismatch("what was written down of it cannot be read by this version")
    await _apply(ledger, await collections.index(work.collection), work)


async def verify_all(ledger: Ledger, collections: Collections, locks: BookLocks) -> None:
    """Verify every book: one that the index has lost chunks of is not served. A book that another process is changing
    is served all the same, because its count says nothing; so is one whose index does not answer now."""
    for entry in await ledger.books():
        try:
            sound = await verify(ledger, collections, entry)
        except LecternError as exc:
            if not is_outage(exc):
                raise
            continue
        if not sound and await locks.is_locked_elsewhere(entry.manifest.book_id):
            collections.trust(entry.manifest.book_id)


async def verify(ledger: Ledger, collections: Collections, entry: BookEntry) -> bool:
    """Whether a book can be served. With an unfinished change it cannot: it may hold two versions of a lesson."""
    place = (entry.manifest.book_id, entry.collection_name)
    half_done = place in {(work.book_id, work.collection) for work in await ledger.unsettled()}
    return await collections.verify(replace(entry, total_chunks=UNKNOWN_COUNT) if half_done else entry)


async def forget_changes(ledger: Ledger, book_id: str, collection: str) -> None:
    """Delete the unfinished changes of a book in a collection from the ledger."""
    for work in await ledger.unsettled():
        if (work.book_id, work.collection) == (book_id, collection):
            await ledger.forget(work.number)


async def collections_of(ledger: Ledger, book_id: str) -> set[str]:
    """The collections that hold lessons of the book, or would after its unfinished changes."""
    unsettled = {work.collection for work in await ledger.unsettled() if work.book_id == book_id}
    return {*await ledger.collections(book_id), *unsettled}


async def clear(ledger: Ledger, index: ChunkIndex, book_id: str) -> int:
    """Remove a book from a collection, and its unfinished changes, which would bring chunks back. Returns the number of
    chunks that were removed."""
    await forget_changes(ledger, book_id, index.collection)
    records = await ledger.records(book_id, index.collection)
    index_ids = await _chunk_ids(index, book_id)
    ledger_ids = {chunk for record in records.values() for chunk in record.chunk_ids}
    if index_ids or records:
        drop = tuple(sorted(ledger_ids if index_ids is None else ledger_ids | index_ids))
        removal = Change(put=(), drop=drop, language="en")  # nothing is added, so the language does not matter
        await change(ledger, index, book_id, [Intent(change=removal, records=(), retired=tuple(records))])
    await index.remnants(book_id, set(), drop=True)
    return len(ledger_ids if index_ids is None else index_ids)


async def _chunk_ids(index: ChunkIndex, book_id: str) -> set[str] | None:
    """The ids of a book's chunks in a collection; None if this version cannot read them."""
    where = ChunkFilter(book_id=book_id)
    try:
        return {str(stored.chunk.id) for stored in await index.read(lambda view: view.chunks(where))}
    except IndexMismatch:
        return None


async def retire(ledger: Ledger, collections: Collections, book_id: str, collection: str) -> int:
    """Remove a book from a collection that may be missing or unreadable; then only the ledger is changed. Returns the
    number of chunks that were removed."""
    try:
        return await clear(ledger, await collections.index(collection), book_id)
    except IndexDamaged:
        if collection == collections.current.index.collection:
            raise  # other books are served from it, so it must be mended
    await forget_changes(ledger, book_id, collection)
    records = tuple(await ledger.records(book_id, collection))
    intent = Intent(change=Change(put=(), drop=(), language="en"), records=(), retired=records)
    number = await ledger.intend(book_id, collection, [intent])
    await ledger.settle(Unsettled(number=number, book_id=book_id, collection=collection, intents=(intent,)))
    await ledger.forget(number)
    return 0


async def remove(ledger: Ledger, collections: Collections, entry: BookEntry) -> int:
    """Remove a book from every collection, then from the ledger; returns the number of chunks. If the process is killed
    in between, the book is incomplete and can be removed again."""
    book_id, dropped = entry.manifest.book_id, 0
    await recover(ledger, collections, book_id)  # so that the ledger names every chunk
    for collection in {entry.collection_name, *await collections_of(ledger, book_id)}:
        dropped += await retire(ledger, collections, book_id, collection)
    await ledger.remove_book(book_id)
    return dropped


async def _apply(ledger: Ledger, index: ChunkIndex, work: Unsettled) -> None:
    changes = [intent.change for intent in work.intents]
    await index.replace(work.book_id, work.number, changes, commit=lambda: ledger.settle(work))
    await ledger.forget(work.number)


def _record(source: LessonSource, chunks: Sequence[Chunk], terms: Mapping[int, int]) -> IngestionRecord:
    return IngestionRecord(
        source_file=source.source_file,
        file_hash=source.source_file_hash,
        digest=source.digest,
        place=source.place,
        parent_doc_id=chunks[0].parent_doc_id,
        chunk_ids=tuple(chunk.id for chunk in chunks),
        ingested_at=utc_now(),
        page_title=source.page_title,
        lesson_title=source.lesson_title,
        chapter_title=source.chapter_title,
        module_title=source.module_title,
        url=source.url,
        payload_digest=chunks_digest(chunks),
        terms=terms,
    )
