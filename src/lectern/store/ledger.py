"""The ledger: which files and chunks the index holds. An intent is written before the index is changed and settled
afterwards. If a process is killed in between, the next one applies the intent."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.books import BookEntry, LessonPlace
from lectern.domain.errors import ConfigError
from lectern.domain.failpoints import reached
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.store import bodies
from lectern.store.tables import books, intents, lessons

MAX_VARIABLES = 500  # SQLite limits the variables of one statement


class SqlLedger:
    """The ledger in the SQL database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._alone = engine.dialect.name == "sqlite"  # one process and one connection, so the cache is never old
        self._cached_books: tuple[BookEntry, ...] | None = None
        self._writes = 0  # starts and ends of writes: what was read across one may be old

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book, by its id. Cached, because every search asks for it."""
        if self._cached_books is not None and self._alone:
            return self._cached_books
        before = self._writes
        entries = await self._books()
        if before == self._writes:
            self._cached_books = entries
        return entries

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that changes what `books` returns. Even an interrupted one may have been committed, so the
        cache is cleared however it ends."""
        self._forget_books()
        try:
            async with self._engine.begin() as connection:
                yield connection
        finally:
            self._forget_books()

    def _forget_books(self) -> None:
        self._cached_books = None
        self._writes += 1

    async def _books(self) -> tuple[BookEntry, ...]:
        totals = (
            select(lessons.c.book_id, lessons.c.collection, func.sum(lessons.c.chunk_count).label("total"))
            .group_by(lessons.c.book_id, lessons.c.collection)
            .subquery()
        )
        query = (
            select(books, func.coalesce(totals.c.total, 0).label("total_chunks"))
            .join_from(
                books,
                totals,
                (books.c.book_id == totals.c.book_id) & (books.c.collection_name == totals.c.collection),
                isouter=True,
            )
            .order_by(books.c.book_id)
        )
        async with self._engine.connect() as connection:
            return tuple(_entry(row) for row in await connection.execute(query))

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
            updated = await connection.execute(update(books).where(books.c.book_id == book_id).values(**values))
            if not updated.rowcount:
                await connection.execute(insert(books).values(book_id=book_id, epoch=0, **values))
            reached("ledger.before-save-book")
        reached("ledger.saved-book")

    async def remove_book(self, book_id: str) -> None:
        """Delete a book whose lessons are all gone, together with its intents."""
        async with self._writing() as connection:
            await connection.execute(delete(intents).where(intents.c.book_id == book_id))
            await connection.execute(delete(books).where(books.c.book_id == book_id))

    async def records(self, book_id: str, collection: str) -> dict[str, IngestionRecord]:
        """The book's files in a collection, by `source_file`."""
        query = select(lessons).where(lessons.c.book_id == book_id, lessons.c.collection == collection)
        async with self._engine.connect() as connection:
            return {row.source_file: _record(row) for row in await connection.execute(query)}

    async def collections(self, book_id: str) -> tuple[str, ...]:
        """The collections that hold lessons of the book."""
        query = (
            select(lessons.c.collection).where(lessons.c.book_id == book_id).distinct().order_by(lessons.c.collection)
        )
        async with self._engine.connect() as connection:
            return tuple((await connection.execute(query)).scalars())

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The book's modules, by name."""
        query = select(lessons.c.module).where(lessons.c.book_id == book_id).distinct().order_by(lessons.c.module)
        async with self._engine.connect() as connection:
            return tuple((await connection.execute(query)).scalars())

    async def intend(self, book_id: str, collection: str, planned: Sequence[Intent]) -> int:
        """Write down what is about to happen; returns the number to settle it with, which is also its generation."""
        body = await asyncio.to_thread(bodies.intents_to_bytes, planned)  # megabytes of JSON to be compressed
        values = {"book_id": book_id, "collection": collection, "body": body}
        async with self._engine.begin() as connection:
            statement = insert(intents).values(**values).returning(intents.c.number)
            number = int((await connection.execute(statement)).scalar_one())
            reached("ledger.before-intend")
        reached("ledger.intended")
        return number

    async def settle(self, work: Unsettled) -> None:
        """Note that an intent was applied: replace the records, and so what readers see, in one transaction."""
        outdated = [name for intent in work.intents for name in intent.retired]
        outdated += [record.source_file for intent in work.intents for record in intent.records]
        common = {"collection": work.collection, "generation": work.number}
        rows = [{**_row(record), **common} for intent in work.intents for record in intent.records]
        in_collection = (lessons.c.book_id == work.book_id) & (lessons.c.collection == work.collection)
        async with self._writing() as connection:
            for start in range(0, len(outdated), MAX_VARIABLES):
                names = outdated[start : start + MAX_VARIABLES]
                await connection.execute(delete(lessons).where(in_collection, lessons.c.source_file.in_(names)))
            if rows:
                await connection.execute(insert(lessons), rows)
            book = update(books).where(books.c.book_id == work.book_id)
            await connection.execute(book.values(epoch=books.c.epoch + 1))
            reached("ledger.before-settle")
        reached("ledger.settled")

    async def forget(self, number: int) -> None:
        """Delete an intent that is settled or given up."""
        async with self._engine.begin() as connection:
            await connection.execute(delete(intents).where(intents.c.number == number))
        reached("ledger.forgotten")

    async def unsettled(self) -> list[Unsettled]:
        """What a killed process left unfinished, oldest first; without intents if they cannot be read."""
        async with self._engine.connect() as connection:
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


class SqlGenerations:
    """Which generation of each lesson is live in one collection."""

    def __init__(self, engine: AsyncEngine, collection: str) -> None:
        self._engine = engine
        self._collection = collection

    async def epoch(self, book_id: str) -> int:
        """A number that changes with every committed replacement in the book."""
        async with self._engine.connect() as connection:
            query = select(books.c.epoch).where(books.c.book_id == book_id)
            return int((await connection.execute(query)).scalar() or 0)

    async def live(self, book_id: str, parents: Sequence[str]) -> dict[str, int]:
        """The live generation of each of these lessons that the book has."""
        in_collection = (lessons.c.book_id == book_id) & (lessons.c.collection == self._collection)
        generations: dict[str, int] = {}
        async with self._engine.connect() as connection:
            for start in range(0, len(parents), MAX_VARIABLES):
                of_parents = lessons.c.parent_doc_id.in_(parents[start : start + MAX_VARIABLES])
                query = select(lessons.c.parent_doc_id, lessons.c.generation).where(in_collection, of_parents)
                generations |= {row.parent_doc_id: row.generation for row in await connection.execute(query)}
        return generations


def _intents(body: bytes) -> tuple[Intent, ...]:
    """The intents in a row; none if they cannot be read, so that an unreadable row does not hide the others."""
    try:
        return bodies.intents_from_bytes(body)
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return ()


@contextmanager
def _reading_row(table: str) -> Iterator[None]:
    """Say that the database is damaged if a row holds what was never written."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise ConfigError(
            f"the database is damaged: a row of {table} cannot be read ({type(exc).__name__}). Put a copy of the "
            "database back, with the index folder of the same moment; without one, move both to another place and "
            "ingest your books again"
        ) from exc


@_reading_row("books")
def _entry(row: Row[Any]) -> BookEntry:
    return BookEntry(
        manifest=bodies.manifest_from_json(row.manifest),
        source=row.source,
        bound=bool(row.bound),
        fingerprint=row.fingerprint,
        collection_name=row.collection_name,
        total_chunks=int(row.total_chunks),
        last_full_ingest=row.last_full_ingest,
        last_incremental_update=row.last_incremental_update,
        epoch=int(row.epoch),
    )


@_reading_row("lessons")
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
    }
