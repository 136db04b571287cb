"""In how many chunks of a book each term occurs, on both databases: always the sum of its lessons, whatever was
settled, repeated, removed or written by a version that does not count."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.books import BookEntry, Manifest
from lectern.domain.chunks import Change
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.ports.index import TermCounts
from lectern.store.database import open_database
from lectern.store.ledger import SqlLedger
from lectern.store.tables import books, lessons, lexicons, term_counts
from tests.databases import fresh_database
from tests.making import record, source

COLLECTION, OTHER = "documentation-a", "documentation-b"
TERMS = [1, 2, 3, 2**31, 2**32 - 1]  # a term has 32 bits without a sign


@pytest.fixture(params=["sqlite", "postgresql"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """A migrated database."""
    address = request.getfixturevalue("postgres_address") if request.param == "postgresql" else None
    async with fresh_database(request.param, tmp_path, address) as engine:
        yield engine


def entry(book_id: str = "book", collection: str = COLLECTION) -> BookEntry:
    """A book that is served from this collection."""
    return BookEntry(
        manifest=Manifest(book_id=book_id, title="Book"),
        source="/books",
        fingerprint="test/a/8",
        collection_name=collection,
        total_chunks=0,
        last_full_ingest=None,
        last_incremental_update=None,
    )


def lesson(number: int, terms: dict[int, int] | None, chunks: int = 3, book_id: str = "book") -> IngestionRecord:
    """A lesson of so many chunks, in which terms occur so often."""
    made = record(source(f"{number}.md", lesson=number), tuple(f"{book_id}-{number}-{n}" for n in range(chunks)))
    return replace(made, place=replace(made.place, book_id=book_id), terms=terms)


def work(
    number: int, *records: IngestionRecord, retired: tuple[str, ...] = (), collection: str = COLLECTION
) -> Unsettled:
    """An intent that replaces lessons and takes some away."""
    intent = Intent(change=Change(put=(), drop=(), language="en"), records=records, retired=retired)
    return Unsettled(number=number, book_id="book", collection=collection, intents=(intent,))


async def counted(ledger: SqlLedger, collection: str = COLLECTION) -> TermCounts:
    """What a search is told."""
    return await ledger.generations(collection).counts("book", TERMS)


def nonzero(counts: TermCounts) -> dict[int, int]:
    """The terms that occur."""
    return {term: count for term, count in counts.by_term.items() if count}


async def write_without_counting(engine: AsyncEngine, *, lose: str | None = None) -> None:
    """What a process of an older version does: it changes lessons and the epoch, and knows of no terms."""
    async with engine.begin() as connection:
        if lose:
            await connection.execute(delete(lessons).where(lessons.c.source_file == lose))
        else:
            await connection.execute(update(lessons).values(terms=None))
        await connection.execute(update(books).values(epoch=books.c.epoch + 1))


async def test_the_counts_are_the_sum_of_the_lessons(engine: AsyncEngine) -> None:
    """After every one of 60 random changes, some of them repeated; no term that is gone keeps a row."""
    chance, ledger = random.Random(3), SqlLedger(engine)
    await ledger.save_book(entry())
    current: dict[str, IngestionRecord] = {}
    for number in range(1, 61):
        records = [
            lesson(n, {term: chance.randint(1, 9) for term in chance.sample(TERMS, chance.randint(0, 4))})
            for n in chance.sample(range(12), chance.randint(0, 4))
        ]
        names = {made.source_file for made in records}
        retired = tuple(name for name in current if name not in names and chance.random() < 0.3)
        step = work(number, *records, retired=retired)
        for _ in range(chance.choice([1, 1, 2])):  # a process that was killed does it again
            await ledger.settle(step)
        current = {name: made for name, made in current.items() if name not in retired}
        current |= {made.source_file: made for made in records}
        expected = Counter[int]()
        for made in current.values():
            expected.update(made.terms or {})

        counts = await counted(ledger)
        assert counts.complete
        assert nonzero(counts) == dict(expected)
        assert counts.chunks == sum(made.chunk_count for made in current.values())
        async with engine.connect() as connection:
            rows = (await connection.execute(select(func.count()).select_from(term_counts))).scalar()
            assert rows == len(expected)
        assert await ledger.term_counts("book", COLLECTION) == dict(expected)


async def test_two_collections_of_a_book_count_apart(engine: AsyncEngine) -> None:
    """While a book is rebuilt for another embedder, both its collections are counted, and both are current."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3})))
    await ledger.settle(work(2, lesson(1, {2: 2}), collection=OTHER))

    first, second = await counted(ledger), await counted(ledger, OTHER)
    assert (first.complete, nonzero(first)) == (True, {1: 3})
    assert (second.complete, nonzero(second)) == (True, {2: 2})
    assert first.epoch == second.epoch == 2


async def test_a_removed_book_leaves_no_counts(engine: AsyncEngine) -> None:
    """Its terms do not wait for a book of the same name."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3})))
    await ledger.settle(work(2, retired=("1.md",)))
    await ledger.remove_book("book")

    async with engine.connect() as connection:
        assert (await connection.execute(select(func.count()).select_from(lexicons))).scalar() == 0
        assert (await connection.execute(select(func.count()).select_from(term_counts))).scalar() == 0


@pytest.mark.parametrize("lose", [None, "2.md"])
async def test_a_change_without_counting_is_noticed_and_mended(engine: AsyncEngine, lose: str | None) -> None:
    """A process of an older version changes a book: the counts say that they are not of this state, later changes do
    not hide it, and counting the chunks again mends it for good."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3}), lesson(2, {1: 2, 3: 1})))
    await write_without_counting(engine, lose=lose)
    ledger = SqlLedger(engine)  # on SQLite no other process writes, so a ledger need not look
    assert not (await counted(ledger)).complete
    await ledger.settle(work(2, lesson(3, {2: 1}, chunks=1)))
    incomplete = await counted(ledger)
    assert not incomplete.complete

    chunks = [("book-1-0", [1]), ("book-1-1", [1, 2]), ("book-1-2", [1]), ("book-3-0", [2]), ("orphan", [1, 2, 3])]
    await ledger.generations(COLLECTION).recount("book", incomplete.epoch, chunks)

    counts = await counted(SqlLedger(engine))
    assert counts.complete
    assert nonzero(counts) == {1: 3, 2: 2}
    assert counts.chunks == (4 if lose else 7)
    await ledger.settle(work(3, lesson(1, {1: 1}, chunks=1)))
    assert nonzero(await counted(ledger)) == {1: 1, 2: 1}
    assert (await counted(ledger)).complete


async def test_lessons_of_an_older_version_are_counted_before_their_counts_are_used(engine: AsyncEngine) -> None:
    """A migrated database has lessons and no lexicon; a change before the first search does not pretend to have one."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3}), lesson(2, {1: 1})))
    async with engine.begin() as connection:
        await connection.execute(delete(lexicons))
        await connection.execute(update(lessons).values(terms=None))
    ledger = SqlLedger(engine)
    await ledger.settle(work(2, lesson(2, {2: 1})))

    assert not (await counted(ledger)).complete


async def test_an_intent_of_an_older_version_is_not_taken_for_counted(engine: AsyncEngine) -> None:
    """What a killed process of an older version wrote down is applied, and the book is counted again."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3})))
    await ledger.settle(work(2, lesson(2, None)))

    assert not (await counted(ledger)).complete


async def test_counts_of_a_state_that_has_passed_are_not_kept(engine: AsyncEngine) -> None:
    """The book changes while its chunks are being counted: what was counted is dropped."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3})))
    before = await counted(ledger)
    await ledger.settle(work(2, lesson(1, {2: 3})))
    await ledger.generations(COLLECTION).recount("book", before.epoch, [("book-1-0", [1])])

    assert nonzero(await counted(ledger)) == {2: 3}


async def test_a_ledger_that_forgot_to_count_would_be_noticed(engine: AsyncEngine) -> None:
    """The examination can fail: one wrong count is a fault."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3})))
    async with engine.begin() as connection:
        await connection.execute(update(term_counts).values(chunks=2))
    assert await ledger.term_counts("book", COLLECTION) is None


async def test_the_list_of_books_is_cached_until_another_process_changes_it(
    tmp_path: Path, postgres_address: str
) -> None:
    """Two processes on PostgreSQL: a commit of the one is seen by the other's next call, whatever it changed; a search
    of a book notices it without asking for the list; and without a commit nothing is read again."""
    async with fresh_database("postgresql", tmp_path, postgres_address) as here, open_database(here.url) as there:
        reader, writer = SqlLedger(here), SqlLedger(there)
        await writer.save_book(entry())
        first = await reader.books()
        assert await reader.books() is first
        assert reader.are_current(first)

        changes = (
            lambda: writer.settle(work(1, lesson(1, {1: 3}))),
            lambda: writer.save_book(replace(entry(), source="/elsewhere")),
            lambda: writer.save_book(entry("another")),
            lambda: writer.remove_book("another"),
        )
        for change in changes:
            known = await reader.books()
            await change()
            assert reader.are_current(known)  # not noticed yet
            await counted(reader)
            assert not reader.are_current(known)
            assert await reader.books() == await SqlLedger(there).books() != known
        assert [book.total_chunks for book in await reader.books()] == [3]


async def test_modules_are_read_once_until_the_book_changes(engine: AsyncEngine) -> None:
    """A filter by module takes no statement of its own, and knows the modules of the last commit."""
    ledger = SqlLedger(engine)
    await ledger.save_book(entry())
    await ledger.settle(work(1, lesson(1, {1: 3})))
    assert await ledger.modules("book") == ("m",)
    await ledger.settle(work(2, replace(lesson(2, {}), place=replace(lesson(2, {}).place, module="n"))))

    assert await ledger.modules("book") == ("m", "n")
