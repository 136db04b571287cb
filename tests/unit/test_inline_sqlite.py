"""SQLite on the event loop: transactions are whole, and the disk blocks nobody."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.store import inline_sqlite
from lectern.store.database import open_database, reading, sqlite_url
from lectern.store.inline_sqlite import LoopConnection

SLOW = 0.3  # seconds that the disk takes


def slow_commit(self: LoopConnection) -> None:
    """A disk that takes its time."""
    time.sleep(SLOW)
    sqlite3.Connection.commit(self)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """A database with one more table."""
    async with open_database(sqlite_url(tmp_path / "lectern.db")) as opened:
        async with opened.begin() as connection:
            await connection.execute(text("CREATE TABLE words (word TEXT UNIQUE)"))
        yield opened


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch, engine: AsyncEngine) -> None:  # after the table is there
    """A disk that takes its time."""
    monkeypatch.setattr(LoopConnection, "commit", slow_commit)


async def add(engine: AsyncEngine, *words: str) -> None:
    """Write words in one transaction."""
    async with engine.begin() as connection:
        for word in words:
            await connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": word})


async def driver(engine: AsyncEngine) -> object:
    """The connection that is used now."""
    async with engine.connect() as connection:
        return (await connection.get_raw_connection()).dbapi_connection


async def known(engine: AsyncEngine) -> list[str]:
    """All words."""
    async with engine.connect() as connection:
        return list((await connection.execute(text("SELECT word FROM words ORDER BY word"))).scalars())


async def test_a_transaction_that_fails_leaves_nothing(engine: AsyncEngine) -> None:
    """The second word is there already, so the first of the same transaction is not kept either."""
    await add(engine, "node")

    with pytest.raises(Exception, match="UNIQUE"):
        await add(engine, "topic", "node")

    assert await known(engine) == ["node"]


async def test_many_at_once_take_turns(engine: AsyncEngine) -> None:
    """Transactions that begin together are carried out one after the other, each whole."""
    await asyncio.gather(*(add(engine, f"{number}a", f"{number}b") for number in range(30)))

    assert len(await known(engine)) == 60


@pytest.mark.usefixtures("slow_disk")
async def test_the_loop_goes_on_while_the_disk_works(engine: AsyncEngine) -> None:
    """A commit that waits for the disk does not hold up what needs no database."""
    writing = asyncio.create_task(add(engine, "node"))
    longest, before = 0.0, time.perf_counter()
    while not writing.done():
        await asyncio.sleep(0.005)
        longest, before = max(longest, time.perf_counter() - before), time.perf_counter()

    assert longest < SLOW / 2


@pytest.mark.usefixtures("slow_disk")
async def test_whoever_is_cancelled_waits_for_its_commit(engine: AsyncEngine) -> None:
    """A commit under way is finished, and only then does anybody else get the connection."""
    writing = asyncio.create_task(add(engine, "node"))
    await asyncio.sleep(SLOW / 3)  # it is waiting for the disk now
    begun = time.perf_counter()
    writing.cancel()
    await asyncio.wait([writing])

    assert time.perf_counter() - begun > SLOW / 3
    assert await known(engine) == ["node"]


@pytest.mark.usefixtures("slow_disk")
async def test_not_even_a_second_cancelling_leaves_a_commit_behind(engine: AsyncEngine) -> None:
    """However often it is cancelled, the commit ends first, on the same connection, and the task is cancelled."""
    before = await driver(engine)
    writing = asyncio.create_task(add(engine, "node"))
    for _ in range(3):
        await asyncio.sleep(SLOW / 6)
        writing.cancel()
    await asyncio.wait([writing])

    assert writing.cancelled()
    assert await known(engine) == ["node"]
    assert await driver(engine) is before


async def test_a_database_in_memory_outlives_a_cancelled_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its one connection is all there is of it."""
    async with open_database(sqlite_url(None)) as engine:
        async with engine.begin() as connection:
            await connection.execute(text("CREATE TABLE words (word TEXT UNIQUE)"))
        monkeypatch.setattr(LoopConnection, "commit", slow_commit)
        writing = asyncio.create_task(add(engine, "node"))
        await asyncio.sleep(SLOW / 3)
        writing.cancel()
        await asyncio.wait([writing])

        assert await known(engine) == ["node"]


async def test_a_timeout_around_a_commit_is_still_a_timeout(engine: AsyncEngine, slow_disk: None) -> None:
    """Whoever sets a limit hears of that limit, after the commit."""

    async def limited() -> None:
        async with asyncio.timeout(SLOW / 3):
            await add(engine, "node")
            await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        await limited()

    assert await known(engine) == ["node"]


async def test_a_lock_of_another_program_is_waited_for_in_peace(engine: AsyncEngine, tmp_path: Path) -> None:
    """While somebody else writes the file the loop goes on, and the transaction is carried out afterwards."""
    other = sqlite3.connect(tmp_path / "lectern.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(add(engine, "node"))
    longest, before = 0.0, time.perf_counter()
    for _ in range(40):
        await asyncio.sleep(0.005)
        longest, before = max(longest, time.perf_counter() - before), time.perf_counter()
    waiting = not writing.done()
    other.execute("ROLLBACK")
    other.close()
    await writing

    assert waiting
    assert longest < 0.1
    assert await known(engine) == ["node"]


async def test_a_lock_that_stays_is_an_error(
    engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience ends; nothing was written, and the next transaction is as good as any."""
    monkeypatch.setattr(inline_sqlite, "PATIENCE", 0.1)
    other = sqlite3.connect(tmp_path / "lectern.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="locked"):
        await add(engine, "node")
    other.execute("ROLLBACK")
    other.close()
    await add(engine, "topic")

    assert await known(engine) == ["topic"]


async def test_much_is_read_apart_and_comes_whole(engine: AsyncEngine) -> None:
    """Thousands of rows, written in bulk and read in the thread, are the same in the same order."""
    words = [{"word": f"{number:05}"} for number in range(5_000)]
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO words VALUES (:word)"), words)
    query = text("SELECT word FROM words ORDER BY word")
    async with reading(engine, much=True) as connection:
        result = await connection.execute(query)
        first, some, rest = result.fetchone(), result.fetchmany(10), result.fetchall()

    assert first is not None
    assert [row.word for row in (first, *some, *rest)] == [one["word"] for one in words]


async def test_a_commit_that_fails_is_said_and_leaves_nothing(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is an error of this transaction, not of the next."""

    def full(_: LoopConnection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(LoopConnection, "commit", full)
        with pytest.raises(Exception, match="full"):
            await add(engine, "node")
    await add(engine, "topic")

    assert await known(engine) == ["topic"]
