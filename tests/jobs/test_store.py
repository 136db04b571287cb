"""Job records and book locks on both databases: one contract."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, TextClause, insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.books import BookEntry, Manifest, Problem
from lectern.domain.errors import Busy, TakenOver
from lectern.domain.jobs import IngestionJob, JobOrder, JobRecord
from lectern.store import jobs as store
from lectern.store.database import open_database
from lectern.store.jobs import SqlJobs
from lectern.store.ledger import SqlLedger
from lectern.store.locks import SqlBookLocks
from lectern.store.tables import jobs as rows
from tests.databases import fresh_database, new_postgres_database

ORDER = JobOrder(book_id="book", folder="/books/one", source="one", mode="full", replace=True)


@pytest.fixture(params=["sqlite", "postgresql"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """A migrated database."""
    address = request.getfixturevalue("postgres_address") if request.param == "postgresql" else None
    async with fresh_database(request.param, tmp_path, address) as engine:
        yield engine


async def add_job(log: SqlJobs, order: JobOrder = ORDER, **more) -> JobRecord:
    """One more job."""
    record = await log.add(order, owner="mine", origin="server", **more)
    assert record is not None
    return record


def end_job(record: JobRecord, status: str = "completed") -> IngestionJob:
    """The job with a report."""
    problems = (
        Problem(file="a.md", line=3, message="odd", severity="warning"),
        Problem(file="b\udc80.md", line=None, message="broken", severity="error"),
    )
    return dataclasses.replace(
        record.job,
        status=status,
        started_at="2026-01-01T00:00:00.000Z",
        completed_at="2026-01-01T00:00:01.000Z",
        duration_seconds=1,
        files_discovered=2,
        files_processed=1,
        files_failed=1,
        chunks_created=7,
        stage_seconds={"read": 0.5},
        warnings=problems[:1],
        errors=problems[1:],
    )


async def test_a_job_comes_back_as_it_was_written(engine: AsyncEngine) -> None:
    """Order, report and every warning survive the database; numbers increase."""
    log = SqlJobs(engine)
    first, second = await add_job(log), await add_job(log)
    assert second.job.job_id > first.job.job_id
    assert await log.record(first.job.job_id) == first

    assert await log.begin(first.job.job_id) == 1
    await log.end(end_job(first))
    read = await log.record(first.job.job_id)

    assert read is not None
    assert (read.job, read.order, read.attempts) == (end_job(first), ORDER, 1)
    assert await log.record(10_000) is None


async def test_an_ended_job_stays_as_it_ended(engine: AsyncEngine) -> None:
    """Whoever comes late, to note, end, begin or put back, changes nothing."""
    log = SqlJobs(engine)
    record = await add_job(log)
    await log.end(end_job(record, "cancelled"))
    await log.end(end_job(record, "completed"))
    await log.note(record.job)
    await log.put_back(record.job.job_id, uncounted=True)
    await log.ask_to_end(record.job.job_id)

    assert await log.begin(record.job.job_id) == 0
    read = await log.record(record.job.job_id)
    assert read is not None
    assert (read.job.status, read.cancelling) == ("cancelled", False)


async def test_attempts_are_counted_and_a_graceful_stop_takes_its_own_back(engine: AsyncEngine) -> None:
    """A kill leaves the count, a stop does not; a job that waits again has not started."""
    log = SqlJobs(engine)
    record = await add_job(log)
    job_id = record.job.job_id
    await log.begin(job_id)
    assert await log.begin(job_id) == 2
    await log.note(dataclasses.replace(record.job, status="running", started_at="2026-01-01T00:00:00.000Z"))
    await log.put_back(job_id, uncounted=True)
    read = await log.record(job_id)

    assert read is not None
    assert (read.attempts, read.job.status, read.job.started_at) == (1, "queued", None)


async def test_an_idempotency_key_names_one_job_of_its_owner(engine: AsyncEngine) -> None:
    """The second with a key is refused and the first found, ten at once included; another owner's key is another."""
    log = SqlJobs(engine)
    tries = await asyncio.gather(*(log.add(ORDER, owner="mine", origin="server", key="k") for _ in range(10)))
    (record,) = [attempt for attempt in tries if attempt is not None]
    other_record = await log.add(ORDER, owner="yours", origin="server", key="k")

    assert other_record is not None
    assert await log.keyed("mine", "k") == (record, ORDER)
    assert await log.keyed("nobody", "k") is None


async def test_a_key_of_a_request_that_joined_names_the_job(engine: AsyncEngine) -> None:
    """It is kept with its own words, once for each owner, and a key that began a job cannot join another."""
    log = SqlJobs(engine)
    record = await log.add(ORDER, owner="mine", origin="server", key="first")
    assert record is not None
    named_order = dataclasses.replace(ORDER, source="named")
    tries = await asyncio.gather(
        *(log.join(named_order, owner="mine", key="second", job_id=record.job.job_id) for _ in range(5))
    )

    assert sorted(tries) == [False] * 4 + [True]
    assert await log.keyed("mine", "second") == (record, named_order)
    assert not await log.join(ORDER, owner="mine", key="first", job_id=record.job.job_id)
    assert await log.join(ORDER, owner="yours", key="second", job_id=record.job.job_id)


async def test_keys_of_an_older_database_are_found_again(engine: AsyncEngine) -> None:
    """The migration takes them along with what was asked for, and back."""
    log = SqlJobs(engine)
    record = await add_job(log, key="k")
    keyed_record = await log.keyed("mine", "k")
    for step in ("0002", "head"):
        async with engine.begin() as connection:
            await connection.run_sync(migrate, step)

    assert keyed_record == await log.keyed("mine", "k")
    assert keyed_record is not None
    assert keyed_record[0] == record
    assert keyed_record[1].same_words(ORDER)
    assert await log.add(ORDER, owner="mine", origin="server", key="k") is None


def migrate(connection: Connection, to: str) -> None:
    """Bring the tables to a version, older or newer."""
    config = Config()
    config.set_main_option("script_location", "lectern.store:migrations")
    config.attributes["connection"] = connection
    (command.upgrade if to == "head" else command.downgrade)(config, to)


async def test_books_of_an_older_database_are_bound_by_who_named_their_folder(engine: AsyncEngine) -> None:
    """The first job of a folder says whether it was a caller or the operator."""
    log, ledger = SqlJobs(engine), SqlLedger(engine)
    for name, words in {"callers": ["one", None], "operators": [None, "one"], "moved": ["one"]}.items():
        folder = "/elsewhere" if name == "moved" else "/books/one"
        await ledger.save_book(entry(name, folder))
        for source in words:
            await add_job(log, dataclasses.replace(ORDER, book_id=name, source=source))
    for step in ("0002", "head"):
        async with engine.begin() as connection:
            await connection.run_sync(migrate, step)

    bound = {entry.manifest.book_id: entry.bound for entry in await SqlLedger(engine).books()}
    assert bound == {"callers": True, "moved": False, "operators": False}


def entry(book_id: str, source: str) -> BookEntry:
    """A book as the ledger knows it."""
    return BookEntry(
        manifest=Manifest(book_id=book_id, title=book_id),
        source=source,
        fingerprint="f",
        collection_name="c",
        total_chunks=0,
        last_full_ingest=None,
        last_incremental_update=None,
    )


async def test_a_note_hears_that_an_end_is_wanted(engine: AsyncEngine) -> None:
    """The process that carries a job on learns of a cancel that came in elsewhere."""
    log = SqlJobs(engine)
    record = await add_job(log)

    assert not await log.note(record.job)
    await log.ask_to_end(record.job.job_id)
    assert await log.note(record.job)


async def test_lists_are_newest_first_and_within_books(engine: AsyncEngine) -> None:
    """Pages go back without gaps; a caller's books are all that is listed, no books are none."""
    log = SqlJobs(engine)
    records = [await add_job(log, dataclasses.replace(ORDER, book_id=book)) for book in ("a", "b", "a", "c", "a")]
    numbers = [record.job.job_id for record in records]

    first = await log.page(books=None, limit=3, before=None)
    rest = await log.page(books=None, limit=3, before=first[-1].job.job_id)
    assert [record.job.job_id for record in (*first, *rest)] == numbers[::-1]
    book_records = await log.page(books=frozenset({"a"}), limit=10, before=None)
    assert [record.job.job_id for record in book_records] == [numbers[4], numbers[2], numbers[0]]
    assert await log.page(books=frozenset(), limit=10, before=None) == ()
    await log.end(end_job(records[1]))
    assert [open_job.order.book_id for open_job in await log.open_jobs()] == ["a", "a", "c", "a"]
    assert (await log.page(books=frozenset({"b"}), limit=1, before=None))[0].job.errors == ()


async def test_old_jobs_of_a_book_are_forgotten_in_time(engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the newest thousand those go that ended a while ago; open ones, new ones and other books' stay."""
    monkeypatch.setattr(store, "JOBS_TO_KEEP", 2)
    log = SqlJobs(engine)
    old = {"owner": "o", "request": "{}", "report": "{}", "problems": "[]", "cancelling": 0, "attempts": 0}
    old |= {"queued_at": "2020-01-01T00:00:00.000Z"}
    kinds = [("book", "completed"), ("book", "queued"), ("other", "completed"), ("book", "failed")]
    async with engine.begin() as connection:
        await connection.execute(insert(rows), [{**old, "book_id": book, "status": status} for book, status in kinds])
    await log.end(end_job(await add_job(log)))
    await log.end(end_job(await add_job(log)))
    remaining = [
        (record.job.book_id, record.job.status) for record in await log.page(books=None, limit=99, before=None)
    ]

    assert remaining == [("book", "completed")] * 2 + [("other", "completed"), ("book", "queued")]


async def test_a_book_has_one_holder(engine: AsyncEngine) -> None:
    """A second is refused at once, another book is free, and afterwards the book is."""
    locks = SqlBookLocks(engine)
    async with locks.hold("book"):
        assert locks.holds_any
        with pytest.raises(Busy, match="ingested, calibrated"):  # the lock does not know what for
            async with locks.hold("book"):
                pass
        async with locks.hold("other"):
            await locks.confirm("other")
    async with locks.hold("book"):
        assert not await locks.is_locked_elsewhere("book")  # by another process
    assert not locks.holds_any


async def test_processes_share_the_locks_of_their_database(postgres_address: str) -> None:
    """What one process holds another finds taken, until it lets go or dies."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url) as first_database, open_database(url) as second_database:
        here, there = SqlBookLocks(first_database), SqlBookLocks(second_database)
        async with here.hold("book"):
            assert await there.is_locked_elsewhere("book")
            assert not await there.is_locked_elsewhere("other")
            with pytest.raises(Busy):
                async with there.hold("book"):
                    pass
            await here.confirm("book")
        assert not await there.is_locked_elsewhere("book")
        async with there.hold("book"):
            pass


async def test_a_holder_notices_that_another_has_taken_over(postgres_address: str) -> None:
    """When its connection is cut, the lock is another's to take, and the next step of the first fails."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url) as first_database, open_database(url) as second_database:
        here, there = SqlBookLocks(first_database), SqlBookLocks(second_database)
        async with here.hold("book"):
            cut = text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
            async with second_database.begin() as admin:
                await admin.execute(cut)
            while await there.is_locked_elsewhere("book"):  # noqa: ASYNC110  # nobody tells when the server has noticed
                await asyncio.sleep(0.02)
            async with there.hold("book"):
                with pytest.raises(TakenOver, match="goes on there"):
                    await here.confirm("book")


async def test_a_holder_whose_connection_breaks_keeps_the_lock(postgres_address: str) -> None:
    """Unless another process was quicker, it has the lock again with its next sign of life."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url) as first_database, open_database(url) as second_database:
        here, there = SqlBookLocks(first_database, lease_seconds=1), SqlBookLocks(second_database, lease_seconds=1)
        async with here.hold("book"):
            async with second_database.begin() as admin:
                await admin.execute(text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"))
            await here.confirm("book")
            while not await there.is_locked_elsewhere("book"):  # noqa: ASYNC110  # its next sign of life
                await asyncio.sleep(0.02)
            with pytest.raises(Busy):
                async with there.hold("book"):
                    pass
        assert not await there.is_locked_elsewhere("book")


async def frozen(locks: SqlBookLocks) -> None:
    """A holder that gives no sign of life any more, although its connection is open."""
    for task in asyncio.all_tasks():
        if task.get_name().startswith("lease of"):
            task.cancel()
            await asyncio.wait([task])


async def test_a_lock_without_a_sign_of_life_is_anothers_to_take(postgres_address: str) -> None:
    """After the time of the lease; before it nobody gets it. What the first one then writes is refused, in the very
    transaction."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url) as first_database, open_database(url) as second_database:
        here, there = SqlBookLocks(first_database, lease_seconds=2), SqlBookLocks(second_database, lease_seconds=2)
        job_log = SqlJobs(first_database, here.check)
        record = await add_job(job_log)
        async with here.hold("book"):
            await frozen(here)
            with pytest.raises(Busy):
                async with there.hold("book"):
                    pass
            while await there.is_locked_elsewhere("book"):  # noqa: ASYNC110  # nobody tells when it is over
                await asyncio.sleep(0.05)
            await here.confirm("book")  # nobody has taken it
            async with there.hold("book"):
                writes = (
                    job_log.end(end_job(record)),
                    job_log.note(record.job),
                    job_log.begin(record.job.job_id),
                    job_log.put_back(record.job.job_id, uncounted=True),
                    SqlLedger(first_database, here.check).intend("book", "c", []),
                    SqlLedger(first_database, here.check).remove_book("book"),
                )
                for write in writes:
                    with pytest.raises(TakenOver):
                        await write
        assert (await job_log.record(record.job.job_id)).job.status == "queued"


async def test_who_takes_over_waits_for_the_last_transaction(postgres_address: str) -> None:
    """A transaction that has checked the lock ends before anybody gets the book, however late it is."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url) as first_database, open_database(url) as second_database:
        here, there = SqlBookLocks(first_database, lease_seconds=1), SqlBookLocks(second_database, lease_seconds=1)
        taken: list[str] = []

        async def take() -> None:
            async with there.hold("book"):
                taken.append("taken")

        async with asyncio.timeout(60), here.hold("book"):
            await frozen(here)
            async with first_database.begin() as connection:
                await here.check(connection, "book")
                while await there.is_locked_elsewhere("book"):  # noqa: ASYNC110  # nobody tells when it is over
                    await asyncio.sleep(0.05)
                taking = asyncio.create_task(take())
                waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
                while not await _scalar(second_database, waiting):  # noqa: ASYNC110  # the database's own wait
                    await asyncio.sleep(0.02)
                assert not taken
            await taking
        assert taken


async def _scalar(engine: AsyncEngine, query: TextClause) -> int:
    async with engine.connect() as connection:
        return int((await connection.execute(query)).scalar_one())
