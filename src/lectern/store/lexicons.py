"""In how many chunks of a book each term occurs. The rarity of a term (IDF) is computed from this, so that every engine
ranks alike: Qdrant counts a book's terms by itself only in some versions, and on a cluster for each shard.

Every lesson's row has the lesson's own counts, and `term_counts` has their sum. A settled intent replaces the rows and
adds the difference in the same transaction, so that an intent that is applied twice changes nothing.

A lexicon belongs to one epoch of its book. A process of an older version commits without counting, and then the epochs
differ: the lexicon is not used until the book's chunks are counted again.
"""

from __future__ import annotations

import asyncio
import json
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from lectern.domain.chunks import ChunkId
from lectern.store.tables import books, lessons, lexicons, term_counts

Terms = Mapping[int, int]  # in how many chunks each term occurs
CountedChunk = tuple[ChunkId, Sequence[int]]  # a chunk and its terms, each once
Place = tuple[str, str]  # a book and a collection
ROWS = 2000  # of one statement: a database may limit how long a statement takes


class Lexicon(NamedTuple):
    """The head of a lexicon."""

    number: int
    epoch: int
    chunks: int


def terms_to_bytes(terms: Terms) -> bytes:
    """The terms in order and their counts, compressed."""
    ordered = sorted(terms)
    packed = array("I", [*ordered, *(terms[term] for term in ordered)])
    if sys.byteorder == "big":
        packed.byteswap()
    return zlib.compress(packed.tobytes(), level=1)


def terms_from_bytes(body: bytes) -> dict[int, int]:
    """The counts behind those bytes."""
    packed = array("I")
    packed.frombytes(zlib.decompress(body))
    if sys.byteorder == "big":
        packed.byteswap()
    half = len(packed) // 2
    return dict(zip(packed[:half], packed[half:], strict=True))


class Exchange:
    """The change of a lexicon by one settled intent, in its transaction: begun before the lessons' rows are replaced,
    and finished after it, as the last but one statement before the book's epoch is raised."""

    def __init__(self, connection: AsyncConnection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._lexicon: Lexicon | None = None
        self._epoch: int | None = None  # of the book before the intent
        self._complete = True  # what is replaced was counted
        self._added = Counter[int]()
        self._chunks = 0

    async def begin(self) -> None:
        """Read the lexicon. A collection without lessons of the book gets an empty one."""
        book_id, collection = self._place
        query = select(books.c.epoch).where(books.c.book_id == book_id)
        self._epoch = (await self._connection.execute(query)).scalar()
        self._lexicon = await read_lexicon(self._connection, self._place)
        if self._lexicon is None and self._epoch is not None:
            in_collection = (lessons.c.book_id == book_id) & (lessons.c.collection == collection)
            if (await self._connection.execute(select(lessons.c.source_file).where(in_collection).limit(1))).first():
                return  # an older version did not count these lessons
            self._lexicon = await _create(self._connection, self._place, self._epoch)

    @property
    def _counting(self) -> bool:
        return self._lexicon is not None and self._lexicon.epoch == self._epoch

    async def remove(self, source_files: Sequence[str]) -> None:
        """Take off what these lessons count for; their rows are about to be deleted."""
        if not self._counting:
            return
        query = select(lessons.c.terms, lessons.c.chunk_count).where(
            lessons.c.book_id == self._place[0],
            lessons.c.collection == self._place[1],
            lessons.c.source_file.in_(source_files),
        )
        for row in await self._connection.execute(query):
            self._complete = self._complete and row.terms is not None
            self._chunks -= row.chunk_count
            if row.terms is not None:
                self._added.subtract(terms_from_bytes(row.terms))

    def add(self, terms: Terms | None, chunks: int) -> None:
        """Add what a lesson counts for; None if it was not counted, in an intent of an older version."""
        self._complete = self._complete and terms is not None
        self._chunks += chunks
        self._added.update(terms or {})

    async def finish(self) -> None:
        """Store the new counts. Lexicons of the book in other collections stay as they are, in its new epoch."""
        if self._epoch is None:
            return
        number = self._lexicon.number if self._lexicon and self._counting else None
        if number is not None and self._complete:
            await _add(self._connection, number, self._added)
            total = update(lexicons).where(lexicons.c.number == number)
            await self._connection.execute(total.values(chunks=lexicons.c.chunks + self._chunks))
        current = (lexicons.c.book_id == self._place[0]) & (lexicons.c.epoch == self._epoch)
        if number is not None and not self._complete:
            current &= lexicons.c.number != number  # it stays behind, so the book is counted again
        await self._connection.execute(update(lexicons).where(current).values(epoch=self._epoch + 1))


async def read_lexicon(connection: AsyncConnection, place: Place) -> Lexicon | None:
    """The head of the lexicon of a book in a collection, if there is one."""
    query = select(lexicons.c.number, lexicons.c.epoch, lexicons.c.chunks).where(
        lexicons.c.book_id == place[0], lexicons.c.collection == place[1]
    )
    row = (await connection.execute(query)).first()
    return None if row is None else Lexicon(*row)


async def recount(connection: AsyncConnection, place: Place, epoch: int, chunks: Iterable[CountedChunk]) -> bool:
    """Count a book anew, from its chunks by source file. Returns whether it was done: not if the book has changed
    since that epoch."""
    book_id, collection = place
    book = select(books.c.epoch).where(books.c.book_id == book_id).with_for_update()
    if (await connection.execute(book)).scalar() != epoch:
        return False
    await connection.execute(delete(lexicons).where(lexicons.c.book_id == book_id, lexicons.c.collection == collection))
    lexicon = await _create(connection, place, epoch)
    in_collection = (lessons.c.book_id == book_id) & (lessons.c.collection == collection)
    rows = await connection.execute(select(lessons.c.source_file, lessons.c.chunk_ids).where(in_collection))
    files = {chunk: row.source_file for row in rows for chunk in json.loads(row.chunk_ids)}
    total, shares = await asyncio.to_thread(_sum_up, chunks, files)
    nothing = {"terms": terms_to_bytes({})}  # for a lesson whose chunks are lost: its replacement is counted
    await connection.execute(update(lessons).where(in_collection).values(nothing))
    share = update(lessons).where(in_collection, lessons.c.source_file == bindparam("file"))
    for rows_of_statement in _batches([{"file": file, "share": terms} for file, terms in shares.items()]):
        await connection.execute(share.values(terms=bindparam("share")), rows_of_statement)
    await _add(connection, lexicon.number, total)
    chunk_count = select(func.coalesce(func.sum(lessons.c.chunk_count), 0)).where(in_collection).scalar_subquery()
    await connection.execute(update(lexicons).where(lexicons.c.number == lexicon.number).values(chunks=chunk_count))
    return True


def _sum_up(chunks: Iterable[CountedChunk], files: Mapping[ChunkId, str]) -> tuple[Counter[int], dict[str, bytes]]:
    """The counts of all chunks that a lesson has, and of each lesson by its source file."""
    total, shares = Counter[int](), dict[str, bytes]()
    known = (chunk for chunk in chunks if chunk[0] in files)
    for file, own_chunks in groupby(known, key=lambda chunk: files[chunk[0]]):  # packed at once: they would take much
        counts = Counter(term for _, terms in own_chunks for term in terms)
        total.update(counts)
        if file in shares:
            counts.update(terms_from_bytes(shares[file]))
        shares[file] = terms_to_bytes(counts)
    return total, shares


async def read_counts(connection: AsyncConnection, place: Place) -> dict[int, int] | None:
    """All counts of a lexicon; None if it is not of the book's epoch, or not the sum of the lessons' own counts."""
    lexicon = await read_lexicon(connection, place)
    in_collection = (lessons.c.book_id == place[0]) & (lessons.c.collection == place[1])
    rows = (await connection.execute(select(lessons.c.terms, lessons.c.chunk_count).where(in_collection))).all()
    epoch = (await connection.execute(select(books.c.epoch).where(books.c.book_id == place[0]))).scalar()
    if lexicon is None or lexicon.epoch != epoch or any(row.terms is None for row in rows):
        return None
    total = Counter[int]()
    for row in rows:
        total.update(terms_from_bytes(row.terms))
    stored = select(term_counts.c.term, term_counts.c.chunks).where(term_counts.c.lexicon == lexicon.number)
    counts = {row.term: row.chunks for row in await connection.execute(stored)}
    return counts if counts == dict(total) and lexicon.chunks == sum(row.chunk_count for row in rows) else None


async def _create(connection: AsyncConnection, place: Place, epoch: int) -> Lexicon:
    values = {"book_id": place[0], "collection": place[1], "epoch": epoch, "chunks": 0}
    number = (await connection.execute(insert(lexicons).values(values).returning(lexicons.c.number))).scalar_one()
    return Lexicon(number=number, epoch=epoch, chunks=0)


async def _add(connection: AsyncConnection, number: int, counts: Mapping[int, int]) -> None:
    """Add these to the counts of a lexicon; terms that no chunk has any more are deleted."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(term_counts)
    add = statement.on_conflict_do_update(
        index_elements=[term_counts.c.lexicon, term_counts.c.term],
        set_={"chunks": term_counts.c.chunks + statement.excluded.chunks},
    )
    changed = [{"lexicon": number, "term": term, "chunks": count} for term, count in sorted(counts.items()) if count]
    for rows in _batches(changed):
        await connection.execute(add, rows)
    gone = delete(term_counts).where(
        term_counts.c.lexicon == number, term_counts.c.term == bindparam("gone"), term_counts.c.chunks <= 0
    )
    for rows in _batches([{"gone": row["term"]} for row in changed if row["chunks"] < 0]):
        await connection.execute(gone, rows)


def _batches(rows: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    return (rows[start : start + ROWS] for start in range(0, len(rows), ROWS))
