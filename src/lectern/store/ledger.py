"""The ledger: which files and chunks the index holds. An intent is written before the index is changed and settled
afterwards. If a process is killed in between, the next one applies the intent."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.books import BookEntry, LessonPlace
from lectern.domain.failpoints import reached
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.ports.index import CountedChunk
from lectern.store import bodies
from lectern.store.book_list import MAX_VARIABLES, BookList, reading_row
from lectern.store.database import reading, transaction
from lectern.store.generations import SqlGenerations
from lectern.store.lexicons import Exchange, read_counts, terms_to_bytes
from lectern.store.locks import Fence, no_fence
from lectern.store.tables import books, intents, lessons, lexicons


class SqlLedger:
    """The ledger in the SQL database."""

    def __init__(self, engine: AsyncEngine, fence: Fence = no_fence, book_list: BookList | None = None) -> None:
        self._engine = engine
        self._fence = fence  # every change of a book checks in its transaction that its lock is still held
        self._book_list = book_list or BookList(engine)

    def fenced(self, fence: Fence) -> SqlLedger:
        """This ledger, with the same cache, for work that must hold a book's lock."""
        return SqlLedger(self._engine, fence, self._book_list)

    def generations(self, collection: str) -> SqlGenerations:
        """What the index of a collection asks the ledger."""
        return SqlGenerations(self._engine, collection, self._book_list)

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book, as of now, by its id."""
        return await self._book_list.now()

    async def known_books(self) -> tuple[BookEntry, ...]:
        """Every indexed book as this process last read them; whoever uses them asks `are_current` afterwards."""
        return await self._book_list.known()

    def are_current(self, entries: tuple[BookEntry, ...]) -> bool:
        """Whether no change of these books has been noticed. Reading a book's term counts notices changes."""
        return self._book_list.are_current(entries)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that changes what `books` returns."""
        self._book_list.forget()
        try:
            async with transaction(self._engine) as connection:
                yield connection
        finally:
            self._book_list.forget()

    async def book(self, book_id: str) -> BookEntry | None:
        """One book, if it is indexed."""
        return next((entry for entry in await self.books() if entry.manifest.book_id == book_id), None)

    async def save_book(self, entry: BookEntry) -> None:
        """Store a book's manifest and when it was ingested."""
        book_id = entry.manifest.book_id
        values = {
            "manifest": bodies.manifest_to_json(entry.manifest),
            "source": entry.source,
            "bound": int(entry.bound),
            "fingerprint": entry.fingerprint,
            "collection_name": entry.collection_name,
            "last_full_ingest": entry.last_full_ingest,
            "last_incremental_update": entry.last_incremental_update,
        }
        async with self._writing() as connection:
            await self._fence(connection, book_id)
            updated = await connection.execute(update(books).where(books.c.book_id == book_id).values(**values))
            if not updated.rowcount:
                await connection.execute(insert(books).values(book_id=book_id, epoch=0, **values))
            reached("ledger.before-save-book")
        reached("ledger.saved-book")

    async def remove_book(self, book_id: str) -> None:
        """Delete a book whose lessons are all gone, together with its intents."""
        async with self._writing() as connection:
            await self._fence(connection, book_id)
            await connection.execute(delete(intents).where(intents.c.book_id == book_id))
            await connection.execute(delete(lexicons).where(lexicons.c.book_id == book_id))
            await connection.execute(delete(books).where(books.c.book_id == book_id))

    async def records(self, book_id: str, collection: str) -> dict[str, IngestionRecord]:
        """The book's files in a collection, by `source_file`."""
        columns = [column for column in lessons.c if column is not lessons.c.terms]  # the half of a row's bytes
        query = select(*columns).where(lessons.c.book_id == book_id, lessons.c.collection == collection)
        async with reading(self._engine) as connection:
            return {row.source_file: _record(row) for row in await connection.execute(query)}

    async def collections(self, book_id: str) -> tuple[str, ...]:
        """The collections that hold lessons of the book."""
        query = (
            select(lessons.c.collection).where(lessons.c.book_id == book_id).distinct().order_by(lessons.c.collection)
        )
        async with reading(self._engine) as connection:
            return tuple((await connection.execute(query)).scalars())

    async def lessons_at(self, urls: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The book and the `parent_doc_id` of every lesson that readers see under one of these addresses."""
        query = (
            select(lessons.c.book_id, lessons.c.parent_doc_id)
            .join(books, (books.c.book_id == lessons.c.book_id) & (books.c.collection_name == lessons.c.collection))
            .where(lessons.c.url.in_(urls))
            .order_by(lessons.c.book_id, lessons.c.source_file)
        )
        async with reading(self._engine) as connection:
            return tuple((row.book_id, row.parent_doc_id) for row in await connection.execute(query))

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The book's modules, by name."""
        return await self._book_list.modules(book_id)

    async def intend(self, book_id: str, collection: str, planned: Sequence[Intent]) -> int:
        """Write down what is about to happen; returns the number to settle it with, which is also its generation."""
        body = await asyncio.to_thread(bodies.intents_to_bytes, planned)  # megabytes of JSON to be compressed
        values = {"book_id": book_id, "collection": collection, "body": body}
        async with transaction(self._engine) as connection:
            await self._fence(connection, book_id)
            statement = insert(intents).values(**values).returning(intents.c.number)
            number = int((await connection.execute(statement)).scalar_one())
            reached("ledger.before-intend")
        reached("ledger.intended")
        return number

    async def settle(self, work: Unsettled) -> None:
        """Note that an intent was applied: replace the records, and so what readers see, and the term counts, in one
        transaction."""
        records = [record for intent in work.intents for record in intent.records]
        outdated = [name for intent in work.intents for name in intent.retired]
        outdated += [record.source_file for record in records]
        common = {"collection": work.collection, "generation": work.number}
        rows = [{**_row(record), **common} for record in records]
        in_collection = (lessons.c.book_id == work.book_id) & (lessons.c.collection == work.collection)
        async with self._writing() as connection:
            await self._fence(connection, work.book_id)
            exchange = Exchange(connection, (work.book_id, work.collection))
            await exchange.begin()
            for start in range(0, len(outdated), MAX_VARIABLES):
                names = outdated[start : start + MAX_VARIABLES]
                await exchange.remove(names)
                await connection.execute(delete(lessons).where(in_collection, lessons.c.source_file.in_(names)))
            if rows:
                await connection.execute(insert(lessons), rows)
            for record in records:
                exchange.add(record.terms, record.chunk_count)
            reached("ledger.before-count")
            await exchange.finish()
            book = update(books).where(books.c.book_id == work.book_id)  # last: it locks the list of books
            await connection.execute(book.values(epoch=books.c.epoch + 1))
            reached("ledger.before-settle")
        reached("ledger.settled")

    async def forget(self, number: int) -> None:
        """Delete an intent that is settled or given up."""
        async with transaction(self._engine) as connection:
            await connection.execute(delete(intents).where(intents.c.number == number))
        reached("ledger.forgotten")

    async def term_counts(self, book_id: str, collection: str) -> dict[int, int] | None:
        """In how many chunks of the book each term occurs; None if that is not known of its present state."""
        async with reading(self._engine) as connection:
            return await read_counts(connection, (book_id, collection))

    async def recount_terms(self, book_id: str, collection: str, chunks: Iterable[CountedChunk]) -> None:
        """Count the book's terms anew, from all of its chunks. The caller holds the lock of the book."""
        generations = self.generations(collection)
        try:
            await generations.recount(book_id, await generations.epoch(book_id), chunks)
        finally:
            self._book_list.forget()  # counts that were read before are old

    async def unsettled(self) -> list[Unsettled]:
        """What a killed process left unfinished, oldest first; without intents if they cannot be read."""
        async with reading(self._engine) as connection:
            rows = (await connection.execute(select(intents).order_by(intents.c.number))).all()
        return [
            Unsettled(
                number=row.number,
                book_id=row.book_id,
                collection=row.collection,
                intents=_intents(row.body),
            )
            for row in rows
        ]


def _intents(body: bytes) -> tuple[Intent, ...]:
    """The intents in a row; none if they cannot be read, so that an unreadable row does not hide the others."""
    try:
        return bodies.intents_from_bytes(body)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return ()


@reading_row("lessons")
def _record(row: Row[Any]) -> IngestionRecord:
    place = LessonPlace(
        book_id=row.book_id, module=row.module, chapter=row.chapter, lesson=row.lesson, doubled_by=row.doubled_by
    )
    return IngestionRecord(
        source_file=row.source_file,
        file_hash=row.file_hash,
        digest=row.digest,
        place=place,
        parent_doc_id=row.parent_doc_id,
        chunk_ids=tuple(json.loads(row.chunk_ids)),
        ingested_at=row.ingested_at,
        page_title=row.page_title,
        lesson_title=row.lesson_title,
        chapter_title=row.chapter_title,
        module_title=row.module_title,
        url=row.url,
        payload_digest=row.payload_digest,
    )


def _row(record: IngestionRecord) -> dict[str, Any]:
    return {
        "book_id": record.place.book_id,
        "source_file": record.source_file,
        "file_hash": record.file_hash,
        "digest": record.digest,
        "module": record.place.module,
        "chapter": record.place.chapter,
        "lesson": record.place.lesson,
        "doubled_by": record.place.doubled_by,
        "parent_doc_id": record.parent_doc_id,
        "chunk_ids": json.dumps(record.chunk_ids),
        "chunk_count": record.chunk_count,
        "ingested_at": record.ingested_at,
        "page_title": record.page_title,
        "lesson_title": record.lesson_title,
        "chapter_title": record.chapter_title,
        "module_title": record.module_title,
        "url": record.url,
        "payload_digest": record.payload_digest,
        "terms": None if record.terms is None else terms_to_bytes(record.terms),
    }
