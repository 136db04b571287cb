"""SQLite on the event loop: transactions are whole, and the disk blocks nobody."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.records.database import NOTE, open_database, sqlite_url
from lectern.records.inline_sqlite import QuietConnection

SLOW = 0.3  # seconds that the disk takes


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

    def commit(self: QuietConnection) -> None:
        time.sleep(SLOW)
        super(QuietConnection, self).commit()

    monkeypatch.setattr(QuietConnection, "commit", commit)


async def add(engine: AsyncEngine, *words: str) -> None:
    """Write words in one transaction."""
    async with engine.begin() as connection:
        for word in words:
            await connection.execute(text("INSERT INTO words VALUES (:word)"), {"word": word})


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


async def test_a_note_does_not_wait_and_the_next_transaction_does(engine: AsyncEngine) -> None:
    """What need not survive a power cut is committed at once; the setting does not leak into others."""
    note = engine.execution_options(**{NOTE: True})
    seen = []
    for used in (note, engine, note):
        async with used.begin() as connection:
            pragma = (await connection.execute(text("PRAGMA synchronous"))).scalar()
            driver = (await connection.get_raw_connection()).dbapi_connection
            seen.append((pragma, driver.waits if isinstance(driver, QuietConnection) else None))

    assert seen == [(1, False), (2, True), (1, False)]
