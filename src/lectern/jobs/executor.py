"""One job from its queue to its end. The work is a task that may be cancelled. What follows its end is done outside of
the task: the record is stored, the book is unlocked, and the last event is published, in this order. So a client that
gets the last event finds the end stored and the book unlocked.

A live job is one that this process runs. Its events are numbered and kept, so that a client which lost its connection
can resume by number.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Literal

from lectern.domain.books import Survey
from lectern.domain.clock import utc_now, whole_seconds
from lectern.domain.errors import LecternError, OutOfResources, Overloaded, StoreUnavailable, TakenOver
from lectern.domain.event_log import EventLog
from lectern.domain.jobs import Finished, IngestionJob, JobEvent, JobRecord, JobStatus, Planned, Working
from lectern.domain.resources import shortage_of
from lectern.domain.tracing import Attributes
from lectern.ingestion.ingest import IngestDeps, IngestRequest, run_ingestion, survey_folder
from lectern.ingestion.outages import Outage, Patience
from lectern.ports.jobs import JobLog

Ending = Literal["cancelled", "stopping"]
PROGRESS_SECONDS = 2.0  # between two writes of a job's progress
UNEXPECTED = "something went wrong; the server's log has the details"
WRITE_RETRY_SECONDS = (0.2, 1.0, 3.0)  # waits between attempts to store the end of a job
Write = Callable[[IngestionJob], Awaitable[None]]
log = logging.getLogger("lectern.jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """This process stops running the job, although it has not ended; the last event."""

    error: LecternError
    kind: Literal["stopped"] = "stopped"


LiveEvent = JobEvent | Stopped


class LiveJob(EventLog[LiveEvent]):
    """A job that this process runs, and its events so far."""

    def __init__(self, record: JobRecord) -> None:
        super().__init__()
        self.record = record
        self.error: BaseException | None = None  # of a job that failed
        self.ending: Ending | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def job_id(self) -> int:
        """The record's number."""
        return self.record.job.job_id

    @property
    def job(self) -> IngestionJob:
        """The job with its figures so far."""
        return self.record.job

    def publish(self, event: LiveEvent) -> None:
        """Add an event for all followers."""
        if isinstance(event, Planned):  # the replacements are large, and no follower needs them
            event = replace(event, plan=replace(event.plan, replacements=()))
        if not isinstance(event, Stopped):
            self.record = replace(self.record, job=event.job)
        if isinstance(event, Working):  # there are many, and a large book has many warnings
            event = replace(event, job=replace(event.job, warnings=(), errors=()))
        self.add(event)

    def finish(self, error: BaseException | None = None) -> None:
        """Note that no event will come any more."""
        self.done, self.error = True, error
        self._wake()

    def attach(self, work: asyncio.Task[None]) -> None:
        """Set the task that does the work; if the job is to end already, the task is cancelled."""
        self._work = work
        if self.ending is not None:
            work.cancel()

    def end(self, ending: Ending) -> None:
        """Cancel the work between two steps. Only the first call counts."""
        if self.ending is None:
            self.ending = ending
            if self._work is not None:
                self._work.cancel()


class JobExecutor:
    """Runs jobs, one at a time: they share one worker."""

    def __init__(self, deps: IngestDeps, records: JobLog, patience: Patience, *, serving: bool) -> None:
        self._deps = deps
        self._records = records
        self._patience = patience
        self._serving = serving
        self._turn = asyncio.Lock()

    async def run(
        self, live: LiveJob, book: AsyncExitStack, request: IngestRequest, survey: Survey | None = None
    ) -> None:
        """Do the work, then store its end. `book` holds the lock of the book; `survey` is a recent survey of the
        folder."""
        try:
            await self._run(live, book, request, survey)
        except TakenOver as exc:
            await self._leave(live, book, exc)

    async def _run(self, live: LiveJob, book: AsyncExitStack, request: IngestRequest, survey: Survey | None) -> None:
        with self._deps.tracer.span("ingest", {"lectern.book": live.job.book_id, "lectern.job_id": live.job_id}):
            work = asyncio.create_task(self._work(live, request, survey), name=f"job {live.job_id}")
            live.attach(work)
            await asyncio.wait([work])
            self._deps.tracer.note(_figures(live.job, None if work.cancelled() else work.exception()))
        error = None if work.cancelled() else work.exception()
        if error is not None and not isinstance(error, LecternError) and (shortage := shortage_of(error)) is not None:
            error = OutOfResources(shortage)
        if work.cancelled() and self._serving and live.ending != "cancelled":
            await self._requeue(live, book)
            return
        if isinstance(error, TakenOver):
            raise error
        last = live.job
        if error is not None or work.cancelled():
            last = _failed_or_cancelled(last, error)
        if error is not None and not isinstance(error, LecternError):
            log.error("job %d failed", live.job_id, exc_info=error)
        is_stored = await self._write(self._records.end, live, last)
        await book.aclose()
        live.publish(Finished(job=last) if is_stored else Stopped(error=_store_error()))
        live.finish(error)

    async def _work(self, live: LiveJob, request: IngestRequest, survey: Survey | None) -> None:
        waited = self._turn.locked()
        async with self._turn:
            if live.job.status == "queued":
                attempts = await self._begin(live)
                running = replace(live.job, status="running", started_at=utc_now())
                live.record = replace(live.record, job=running, attempts=attempts)
            request = replace(request, started_at=live.job.started_at, patience=self._patience)
            if survey is None or waited:
                survey = await survey_folder(request, self._deps)
            stored_at = time.monotonic()
            async with aclosing(run_ingestion(request, self._deps, survey)) as events:  # type: ignore[type-var]  # a generator
                async for event in events:
                    if isinstance(event, Finished):
                        live.record = replace(live.record, job=event.job)  # published after the end is stored
                        continue
                    live.publish(event)
                    if event.job.waiting_since or time.monotonic() - stored_at > PROGRESS_SECONDS:
                        stored_at = time.monotonic()
                        await self._store_progress(live)

    async def _begin(self, live: LiveJob) -> int:
        """Note that the job runs now, as soon as the database answers."""
        outage = Outage(self._patience)
        while True:
            try:
                return await self._records.begin(live.job_id)
            except StoreUnavailable as exc:
                await asyncio.sleep(outage.wait_seconds(exc))

    async def _store_progress(self, live: LiveJob) -> None:
        """Store the progress, which other processes read, and end the job if one of them requested a cancel."""
        try:
            cancel_requested = await self._records.note(live.job)
        except StoreUnavailable:
            return  # the next write may succeed; if none does, the work itself fails
        if cancel_requested:
            live.end("cancelled")

    async def _requeue(self, live: LiveJob, book: AsyncExitStack) -> None:
        """Put the job back in the queue because the server stops. The next server resumes it, and this attempt does not
        count."""
        await self._write(lambda job: self._records.put_back(job.job_id, uncounted=True), live, live.job)
        await book.aclose()
        live.publish(Stopped(error=Overloaded("the server is stopping; it takes the job up again when it starts")))
        live.finish()

    async def _leave(self, live: LiveJob, book: AsyncExitStack, error: TakenOver) -> None:
        """Leave the job to the process that has taken it over. Nothing is stored: the job is that one's now."""
        log.warning("job %d: %s", live.job_id, error)
        live.record = replace(live.record, job=replace(live.job, status="running", completed_at=None))
        await book.aclose()
        live.publish(Stopped(error=error))
        live.finish()

    async def _write(self, write: Write, live: LiveJob, job: IngestionJob) -> bool:
        """Store how the job stands. A server tries until the database answers, unless it is stopping itself."""
        waits = chain(WRITE_RETRY_SECONDS, repeat(WRITE_RETRY_SECONDS[-1]) if self._serving else ())
        while True:
            try:
                await write(job)
            except StoreUnavailable:
                wait = next(waits, None)
                if wait is None or live.ending == "stopping":
                    log.exception("the end of job %d could not be written down", job.job_id)
                    return False
                await asyncio.sleep(wait)
            else:
                return True


def _figures(job: IngestionJob, error: BaseException | None) -> Attributes:
    """What the job's span says about it: counts, the seconds of its stages, and the class of its error."""
    figures: dict[str, str | int | float | bool] = {
        "lectern.mode": job.mode,
        "lectern.files": job.files_discovered,
        "lectern.chunks_created": job.chunks_created,
        "lectern.chunks_embedded": job.chunks_embedded,
        **{f"lectern.seconds.{stage}": seconds for stage, seconds in job.stage_seconds.items()},
    }
    return figures if error is None else {**figures, "error.type": type(error).__name__}


def request_of(record: JobRecord) -> IngestRequest:
    """The ingestion that a record describes."""
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


def ended_job(job: IngestionJob, status: JobStatus, message: str | None = None) -> IngestionJob:
    """The job with this final status, ended now."""
    now = utc_now()
    seconds = whole_seconds(job.started_at or now, now)
    job = replace(job, status=status, completed_at=now, duration_seconds=seconds, error_message=message)
    return replace(job, waiting_since=None, waiting_for=None)


def _failed_or_cancelled(job: IngestionJob, error: BaseException | None) -> IngestionJob:
    """The ended job of work that raised an error or was cancelled. A failure that the work reported itself is kept."""
    if job.status == "failed":
        return job
    if error is None:
        return ended_job(job, "cancelled")
    return ended_job(job, "failed", str(error) if isinstance(error, LecternError) else UNEXPECTED)


def _store_error() -> StoreUnavailable:
    return StoreUnavailable("the work is done, but the database does not answer; ask for the job again in a moment")
