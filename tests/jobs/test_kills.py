"""Real kills around a job's record: whatever was acknowledged is finished by the next process, once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lectern.domain import failpoints
from lectern.domain.jobs import JobOrder
from lectern.jobs.runner import JobRules, Jobs
from lectern.store.jobs import SqlJobs
from tests.books import Author
from tests.crash.test_kills import in_child, killed_at
from tests.ingest_parts import agreement, content, open_ingest_parts, run

INSTANTS = (
    "jobs.added",
    "jobs.begun",
    "ingest.planned",
    "index.put",
    "ledger.settled",
    "ingest.replaced",
    "jobs.before-end",
    "jobs.ended",
)


@pytest.mark.parametrize("name", INSTANTS)
def test_a_job_survives_its_process_at_every_instant(tmp_path: Path, name: str) -> None:
    """The record is there, the job is completed by the next process unless it was, and the index is a fresh one's."""
    author = Author(tmp_path / "book", 9)
    order = JobOrder(book_id="book", folder=str(author.folder.resolve()))

    async def carry(*, kill: str | None) -> None:
        async with open_ingest_parts(tmp_path / "home") as ingest_deps:
            jobs = Jobs(ingest_deps, SqlJobs(ingest_deps.ledger._engine), JobRules(serving=True))
            if kill:
                failpoints.listen(killed_at(kill, 1))
                await jobs.start(order, owner="mine", key="k")
            else:
                await jobs.adopt_orphans()
            if (live := jobs.live(1)) is not None:
                await live.over()
            record = await jobs.start(order, owner="mine", key="k")  # the answer was lost, so it is sent again
            assert (record.job.job_id, record.job.status) == (1, "completed")
            assert record.attempts == (1 if name in {"jobs.added", "jobs.ended"} else 2)
            await agreement(ingest_deps)
            actual = await content(ingest_deps)
        async with open_ingest_parts(tmp_path / "fresh") as ingest_deps:
            await run(ingest_deps, author.folder)
            assert actual == await content(ingest_deps)

    assert in_child(lambda: carry(kill=name)) == signal.SIGKILL
    assert in_child(lambda: carry(kill=None)) == 0
