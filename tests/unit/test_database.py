"""SQLite: one connection, transactions that are whole whoever is cancelled, and a disk that blocks nobody."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.store import database
from lectern.store.database import SqliteConnection, open_database, reading, sqlite_url
from lectern.store.ledger import SqlLedger

MAX_WAIT_SECONDS = 60.0  # for what must come; a disk that nobody releases fails then
LONG_READ = text(
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000000) "
    "SELECT count(*) FROM numbers"
)


class SlowDisk:
    """A disk that takes as long over a commit as a test likes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.released = threading.Event()
        self._reached = threading.Event()
        disk = self

        def commit(connection: sqlite3.Connection) -> None:
            disk._reached.set()
            assert disk.released.wait(MAX_WAIT_SECONDS), "nobody released the disk: the event loop was held up"
            connection.commit()

        async def slow_commit(self: SqliteConnection) -> None:
            await self._execute(lambda: commit(self._conn))

        monkeypatch.setattr(SqliteConnection, "commit", slow_commit)

    async def reached(self) -> None:
        """Wait until a commit waits for the disk."""
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            while not self._reached.is_set():  # noqa: ASYNC110  # it is set in another thread
                await asyncio.sleep(0.001)


@asynccontextmanager
async def words_in(path: Path | None) -> AsyncIterator[AsyncEngine]:
    """A database with one more table; without a path it is in memory."""
    async with open_database(sqlite_url(path)) as opened:
        async with opened.begin() as connection:
            await connection.execute(text("CREATE TABLE words (word TEXT UNIQUE)"))
        yield opened


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """Such a database in a file."""
    async with words_in(tmp_path / "lectern.db") as opened:
        yield opened


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch, engine: AsyncEngine) -> SlowDisk:  # after the table is there
    """A disk that takes its time."""
    return SlowDisk(monkeypatch)


async def add(engine: AsyncEngine, *words: str) -> None:
    """Write words in one transaction."""
    async with engine.begin() as connection:
        for word in words:
            await connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": word})


async def driver(engine: AsyncEngine) -> object:
    """The connection that is used now."""
    async with engine.connect() as connection:
        return (await connection.get_raw_connection()).dbapi_connection


async def known_revisions(engine: AsyncEngine) -> list[str]:
    """All words."""
    async with engine.connect() as connection:
        return list((await connection.execute(text("SELECT word FROM words ORDER BY word"))).scalars())


async def test_a_transaction_that_fails_leaves_nothing(engine: AsyncEngine) -> None:
    """The second word is there already, so the first of the same transaction is not kept either."""
    await add(engine, "node")

    with pytest.raises(Exception, match="UNIQUE"):
        await add(engine, "topic", "node")

    assert await known_revisions(engine) == ["node"]


async def test_many_at_once_take_turns(engine: AsyncEngine) -> None:
    """Transactions that begin together are carried out one after the other, each whole."""
    await asyncio.gather(*(add(engine, f"{number}a", f"{number}b") for number in range(30)))

    assert len(await known_revisions(engine)) == 60


async def test_the_loop_goes_on_while_the_disk_works(engine: AsyncEngine, slow_disk: SlowDisk) -> None:
    """A commit that waits for the disk does not hold up what needs no database: else nobody would release the disk."""
    writing = asyncio.create_task(add(engine, "node"))
    await slow_disk.reached()
    for _ in range(10):
        await asyncio.sleep(0.005)
    under_way = not writing.done()
    slow_disk.released.set()
    await writing

    assert under_way
    assert await known_revisions(engine) == ["node"]


async def test_whoever_is_cancelled_waits_for_its_commit(engine: AsyncEngine, slow_disk: SlowDisk) -> None:
    """A commit under way is finished, and only then does anybody else get the connection."""
    writing = asyncio.create_task(add(engine, "node"))
    await slow_disk.reached()
    writing.cancel()
    reading_task = asyncio.create_task(known_revisions(engine))
    done, _ = await asyncio.wait([writing, reading_task], timeout=0.1)
    assert not done
    slow_disk.released.set()

    assert await reading_task == ["node"]
    with pytest.raises(asyncio.CancelledError):
        await writing


async def test_not_even_a_second_cancelling_leaves_a_commit_behind(engine: AsyncEngine, slow_disk: SlowDisk) -> None:
    """However often it is cancelled, the commit ends first, on the same connection, and the task is cancelled."""
    before = await driver(engine)
    writing = asyncio.create_task(add(engine, "node"))
    await slow_disk.reached()
    for _ in range(3):
        writing.cancel()
        await asyncio.sleep(0.01)
    slow_disk.released.set()
    await asyncio.wait([writing])

    assert writing.cancelled()
    assert await known_revisions(engine) == ["node"]
    assert await driver(engine) is before


async def test_a_database_in_memory_outlives_a_cancelled_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its one connection is all there is of it."""
    async with words_in(None) as engine:
        slow_disk = SlowDisk(monkeypatch)
        writing = asyncio.create_task(add(engine, "node"))
        await slow_disk.reached()
        writing.cancel()
        await asyncio.sleep(0.01)
        slow_disk.released.set()
        await asyncio.wait([writing])

        assert await known_revisions(engine) == ["node"]


async def test_a_database_in_memory_outlives_a_cancelled_statement() -> None:
    """A statement under way is finished on the connection that it was begun on, and the task is cancelled."""
    async with words_in(None) as engine:
        await add(engine, "node")
        before = await driver(engine)

        async def read() -> None:
            async with reading(engine) as connection:
                await connection.execute(LONG_READ)

        task = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        under_way = not task.done()
        task.cancel()
        await asyncio.wait([task])

        assert under_way
        assert task.cancelled()
        assert await driver(engine) is before
        assert await known_revisions(engine) == ["node"]


async def test_a_timeout_around_a_commit_is_still_a_timeout(engine: AsyncEngine, slow_disk: SlowDisk) -> None:
    """Whoever sets a limit hears of that limit, after the commit."""

    async def limited() -> None:
        async with asyncio.timeout(None) as limit:
            writing = asyncio.create_task(expire(limit))
            await add(engine, "node")
            await asyncio.sleep(0)
        await writing

    async def expire(limit: asyncio.Timeout) -> None:
        await slow_disk.reached()
        limit.reschedule(asyncio.get_running_loop().time())
        await asyncio.sleep(0.05)
        slow_disk.released.set()

    with pytest.raises(TimeoutError):
        await limited()

    assert await known_revisions(engine) == ["node"]


async def test_a_lock_of_another_program_is_waited_for_in_peace(engine: AsyncEngine, tmp_path: Path) -> None:
    """While somebody else writes the file the loop goes on, and the transaction is carried out afterwards."""
    other_connection = sqlite3.connect(tmp_path / "lectern.db", isolation_level=None)
    other_connection.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(add(engine, "node"))
    for _ in range(40):  # were the loop held up, this would last until the patience for the lock has ended
        await asyncio.sleep(0.005)
    waiting = not writing.done()
    other_connection.execute("ROLLBACK")
    other_connection.close()
    await writing

    assert waiting
    assert await known_revisions(engine) == ["node"]


async def test_a_lock_that_stays_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience ends; nothing was written, and the next transaction is as good as any."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    async with words_in(tmp_path / "lectern.db") as engine:
        other_connection = sqlite3.connect(tmp_path / "lectern.db", isolation_level=None)
        other_connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            await add(engine, "node")
        other_connection.execute("ROLLBACK")
        other_connection.close()
        await add(engine, "topic")

        assert await known_revisions(engine) == ["topic"]


async def test_much_comes_whole(engine: AsyncEngine) -> None:
    """Thousands of rows, written in bulk, are the same in the same order."""
    words = [{"word": f"{number:05}"} for number in range(5_000)]
    async with engine.begin() as connection:
        await connection.execute(text("INSERT INTO words VALUES (:word)"), words)
    query = text("SELECT word FROM words ORDER BY word")
    async with reading(engine) as connection:
        result = await connection.execute(query)
        first, some_rows, rest = result.fetchone(), result.fetchmany(10), result.fetchall()

    assert first is not None
    assert [row.word for row in (first, *some_rows, *rest)] == [row_values["word"] for row_values in words]


async def test_a_commit_that_fails_is_said_and_leaves_nothing(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is an error of this transaction, not of the next."""

    def full() -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def commit(self: SqliteConnection) -> None:
        await self._execute(full)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteConnection, "commit", commit)
        with pytest.raises(Exception, match="full"):
            await add(engine, "node")
    await add(engine, "topic")

    assert await known_revisions(engine) == ["topic"]


async def test_the_number_of_a_change_is_not_used_again(tmp_path: Path) -> None:
    """It is the generation of the chunks that it writes: left-overs of a forgotten change would pass for new ones."""
    async with open_database(sqlite_url(tmp_path / "lectern.db")) as engine:
        ledger = SqlLedger(engine)
        first = await ledger.intend("book", "collection", [])
        await ledger.forget(first)

        assert await ledger.intend("book", "collection", []) > first
