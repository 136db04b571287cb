"""Runs commands: a typed command in, lines of plain JSON out. If the home is free, a command runs in its own process.
While a server owns the home, the command runs in that server, with the same code."""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lectern.app import commands
from lectern.domain.errors import BadInput

if TYPE_CHECKING:
    from lectern.app.lectern import Lectern
    from lectern.domain.jobs import IngestionJob, JobEvent, JobOrder, JobRecord, Planned
    from lectern.domain.keys import IssuedKey, Key

Line = dict[str, Any]
ROWS_PER_PAGE = 100
POLL_SECONDS = 1.0  # between two reads of a job that another process runs


Handler = Callable[..., AsyncIterator[Line]]  # of a Lectern and the command it is registered for
_HANDLERS: dict[type[commands.Command], Handler] = {}


def run(command: commands.Command, lectern: Lectern) -> AsyncIterator[Line]:
    """Run a command and yield its lines."""
    return _HANDLERS[type(command)](lectern, command)


def _handles(kind: type[commands.Command]) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS[kind] = handler
        return handler

    return register


@_handles(commands.Search)
async def _search(lectern: Lectern, command: commands.Search) -> AsyncIterator[Line]:
    from lectern.index.lexical import shared_words
    from lectern.schemas.search import SearchResponse

    findings = await lectern.search(
        command.text,
        scope=command.scope,
        limit=command.limit,
        mode=command.mode,
        offset=command.offset,
        expand=command.expand,
        similarity_threshold=command.similarity_threshold,
    )
    yield SearchResponse.of(findings, shared_words).model_dump()


@_handles(commands.Ask)
async def _ask(lectern: Lectern, command: commands.Ask) -> AsyncIterator[Line]:
    from lectern.conversations.runs import report_outcome
    from lectern.schemas.chat import ChatResponse

    async def reply() -> Line:
        entry = await lectern.book(command.scope.book_id)
        answer = await lectern.ask(
            command.text,
            scope=command.scope,
            top_k=command.top_k,
            similarity_threshold=command.similarity_threshold,
        )
        return ChatResponse.of(answer, book_id=entry.manifest.book_id).model_dump()

    yield await report_outcome(reply(), command.text, lectern.app.watchers)


@_handles(commands.ListBooks)
async def _list_books(lectern: Lectern, _: commands.ListBooks) -> AsyncIterator[Line]:
    from lectern.schemas.books import BookOut

    default_id = await lectern.app.library.default_id()
    for entry in await lectern.books():
        yield BookOut.of(entry, default_id).model_dump()


@_handles(commands.ListChunks)
async def _list_chunks(lectern: Lectern, command: commands.ListChunks) -> AsyncIterator[Line]:
    from lectern.schemas.payload import to_payload

    for stored in await lectern.app.library.chunks(command.book):
        yield {"id": stored.chunk.id, "payload": to_payload(stored)}


@_handles(commands.RemoveBook)
async def _remove_book(lectern: Lectern, command: commands.RemoveBook) -> AsyncIterator[Line]:
    yield {"book_id": command.book, "chunks_deleted": await lectern.remove(command.book)}


@_handles(commands.ShowOutline)
async def _show_outline(lectern: Lectern, command: commands.ShowOutline) -> AsyncIterator[Line]:
    yield dataclasses.asdict(await lectern.outline(command.book))


@_handles(commands.ShowLesson)
async def _show_lesson(lectern: Lectern, command: commands.ShowLesson) -> AsyncIterator[Line]:
    from lectern.schemas.books import LessonOut

    yield LessonOut.of(await lectern.lesson(command.parent_doc_id, book=command.book)).model_dump()


@_handles(commands.Calibrate)
async def _calibrate(lectern: Lectern, command: commands.Calibrate) -> AsyncIterator[Line]:
    from lectern.confidence.calibration import LabelledQuestion

    questions = [LabelledQuestion(text=row.text, answerable=row.answerable) for row in command.questions]
    yield dataclasses.asdict(await lectern.calibrate(command.book, questions))


@_handles(commands.Doctor)
async def _doctor(lectern: Lectern, command: commands.Doctor) -> AsyncIterator[Line]:
    async for finding in lectern.doctor(mend=command.mend):
        yield dataclasses.asdict(finding)


@_handles(commands.ShowInsights)
async def _show_insights(lectern: Lectern, command: commands.ShowInsights) -> AsyncIterator[Line]:
    from lectern.schemas.insights import InsightsOut

    yield InsightsOut.of(await lectern.insights(command.book, days=command.days)).model_dump()


@_handles(commands.Ingest)
async def _ingest(lectern: Lectern, command: commands.Ingest) -> AsyncIterator[Line]:
    from lectern.ingestion.ingest import IngestRequest

    request = IngestRequest(
        folder=Path(command.folder),
        book_id=command.book,
        mode=command.mode,
        dry_run=command.dry_run,
        replace=command.replace,
    )
    async for event in lectern.app.jobs.ingesting(request):
        yield _event_line(event)


def _event_line(event: JobEvent) -> Line:
    """An event of a job. The lines of one kind have the same fields, whether the plan is of a dry run or not."""
    from lectern.domain.jobs import REPORT_TOTALS, LessonsIndexed, Planned, Working

    match event:
        case Planned():
            plan = dataclasses.asdict(dataclasses.replace(event.plan, replacements=()))
            del plan["replacements"]  # internal steps, not part of the plan that is shown
            plan["chunks"] = dataclasses.asdict(event.forecast) if event.forecast else None
            plan |= {name: getattr(event.job, name) for name in REPORT_TOTALS}
            plan |= {"warnings": plan_problems(event, "warning"), "errors": plan_problems(event, "error")}
            return {"kind": event.kind, "job_id": event.job.job_id, "plan": plan}
        case Working() | LessonsIndexed():
            figures = {"done": event.done, "total": event.total, "share": event.share, **_waiting(event.job)}
            stage = event.stage if isinstance(event, Working) else "read"  # the next lessons
            return {"kind": event.kind, "stage": stage, "embedded": event.job.chunks_embedded, **figures}
        case _:
            return {"kind": event.kind, "job": dataclasses.asdict(event.job)}


def _waiting(job: IngestionJob) -> Line:
    return {"waiting_since": job.waiting_since, "waiting_for": job.waiting_for}


def plan_problems(event: Planned, severity: str) -> list[Line]:
    """The problems that were found while planning, or in a dry run while reading."""
    problems = event.job.errors if severity == "error" else event.job.warnings
    return [dataclasses.asdict(problem) for problem in problems]


@_handles(commands.ListJobs)
async def _list_jobs(lectern: Lectern, command: commands.ListJobs) -> AsyncIterator[Line]:
    await _end_lost_jobs(lectern)
    books = None if command.book is None else frozenset({command.book})
    before, remaining = None, command.limit
    while remaining > 0:
        page = await lectern.jobs.page(books=books, limit=min(remaining, ROWS_PER_PAGE), before=before)
        for record in page:
            yield _job_line(record)
        if len(page) < min(remaining, ROWS_PER_PAGE):
            return
        before, remaining = page[-1].job.job_id, remaining - len(page)


@_handles(commands.ShowJob)
async def _show_job(lectern: Lectern, command: commands.ShowJob) -> AsyncIterator[Line]:
    await _end_lost_jobs(lectern)
    yield _job_line(await lectern.jobs.record(command.job_id, None))


@_handles(commands.CancelJob)
async def _cancel_job(lectern: Lectern, command: commands.CancelJob) -> AsyncIterator[Line]:
    yield _job_line(await lectern.jobs.cancel(command.job_id, None))


async def _end_lost_jobs(lectern: Lectern) -> None:
    """Mark jobs that a killed process left as ended; a server did this when it started."""
    if not lectern.app.serving:
        await lectern.jobs.adopt_orphans()


@_handles(commands.FollowJob)
async def _follow_job(lectern: Lectern, command: commands.FollowJob) -> AsyncIterator[Line]:
    from lectern.jobs.executor import Stopped

    await _end_lost_jobs(lectern)
    record = await lectern.jobs.record(command.job_id, None)
    if (live := lectern.jobs.live(command.job_id)) is not None:
        async for _, event in live.follow():
            if isinstance(event, Stopped):
                raise event.error
            if event.kind != "finished":
                yield _event_line(event)
    while (record := await lectern.jobs.record(command.job_id, None)).open:  # another process runs it
        yield _stored_line(record)
        await asyncio.sleep(POLL_SECONDS)
    yield {"kind": "finished", "job": _job_line(record)}


def _stored_line(record: JobRecord) -> Line:
    """The progress of a job that another process runs, as far as the database has it."""
    job = record.job
    done = job.files_processed + job.files_skipped + job.files_failed
    share = done / job.files_discovered if job.files_discovered else 0.0
    figures = {"done": done, "total": job.files_discovered, "share": share, **_waiting(job)}
    return {"kind": "working", "stage": "embed", "embedded": job.chunks_embedded, **figures}


@_handles(commands.StartJob)
async def _start_job(lectern: Lectern, command: commands.StartJob) -> AsyncIterator[Line]:
    from lectern.domain.threads import LOCAL_OWNER

    started = await lectern.jobs.start(await _order(lectern, command), owner=LOCAL_OWNER)
    live = lectern.jobs.live(started.job.job_id)
    if not lectern.app.serving and live is not None:
        await live.over()
        if live.error is not None:
            raise live.error
    yield _job_line(await lectern.jobs.record(started.job.job_id, None))


async def _order(lectern: Lectern, command: commands.StartJob) -> JobOrder:
    """The job that is asked for. A user at the terminal may name any folder."""
    from lectern.domain.jobs import JobOrder
    from lectern.reading.names import slugged

    book, folder = command.book, command.source
    if slugged(book) != book:
        raise BadInput(f"{book!r} is no book id; write {slugged(book)!r}", field="book_id")
    if folder is None:
        folder = next((entry.source for entry in await lectern.books() if entry.manifest.book_id == book), None)
    if folder is None:
        raise BadInput(f"{book!r} is not indexed yet; say with --source which folder holds it", field="source")
    return JobOrder(book_id=book, folder=folder, mode=command.mode, replace=command.replace)


def _job_line(record: JobRecord) -> Line:
    from lectern.schemas.jobs import IngestionJob

    return IngestionJob.of(record).model_dump()


@_handles(commands.ListKeys)
async def _list_keys(lectern: Lectern, _: commands.ListKeys) -> AsyncIterator[Line]:
    for key in await lectern.app.keys.list_keys():
        yield _key_line(key)


@_handles(commands.RotateKey)
async def _rotate_key(lectern: Lectern, command: commands.RotateKey) -> AsyncIterator[Line]:
    yield _issued_line(await lectern.app.keys.rotate(command.key_id, grace=command.grace, days=command.days))


@_handles(commands.RevokeKey)
async def _revoke_key(lectern: Lectern, command: commands.RevokeKey) -> AsyncIterator[Line]:
    from lectern.app.keys import revoke_key

    app = lectern.app
    yield _key_line(await revoke_key(command.key_id, app.keys, app.runs, app.jobs))


@_handles(commands.DeleteKey)
async def _delete_key(lectern: Lectern, command: commands.DeleteKey) -> AsyncIterator[Line]:
    from lectern.app.keys import delete_key

    app = lectern.app
    deleted, threads = await delete_key(command.key_id, app.keys, app.runs, app.jobs)
    yield {"key_id": deleted.key_id, "name": deleted.name, "threads_deleted": threads}


@_handles(commands.CreateKey)
async def _create_key(lectern: Lectern, command: commands.CreateKey) -> AsyncIterator[Line]:
    from lectern.domain.keys import KeyRequest, origin_of

    request = KeyRequest(
        name=command.name,
        kind="publishable" if command.publishable else "secret",
        rights=frozenset(command.rights),
        books=frozenset(command.books) if command.books else None,
        origins=frozenset(origin_of(origin) for origin in command.origins),
        days=command.days,
    )
    issued = await lectern.app.keys.create(request)
    missing = sorted(set(command.books) - set(await lectern.app.library.book_ids()))
    yield {**_issued_line(issued), "not_indexed": missing}


def _issued_line(issued: IssuedKey) -> Line:
    return {"key": issued.text, **_key_line(issued.key)}


def _key_line(key: Key) -> Line:
    from lectern.domain.clock import utc_now

    return {
        "key_id": key.key_id,
        "name": key.name,
        "kind": key.kind,
        "state": key.state(utc_now()),
        "rights": sorted(key.rights),
        "books": None if key.books is None else sorted(key.books),
        "origins": sorted(key.origins),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    }


@_handles(commands.Chat)
async def _chat(lectern: Lectern, command: commands.Chat) -> AsyncIterator[Line]:
    from lectern.conversations.runs import Failed
    from lectern.conversations.turns import TurnRequest, TurnStored
    from lectern.domain.replies import Delta, Judged
    from lectern.domain.threads import LOCAL_OWNER, checked_id
    from lectern.schemas.chat import StatementOut

    request = TurnRequest(
        owner=LOCAL_OWNER,
        thread_id=checked_id(command.thread_id),
        run_id=str(uuid.uuid4()),
        text=command.text,
        book_id=command.book,
        filters=command.filters,
        top_k=command.top_k,
        stream=True,
    )
    run = (await lectern.app.ephemeral_runs() if command.ephemeral else lectern.app.runs).start(request)
    try:
        async for _, event in run.follow():
            match event:
                case Delta():
                    yield {"kind": "delta", "text": event.text}
                case Judged():
                    statement = StatementOut.of(event.statement).model_dump()
                    yield {"kind": "verdict", "claim": event.number, "statement": statement}
                case TurnStored():
                    yield {"kind": "reply", "reply": dict(event.reply)}
                case Failed():
                    raise event.error
                case _:
                    continue
    finally:
        if not run.done:  # Ctrl-C: nobody waits for the answer any more
            await run.cancel()


@_handles(commands.ShowThread)
async def _show_thread(lectern: Lectern, command: commands.ShowThread) -> AsyncIterator[Line]:
    from lectern.schemas.threads import ConversationThread

    yield ConversationThread.of(await lectern.threads.read(command.thread_id)).model_dump()


@_handles(commands.DeleteThread)
async def _delete_thread(lectern: Lectern, command: commands.DeleteThread) -> AsyncIterator[Line]:
    await lectern.threads.delete(command.thread_id)
    yield {"thread_id": command.thread_id}


@_handles(commands.PurgeThreads)
async def _purge_threads(lectern: Lectern, command: commands.PurgeThreads) -> AsyncIterator[Line]:
    from lectern.domain.clock import days_ago

    yield {"threads_deleted": await lectern.app.conversations.threads.purge(days_ago(command.days))}


@_handles(commands.ListThreads)
async def _list_threads(lectern: Lectern, command: commands.ListThreads) -> AsyncIterator[Line]:
    from lectern.schemas.threads import ThreadHeadOut

    cursor, remaining = None, command.limit
    while remaining > 0:
        page = await lectern.threads.list(
            limit=min(remaining, ROWS_PER_PAGE), cursor=cursor, query=command.query, book=command.book
        )
        for head in page.heads:
            yield ThreadHeadOut.of_head(head).model_dump()
        cursor, remaining = page.cursor, remaining - len(page.heads)
        if cursor is None:
            return


@_handles(commands.ExportThread)
async def _export_thread(lectern: Lectern, command: commands.ExportThread) -> AsyncIterator[Line]:
    from lectern.app.threads import possible_id
    from lectern.conversations.export import as_markdown
    from lectern.domain.threads import LOCAL_OWNER
    from lectern.schemas.threads import ExportOut

    thread_id = possible_id(command.thread_id)
    runs = await lectern.app.ephemeral_runs() if command.ephemeral else lectern.app.runs
    store = runs.conversations.threads
    thread = await store.thread(LOCAL_OWNER, thread_id, limit=None)
    turns = await store.turns(LOCAL_OWNER, thread_id)
    if command.format == "markdown":
        yield {"text": as_markdown(thread.head, turns)}
    else:
        yield ExportOut.of_turns(thread, turns).model_dump()
