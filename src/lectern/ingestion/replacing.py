"""From lessons that were read to an index that holds them: the intent is written down, carried out, settled. A
process killed anywhere in between is mended by `recover`, which carries the intent out again. An intent that cannot be
carried out stays written down: its own book is not served until the doctor has looked, every other book is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from lectern.domain.books import BookEntry, LessonSource
from lectern.domain.chunks import Change, Chunk, IndexedChunk, StampedChunk, chunks_digest
from lectern.domain.clock import utc_now
from lectern.domain.errors import Busy, IndexDamaged, IndexMismatch, LecternError, ProviderError
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.vectors import VectorSource, stamp_chunks
from lectern.ingestion.worker import ReadReplacement
from lectern.ports.index import ChunkIndex, Collections
from lectern.ports.jobs import BookLocks
from lectern.ports.ledger import Ledger

NO_COUNT = -1  # what no index holds: the count of a book of which nobody knows what it should hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A change that could not be carried out, and why."""

    work: Unsettled
    reason: Exception

    @property
    def error(self) -> LecternError:
        """What to say to whoever wants to change the same book."""
        if isinstance(self.reason, ProviderError):
            return self.reason  # waiting may fix it
        return IndexDamaged(
            f"an earlier change of {self.work.book_id!r} could not be completed ({self.reason}); "
            "run: lectern doctor --mend"
        )


def trusted(records: Mapping[str, IngestionRecord], doubted: AbstractSet[str] | None) -> dict[str, IngestionRecord]:
    """Records whose digests can be relied on; a doubted file has none, so that it counts as modified."""
    doubted = doubted or frozenset()
    return {name: replace(record, digest="") if name in doubted else record for name, record in records.items()}


def intent_of(
    read: ReadReplacement, held: Mapping[str, StampedChunk], vectors: VectorSource, model: str, language: str
) -> Intent:
    """All that has to happen for one replacement. A lesson that gave no chunk leaves the index, like a deleted one."""
    chunks = read.chunks
    sources = {lesson.source_file: lesson for lesson in read.replacement.lessons}
    wanted = {chunk.id for chunk in chunks}
    put = tuple(
        IndexedChunk(stored=stored, vectors=vectors.vectors(stored.chunk))
        for stored in stamp_chunks(chunks, held, model)
    )
    stood = [chunk_id for record in read.replacement.retired for chunk_id in record.chunk_ids]
    drop = tuple(chunk_id for chunk_id in stood if chunk_id not in wanted)
    return Intent(
        change=Change(put=put, drop=drop, language=language),
        records=tuple(_record(sources[name], lesson.chunks) for name, lesson in read.lessons.items() if lesson.chunks),
        retired=tuple(record.source_file for record in read.replacement.retired),
    )


async def change(ledger: Ledger, index: ChunkIndex, book_id: str, intents: Sequence[Intent]) -> None:
    """Write the intents down, carry them out, settle. Once begun it is finished, even where the caller is cancelled:
    an intent left behind would be carried out again by a later start, over newer chunks."""
    if not intents:
        return
    work = asyncio.ensure_future(_change(ledger, index, book_id, intents))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


async def _change(ledger: Ledger, index: ChunkIndex, book_id: str, intents: Sequence[Intent]) -> None:
    number = await ledger.intend(book_id, index.collection, intents)
    work = Unsettled(number=number, book_id=book_id, collection=index.collection, intents=tuple(intents))
    await _carry_out(ledger, index, work)


async def recover_all(ledger: Ledger, collections: Collections, locks: BookLocks) -> None:
    """The same for every book; one that another living process is working on is that process's to finish."""
    for book_id in dict.fromkeys([work.book_id for work in await ledger.unsettled()]):
        try:
            async with locks.alone(book_id):
                await recover(ledger, collections, book_id)
        except Busy:
            continue


async def recover(ledger: Ledger, collections: Collections, book_id: str) -> list[Stuck]:
    """Carry out what a killed process, or a server that went away, left half done, for whoever is alone with the book.
    Gives what cannot be carried out: it stays written down, and nothing of that collection is done out of turn."""
    stuck: list[Stuck] = []
    blocked: dict[str, Exception] = {}
    for work in await ledger.unsettled():
        if work.book_id != book_id:
            continue
        if work.collection not in blocked:
            try:
                await _carry_out_again(ledger, collections, work)
            except Exception as exc:  # noqa: BLE001  # whatever it is, it must not keep the other books shut
                blocked[work.collection] = exc
        if work.collection in blocked:
            stuck.append(Stuck(work=work, reason=blocked[work.collection]))
    return stuck


async def _carry_out_again(ledger: Ledger, collections: Collections, work: Unsettled) -> None:
    if not work.intents:
        raise IndexMismatch("what was written down of it cannot be read by this version")
    await _carry_out(ledger, await collections.index(work.collection), work)


async def verify_all(ledger: Ledger, collections: Collections, locks: BookLocks) -> None:
    """Look at every book once: an index that lost something is not served as if the book were shorter. While another
    process changes a book, its count says nothing."""
    for entry in await ledger.books():
        if not await verify(ledger, collections, entry) and await locks.is_locked_elsewhere(entry.manifest.book_id):
            collections.trust(entry.manifest.book_id)


async def verify(ledger: Ledger, collections: Collections, entry: BookEntry) -> bool:
    """Whether a book can be served; one with a change half done may hold two versions of a lesson, so it cannot."""
    here = (entry.manifest.book_id, entry.collection_name)
    half_done = here in {(work.book_id, work.collection) for work in await ledger.unsettled()}
    return await collections.verify(replace(entry, total_chunks=NO_COUNT) if half_done else entry)


async def forget_changes(ledger: Ledger, book_id: str, collection: str) -> None:
    """What was written down for a book in a collection is not to be done any more."""
    for work in await ledger.unsettled():
        if (work.book_id, work.collection) == (book_id, collection):
            await ledger.forget(work.number)


async def collections_of(ledger: Ledger, book_id: str) -> set[str]:
    """Every collection that holds, or was about to hold, lessons of the book."""
    written = {work.collection for work in await ledger.unsettled() if work.book_id == book_id}
    return {*await ledger.collections(book_id), *written}


async def clear(ledger: Ledger, index: ChunkIndex, book_id: str) -> int:
    """Take a book out of a collection, with every change of it that is still written down: carried out later, that
    would bring chunks back. How many chunks that were."""
    await forget_changes(ledger, book_id, index.collection)
    records = await ledger.records(book_id, index.collection)
    held = await _held(index, book_id)
    named = {chunk for record in records.values() for chunk in record.chunk_ids}
    if held or records:
        drop = tuple(sorted(named if held is None else named | held))
        dropped = Change(put=(), drop=drop, language="en")  # nothing is put, so no words are split
        await change(ledger, index, book_id, [Intent(change=dropped, records=(), retired=tuple(records))])
    await index.remnants(book_id, set(), drop=True)
    return len(named if held is None else held)


async def _held(index: ChunkIndex, book_id: str) -> set[str] | None:
    """The chunks of a book in a collection; None where they are of a shape that this version does not read."""
    where = ChunkFilter(book_id=book_id)
    try:
        return {str(stored.chunk.id) for stored in await index.read(lambda view: view.chunks(where))}
    except IndexMismatch:
        return None


async def retire(ledger: Ledger, collections: Collections, book_id: str, collection: str) -> int:
    """The same for a collection that may be gone, or damaged beyond reading: then it holds nothing that anybody could
    be served, and only the ledger has to hear of it."""
    try:
        return await clear(ledger, await collections.index(collection), book_id)
    except IndexDamaged:
        if collection == collections.current.index.collection:
            raise  # it serves other books, which need it mended
    await forget_changes(ledger, book_id, collection)
    records = tuple(await ledger.records(book_id, collection))
    nothing = Intent(change=Change(put=(), drop=(), language="en"), records=(), retired=records)
    number = await ledger.intend(book_id, collection, [nothing])
    await ledger.settle(Unsettled(number=number, book_id=book_id, collection=collection, intents=(nothing,)))
    await ledger.forget(number)
    return 0


async def remove(ledger: Ledger, collections: Collections, entry: BookEntry) -> int:
    """Take a book out of every collection, then out of the ledger; how many chunks that were. Killed in between, it is
    a shorter book that can be removed again."""
    book_id, dropped = entry.manifest.book_id, 0
    await recover(ledger, collections, book_id)  # so that the ledger names every chunk there is
    for collection in {entry.collection_name, *await collections_of(ledger, book_id)}:
        dropped += await retire(ledger, collections, book_id, collection)
    await ledger.remove_book(book_id)
    return dropped


async def _carry_out(ledger: Ledger, index: ChunkIndex, work: Unsettled) -> None:
    changes = [intent.change for intent in work.intents]
    await index.replace(work.book_id, work.number, changes, commit=lambda: ledger.settle(work))
    await ledger.forget(work.number)


def _record(source: LessonSource, chunks: Sequence[Chunk]) -> IngestionRecord:
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
    )
