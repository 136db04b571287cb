"""One job from its queue to its end. The work is a task that may be broken off; what has to happen afterwards, whatever
ended it, is done here and not in it: the record, the book's release, and the last event, in this order, so that whoever
hears of the end finds it written down and the book free.

A job that this process carries on. Its events are numbered and kept, and clients only follow: who drops out comes
back by number.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lectern.domain.books import Survey
from lectern.domain.clock import seconds_between, utc_now
from lectern.domain.errors import LecternError, Overloaded, StoreUnavailable
from lectern.domain.event_log import EventLog
from lectern.domain.jobs import Finished, IngestionJob, JobEvent, JobRecord, JobStatus, Planned
from lectern.ingestion.ingest import IngestDeps, IngestRequest, run_ingestion, survey_folder
from lectern.ports.jobs import JobLog

Ending = Literal["cancelled", "stopping"]
NOTED = 2.0  # seconds between two notes of how far a job is
UNEXPECTED = "something went wrong; the server's log has the details"
WAITS = (0.2, 1.0, 3.0)  # seconds between tries to write its end down
Write = Callable[[IngestionJob], Awaitable[None]]
log = logging.getLogger("lectern.jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """This process does not carry the job on any more, though it has not ended; the last event."""

    error: LecternError
    kind: Literal["stopped"] = "stopped"


LiveEvent = JobEvent | Stopped


class LiveJob(EventLog[LiveEvent]):
    """One job and its events so far."""

    def __init__(self, record: JobRecord) -> None:
        super().__init__()
        self.record = record
        self.error: BaseException | None = None  # what ended a job that failed
        self.ending: Ending | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def job_id(self) -> int:
        """The record's number."""
        return self.record.job.job_id

    @property
    def job(self) -> IngestionJob:
        """The job as it stands."""
        return self.record.job

    def publish(self, event: LiveEvent) -> None:
        """Add an event and wake everybody who follows."""
        if isinstance(event, Planned):  # how it will be done is large, and nobody's who follows
            event = replace(event, plan=replace(event.plan, replacements=()))
        if not isinstance(event, Stopped):
            self.record = replace(self.record, job=event.job)
        self.add(event)

    def finish(self, error: BaseException | None = None) -> None:
        """No event will come any more."""
        self.done, self.error = True, error
        self._wake()

    def working(self, work: asyncio.Task[None]) -> None:
        """This task does the work; whoever wants an end before it began gets it now."""
        self._work = work
        if self.ending is not None:
            work.cancel()

    def end(self, ending: Ending) -> None:
        """Have the work broken off between two steps; what ends it first is what it ended by."""
        if self.ending is None:
            self.ending = ending
            if self._work is not None:
                self._work.cancel()


class JobExecutor:
    """Carries jobs on, one at a time: they share one workbench."""

    def __init__(self, deps: IngestDeps, records: JobLog, *, serving: bool) -> None:
        self._deps = deps
        self._records = records
        self._serving = serving
        self._turn = asyncio.Lock()

    async def carry(
        self, live: LiveJob, book: AsyncExitStack, request: IngestRequest, found: Survey | None = None
    ) -> None:
        """Do the work and see to its end. `book` is what being alone with it depends on; `found` is the folder as it
        was a moment ago."""
        begun = time.monotonic()
        work = asyncio.create_task(self._work(live, request, found), name=f"job {live.job_id}")
        live.working(work)
        await asyncio.wait([work])
        error = None if work.cancelled() else work.exception()
        if work.cancelled() and self._serving and live.ending != "cancelled":
            await self._lay_down(live, book)
            return
        last = live.job
        if error is not None or work.cancelled():
            last = _broken_off(last, error, time.monotonic() - begun)
        if error is not None and not isinstance(error, LecternError):
            log.error("job %d failed", live.job_id, exc_info=error)
        written = await self._write(self._records.end, last)
        await book.aclose()
        live.publish(Finished(job=last) if written else Stopped(error=_unwritten()))
        live.finish(error)

    async def _work(self, live: LiveJob, request: IngestRequest, found: Survey | None) -> None:
        waited = self._turn.locked()
        async with self._turn:
            if live.job.status == "queued":
                running = replace(live.job, status="running", started_at=utc_now())
                live.record = replace(live.record, job=running, attempts=await self._records.begin(live.job_id))
            if found is None or waited:
                found = await survey_folder(request, self._deps)
            noted = time.monotonic()
            async with aclosing(run_ingestion(request, self._deps, found)) as events:  # type: ignore[type-var]  # a generator
                async for event in events:
                    if isinstance(event, Finished):
                        live.record = replace(live.record, job=event.job)  # the event itself comes when it is written
                        continue
                    live.publish(event)
                    if time.monotonic() - noted > NOTED:
                        noted = time.monotonic()
                        await self._note(live)

    async def _note(self, live: LiveJob) -> None:
        """Say how far it is, for those who ask another process, and hear whether one of them wants its end."""
        try:
            wanted = await self._records.note(live.job)
        except StoreUnavailable:
            return  # the next note may get through; if the database stays away, the work itself will find out
        if wanted:
            live.end("cancelled")

    async def _lay_down(self, live: LiveJob, book: AsyncExitStack) -> None:
        """The server stops: the next one takes the job up again, and this attempt is not held against it."""
        await self._write(lambda job: self._records.put_back(job.job_id, uncounted=True), live.job)
        await book.aclose()
        live.publish(Stopped(error=Overloaded("the server is stopping; it takes the job up again when it starts")))
        live.finish()

    async def _write(self, write: Write, job: IngestionJob) -> bool:
        for wait in (*WAITS, None):
            try:
                await write(job)
            except StoreUnavailable:
                if wait is None:
                    log.exception("the end of job %d could not be written down", job.job_id)
                    return False
                await asyncio.sleep(wait)
            else:
                return True
        raise AssertionError("the last try returns")


def request_of(record: JobRecord) -> IngestRequest:
    """What a record asks for."""
    order = record.order
    return IngestRequest(
        folder=Path(order.folder),
        book_id=order.book_id,
        mode=order.mode,
        replace=order.replace,
        bound=order.bound,
        job_id=record.job.job_id,
        queued_at=record.job.queued_at,
    )


def ended(job: IngestionJob, status: JobStatus, message: str | None = None) -> IngestionJob:
    """The job, at its end now."""
    now = utc_now()
    took = job.duration_seconds if job.duration_seconds is not None else seconds_between(job.started_at or now, now)
    return replace(job, status=status, completed_at=now, duration_seconds=took, error_message=message)


def _broken_off(job: IngestionJob, error: BaseException | None, seconds: float) -> IngestionJob:
    """The job of a work that raised, or was cancelled; one that reported its own failure has said it better."""
    if job.status == "failed":
        return job
    job = replace(job, duration_seconds=round(seconds, 3))
    if error is None:
        return ended(job, "cancelled")
    return ended(job, "failed", str(error) if isinstance(error, LecternError) else UNEXPECTED)


def _unwritten() -> StoreUnavailable:
    return StoreUnavailable("the work is done, but the database does not answer; ask for the job again in a moment")
