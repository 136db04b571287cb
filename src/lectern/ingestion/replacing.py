"""From lessons that were read to an index that holds them: the intent is written down, carried out, settled. A
process killed anywhere in between is mended by `recover`, which carries the intent out again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lectern.domain.books import LessonSource
from lectern.domain.chunks import Chunk, StampedChunk, chunks_digest
from lectern.domain.clock import utc_now
from lectern.domain.filters import ChunkFilter
from lectern.domain.jobs import IngestionRecord, Replacement
from lectern.ingestion.stamping import VectorSource, stamp_chunks
from lectern.ports import BookEntry, Change, ChunkIndex, IndexedChunk, Intent, Ledger, Shelf, Unsettled
from lectern.reading.lessons import ReadLesson


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReplacement:
    """A replacement whose lessons have been read, by `source_file`."""

    replacement: Replacement
    lessons: Mapping[str, ReadLesson]

    @property
    def chunks(self) -> list[Chunk]:
        """Every chunk that will stand there."""
        return [chunk for lesson in self.lessons.values() for chunk in lesson.chunks]


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


async def recover(ledger: Ledger, shelf: Shelf, book_id: str | None = None) -> None:
    """Carry out what a killed process, or a server that went away, left half done; of one book or of all."""
    for work in await ledger.unsettled():
        if book_id in {None, work.book_id}:
            await _carry_out(ledger, await shelf.index(work.collection), work)


async def verify_all(ledger: Ledger, shelf: Shelf) -> None:
    """Look at every book once: an index that lost something is not served as if the book were shorter."""
    for entry in await ledger.books():
        await shelf.verify(entry)


async def clear(ledger: Ledger, index: ChunkIndex, book_id: str) -> int:
    """Take a book out of a collection; how many chunks that were."""
    records = await ledger.records(book_id, index.collection)
    where = ChunkFilter(book_id=book_id)
    held = [stored.chunk.id for stored in await index.read(lambda view: view.chunks(where))]
    if held or records:
        dropped = Change(put=(), drop=tuple(held), language="en")  # nothing is put, so no words are split
        await change(ledger, index, book_id, [Intent(change=dropped, records=(), retired=tuple(records))])
    return len(held)


async def remove(ledger: Ledger, shelf: Shelf, entry: BookEntry) -> int:
    """Take a book out of every collection, then out of the ledger; how many chunks that were. Killed in between, it is
    a shorter book that can be removed again."""
    book_id, dropped = entry.manifest.book_id, 0
    for collection in {entry.collection_name, *await ledger.collections(book_id)}:
        dropped += await clear(ledger, await shelf.index(collection), book_id)
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
