"""A job waits for a server that it needs, for as long as it takes, and ends like one that never waited."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lectern.app.collections import OpenCollections
from lectern.domain import failpoints
from lectern.domain.errors import OutOfResources, ProviderError, ProviderRefused, RateLimited, StoreUnavailable
from lectern.domain.jobs import IngestionJob, JobOrder, JobRecord, Mode
from lectern.index.nodes import connect
from lectern.index.server import open_server_index
from lectern.ingestion.ingest import IngestDeps
from lectern.ingestion.outages import Outage, Patience
from lectern.ingestion.worker import InProcess
from lectern.jobs.executor import LiveJob
from lectern.jobs.runner import JobRules, Jobs
from lectern.models.batching import BatchOptions, RetryPolicy
from lectern.models.openai import OpenAIEmbedder
from lectern.ports.index import Embedder, Purpose, Serving
from lectern.reading.chunking import ReadingRules
from lectern.store.database import database_url, open_database
from lectern.store.jobs import SqlJobs
from lectern.store.ledger import SqlLedger
from lectern.store.locks import SqlBookLocks
from lectern.store.vectors import SqlVectorCache
from tests.answering.scripted import KEY
from tests.books import Author
from tests.databases import own_postgres
from tests.doubles import WordEmbedder
from tests.fakeai import Step, fake_ai
from tests.ingest_parts import agreement, content, open_ingest_parts, run
from tests.qdrant_server import qdrant_server

QUICK = Patience(first_wait=0.05, longest_wait=0.2)
BOUND = 60.0


class SmallSteps(InProcess):
    """Several commits; after the first one it says so, and waits until it may go on."""

    batch = 2

    def __init__(self) -> None:
        self.middle = asyncio.Event()
        self.go = asyncio.Event()
        self._steps = 0

    async def read(self, order):
        """One step."""
        self._steps += 1
        if self._steps > 1:
            self.middle.set()
            await self.go.wait()
        return await super().read(order)


def open_jobs(deps: IngestDeps, patience: Patience = QUICK) -> Jobs:
    """A server's jobs on these parts."""
    engine = deps.ledger._engine
    return Jobs(deps, SqlJobs(engine, deps.locks.check), JobRules(serving=True, patience=patience))


def order(author: Author, mode: Mode = "incremental") -> JobOrder:
    """To ingest the whole book."""
    return JobOrder(book_id="book", folder=str(author.folder.resolve()), mode=mode)


async def until_waiting(jobs: Jobs, record: JobRecord) -> LiveJob:
    """The job as soon as it waits."""
    live = jobs.live(record.job.job_id)
    assert live is not None
    async with asyncio.timeout(BOUND):
        async for _, event in live.follow():
            assert event.kind != "finished", live.job.error_message
            if event.job.waiting_since:
                return live
    raise AssertionError("it ended")


async def ended(jobs: Jobs, record: JobRecord) -> JobRecord:
    """The record of a job that has ended."""
    live = jobs.live(record.job.job_id)
    assert live is not None
    async with asyncio.timeout(BOUND):
        await live.over()
    return await jobs.record(record.job.job_id, None)


async def assert_like_fresh(deps: IngestDeps, author: Author, folder: Path, embedder: Embedder | None = None) -> None:
    """Index and ledger agree, and hold what a fresh ingest of the folder gives."""
    await agreement(deps)
    assert await deps.ledger.unsettled() == []
    async with open_ingest_parts(folder, embedder) as fresh_deps:
        await run(fresh_deps, author.folder)
        assert await content(deps) == await content(fresh_deps)


class Flaky(WordEmbedder):
    """An embedder that can be out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.error: ProviderError | None = None

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """The vectors, or the error."""
        if self.error:
            raise self.error
        return await super().embed(texts, purpose=purpose)


@pytest.fixture
def author(tmp_path: Path) -> Author:
    """A small book."""
    return Author(tmp_path / "books" / "book", 5)


@pytest.mark.parametrize("mode", ["incremental", "full", "recreate"])
async def test_an_outage_costs_nothing_but_time(tmp_path: Path, author: Author, mode: Mode) -> None:
    """In the middle of a book: the job says what it waits for, in the database too; then it goes on where it was. No
    text is embedded twice, in no mode, and its figures are those of a run without an outage."""
    embedder, worker = Flaky(), SmallSteps()
    async with open_ingest_parts(tmp_path / "home", embedder) as deps:
        jobs = open_jobs(replace(deps, worker=worker))
        record = await jobs.start(order(author, mode), owner="mine")
        await worker.middle.wait()
        embedder.error = ProviderError("words", "is down")
        worker.go.set()
        waiting = (await until_waiting(jobs, record)).job
        stored = await jobs.records.record(record.job.job_id)
        assert stored is not None
        assert (waiting.status, waiting.waiting_for) == ("running", "words: is down")
        assert (stored.job.waiting_since, stored.job.waiting_for) == (waiting.waiting_since, waiting.waiting_for)
        embedder.error = None
        job = (await ended(jobs, record)).job
        await jobs.close()

        assert (job.status, job.waiting_since, job.waiting_for, job.error_message) == ("completed", None, None, None)
        assert len(embedder.sent) == len(set(embedder.sent)) == job.chunks_embedded
        assert job.files_processed == job.files_discovered
        assert (job.files_skipped, job.files_failed) == (0, 0)
        assert job.chunks_created == len(await content(deps))
        await assert_like_fresh(deps, author, tmp_path / "fresh")


async def test_the_plan_is_told_once(tmp_path: Path, author: Author) -> None:
    """However often a job has to try, its followers hear of its plan and its end once; the outage has one beginning."""
    embedder = Flaky()
    embedder.error = ProviderError("words", "is down")
    async with open_ingest_parts(tmp_path / "home", embedder) as deps:
        jobs = open_jobs(deps)
        record = await jobs.start(order(author), owner="mine")
        live = await until_waiting(jobs, record)
        while sum(bool(event.job.waiting_since) for event in live.events) < 4:  # noqa: ASYNC110  # it tries again
            await asyncio.sleep(0.01)
        embedder.error = None
        await ended(jobs, record)
        await jobs.close()

    kinds = [event.kind for event in live.events]
    assert (kinds.count("planned"), kinds.count("finished")) == (1, 1)
    assert len({event.job.waiting_since for event in live.events} - {None}) == 1


@pytest.mark.parametrize("error", [ProviderRefused("words", "refused access (401)"), OutOfResources("no disk")])
async def test_what_waiting_does_not_mend_fails_at_once(
    tmp_path: Path, author: Author, error: ProviderError | StoreUnavailable
) -> None:
    """A bad key and a full disk are not waited for."""
    embedder = Flaky()
    embedder.error = error  # type: ignore[assignment]  # whatever it raises
    async with open_ingest_parts(tmp_path / "home", embedder) as deps:
        jobs = open_jobs(deps)
        job = (await ended(jobs, record := await jobs.start(order(author), owner="mine"))).job
        live = jobs.live(record.job.job_id)
        await jobs.close()

    assert (job.status, job.error_message) == ("failed", str(error))
    assert live is not None
    assert not any(event.job.waiting_since for event in live.events)


async def test_a_waiting_job_can_be_cancelled_and_laid_down(tmp_path: Path, author: Author) -> None:
    """At once, not when the wait is over; a stopping server puts it back in the queue, and the next one goes on."""
    patience = Patience(first_wait=1000)
    embedder = Flaky()
    embedder.error = ProviderError("words", "is down")
    async with open_ingest_parts(tmp_path / "home", embedder) as deps:
        jobs = open_jobs(deps, patience)
        record = await jobs.start(order(author), owner="mine")
        await until_waiting(jobs, record)
        async with asyncio.timeout(BOUND):
            cancelled = await jobs.cancel(record.job.job_id, None)
        assert (cancelled.job.status, cancelled.job.waiting_since) == ("cancelled", None)

        laid_down = await jobs.start(order(author), owner="mine")
        await until_waiting(jobs, laid_down)
        async with asyncio.timeout(BOUND):
            await jobs.close()
        stored = await jobs.records.record(laid_down.job.job_id)
        assert stored is not None
        assert (stored.job.status, stored.job.waiting_since) == ("queued", None)
        embedder.error = None
        jobs = open_jobs(deps)
        await jobs.adopt_orphans()
        assert (await ended(jobs, laid_down)).job.status == "completed"
        await jobs.close()
        await assert_like_fresh(deps, author, tmp_path / "fresh")


async def test_a_command_waits_for_a_while(tmp_path: Path, author: Author) -> None:
    """Then its job fails with the reason, and what was finished is kept."""
    embedder = Flaky()
    embedder.error = ProviderError("words", "is down")
    async with open_ingest_parts(tmp_path / "home", embedder) as deps:
        jobs = open_jobs(deps, replace(QUICK, longest_outage=0.3))
        live = await until_waiting(jobs, record := await jobs.start(order(author), owner="mine"))
        job = (await ended(jobs, record)).job
        await jobs.close()

    assert (job.status, job.error_message, job.waiting_since) == ("failed", "words: is down", None)
    assert isinstance(live.error, ProviderError)


def test_waits_double_up_to_a_limit() -> None:
    """They begin anew after the outage; a server that says how long to wait is not asked before."""
    outage = Outage(Patience(first_wait=1, longest_wait=5))
    down = ProviderError("x", "is down")
    assert [outage.wait_seconds(down) for _ in range(5)] == [1, 2, 4, 5, 5]
    assert outage.wait_seconds(RateLimited("x", 30)) == 30
    outage.end()
    assert outage.since is None
    assert outage.wait_seconds(down) == 1
    assert Patience().longest_outage == math.inf


async def test_a_provider_of_embeddings_that_fails_for_a_while(tmp_path: Path, author: Author) -> None:
    """Over real HTTP: 503 for more requests than a batch makes, then a 401 for another job."""
    retries = RetryPolicy(attempts=2, timeout=5, budget=10, first_wait=0.01, longest_wait=0.05)
    options = BatchOptions(retries={"passage": retries, "question": retries})
    with fake_ai() as ai:
        embedder = OpenAIEmbedder(KEY, base_url=f"{ai.url}/v1", options=options)
        async with contextlib.aclosing(embedder), open_ingest_parts(tmp_path / "home", embedder) as deps:
            jobs = open_jobs(deps)
            ai.script(*[Step(status=503)] * 9)
            record = await jobs.start(order(author), owner="mine")
            live = await until_waiting(jobs, record)
            assert "503" in str(live.job.waiting_for)
            assert (await ended(jobs, record)).job.status == "completed"

            ai.script(then=Step(status=401))
            refused = (await ended(jobs, await jobs.start(order(author, "recreate"), owner="mine"))).job
            await jobs.close()
            assert (refused.status, refused.waiting_since) == ("failed", None)
            await agreement(deps)


@asynccontextmanager
async def on_servers(database: str, url: str) -> AsyncIterator[IngestDeps]:
    """Ingestion on a PostgreSQL and a Qdrant."""
    embedder = WordEmbedder()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_database(database_url(database)))

        def open_index(name: str, dimensions: int | None):
            return open_server_index(connect(url, None), name, dimensions, ledger.generations(name))

        def build(fingerprint: str) -> Embedder:
            raise AssertionError(fingerprint)

        locks = SqlBookLocks(engine)
        ledger = SqlLedger(engine, locks.check)
        index = await stack.enter_async_context(open_index("test", embedder.dimensions))
        yield IngestDeps(
            ledger=ledger,
            collections=OpenCollections(stack, Serving(embedder=embedder, index=index), open_index, build),
            vectors=SqlVectorCache(engine),
            rules=ReadingRules(),
            locks=locks,
        )


@pytest.mark.parametrize("down", ["qdrant", "database"])
async def test_a_real_server_that_goes_down_in_the_middle(tmp_path: Path, author: Author, down: str) -> None:
    """Killed between two commits, away for a while, and back: the job completes by itself."""
    worker = SmallSteps()
    with own_postgres() as postgres, qdrant_server() as qdrant:
        async with on_servers(postgres.address, qdrant.url) as deps:
            jobs = open_jobs(replace(deps, worker=worker))
            record = await jobs.start(order(author), owner="mine")
            await worker.middle.wait()
            (qdrant.kill if down == "qdrant" else postgres.stop)()
            worker.go.set()
            live = await until_waiting(jobs, record)
            assert down in str(live.job.waiting_for)
            (qdrant.start if down == "qdrant" else postgres.start)()
            job = (await ended(jobs, record)).job
            await jobs.close()

            assert (job.status, job.files_processed) == ("completed", job.files_discovered)
            await assert_like_fresh(deps, author, tmp_path / "fresh")


def figures(job: IngestionJob) -> dict[str, object]:
    """What a report says of files and chunks."""
    values = dataclasses.asdict(job)
    return {name: value for name, value in values.items() if name.startswith(("files", "chunks", "status"))} | {
        "chunks_per_second": None
    }


@pytest.mark.parametrize("instant", ["index.put", "index.before-drop"])
async def test_a_server_that_goes_down_within_a_change(tmp_path: Path, author: Author, instant: str) -> None:
    """Before or after readers see the change: it is completed, and the figures are those of a run without an outage."""
    async with open_ingest_parts(tmp_path / "calm") as calm:
        with own_postgres() as postgres, qdrant_server() as qdrant:
            async with on_servers(postgres.address, qdrant.url) as deps:
                for each in (calm, deps):
                    await run(each, author.folder)
                for _ in range(6):
                    author._change_a_line()
                jobs = open_jobs(deps)

                def fail(name: str) -> None:
                    if name == instant:
                        failpoints.listen(None)
                        qdrant.kill()

                failpoints.listen(fail)
                try:
                    record = await jobs.start(order(author), owner="mine")
                    await until_waiting(jobs, record)
                finally:
                    failpoints.listen(None)
                qdrant.start()
                job = (await ended(jobs, record)).job
                await jobs.close()

                expected = await run(calm, author.folder)
                assert figures(job) == figures(expected)
                assert job.files_processed
                await assert_like_fresh(deps, author, tmp_path / "fresh")
