"""Jobs in a process: who gets which job, what a cancel, a stop and a death leave behind."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from lectern.domain import failpoints
from lectern.domain.clock import days_ago, whole_seconds
from lectern.domain.errors import BadInput, Busy, JobCancelled, Overloaded, UnknownBook, UnknownJob
from lectern.domain.jobs import JobOrder, JobRecord
from lectern.domain.keys import LOCAL
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.ingest import IngestDeps, IngestRequest
from lectern.ingestion.replacing import recover_all, verify_all
from lectern.ingestion.report import JobProgress
from lectern.ingestion.worker import InProcess
from lectern.jobs import runner
from lectern.jobs.executor import LiveEvent, LiveJob
from lectern.jobs.runner import JobRules, Jobs
from lectern.store.database import open_database
from lectern.store.jobs import SqlJobs
from lectern.store.locks import SqlBookLocks
from lectern.store.tables import jobs as rows
from tests.books import Author
from tests.databases import new_postgres_database
from tests.ingest_parts import agreement, content, open_ingest_parts, run


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that runs a job is waited for, however busy the machine is."""
    monkeypatch.setattr(runner, "CANCEL_WAIT_SECONDS", 60.0)


class SlowBench(InProcess):
    """Small steps that wait for a word before each."""

    batch = 2

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.middle = asyncio.Event()
        self.steps = 0

    async def read(self, order):
        """One step, when it may."""
        self.steps += 1
        if self.steps > 2:
            self.middle.set()
            await self.go.wait()
        return await super().read(order)


class Room:
    """Ingestion parts with jobs on them."""

    def __init__(self, ingest_deps: IngestDeps, rules: JobRules) -> None:
        self.worker = SlowBench()
        self.ingest_deps = dataclasses.replace(ingest_deps, worker=self.worker)
        self.engine = ingest_deps.ledger._engine
        self.jobs = Jobs(self.ingest_deps, SqlJobs(self.engine), rules)

    async def wait_for_end(self, record: JobRecord) -> JobRecord:
        """The job once it has ended."""
        self.worker.go.set()
        live = self.jobs.live(record.job.job_id)
        assert live is not None
        await live.over()
        return await self.jobs.record(record.job.job_id, None)


@asynccontextmanager
async def room(home: Path, *, serving: bool = True, roots: tuple[Path, ...] = ()) -> AsyncIterator[Room]:
    """Jobs below this folder, as a server or a command has them."""
    async with open_ingest_parts(home) as ingest_deps:
        room = Room(ingest_deps, JobRules(serving=serving, roots=roots))
        try:
            yield room
        finally:
            await room.jobs.close()


@pytest.fixture
def author(tmp_path: Path) -> Author:
    """A small book."""
    return Author(tmp_path / "books" / "book", 5)


def order(author: Author, **more: object) -> JobOrder:
    """What is asked for."""
    return dataclasses.replace(JobOrder(book_id="book", folder=str(author.folder.resolve())), **more)


async def fresh(folder: Path, author: Author) -> list:
    """What a fresh ingest of the book gives."""
    async with open_ingest_parts(folder) as ingest_deps:
        await run(ingest_deps, author.folder)
        return await content(ingest_deps)


async def test_the_same_request_gets_the_job_that_is_under_way(tmp_path: Path, author: Author) -> None:
    """Ten at once are one job; another request on the book is told which job is in the way; then the book is free."""
    async with room(tmp_path / "home") as here:
        starts = [here.jobs.start(order(author), owner="mine") for _ in range(10)]
        numbers = {record.job.job_id for record in await asyncio.gather(*starts)}
        assert len(numbers) == 1
        with pytest.raises(Busy, match=rf"job {numbers.pop()} \(incremental\)"):
            await here.jobs.start(order(author, mode="full"), owner="mine")
        record = await here.wait_for_end(await here.jobs.start(order(author), owner="yours"))
        assert (record.job.status, record.attempts) == ("completed", 1)

        again = await here.jobs.start(order(author, mode="full"), owner="mine")
        assert again.job.job_id > record.job.job_id
        assert (await here.wait_for_end(again)).job.status == "completed"
        await agreement(here.ingest_deps)


async def test_whoever_hears_of_the_end_finds_it_written_and_the_book_free(
    tmp_path: Path, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the very moment of the last event nobody is alone with the book any more, and the record has its end."""
    states: list[tuple[str, bool]] = []
    publish = LiveJob.publish

    def watched(live: LiveJob, event: LiveEvent) -> None:
        states.append((event.kind, here.ingest_deps.locks.holds_any))
        publish(live, event)

    async with room(tmp_path / "home") as here:
        monkeypatch.setattr(LiveJob, "publish", watched)
        await here.wait_for_end(await here.jobs.start(order(author), owner="mine"))

        assert states[0] == ("planned", True)
        assert states[-1] == ("finished", False)


async def test_a_cancelled_job_leaves_everything_right(tmp_path: Path, author: Author) -> None:
    """In the middle of the book: what is done stays, index and ledger agree, and the next job ends like a fresh one."""
    async with room(tmp_path / "home") as here:
        record = await here.jobs.start(order(author), owner="mine")
        await here.worker.middle.wait()
        cancelled = await here.jobs.cancel(record.job.job_id, None)
        assert cancelled.job.status == "cancelled"
        assert 0 < cancelled.job.files_processed < cancelled.job.files_discovered
        assert cancelled.job.completed_at
        assert cancelled.job.duration_seconds is not None
        await agreement(here.ingest_deps)
        assert (await here.jobs.cancel(record.job.job_id, None)).job == cancelled.job

        finished_job = await here.wait_for_end(await here.jobs.start(order(author), owner="mine"))
        assert finished_job.job.files_skipped == cancelled.job.files_processed
        assert await content(here.ingest_deps) == await fresh(tmp_path / "fresh", author)


async def test_a_job_starts_once_and_its_chunks_name_the_model(
    tmp_path: Path, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`started_at` is the moment when the job left the queue, while it runs and afterwards; the stamp of a chunk has
    the embedding model's name without provider and dimensions."""
    left_the_queue = days_ago(1)
    monkeypatch.setattr("lectern.jobs.executor.utc_now", lambda: left_the_queue)
    async with room(tmp_path / "home") as here:
        record = await here.jobs.start(order(author), owner="mine")
        live = here.jobs.live(record.job.job_id)
        await here.worker.middle.wait()
        assert live is not None
        shown = live.job.started_at
        ended = (await here.wait_for_end(record)).job
        index = here.ingest_deps.collections.current.index
        chunks = await index.read(lambda view: view.chunks(ChunkFilter(book_id="book")))

        assert ended.started_at == shown == left_the_queue
        assert ended.duration_seconds == whole_seconds(str(ended.started_at), str(ended.completed_at))
        assert {stored.stamp.embedding_model for stored in chunks} == {"words"}


def test_a_jobs_duration_is_that_between_its_moments() -> None:
    """Whole seconds from start to end, what came before the first step included; none if the clock was put back."""
    for ago, least in ((90, 90), (-90, 0)):
        progress = JobProgress(job_id=1, book_id="book", mode="full", started_at=days_ago(ago / 86_400))
        job = progress.job("completed")

        assert job.duration_seconds == whole_seconds(str(job.started_at), str(job.completed_at))
        assert job.duration_seconds >= least


async def test_one_job_works_and_the_others_wait(tmp_path: Path, author: Author) -> None:
    """A second book is queued behind the first, can be cancelled there, and holds its book meanwhile."""
    second_author = Author(tmp_path / "books" / "other", 6)
    async with room(tmp_path / "home") as here:
        first = await here.jobs.start(order(author), owner="mine")
        await here.worker.middle.wait()
        waiting = await here.jobs.start(order(second_author, book_id="other"), owner="mine")
        assert (await here.jobs.record(waiting.job.job_id, None)).job.status == "queued"
        with pytest.raises(Busy):
            async with here.ingest_deps.locks.hold("other"):
                pass
        cancelled_job = await here.jobs.cancel(waiting.job.job_id, None)
        assert (cancelled_job.job.status, cancelled_job.job.started_at, cancelled_job.attempts) == (
            "cancelled",
            None,
            0,
        )
        assert (await here.wait_for_end(first)).job.status == "completed"


async def test_a_stopping_server_lays_its_jobs_down_and_the_next_goes_on(tmp_path: Path, author: Author) -> None:
    """The job is queued again, no attempt is held against it, followers are told, and the next start finishes it."""
    async with room(tmp_path / "home") as here:
        record = await here.jobs.start(order(author), owner="mine")
        await here.worker.middle.wait()
        live = here.jobs.live(record.job.job_id)
        await here.jobs.close()
        assert live.events[-1].kind == "stopped"
        laid = await here.jobs.record(record.job.job_id, None)
        assert (laid.job.status, laid.attempts) == ("queued", 0)
        with pytest.raises(Overloaded):
            await here.jobs.start(order(author, book_id="x"), owner="mine")
    async with room(tmp_path / "home") as there:
        await there.jobs.adopt_orphans()
        finished_job = await there.wait_for_end(laid)
        assert (finished_job.job.status, finished_job.attempts, finished_job.job.queued_at) == (
            "completed",
            1,
            record.job.queued_at,
        )
        again = there.jobs.live(record.job.job_id)
        assert again.place_of(live.id_of(2)) == 0  # an event of the attempt that was laid down
        assert again.place_of(again.id_of(2)) == 2
        assert await content(there.ingest_deps) == await fresh(tmp_path / "fresh", author)


async def dead(here: Room, author: Author, **row: object) -> JobRecord:
    """A job whose process was killed, as it stands in the table."""
    origin = row.pop("origin", "server")
    job_order = row.pop("order", order(author))
    record = await here.jobs.records.add(job_order, owner="mine", origin=origin)
    async with here.engine.begin() as connection:
        values = {"status": "running", "attempts": 1, **row}
        await connection.execute(update(rows).where(rows.c.job_id == record.job.job_id).values(**values))
    return record


async def test_a_dead_servers_job_is_taken_up_by_whoever_meets_it(tmp_path: Path, author: Author) -> None:
    """At the next start, or when the same is asked for; another request is told that it goes on now."""
    async with room(tmp_path / "home") as here:
        killed = await dead(here, author)
        queued = await here.jobs.start(order(author), owner="yours")
        assert queued.job.job_id == killed.job.job_id
        assert (await here.wait_for_end(queued)).attempts == 2
        killed = await dead(here, author, status="queued", attempts=0)
        with pytest.raises(Busy, match=f"job {killed.job.job_id} "):
            await here.jobs.start(order(author, mode="recreate"), owner="yours")
        assert (await here.wait_for_end(killed)).job.status == "completed"


async def test_a_poison_job_does_not_loop(tmp_path: Path, author: Author) -> None:
    """What killed three servers is failed with a reason, and the book is free for another try."""
    async with room(tmp_path / "home") as here:
        killed = await dead(here, author, attempts=3)
        await here.jobs.adopt_orphans()
        poison = await here.jobs.record(killed.job.job_id, None)
        assert poison.job.status == "failed"
        assert "begun 3 times" in poison.job.error_message
        assert poison.job.completed_at
        again = await here.jobs.start(order(author), owner="mine")
        assert again.job.job_id > killed.job.job_id


async def test_what_else_becomes_of_a_job_without_a_process(tmp_path: Path, author: Author) -> None:
    """A wanted end comes true, a command's job is failed, and a folder that is no longer allowed is not read."""
    async with room(tmp_path / "home", roots=(author.folder.parent,)) as here:
        cancelling = await dead(here, author, cancelling=1)
        command = await dead(here, author, origin="terminal")
        job_order = order(author, folder="/srv/elsewhere", source="elsewhere", bound=True)
        forbidden = await dead(here, author, order=job_order)
        await here.jobs.adopt_orphans()
        ends = [await here.jobs.record(record.job.job_id, None) for record in (cancelling, command, forbidden)]

        assert [record.job.status for record in ends] == ["cancelled", "failed", "failed"]
        assert "ingest again" in ends[1].job.error_message
        assert "LECTERN_BOOKS" in ends[2].job.error_message


async def test_a_command_leaves_a_dead_servers_job_to_the_next_server(tmp_path: Path, author: Author) -> None:
    """It ingests what it was asked to, writes its own record, and the other one is shown as waiting."""
    async with room(tmp_path / "home", serving=False) as here:
        here.worker.go.set()
        killed = await dead(here, author)
        kinds = [e.kind async for e in here.jobs.ingesting(IngestRequest(folder=author.folder, book_id="book"))]
        remaining, own_jobs = await here.jobs.page(books=None, limit=9, before=None)

        assert (kinds[0], kinds[-1]) == ("planned", "finished")
        assert (own_jobs.job.job_id, own_jobs.job.status) == (killed.job.job_id, "queued")
        assert (remaining.origin, remaining.job.status, remaining.attempts) == ("terminal", "completed", 1)


async def test_a_command_that_is_broken_off_cancels_its_job(tmp_path: Path, author: Author) -> None:
    """Like Ctrl-C: the record says so, and index and ledger agree."""
    async with room(tmp_path / "home", serving=False) as here:
        events = here.jobs.ingesting(IngestRequest(folder=author.folder, book_id="book"))
        await anext(events)
        await anext(events)
        await events.aclose()
        (record,) = await here.jobs.page(books=None, limit=9, before=None)
        assert record.job.status == "cancelled"
        await agreement(here.ingest_deps)


async def test_whoever_waits_hears_that_the_job_was_cancelled(tmp_path: Path, author: Author) -> None:
    """A second follower of a server's job ends nothing by going; the first is told when somebody else cancels."""
    async with room(tmp_path / "home") as here:
        request = IngestRequest(folder=author.folder, book_id="book")
        first, second = here.jobs.ingesting(request), here.jobs.ingesting(request)
        await anext(first)
        await anext(second)
        await second.aclose()
        (record,) = await here.jobs.records.open_jobs()
        await here.jobs.cancel(record.job.job_id, None)
        with pytest.raises(JobCancelled):
            async for _ in first:
                pass


async def test_a_failure_is_in_the_record_and_says_nothing_of_the_machine(tmp_path: Path, author: Author) -> None:
    """The reason is kept; an unforeseen one is not shown, and the book is free again."""
    from lectern.schemas.jobs import IngestionJob

    async with room(tmp_path / "home", roots=(tmp_path,)) as here:
        empty = tmp_path / "books" / "empty"
        empty.mkdir()
        job_order = await here.jobs.order("e", "books/empty", "full", replace=False, caller=LOCAL)
        record = await here.wait_for_end(await here.jobs.start(job_order, owner="mine"))
        message = IngestionJob.of(record).error_message
        assert record.job.status == "failed"
        assert "'books/empty'" in message
        assert str(tmp_path) not in message

        def broken(name: str) -> None:
            if name == "ingest.embedded":
                raise ZeroDivisionError("secret detail")

        failpoints.listen(broken)
        try:
            record = await here.wait_for_end(await here.jobs.start(order(author), owner="mine"))
        finally:
            failpoints.listen(None)
        assert record.job.status == "failed"
        assert "secret detail" not in record.job.error_message
        assert not here.ingest_deps.locks.holds_any


async def test_a_key_of_a_request_means_one_job(tmp_path: Path, author: Author) -> None:
    """The same key and words are the same job, after its end and a restart, too; other words are refused."""
    async with room(tmp_path / "home") as here:
        here.worker.go.set()
        first = await here.jobs.start(order(author), owner="mine", key="k")
        await here.wait_for_end(first)
    async with room(tmp_path / "home") as there:
        again = await there.jobs.start(order(author), owner="mine", key="k")
        assert (again.job.job_id, again.job.status) == (first.job.job_id, "completed")
        with pytest.raises(BadInput, match="Idempotency-Key"):
            await there.jobs.start(order(author, mode="full"), owner="mine", key="k")
        assert (await there.jobs.start(order(author), owner="yours", key="k")).job.job_id != first.job.job_id


async def test_the_key_of_a_request_that_joined_is_kept(tmp_path: Path, author: Author) -> None:
    """Whoever got a job that was under way gets the same one again with the same key, after its end and a restart, too;
    other words under it are refused."""
    named_order = order(author, source="book")
    async with room(tmp_path / "home") as here:
        first = await here.jobs.start(order(author), owner="mine")
        joined = await asyncio.gather(*(here.jobs.start(named_order, owner="yours", key="k") for _ in range(3)))
        assert {record.job.job_id for record in joined} == {first.job.job_id}
        with pytest.raises(BadInput, match="Idempotency-Key"):
            await here.jobs.start(order(author), owner="yours", key="k")
        await here.wait_for_end(first)
    async with room(tmp_path / "home") as there:
        again = await there.jobs.start(named_order, owner="yours", key="k")
        assert (again.job.job_id, again.job.status) == (first.job.job_id, "completed")
        with pytest.raises(BadInput, match="Idempotency-Key"):
            await there.jobs.start(order(author, source="book", mode="full"), owner="yours", key="k")


async def test_jobs_and_books_of_others_are_unknown(tmp_path: Path, author: Author) -> None:
    """To a caller without the book, it and its jobs do not exist; what is no id is refused in words."""
    async with room(tmp_path / "home") as here:
        record = await here.jobs.start(order(author), owner="mine")
        number, foreign = record.job.job_id, frozenset({"other"})
        for ask in (here.jobs.record, here.jobs.cancel):
            with pytest.raises(UnknownJob) as refused:
                await ask(number, foreign)
            assert str(refused.value) == f"there is no job {number}"
        assert await here.jobs.page(books=foreign, limit=9, before=None) == ()
        assert await here.jobs.page(books=frozenset({"\0", "A B"}), limit=9, before=None) == ()
        with pytest.raises(UnknownBook):
            await here.jobs.order("book", None, "full", replace=False, caller=replace(LOCAL, books=foreign))
        with pytest.raises(BadInput, match="say in `source`"):
            await here.jobs.order("new", None, "full", replace=False, caller=LOCAL)
        with pytest.raises(BadInput, match="no book id"):
            await here.jobs.order("A B", None, "full", replace=False, caller=LOCAL)
        await here.wait_for_end(record)
        known_order = await here.jobs.order(
            "book", None, "full", replace=False, caller=replace(LOCAL, books=frozenset({"book"}))
        )
        assert known_order.folder == str(author.folder.resolve())


async def test_narrower_folders_bind_what_came_in_over_http(tmp_path: Path, author: Author) -> None:
    """A book whose folder a caller named is not read again once that folder is not allowed any more, neither when it is
    asked for nor when a job is taken up; it stays readable, and the operator may still ingest it."""
    roots, ask = (author.folder.parent,), {"caller": LOCAL, "replace": False}
    async with room(tmp_path / "home", roots=roots) as here:
        await here.wait_for_end(
            await here.jobs.start(await here.jobs.order("book", "book", "full", **ask), owner="mine")
        )
        again = await here.jobs.order("book", None, "full", **ask)
        assert (again.folder, again.bound) == (str(author.folder.resolve()), True)
        killed = await dead(here, author, order=again)
    (tmp_path / "elsewhere").mkdir()
    async with room(tmp_path / "home", roots=(tmp_path / "elsewhere",)) as there:
        await there.jobs.adopt_orphans()
        record = await there.jobs.record(killed.job.job_id, None)
        assert (record.job.status, "LECTERN_BOOKS" in record.job.error_message) == ("failed", True)
        assert str(author.folder.parent) not in record.job.error_message
        with pytest.raises(BadInput, match="LECTERN_BOOKS") as refused:
            await there.jobs.order("book", None, "incremental", **ask)
        assert refused.value.field == "source"
        assert str(author.folder.parent) not in str(refused.value)
        (entry,) = await there.ingest_deps.ledger.books()
        assert not await there.jobs.may_read(entry)
        assert await content(there.ingest_deps) == await fresh(tmp_path / "fresh", author)
        there.worker.go.set()
        job_events = [e async for e in there.jobs.ingesting(IngestRequest(folder=author.folder, book_id="book"))]
        assert job_events[-1].job.status == "completed"
        assert (
            await there.ingest_deps.ledger.book("book")
        ).bound  # an ingestion like that is no word about who may ask


async def test_what_the_operator_ingested_may_always_be_read_again(tmp_path: Path, author: Author) -> None:
    """Also after a caller has named its folder; and a book that the operator reads from elsewhere is the operator's."""
    ask = {"caller": LOCAL, "replace": False}
    async with room(tmp_path / "home", roots=(author.folder.parent,)) as here:
        here.worker.go.set()
        async for _ in here.jobs.ingesting(IngestRequest(folder=author.folder, book_id="book")):
            pass
        await here.wait_for_end(
            await here.jobs.start(await here.jobs.order("book", "book", "full", **ask), owner="mine")
        )
        await here.wait_for_end(
            await here.jobs.start(await here.jobs.order("other", "book", "full", **ask), owner="mine")
        )
        moved_folder = shutil.copytree(author.folder, tmp_path / "moved")
        async for _ in here.jobs.ingesting(IngestRequest(folder=moved_folder, book_id="other")):
            pass
    async with room(tmp_path / "home") as there:
        assert (await there.jobs.order("book", None, "full", **ask)).folder == str(author.folder.resolve())
        assert (await there.jobs.order("other", None, "full", **ask)).folder == str(moved_folder.resolve())


async def test_a_server_takes_on_so_many_and_no_more(
    tmp_path: Path, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue has an end, and a refused job leaves its book free."""
    monkeypatch.setattr(runner, "MAX_OPEN_JOBS", 1)
    async with room(tmp_path / "home") as here:
        await here.jobs.start(order(author), owner="mine")
        with pytest.raises(Overloaded):
            await here.jobs.start(order(author, book_id="other"), owner="mine")
        async with here.ingest_deps.locks.hold("other"):
            pass


async def test_a_start_leaves_what_another_process_is_doing_to_it(tmp_path: Path, postgres_address: str) -> None:
    """Changes that a living process has written down are not carried out by another's start, a dead one's are, and
    the book is served meanwhile."""
    url = await new_postgres_database(postgres_address)
    carried: list[str] = []
    async with (
        open_ingest_parts(tmp_path / "home") as ingest_deps,
        open_database(url) as first_database,
        open_database(url) as second_database,
    ):

        class Ledger:
            async def unsettled(self):
                carried.append("looked")
                return [type("Work", (), {"book_id": "book", "collection": "c", "number": 1, "intents": ()})()]

            async def books(self):
                return [entry]

        class Collections:
            trusted: list[str] = []  # noqa: RUF012  # a double

            async def verify(self, _entry) -> bool:
                return False

            def trust(self, book_id: str) -> None:
                self.trusted.append(book_id)

        await run(ingest_deps, Author(tmp_path / "book", 1).folder)
        (entry,) = await ingest_deps.ledger.books()
        collections, there = Collections(), SqlBookLocks(second_database)
        async with SqlBookLocks(first_database).hold("book"):
            await recover_all(Ledger(), collections, there)
            await verify_all(Ledger(), collections, there)
            assert (carried, collections.trusted) == (["looked", "looked"], ["book"])  # looked, and left it alone
        carried.clear()
        await recover_all(Ledger(), collections, there)
        assert len(carried) == 2  # now it is this one's to finish


@pytest.mark.usefixtures("patient")
async def test_processes_on_one_database_agree_about_a_job(tmp_path: Path, postgres_address: str) -> None:
    """What one carries on the other names, follows, asks to end, and takes over when the first is gone."""
    author = Author(tmp_path / "book", 3)
    url = await new_postgres_database(postgres_address)
    async with (
        open_database(url) as first_database,
        open_database(url) as second_database,
        open_ingest_parts(tmp_path / "a") as first_deps,
        open_ingest_parts(tmp_path / "b") as two,
    ):
        worker = SlowBench()
        rules = JobRules(serving=True, shared=True)
        here = Jobs(
            dataclasses.replace(first_deps, locks=SqlBookLocks(first_database), worker=worker),
            SqlJobs(first_database),
            rules,
        )
        there = Jobs(dataclasses.replace(two, locks=SqlBookLocks(second_database)), SqlJobs(second_database), rules)
        record = await here.start(order(author), owner="mine")
        assert (await there.start(order(author), owner="mine")).job.job_id == record.job.job_id
        assert there.live(record.job.job_id) is None
        with pytest.raises(Busy, match=f"job {record.job.job_id} "):
            await there.start(order(author, mode="full"), owner="mine")
        await there.adopt_orphans()
        assert there.live(record.job.job_id) is None
        await worker.middle.wait()
        # though it is in the middle of a step that would not end, and nothing has changed
        assert (await there.cancel(record.job.job_id, None)).job.status == "cancelled"
        second = await here.start(order(author), owner="mine")
        await here.close()
        assert (await there.record(second.job.job_id, None)).job.status == "queued"
        assert (await there.cancel(second.job.job_id, None)).job.status == "cancelled"  # nobody carries it on
        await there.close()


@pytest.mark.usefixtures("patient")
async def test_a_job_that_waits_its_turn_hears_of_its_end_too(tmp_path: Path, postgres_address: str) -> None:
    """It has written nothing down since it was queued, and all the same another process can end it."""
    author, url = Author(tmp_path / "book", 3), await new_postgres_database(postgres_address)
    async with (
        open_database(url) as first_database,
        open_database(url) as second_database,
        open_ingest_parts(tmp_path / "a") as first_deps,
        open_ingest_parts(tmp_path / "b") as two,
    ):
        rules, worker = JobRules(serving=True, shared=True), SlowBench()
        here = Jobs(
            dataclasses.replace(first_deps, locks=SqlBookLocks(first_database), worker=worker),
            SqlJobs(first_database),
            rules,
        )
        there = Jobs(dataclasses.replace(two, locks=SqlBookLocks(second_database)), SqlJobs(second_database), rules)
        await here.start(order(author), owner="mine")
        await worker.middle.wait()
        waiting = await here.start(order(author, book_id="other"), owner="mine")

        assert (await there.cancel(waiting.job.job_id, None)).job.status == "cancelled"
        await here.close()
        await there.close()
