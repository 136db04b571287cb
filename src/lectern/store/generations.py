"""What an index asks the ledger while it is read. Every answer is one statement, so it is of one moment, and has the
book's epoch of that moment.

A search asks twice: before it for the term counts, after it for the live versions of what was found. If both answers
have the same epoch, nothing was committed in between. Both statements are built once, because building one takes as
long as running it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Integer,
    Select,
    any_,
    bindparam,
    func,
    literal_column,
    null,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.ports.index import CountedChunk, LiveLessons, TermCounts
from lectern.store import lexicons
from lectern.store.book_list import MAX_VARIABLES, BookList
from lectern.store.database import autocommit, reading, transaction
from lectern.store.tables import book_changes, books, lessons, term_counts
from lectern.store.tables import lexicons as heads

MAX_CACHED_TERMS = 200_000  # some 30 MB
_VERSION, _BOOK, _LEXICON, _TERM = range(4)  # the kinds of rows of one statement
_BOOK_ID: ColumnElement[str] = bindparam("book_id", type_=books.c.book_id.type)


class SqlGenerations:
    """What the ledger says of one collection."""

    def __init__(self, engine: AsyncEngine, collection: str, book_list: BookList) -> None:
        self._engine = engine
        self._reader = autocommit(engine)
        self._collection = collection
        self._book_list = book_list
        self._alone = engine.dialect.name == "sqlite"  # one process, which knows when it has written
        self._cache: dict[str, tuple[TermCounts, dict[int, int]]] = {}  # by book; the counts that were asked for
        self._cached_terms = 0
        self._writes = 0  # of this process when the cache was begun
        self._count_query = self._build_count_query()
        live = select(lessons.c.parent_doc_id, lessons.c.generation).where(*self._in_collection())
        self._live_query = _with_epoch(live.where(self._among(lessons.c.parent_doc_id, "parents")))
        self._all_live_query = _with_epoch(live)
        chunk_counts = select(lessons.c.generation, func.sum(lessons.c.chunk_count)).where(*self._in_collection())
        self._chunk_count_query = _with_epoch(chunk_counts.group_by(lessons.c.generation))

    async def epoch(self, book_id: str) -> int:
        """A number that changes with every committed replacement in the book."""
        query = select(books.c.epoch).where(books.c.book_id == book_id)
        async with reading(self._reader) as connection:
            return int((await connection.execute(query)).scalar() or 0)

    async def live(self, book_id: str, parents: Sequence[str]) -> LiveLessons:
        """The live generation of each of these lessons that the book has."""
        if len(parents) <= MAX_VARIABLES:  # else every lesson of the book, so that it stays one statement
            epoch, generations = await self._pairs(self._live_query, book_id, parents=list(parents))
        else:
            epoch, generations = await self._pairs(self._all_live_query, book_id)
        return LiveLessons(epoch=epoch, generations=generations)

    async def chunk_counts(self, book_id: str) -> tuple[int, Mapping[int, int]]:
        """The epoch of the book, and how many live chunks each generation has."""
        return await self._pairs(self._chunk_count_query, book_id)

    async def counts(self, book_id: str, terms: Sequence[int]) -> TermCounts:
        """The counts of these terms, and the epoch of the book."""
        if not self._alone:
            return await self._counts(book_id, terms)
        writes = self._book_list.writes
        if writes != self._writes or self._cached_terms > MAX_CACHED_TERMS:
            self._cache, self._cached_terms, self._writes = {}, 0, writes
        cached = self._cache.get(book_id)
        if cached is not None and all(term in cached[1] for term in terms):
            return cached[0]
        counts = await self._counts(book_id, terms)
        if counts.complete and writes == self._book_list.writes == self._writes:
            by_term = {} if cached is None else cached[1]
            by_term |= {**dict.fromkeys(terms, 0), **counts.by_term}
            self._cache[book_id] = replace(counts, by_term=by_term), by_term
            self._cached_terms += len(terms)
        return counts

    async def recount(self, book_id: str, epoch: int, chunks: Iterable[CountedChunk]) -> None:
        """Count a book anew, from all of its chunks; nothing is done if it has changed since that epoch."""
        async with transaction(self._engine) as connection:
            await lexicons.recount(connection, (book_id, self._collection), epoch, chunks)

    async def _counts(self, book_id: str, terms: Sequence[int]) -> TermCounts:
        """The counts as the database has them now."""
        values: dict[int, list[tuple[int, int]]] = {_BOOK: [], _LEXICON: [], _TERM: [], _VERSION: []}
        async with reading(self._reader) as connection:
            for start in range(0, max(len(terms), 1), MAX_VARIABLES):  # one statement, but for very long questions
                asked = {"book_id": book_id, "terms": list(terms[start : start + MAX_VARIABLES])}
                for kind, key, value in await connection.execute(self._count_query, asked):
                    values[kind].append((key, value))
        for version, _ in values[_VERSION][:1]:
            self._book_list.notice(version)
        epoch = values[_BOOK][0][0] if values[_BOOK] else 0
        lexicon = values[_LEXICON][0] if values[_LEXICON] else None
        return TermCounts(
            epoch=epoch,
            complete=lexicon is not None and lexicon[0] == epoch,
            chunks=lexicon[1] if lexicon else 0,
            by_term=dict(values[_TERM]),
        )

    def _build_count_query(self) -> CompoundSelect[Any]:
        """One statement for everything that a search needs to know beforehand."""
        here = (heads.c.book_id == _BOOK_ID) & (heads.c.collection == self._collection)
        of_term = select(_kind(_TERM), term_counts.c.term, term_counts.c.chunks)
        parts: list[Select[Any]] = [
            select(_kind(_BOOK), books.c.epoch, literal_column("0")).where(books.c.book_id == _BOOK_ID),
            select(_kind(_LEXICON), heads.c.epoch, heads.c.chunks).where(here),
            of_term.join(heads, heads.c.number == term_counts.c.lexicon).where(
                here, self._among(term_counts.c.term, "terms")
            ),
        ]
        if not self._alone:
            parts.append(select(_kind(_VERSION), book_changes.c.version, literal_column("0")))
        return union_all(*parts)

    async def _pairs(self, query: CompoundSelect[Any], book_id: str, **asked: object) -> tuple[int, dict[Any, int]]:
        """The epoch of a book, and the pairs that a query gives."""
        async with reading(self._reader) as connection:
            rows = await connection.execute(query, {"book_id": book_id, **asked})
            pairs = {key: int(value) for key, value in rows}
        return pairs.pop(None, 0), pairs

    def _in_collection(self) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return lessons.c.book_id == _BOOK_ID, lessons.c.collection == self._collection

    def _among(self, column: Column[Any], name: str) -> ColumnElement[bool]:
        """Whether the column has one of the values of a list. On PostgreSQL the list is one parameter: with one for
        each value, the server would prepare a statement for every number of them."""
        if self._alone:
            return column.in_(bindparam(name, expanding=True))
        return column == any_(bindparam(name, type_=ARRAY(column.type)))


def _with_epoch(query: Select[Any]) -> CompoundSelect[Any]:
    """The epoch of a book, and the pairs that a query gives, in one statement."""
    return union_all(select(null(), books.c.epoch).where(books.c.book_id == _BOOK_ID), query)


def _kind(kind: int) -> ColumnElement[int]:
    return literal_column(str(kind), Integer)
