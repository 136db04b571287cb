"""Jobs belong to the server, not to the client that started them. A record is stored before any work is done, and each
job runs in a separate task. A process holds the lock of a book from the moment its job is queued, and renews it. So an
open job whose book is not locked is an orphan: its process died, or is frozen or unplugged, and another process ends or
resumes it.

Before an order becomes a job, it is checked: whether the caller may read the folder, and whether the book has a job
already. A repeated idempotency key with the same order gets the same job. An order for the same work gets the open job
of the book; an order for other work is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from lectern.domain.books import BookEntry, Survey
from lectern.domain.errors import (
    BadInput,
    Busy,
    JobCancelled,
    KeyUsed,
    LecternError,
    Overloaded,
    SourceError,
    UnknownBook,
    UnknownJob,
)
from lectern.domain.event_log import Poller
from lectern.domain.jobs import IngestionJob, JobEvent, JobOrder, JobRecord, Mode, Origin, Planned
from lectern.domain.keys import Caller
from lectern.domain.threads import LOCAL_OWNER
from lectern.ingestion.ingest import IngestDeps, IngestRequest, ingest, survey_folder
from lectern.ingestion.outages import NO_PATIENCE, Patience
from lectern.jobs.executor import JobExecutor, LiveJob, Stopped, ended_job, request_of
from lectern.jobs.sources import VARIABLE, allowed_folder, named_after, own_folder, still_allowed
from lectern.ports.jobs import JobLog
from lectern.ports.ledger import Ledger
from lectern.reading.names import slugged

MAX_ATTEMPTS = 3  # a job whose process died so often would probably kill the next one too
MAX_OPEN_JOBS = 50  # of one process
KEEP_EVENTS_SECONDS = 300.0  # how long the events of an ended job can be followed; its record stays
ADOPT_SECONDS = 10.0  # between two searches for orphans, if several processes share a database
CANCEL_WAIT_SECONDS = 3.0  # for another process, which polls every second and finishes its step first
START_ATTEMPTS, RETRY_SECONDS = 20, 0.1  # for a book that is locked although it has no job record yet


async def order_of(order: JobOrder, caller: Caller, ledger: Ledger, roots: Sequence[Path]) -> JobOrder:
    """The order with its folder. A book that the caller may not read counts as unknown. A folder that the operator
    ingested before is always allowed; one that a caller named must still be below one of the roots."""
    book_id, source = order.book_id, order.source
    entries = {entry.manifest.book_id: entry for entry in await ledger.books()}
    if not caller.may_read(book_id):
        raise UnknownBook(book_id, tuple(name for name in entries if caller.may_read(name)))
    if slugged(book_id) != book_id:
        raise BadInput(f"{book_id!r} is no book id; write {slugged(book_id)!r}", field="book_id")
    entry = entries.get(book_id)
    if source is not None:
        folder = str(await asyncio.to_thread(_named_folder, source, book_id, caller, entries, roots))
        by_operator = entry is not None and entry.source == folder and not entry.bound
        return replace(order, folder=folder, bound=not by_operator)
    if entry is None:
        raise BadInput(f"{book_id!r} is not indexed yet; say in `source` which folder holds it", field="source")
    if not await may_read(entry, roots):
        raise BadInput(
            f"the folder of {book_id!r} may not be read from any more, though the book stays as it is; name another in "
            f"`source`, or have the operator list it in {VARIABLE}",
            field="source",
        )
    return replace(order, folder=entry.source, bound=entry.bound)


def _named_folder(
    source: str, book_id: str, caller: Caller, entries: Mapping[str, BookEntry], roots: Sequence[Path]
) -> Path:
    """The folder that a caller names for a book, if this caller may name it."""
    if caller.is_operator:
        return allowed_folder(source, roots)
    own = named_after(book_id, roots)
    own += [entry.source for entry in entries.values() if entry.manifest.book_id == book_id]
    foreign = [entry.source for entry in entries.values() if entry.manifest.book_id != book_id]
    return own_folder(source, roots, own, foreign)


async def may_read(entry: BookEntry, roots: Sequence[Path]) -> bool:
    """Whether a book may be read again from its folder."""
    return not entry.bound or await asyncio.to_thread(still_allowed, entry.source, roots)


async def plan_of(order: JobOrder, deps: IngestDeps) -> Planned:
    """The plan of a job; nothing is changed."""
    request = IngestRequest(
        folder=Path(order.folder), book_id=order.book_id, mode=order.mode, replace=order.replace, dry_run=True
    )
    plan: Planned | None = None
    try:
        async for event in ingest(request, deps):
            plan = event if isinstance(event, Planned) else plan
    except SourceError as exc:
        raise type(exc)(order.in_words(str(exc))) from None
    assert plan is not None  # a dry run ends with its plan
    return plan


async def end_of_orphan(record: JobRecord, roots: Sequence[Path] | None) -> IngestionJob | None:
    """How an orphan ends; None if it can be resumed. Only a server that is about to resume it passes `roots`: a command
    may have been started without that setting."""
    job, order = record.job, record.order
    if record.cancelling:
        return ended_job(job, "cancelled")
    if record.origin == "terminal":
        return ended_job(job, "failed", "its process was ended before it was done; ingest again")
    if record.attempts >= MAX_ATTEMPTS:
        return ended_job(
            job,
            "failed",
            f"it was begun {record.attempts} times, and each time the server died before it was done; look for a file "
            "of unusual size or shape, or too little memory, then start it again",
        )
    if roots is None or not order.bound:
        return None
    if not await asyncio.to_thread(still_allowed, order.folder, roots):
        folder_name = repr(order.source) if order.source else "the book's folder"
        return ended_job(job, "failed", f"{folder_name} may not be read from any more; see {VARIABLE}")
    return None


async def job_for_key(records: JobLog, order: JobOrder, owner: str, key: str) -> JobRecord | None:
    """The job that this owner got with the idempotency key, if any. Raises if the key came with another order."""
    if (record_and_order := await records.keyed(owner, key)) is None:
        return None
    record, earlier_order = record_and_order
    if not earlier_order.same_words(order):
        raise KeyUsed
    return record


async def join_job(records: JobLog, record: JobRecord, order: JobOrder, owner: str, key: str | None) -> JobRecord:
    """Note that the key belongs to an open job for the same work, so that a request that repeats the key gets this job
    even after its end."""
    if key is None or await records.join(order, owner=owner, key=key, job_id=record.job.job_id):
        return record
    return await job_for_key(records, order, owner, key) or record  # the same key came twice at once


def busy_error(record: JobRecord) -> Busy:
    """The error for a request that must wait for this job."""
    job = record.job
    return Busy(
        f"job {job.job_id} ({job.mode}) is {job.status} for {job.book_id!r}; wait until it has ended, or cancel it"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """How this process treats jobs."""

    serving: bool = False  # jobs outlive their request; in a command they end with it
    shared: bool = False  # several processes use this database
    roots: Sequence[Path] = ()  # folders below which a caller may name a source
    adopt_seconds: float = ADOPT_SECONDS
    patience: Patience = NO_PATIENCE  # of a job with servers that it needs


class Jobs:
    """The jobs of this process, and the records of all jobs."""

    def __init__(self, deps: IngestDeps, records: JobLog, rules: JobRules) -> None:
        self.records = records
        self.serving = rules.serving
        self._deps = deps
        self._rules = rules
        self._executor = JobExecutor(deps, records, rules.patience, serving=rules.serving)
        self._live: dict[int, LiveJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._adoption: asyncio.Task[None] | None = None
        self._poller = Poller(self._tasks, self._end_cancelled)
        self._closed = False
        self.watchers: list[Callable[[IngestionJob], None]] = []  # called for every job that ended

    async def order(self, book_id: str, source: str | None, mode: Mode, *, replace: bool, caller: Caller) -> JobOrder:
        """The order of a caller, checked: the caller may read the book and the folder."""
        order = JobOrder(book_id=book_id, folder="", source=source, mode=mode, replace=replace)
        return await order_of(order, caller, self._deps.ledger, self._rules.roots)

    async def may_read(self, entry: BookEntry) -> bool:
        """Whether a book may be read again from its folder."""
        return await may_read(entry, self._rules.roots)

    async def plan(self, order: JobOrder) -> Planned:
        """The plan of the job; nothing is changed."""
        return await plan_of(order, self._deps)

    async def start(self, order: JobOrder, *, owner: str, key: str | None = None) -> JobRecord:
        """Queue a job. If the book has an open job, an order for the same work gets that job, and another one is a
        conflict."""
        if key is not None and (record := await job_for_key(self.records, order, owner, key)):
            return record
        record, _ = await self._start(order, owner=owner, key=key)
        return record

    async def ingesting(self, request: IngestRequest) -> AsyncIterator[JobEvent]:
        """Run an ingestion and yield its events; the job is cancelled if the caller stops reading them."""
        if request.dry_run:
            async for event in ingest(request, self._deps):
                yield event
            return
        survey = await survey_folder(request, self._deps)
        folder = await asyncio.to_thread(request.folder.resolve)
        order = JobOrder(
            book_id=survey.manifest.book_id, folder=str(folder), mode=request.mode, replace=request.replace
        )
        record, started_here = await self._start(order, owner=LOCAL_OWNER, request=request, survey=survey)
        live = self._live.get(record.job.job_id)
        if live is None:
            raise busy_error(record)
        try:
            async for _, live_event in live.follow():
                if isinstance(live_event, Stopped):
                    raise live_event.error
                yield live_event
        finally:
            if started_here and not live.done:
                live.end("cancelled")
                await live.over()
        if live.error is not None:
            raise live.error
        if live.job.status == "cancelled":
            raise JobCancelled(f"job {live.job_id} was cancelled; what was finished is kept")

    def live(self, job_id: int) -> LiveJob | None:
        """A job that runs in this process or ended here recently."""
        return self._live.get(job_id)

    async def record(self, job_id: int, books: frozenset[str] | None) -> JobRecord:
        """A job of these books (None: of any), with its progress."""
        live = self._live.get(job_id)
        record = live.record if live is not None and not live.done else await self.records.record(job_id)
        if record is None or (books is not None and record.order.book_id not in books):
            raise UnknownJob(f"there is no job {job_id}", field="job_id")
        return record

    async def page(self, *, books: frozenset[str] | None, limit: int, before: int | None) -> tuple[JobRecord, ...]:
        """Jobs of these books (None: of any), the newest first, without their warnings and errors."""
        if books is not None:
            books = frozenset(book for book in books if slugged(book) == book)  # an invalid id has no job
        return await self.records.page(books=books, limit=limit, before=before)

    @property
    def closed(self) -> bool:
        """Whether this process is stopping."""
        return self._closed

    async def cancel(self, job_id: int, books: frozenset[str] | None) -> JobRecord:
        """Cancel a job between two steps: finished steps are kept, and no step is left half done. An ended job is not
        changed."""
        record = await self.record(job_id, books)
        if (live := self._live.get(job_id)) is not None:
            live.end("cancelled")
            await live.over()
        elif record.open:
            await self.records.ask_to_end(job_id)  # the process that runs it will read this
            if await self._adopt(record, resume=False) is not None:  # None: no process runs it
                return await self._wait_for_cancel(job_id, books)
        return await self.record(job_id, books)

    async def cancel_all_of(self, owner: str) -> None:
        """Cancel every job that an owner, or a reader of its key, started."""
        records = [record for record in await self.records.open_jobs() if record.owner.partition("/")[0] == owner]
        await asyncio.gather(*(self.cancel(record.job.job_id, None) for record in records))

    async def _wait_for_cancel(self, job_id: int, books: frozenset[str] | None) -> JobRecord:
        """Wait until the process that runs the job has ended it, for a limited time, then return the job as it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_WAIT_SECONDS):
                while (await self.record(job_id, books)).open:  # noqa: ASYNC110  # another process ends it
                    await asyncio.sleep(RETRY_SECONDS)
        return await self.record(job_id, books)

    async def adopt_orphans(self) -> None:
        """Take over every job whose process died: a server resumes it, if it can be resumed."""
        for record in await self.records.open_jobs():
            if (live := self._live.get(record.job.job_id)) is None or live.done:  # a job may be lost and come back
                await self._adopt(record, resume=self.serving)
        if self.serving and self._rules.shared and self._adoption is None:
            self._adoption = asyncio.create_task(self._adopt_periodically())

    async def close(self) -> None:
        """Stop every job: those of a server are queued again, those of a command are cancelled."""
        self._closed = True
        if self._adoption is not None:
            self._adoption.cancel()
            await asyncio.wait([self._adoption])
        for live in self._live.values():
            if not live.done:
                live.end("stopping")
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._poller.close()

    async def _end_cancelled(self) -> None:
        """End the jobs for which another process requested a cancel."""
        running = [job_id for job_id, live in self._live.items() if not live.done and live.ending is None]
        for job_id in await self.records.ending(running):
            self._live[job_id].end("cancelled")

    async def _adopt_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._rules.adopt_seconds)
            try:
                await self.adopt_orphans()
            except LecternError:
                continue  # the database does not answer; it may the next time

    async def _start(
        self,
        order: JobOrder,
        *,
        owner: str,
        key: str | None = None,
        request: IngestRequest | None = None,
        survey: Survey | None = None,
    ) -> tuple[JobRecord, bool]:
        """The job for this order, and whether it was started by this call."""
        for _ in range(START_ATTEMPTS):
            if (open_record := await self._open_job(order.book_id)) is not None:
                if not open_record.order.same_work(order):
                    raise busy_error(open_record)
                return await join_job(self.records, open_record, order, owner, key), False
            if (book := await self._lock(order.book_id)) is not None:
                break
            await asyncio.sleep(RETRY_SECONDS)  # the book is locked, but its job has no record yet, or it is no job
        else:
            raise Busy(f"{order.book_id!r} is being worked on; try again in a moment")
        try:
            self._refuse_too_many()
            origin: Origin = "server" if self.serving else "terminal"
            record = await self.records.add(order, owner=owner, origin=origin, key=key, running=not self.serving)
        except BaseException:
            await book.aclose()
            raise
        if record is None:  # the same key came twice at once
            await book.aclose()
            keyed_record = await job_for_key(self.records, order, owner, key or "")
            assert keyed_record is not None  # it caused the conflict
            return keyed_record, False
        if request is not None:
            request = replace(request, job_id=record.job.job_id, queued_at=record.job.queued_at)
        self._run(record, book, request, survey)
        return record, True

    async def _open_job(self, book_id: str) -> JobRecord | None:
        """The open job of a book, if any; an orphan is ended or resumed first."""
        for record in await self.records.open_jobs(book_id):
            if (live := self._live.get(record.job.job_id)) is not None and not live.done:
                return live.record
            if (adopted := await self._adopt(record, resume=self.serving)) is not None:
                return adopted
        return None

    async def _adopt(self, record: JobRecord, *, resume: bool) -> JobRecord | None:
        """End or resume a job if its process died. Returns the job if a process runs it, this one or another."""
        job_id = record.job.job_id
        if (book := await self._lock(record.order.book_id)) is None:
            return record
        async with AsyncExitStack() as release:
            release.push_async_callback(book.aclose)
            current = await self.records.record(job_id)  # it may have ended meanwhile
            if current is None or not current.open:
                return None
            end = await end_of_orphan(current, self._rules.roots if resume else None)
            if end is not None:
                await self.records.end(end)
                return None
            if not resume or self._closed:
                await self.records.put_back(job_id, uncounted=False)
                return None
            release.pop_all()
            waiting = replace(current, job=replace(current.job, status="queued", started_at=None))
            self._run(waiting, book)
            return waiting

    async def _lock(self, book_id: str) -> AsyncExitStack | None:
        book = AsyncExitStack()
        try:
            await book.enter_async_context(self._deps.locks.hold(book_id))
        except Busy:
            return None
        return book

    def _run(
        self,
        record: JobRecord,
        book: AsyncExitStack,
        request: IngestRequest | None = None,
        survey: Survey | None = None,
    ) -> None:
        live = self._live[record.job.job_id] = LiveJob(record)
        task = asyncio.create_task(self._executor.run(live, book, request or request_of(record), survey))
        self._tasks.add(task)
        task.add_done_callback(lambda task: self._finish(task, live))
        if self._rules.shared:
            self._poller.open()

    def _finish(self, task: asyncio.Task[None], live: LiveJob) -> None:
        self._tasks.discard(task)
        if not live.done:  # an unexpected end must not leave followers waiting
            live.finish(task.exception() if not task.cancelled() else asyncio.CancelledError())
        asyncio.get_running_loop().call_later(KEEP_EVENTS_SECONDS, self._live.pop, live.job_id, None)
        if live.job.completed_at is not None:  # None if the job was put back in the queue
            for watcher in self.watchers:
                watcher(live.job)

    def _refuse_too_many(self) -> None:
        if self._closed:
            raise Overloaded("the server is stopping; try again when it has started")
        if len(self._tasks) >= MAX_OPEN_JOBS:
            raise Overloaded(f"{len(self._tasks)} jobs are waiting already; try again when some have ended")
