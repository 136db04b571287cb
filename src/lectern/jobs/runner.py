"""Jobs belong to the server. Each has a record before anything is done and is carried on in a task of its own; nothing
but its end, `cancel` or the server's stop breaks it off. Whoever has a job is alone with its book from the moment it is
queued: a job whose book nobody is alone with has lost its process, and is taken up again.

What becomes of an order before anybody carries it out: whether the caller may give it, what it would do, and whether
one that lost its process is worth another attempt.

Requests that meet a job which is there. The same idempotency key and words get the job that they got before, whether
it was begun for them or under way already; other work on a book that has a job must wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
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
from lectern.domain.threads import LOCAL_OWNER
from lectern.ingestion.ingest import IngestDeps, IngestRequest, ingest, survey_folder
from lectern.jobs.executor import JobExecutor, LiveJob, Stopped, ended, request_of
from lectern.jobs.sources import VARIABLE, allowed_folder, still_allowed
from lectern.ports.jobs import JobLog
from lectern.ports.ledger import Ledger
from lectern.reading.names import slugged

MOST_ATTEMPTS = 3  # a job whose process died so often would kill the next one, too
MOST_OPEN = 50  # jobs that one process has queued
KEPT = 300.0  # seconds that an ended job's events can be followed; its record stays
PATROL = 30.0  # seconds between two looks for jobs whose process died, where several share a database
PATIENCE = 3.0  # seconds that a cancel waits for another process; it hears within one, a step of its work aside
TRIES, AGAIN = 20, 0.1  # how often, and after how many seconds, a job is looked for that has no record yet


async def order_of(asked: JobOrder, readable: frozenset[str] | None, ledger: Ledger, roots: Sequence[Path]) -> JobOrder:
    """What a caller asks for, with the folder that it means. A book that the caller may not read is an unknown one. A
    folder that the operator ingested before is always allowed, one that came in over HTTP only where it still may be
    named."""
    book_id, source = asked.book_id, asked.source
    known = {entry.manifest.book_id: entry for entry in await ledger.books()}
    if readable is not None and book_id not in readable:
        raise UnknownBook(book_id, tuple(name for name in known if name in readable))
    if slugged(book_id) != book_id:
        raise BadInput(f"{book_id!r} is no book id; write {slugged(book_id)!r}", field="book_id")
    entry = known.get(book_id)
    if source is not None:
        folder = str(await asyncio.to_thread(allowed_folder, source, roots))
        operators = entry is not None and entry.source == folder and not entry.bound
        return replace(asked, folder=folder, bound=not operators)
    if entry is None:
        raise BadInput(f"{book_id!r} is not indexed yet; say in `source` which folder holds it", field="source")
    if not await may_read(entry, roots):
        raise BadInput(
            f"the folder of {book_id!r} may not be read from any more, though the book stays as it is; name another in "
            f"`source`, or have the operator list it in {VARIABLE}",
            field="source",
        )
    return replace(asked, folder=entry.source, bound=entry.bound)


async def may_read(entry: BookEntry, roots: Sequence[Path]) -> bool:
    """Whether a book may be read again from where it was."""
    return not entry.bound or await asyncio.to_thread(still_allowed, entry.source, roots)


async def plan_of(order: JobOrder, deps: IngestDeps) -> Planned:
    """What a job would do; nothing is changed."""
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


async def verdict_on(record: JobRecord, roots: Sequence[Path] | None) -> IngestionJob | None:
    """How a job ends that nobody carries on; None where it is to be taken up again. Only a server that is about to do
    that has `roots`: a command may have been started without that setting."""
    job, order = record.job, record.order
    if record.cancelling:
        return ended(job, "cancelled")
    if record.origin == "terminal":
        return ended(job, "failed", "its process was ended before it was done; ingest again")
    if record.attempts >= MOST_ATTEMPTS:
        return ended(
            job,
            "failed",
            f"it was begun {record.attempts} times, and each time the server died before it was done; look for a file "
            "of unusual size or shape, or too little memory, then start it again",
        )
    if roots is None or not order.bound:
        return None
    if not await asyncio.to_thread(still_allowed, order.folder, roots):
        named = repr(order.source) if order.source else "the book's folder"
        return ended(job, "failed", f"{named} may not be read from any more; see {VARIABLE}")
    return None


async def tried(records: JobLog, order: JobOrder, owner: str, key: str) -> JobRecord | None:
    """The job that this owner got with the key; other words under it are refused."""
    if (known := await records.keyed(owner, key)) is None:
        return None
    record, asked = known
    if not asked.same_words(order):
        raise KeyUsed
    return record


async def joined(records: JobLog, other: JobRecord, order: JobOrder, owner: str, key: str | None) -> JobRecord:
    """A job that was under way for the same; who tries again with this key, after its end, too, gets it again."""
    if key is None or await records.join(order, owner=owner, key=key, job_id=other.job.job_id):
        return other
    return await tried(records, order, owner, key) or other  # the same key came twice at once


def busy(record: JobRecord) -> Busy:
    """What is said to a request that this job is in the way of."""
    job = record.job
    return Busy(
        f"job {job.job_id} ({job.mode}) is {job.status} for {job.book_id!r}; wait until it has ended, or cancel it"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """How jobs are treated here."""

    serving: bool = False  # jobs outlive the request; without it they are a command's, and end with it
    shared: bool = False  # several processes have this database
    roots: Sequence[Path] = ()  # folders below which a caller may name a source


class Jobs:
    """The jobs of this process, and the records of all."""

    def __init__(self, deps: IngestDeps, records: JobLog, rules: JobRules) -> None:
        self.records = records
        self.serving = rules.serving
        self._deps = deps
        self._rules = rules
        self._executor = JobExecutor(deps, records, serving=rules.serving)
        self._live: dict[int, LiveJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._patrol: asyncio.Task[None] | None = None
        self._poller = Poller(self._tasks, self._listen)
        self._closed = False
        self.watchers: list[Callable[[IngestionJob], None]] = []  # told of every job that ended

    async def order(
        self, book_id: str, source: str | None, mode: Mode, *, replace: bool, readable: frozenset[str] | None
    ) -> JobOrder:
        """What a caller asks for, checked: the book is theirs, and the folder may be read."""
        asked = JobOrder(book_id=book_id, folder="", source=source, mode=mode, replace=replace)
        return await order_of(asked, readable, self._deps.ledger, self._rules.roots)

    async def may_read(self, entry: BookEntry) -> bool:
        """Whether a book may be read again from where it was."""
        return await may_read(entry, self._rules.roots)

    async def plan(self, order: JobOrder) -> Planned:
        """What the job would do; nothing is changed."""
        return await plan_of(order, self._deps)

    async def start(self, order: JobOrder, *, owner: str, key: str | None = None) -> JobRecord:
        """Queue a job; the same request gets the job that is queued or running for it, another a conflict."""
        if key is not None and (known := await tried(self.records, order, owner, key)):
            return known
        record, _ = await self._start(order, owner=owner, key=key)
        return record

    async def ingesting(self, request: IngestRequest) -> AsyncIterator[JobEvent]:
        """A job that is followed from here, and cancelled when whoever follows it goes away."""
        if request.dry_run:
            async for event in ingest(request, self._deps):
                yield event
            return
        found = await survey_folder(request, self._deps)
        folder = await asyncio.to_thread(request.folder.resolve)
        order = JobOrder(book_id=found.manifest.book_id, folder=str(folder), mode=request.mode, replace=request.replace)
        record, mine = await self._start(order, owner=LOCAL_OWNER, request=request, found=found)
        live = self._live.get(record.job.job_id)
        if live is None:
            raise busy(record)
        try:
            async for _, news in live.follow():
                if isinstance(news, Stopped):
                    raise news.error
                yield news
        finally:
            if mine and not live.done:
                live.end("cancelled")
                await live.over()
        if live.error is not None:
            raise live.error
        if live.job.status == "cancelled":
            raise JobCancelled(f"job {live.job_id} was cancelled; what was finished is kept")

    def live(self, job_id: int) -> LiveJob | None:
        """A job that this process carries on, or has just ended."""
        return self._live.get(job_id)

    async def record(self, job_id: int, books: frozenset[str] | None) -> JobRecord:
        """A job of these books (None: of any), as far as it is now."""
        live = self._live.get(job_id)
        record = live.record if live is not None and not live.done else await self.records.record(job_id)
        if record is None or (books is not None and record.order.book_id not in books):
            raise UnknownJob(f"there is no job {job_id}", field="job_id")
        return record

    async def page(self, *, books: frozenset[str] | None, limit: int, before: int | None) -> tuple[JobRecord, ...]:
        """Jobs of these books (None: of any), the newest first, without their warnings and errors."""
        if books is not None:
            books = frozenset(book for book in books if slugged(book) == book)  # what is no id can have no job
        return await self.records.page(books=books, limit=limit, before=before)

    @property
    def closed(self) -> bool:
        """Whether this process stops."""
        return self._closed

    async def cancel(self, job_id: int, books: frozenset[str] | None) -> JobRecord:
        """End a job between two steps: what was finished is kept, and nothing is half done. One that has ended stays
        as it is."""
        record = await self.record(job_id, books)
        if (live := self._live.get(job_id)) is not None:
            live.end("cancelled")
            await live.over()
        elif record.open:
            await self.records.ask_to_end(job_id)  # whoever carries it on will hear of it
            if await self._adopt(record, resume=False) is not None:  # unless nobody does
                return await self._heard(job_id, books)
        return await self.record(job_id, books)

    async def cancel_all_of(self, owner: str) -> None:
        """End every job that an owner, or a reader of its key, began."""
        own = [one for one in await self.records.open_jobs() if one.owner.partition("/")[0] == owner]
        await asyncio.gather(*(self.cancel(one.job.job_id, None) for one in own))

    async def _heard(self, job_id: int, books: frozenset[str] | None) -> JobRecord:
        """The job once the process that carries it on has ended it; as it is, where that takes its time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while (await self.record(job_id, books)).open:  # noqa: ASYNC110  # it is another process's
                    await asyncio.sleep(AGAIN)
        return await self.record(job_id, books)

    async def take_up(self) -> None:
        """See to every job whose process has died; a server goes on with them."""
        for record in await self.records.open_jobs():
            if record.job.job_id not in self._live:
                await self._adopt(record, resume=self.serving)
        if self.serving and self._rules.shared and self._patrol is None:
            self._patrol = asyncio.create_task(self._look_around())

    async def close(self) -> None:
        """Lay every job down: a server's are queued again, a command's are cancelled."""
        self._closed = True
        if self._patrol is not None:
            self._patrol.cancel()
            await asyncio.wait([self._patrol])
        for live in self._live.values():
            if not live.done:
                live.end("stopping")
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._poller.close()

    async def _listen(self) -> None:
        """End what somebody cancelled in another process."""
        going = [job_id for job_id, live in self._live.items() if not live.done and live.ending is None]
        for job_id in await self.records.ending(going):
            self._live[job_id].end("cancelled")

    async def _look_around(self) -> None:
        while True:
            await asyncio.sleep(PATROL)
            try:
                await self.take_up()
            except LecternError:
                continue  # the database is away; the next look may find it

    async def _start(
        self,
        order: JobOrder,
        *,
        owner: str,
        key: str | None = None,
        request: IngestRequest | None = None,
        found: Survey | None = None,
    ) -> tuple[JobRecord, bool]:
        """The job for this order, and whether it began with it."""
        for _ in range(TRIES):
            if (other := await self._under_way(order.book_id)) is not None:
                if not other.order.same_work(order):
                    raise busy(other)
                return await joined(self.records, other, order, owner, key), False
            if (book := await self._alone_with(order.book_id)) is not None:
                break
            await asyncio.sleep(AGAIN)  # somebody has the book, but no record yet, or no job at all
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
            known = await tried(self.records, order, owner, key or "")
            assert known is not None  # it was in the way of ours
            return known, False
        if request is not None:
            request = replace(request, job_id=record.job.job_id, queued_at=record.job.queued_at)
        self._carry_on(record, book, request, found)
        return record, True

    async def _under_way(self, book_id: str) -> JobRecord | None:
        """The job that a book has now; one whose process died is taken up first."""
        for record in await self.records.open_jobs(book_id):
            if (live := self._live.get(record.job.job_id)) is not None and not live.done:
                return live.record
            if (adopted := await self._adopt(record, resume=self.serving)) is not None:
                return adopted
        return None

    async def _adopt(self, record: JobRecord, *, resume: bool) -> JobRecord | None:
        """See to a job whose process may have died. Gives it where it is, or is now, carried on by somebody."""
        job_id = record.job.job_id
        if (book := await self._alone_with(record.order.book_id)) is None:
            return record
        async with AsyncExitStack() as unless_carried:
            unless_carried.push_async_callback(book.aclose)
            now = await self.records.record(job_id)  # it may have ended while we asked
            if now is None or not now.open:
                return None
            last = await verdict_on(now, self._rules.roots if resume else None)
            if last is not None:
                await self.records.end(last)
                return None
            if not resume or self._closed:
                await self.records.put_back(job_id, uncounted=False)
                return None
            unless_carried.pop_all()
            waiting = replace(now, job=replace(now.job, status="queued", started_at=None))
            self._carry_on(waiting, book)
            return waiting

    async def _alone_with(self, book_id: str) -> AsyncExitStack | None:
        book = AsyncExitStack()
        try:
            await book.enter_async_context(self._deps.locks.alone(book_id))
        except Busy:
            return None
        return book

    def _carry_on(
        self,
        record: JobRecord,
        book: AsyncExitStack,
        request: IngestRequest | None = None,
        found: Survey | None = None,
    ) -> None:
        live = self._live[record.job.job_id] = LiveJob(record)
        task = asyncio.create_task(self._executor.carry(live, book, request or request_of(record), found))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, live))
        if self._rules.shared:
            self._poller.open()

    def _ended(self, task: asyncio.Task[None], live: LiveJob) -> None:
        self._tasks.discard(task)
        if not live.done:  # what should not happen must not leave anybody waiting
            live.finish(task.exception() if not task.cancelled() else asyncio.CancelledError())
        asyncio.get_running_loop().call_later(KEPT, self._live.pop, live.job_id, None)
        if live.job.completed_at is not None:  # one that was put back goes on elsewhere
            for watcher in self.watchers:
                watcher(live.job)

    def _refuse_too_many(self) -> None:
        if self._closed:
            raise Overloaded("the server is stopping; try again when it has started")
        if len(self._tasks) >= MOST_OPEN:
            raise Overloaded(f"{len(self._tasks)} jobs are waiting already; try again when some have ended")
