"""The list of books, which every request needs. It is cached until a commit changes it, by whichever process.

On SQLite no other process commits. On PostgreSQL a trigger counts the statements that change `books`, so one row says
whether the cache is old, and books whose row is the same are not read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.books import BookEntry
from lectern.domain.errors import ConfigError
from lectern.store import bodies
from lectern.store.database import autocommit, reading
from lectern.store.tables import book_changes, books, lessons

MAX_VARIABLES = 500  # SQLite limits the variables of one statement


class _Known(NamedTuple):
    row: tuple[Any, ...]  # as the database has it
    entry: BookEntry
    modules: tuple[str, ...]


class BookList:
    """Every indexed book, by its id."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = autocommit(engine)
        self._alone = engine.dialect.name == "sqlite"  # one process and one connection
        self._known: dict[str, _Known] = {}
        self._entries: tuple[BookEntry, ...] | None = None
        self._version = 0  # of the list that `_entries` is; always 0 on SQLite
        self._current = False
        self.writes = 0  # starts and ends of writes of this process: what was read across one may be old

    async def now(self) -> tuple[BookEntry, ...]:
        """The books as of now."""
        if self._alone and self._current and self._entries is not None:
            return self._entries
        async with reading(self._engine) as connection:
            version = 0 if self._alone else int((await connection.execute(select(book_changes.c.version))).scalar_one())
            if self._current and self._entries is not None and version == self._version:
                return self._entries
            writes = self.writes
            known = await self._read(connection)
        entries = tuple(book.entry for book in known.values())
        if writes == self.writes:
            self._known, self._entries, self._version, self._current = known, entries, version, True
        return entries

    async def known(self) -> tuple[BookEntry, ...]:
        """The books as they were last read, if no change has been noticed since."""
        return self._entries if self._current and self._entries is not None else await self.now()

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The modules of a book, by name, as they were last read."""
        await self.known()
        return self._known[book_id].modules if book_id in self._known else ()

    def are_current(self, entries: tuple[BookEntry, ...]) -> bool:
        """Whether these are the books that were last read, and no change has been noticed since."""
        return self._current and entries is self._entries

    def notice(self, version: int) -> None:
        """A statement read this version of the list."""
        if version > self._version:
            self._current = False

    def forget(self) -> None:
        """This process begins or ends a write. Even an interrupted one may have been committed."""
        self._current = False
        self.writes += 1

    async def _read(self, connection: AsyncConnection) -> dict[str, _Known]:
        """Every book; what is known of books whose row is the same is used again."""
        rows = (await connection.execute(select(books).order_by(books.c.book_id))).all()
        changed = [row for row in rows if row.book_id not in self._known or self._known[row.book_id].row != tuple(row)]
        chunks = await _chunk_counts(connection, [row.book_id for row in changed]) if changed else {}
        read = {row.book_id: _book(row, chunks.get(row.book_id, {})) for row in changed}
        return {row.book_id: read.get(row.book_id) or self._known[row.book_id] for row in rows}


ChunkCounts = dict[tuple[str, str], int]  # by collection and module


async def _chunk_counts(connection: AsyncConnection, book_ids: Sequence[str]) -> dict[str, ChunkCounts]:
    """How many chunks the collections have of these books, by module."""
    place = (lessons.c.book_id, lessons.c.collection, lessons.c.module)
    query = select(*place, func.sum(lessons.c.chunk_count).label("total")).group_by(*place)
    if len(book_ids) <= MAX_VARIABLES:
        query = query.where(lessons.c.book_id.in_(book_ids))
    counts: dict[str, ChunkCounts] = {}
    for row in await connection.execute(query):
        counts.setdefault(row.book_id, {})[row.collection, row.module] = int(row.total)
    return counts


def _book(row: Row[Any], chunks: ChunkCounts) -> _Known:
    total = sum(count for (collection, _), count in chunks.items() if collection == row.collection_name)
    return _Known(tuple(row), _entry(row, total), tuple(sorted({module for _, module in chunks})))


@contextmanager
def reading_row(table: str) -> Iterator[None]:
    """Say that the database is damaged if a row holds what was never written."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise ConfigError(
            f"the database is damaged: a row of {table} cannot be read ({type(exc).__name__}). Put a copy of the "
            "database back, with the index folder of the same moment; without one, move both to another place and "
            "ingest your books again"
        ) from exc


@reading_row("books")
def _entry(row: Row[Any], total_chunks: int) -> BookEntry:
    return BookEntry(
        manifest=bodies.manifest_from_json(row.manifest),
        source=row.source,
        bound=bool(row.bound),
        fingerprint=row.fingerprint,
        collection_name=row.collection_name,
        total_chunks=total_chunks,
        last_full_ingest=row.last_full_ingest,
        last_incremental_update=row.last_incremental_update,
        epoch=int(row.epoch),
    )
