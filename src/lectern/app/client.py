"""Lectern on a running server, over HTTP: the methods of `Lectern`, with the same arguments, values and errors.

async with connect("http://127.0.0.1:8420", key) as lectern:
    reply = await lectern.ask("How do nodes communicate?")

A server sends less than the index contains. What it does not send is empty: vectors and counts of chunks, the text of a
chunk that is only cited, the names of files in a plan, most of a book's manifest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lectern.app import client_values as values
from lectern.app.client_http import ServerConnection, error_from, path_of, response_errors
from lectern.domain.conversation import Conversation, conversation_of
from lectern.domain.errors import (
    BadInput,
    LecternError,
    ProviderTimeout,
    UnknownBook,
    UnknownJob,
    UnknownLesson,
    UnknownThread,
)
from lectern.domain.insights import DEFAULT_DAYS, Insights, check_days
from lectern.domain.jobs import Finished, IngestionJob, JobEvent, JobOrder, JobRecord, Mode
from lectern.domain.replies import Exchange, Replied, Reply, ReplyEvent, check_question
from lectern.domain.scope import Scope, SearchMode, SearchQuery
from lectern.domain.threads import (
    Feedback,
    FeedbackReason,
    Rating,
    Thread,
    ThreadEdit,
    ThreadHead,
    ThreadPage,
    Turn,
    checked_id,
)
from lectern.schemas import jobs as wire_jobs
from lectern.schemas.books import BookDetailsOut, BookOut, ChunkPage, OutlineOut
from lectern.schemas.insights import InsightsOut
from lectern.schemas.maintenance import CalibrationReportOut, FindingOut
from lectern.schemas.payload import from_payload
from lectern.schemas.scope import fields_of
from lectern.schemas.search import SearchResponse
from lectern.schemas.threads import ConversationThread, ExportOut, ThreadPageOut

if TYPE_CHECKING:
    from lectern.confidence.calibration import CalibrationReport, LabelledQuestion
    from lectern.domain.book_details import BookDetails
    from lectern.domain.books import BookEntry
    from lectern.domain.chunks import StampedChunk
    from lectern.domain.evidence import Findings
    from lectern.domain.outline import Outline
    from lectern.ingestion.doctor import Finding

TURN_SECONDS = 300.0  # for a question: a model is slow, and the previous turn may have to end first
CLEANUP_SECONDS = 5.0  # for cancelling a run or deleting its thread
CHUNKS_PER_PAGE = 200


@asynccontextmanager
async def connect(url: str, key: str | None = None) -> AsyncIterator[RemoteLectern]:
    """Lectern on the server at this address. Nothing is sent before the first call. `key` is None for a server that
    needs no key."""
    server = ServerConnection(url, key)
    try:
        yield RemoteLectern(server)
    finally:
        await server.close()


class RemoteLectern:
    """Books and questions on a running server. Made by `connect`."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server

    async def ingest(
        self, folder: Path | str, *, book: str | None = None, mode: Mode = "incremental", replace: bool = False
    ) -> IngestionJob:
        """Bring the index up to date with a folder of the server; see `ingesting`."""
        job: IngestionJob | None = None
        async with aclosing(self.ingesting(folder, book=book, mode=mode, replace=replace)) as events:  # type: ignore[type-var]  # an async generator
            async for event in events:
                if isinstance(event, Finished):
                    job = event.job
        assert job is not None  # `Finished` is always the last event
        return job

    async def ingesting(
        self, folder: Path | str, *, book: str | None = None, mode: Mode = "incremental", replace: bool = False
    ) -> AsyncIterator[JobEvent]:
        """`ingest` with its events. The folder is on the server, below its LECTERN_BOOKS, and `book` is required. The
        job belongs to the server: it continues if nobody follows it, and `jobs.cancel` ends it. The plan has the
        numbers of files, not their names."""
        if book is None:
            raise BadInput("say which book it is: over HTTP `book` is needed to ingest", field="book_id")
        order = JobOrder(book_id=book, folder="", source=str(folder), mode=mode, replace=replace)
        started = await self.jobs.start(order)
        last: JobEvent | None = None
        path = path_of("ingestions", started.job.job_id, "events")
        async with aclosing(self._server.events("GET", path)) as events:  # type: ignore[type-var]  # an async generator
            async for event in events:
                with response_errors():
                    last = values.job_event_from(event.name, event.body)
                if last is not None:
                    yield last
                if event.name == "error":
                    raise _error(event.body)
        if not isinstance(last, Finished):
            raise self._server.interrupted()
        if last.job.status == "cancelled":
            raise values.cancelled(last.job)

    async def search(  # noqa: PLR0913  # one parameter for each thing that can be asked for
        self,
        text: str,
        *,
        book: str | None = None,
        limit: int = 5,
        mode: SearchMode = "hybrid",
        scope: Scope | None = None,
        similarity_threshold: float | None = None,
        offset: int = 0,
        expand: int = 0,
    ) -> Findings:
        """The passages of a book that are nearest to a text; `limit` is 1 to 20, `expand` adds their neighbours."""
        query = SearchQuery(
            text=text,
            scope=_in_book(scope, book),
            mode=mode,
            similarity_threshold=similarity_threshold,
            offset=offset,
            expand=expand,
        )
        body = {
            **_scope_fields(query.scope),
            "text": text,
            "limit": limit,
            "mode": mode,
            "offset": offset,
            "expand": expand,
            "similarity_threshold": similarity_threshold,
        }
        answer = await self._server.call("POST", "/search", body=body)
        with response_errors():
            return values.findings_from(SearchResponse.model_validate(answer))

    async def ask(  # noqa: PLR0913  # one parameter for each thing that can be asked for
        self,
        text: str,
        *,
        book: str | None = None,
        top_k: int | None = None,
        similarity_threshold: float | None = None,
        scope: Scope | None = None,
        history: Sequence[Exchange] = (),
        thread: str | None = None,
    ) -> Reply:
        """An answer from the book, or a refusal. With a `thread` (a UUID v4) the turn is stored there and can refer to
        those before it. Without one, the conversation on the server is deleted again. `history` is for a local
        Lectern."""
        reply: Reply | None = None
        events = self._events(text, _in_book(scope, book), top_k, similarity_threshold, history, thread)
        try:
            async with asyncio.timeout(TURN_SECONDS), aclosing(events):  # type: ignore[type-var]  # an async generator
                async for event in events:
                    if isinstance(event, Replied):
                        reply = event.reply
        except TimeoutError:
            raise ProviderTimeout("lectern server", f"gave no reply in {TURN_SECONDS:g} s; ask again") from None
        assert reply is not None  # `_events` ends with the reply, or raises
        return reply

    def stream(  # noqa: PLR0913  # one parameter for each thing that can be asked for
        self,
        text: str,
        *,
        book: str | None = None,
        top_k: int | None = None,
        similarity_threshold: float | None = None,
        scope: Scope | None = None,
        history: Sequence[Exchange] = (),
        thread: str | None = None,
    ) -> AsyncIterator[ReplyEvent]:
        """`ask` with its events: states, evidence, checked text, and last the reply. A caller that stops before the
        reply ends the run."""
        return self._events(text, _in_book(scope, book), top_k, similarity_threshold, history, thread)

    async def _events(
        self,
        text: str,
        scope: Scope,
        top_k: int | None,
        similarity_threshold: float | None,
        history: Sequence[Exchange],
        thread: str | None,
    ) -> AsyncIterator[ReplyEvent]:
        body = _question(text, scope, top_k, similarity_threshold, history, thread)
        run_ids: dict[str, Any] = {}  # ids of the run, its thread and its book
        finished = False
        try:
            async with aclosing(self._server.events("POST", "/chat/stream", body=body)) as events:  # type: ignore[type-var]  # an async generator
                async for event in events:
                    run_ids = run_ids or event.body
                    if event.name == "error":
                        finished = True
                        raise _error(event.body)
                    with response_errors():
                        reply_event = values.reply_event_from(event.name, event.body, text, run_ids["book_id"])
                    if isinstance(reply_event, Replied):
                        if thread is None:
                            await self._try_call("DELETE", path_of("threads", run_ids["session_id"]))
                        finished = True
                    if reply_event is not None:
                        yield reply_event
            if not finished:
                raise self._server.interrupted()
        finally:
            if not finished and "run_id" in run_ids:
                await self._end_run(run_ids, keep_thread=thread is not None)

    async def _end_run(self, run_ids: dict[str, Any], *, keep_thread: bool) -> None:
        """Cancel a run that nobody follows any more, because its turn would still be stored."""
        await self._try_call("POST", f"{path_of('chat', 'runs', run_ids['run_id'])}/cancel")
        if not keep_thread:
            await self._try_call("DELETE", path_of("threads", run_ids["session_id"]))

    async def _try_call(self, method: str, path: str) -> None:
        """Send a request and ignore its failure."""
        with suppress(LecternError):
            if not self._server.closed:
                await self._server.call(method, path, seconds=CLEANUP_SECONDS)

    async def lesson(self, parent_doc_id: str, *, book: str | None = None) -> list[StampedChunk]:
        """The whole lesson, in order, however long."""
        book_id = await self._book_id(book)
        chunks: list[StampedChunk] = []
        query: dict[str, Any] = {"parent_doc_id": parent_doc_id, "limit": CHUNKS_PER_PAGE}
        while True:
            answer = await self._server.call("GET", path_of("books", book_id, "chunks"), query=query)
            with response_errors():
                page = ChunkPage.model_validate(answer)
                chunks += [from_payload(stored.id, stored.payload.model_dump()) for stored in page.chunks]
            if page.next_cursor is None:
                break
            query["cursor"] = page.next_cursor
        if not chunks:
            raise UnknownLesson(
                f"{book_id!r} has no lesson {parent_doc_id!r}; search results and `outline --json` have its id",
                field="parent_doc_id",
            )
        return chunks

    async def outline(self, book: str | None = None) -> Outline:
        """A book's modules, chapters and lessons, in order."""
        answer = await self._server.call("GET", path_of("books", await self._book_id(book), "outline"))
        with response_errors():
            return values.outline_from(OutlineOut.model_validate(answer))

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book that the key may read."""
        return tuple(values.book_from(book) for book in await self._book_rows())

    async def book(self, book: str | None = None) -> BookEntry:
        """The book of this name; without one, the only book or the server's default."""
        listed = {row.book_id: row for row in await self._book_rows()}
        book_id = book if book is not None else next((name for name, row in listed.items() if row.default), None)
        if book_id is None and listed:
            raise BadInput(f"several books are indexed, say which by book_id: {', '.join(listed)}", field="book_id")
        if book_id is None or book_id not in listed:
            raise UnknownBook(book_id or "", tuple(listed))
        return values.book_from(listed[book_id])

    async def book_details(self, book: str | None = None) -> BookDetails:
        """What a reader sees of a book before the first question: its description, language, filters, and questions
        that it answers."""
        answer = await self._server.call("GET", path_of("books", await self._book_id(book)))
        with response_errors():
            return values.details_from(BookDetailsOut.model_validate(answer))

    async def remove(self, book: str) -> int:
        """Remove a book from the index, not from the disk; returns how many chunks it had."""
        entry = await self.book(book)
        await self._server.call("DELETE", path_of("books", entry.manifest.book_id))
        return entry.total_chunks

    async def calibrate(self, book: str | None = None, questions: Sequence[LabelledQuestion] = ()) -> CalibrationReport:
        """Fit the confidence to a book, from labelled questions or from the book itself; needs the right `admin`."""
        labelled = [{"text": question.text, "answerable": question.answerable} for question in questions]
        path = path_of("books", await self._book_id(book), "calibrations")
        answer = await self._server.call("POST", path, body={"questions": labelled}, seconds=None)
        with response_errors():
            return values.report_from(CalibrationReportOut.model_validate(answer))

    async def doctor(self, *, mend: bool = False) -> AsyncIterator[Finding]:
        """Every disagreement between index and ledger, and what the language model can do; with `mend` the index is
        repaired. Needs a key with the right `admin` for all books. The findings arrive when all of it was examined."""
        from lectern.ingestion.doctor import Finding

        answer = await self._server.call("POST", "/doctor", body={"mend": mend}, seconds=None)
        with response_errors():
            findings = [Finding(**FindingOut.model_validate(row).model_dump()) for row in answer]
        for finding in findings:
            yield finding

    async def insights(self, book: str | None = None, *, days: int = DEFAULT_DAYS) -> Insights:
        """What readers asked a book in the last days, added up over all of them; needs the right `admin`."""
        check_days(days)
        path = path_of("books", await self._book_id(book), "insights")
        answer = await self._server.call("GET", path, query={"days": days}, seconds=None)
        with response_errors():
            return values.insights_from(InsightsOut.model_validate(answer))

    @property
    def threads(self) -> RemoteThreads:
        """The conversations of the key."""
        return RemoteThreads(self._server)

    @property
    def jobs(self) -> RemoteJobs:
        """The ingestions of the books that the key may ingest."""
        return RemoteJobs(self._server)

    async def _book_rows(self) -> list[BookOut]:
        answer = await self._server.call("GET", "/books")
        with response_errors():
            return [BookOut.model_validate(row) for row in answer]

    async def _book_id(self, book: str | None) -> str:
        return book or (await self.book(book)).manifest.book_id


class RemoteThreads:
    """The conversations of one key, with the methods of a local Lectern's `threads`."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server

    async def list(
        self, *, limit: int = 20, cursor: str | None = None, query: str = "", book: str | None = None
    ) -> ThreadPage:
        """The key's conversations, the most recently used first; those about a `book`, and those that have each word of
        a `query` in the title or in a question. Only `read` has their filters."""
        options = {"limit": limit, "cursor": cursor, "query": query or None, "book_id": book}
        answer = await self._server.call("GET", "/threads", query=options)
        with response_errors():
            page = ThreadPageOut.model_validate(answer)
        return ThreadPage(heads=tuple(values.head_from(head) for head in page.threads), cursor=page.next_cursor)

    async def read(self, thread_id: str, *, before: int | None = None) -> Thread:
        """A thread with its last 50 messages, or those before a `seq`."""
        answer = await self._server.call("GET", _thread_path(thread_id), query={"before": before})
        with response_errors():
            return values.thread_from(ConversationThread.model_validate(answer))

    async def turns(self, thread_id: str) -> tuple[Turn, ...]:
        """Every turn, each with its reply as it was shown; look-ups are in `read`."""
        answer = await self._server.call("GET", f"{_thread_path(thread_id)}/export")
        with response_errors():
            return values.turns_from(ExportOut.model_validate(answer))

    async def conversation(self, thread_id: str) -> Conversation:
        """A whole conversation as messages: the tool calls for a key with the right `read`, the instructions for one
        with `admin`."""
        return conversation_of((await self.read(thread_id)).head, await self.turns(thread_id))

    async def edit(self, thread_id: str, change: ThreadEdit) -> ThreadHead:
        """Change the title or metadata of a conversation."""
        body = {"title": change.title, "metadata": change.metadata}
        headers = {} if change.version is None else {"If-Match": f'"{change.version}"'}
        answer = await self._server.call(
            "PATCH",
            _thread_path(thread_id),
            body={name: value for name, value in body.items() if value is not None},
            headers=headers,
        )
        with response_errors():
            return values.thread_from(ConversationThread.model_validate(answer)).head

    async def rate(
        self,
        thread_id: str,
        turn: int,
        rating: Rating | None,
        *,
        reason: FeedbackReason | None = None,
        comment: str = "",
    ) -> None:
        """Store the feedback on a turn, by its number, instead of an earlier one; None takes it back."""
        if rating is not None:
            Feedback(rating=rating, reason=reason, comment=comment)  # refuses what is out of range, as a local store
        body = {"turn": turn, "rating": rating, "reason": reason, "comment": comment}
        await self._server.call("POST", f"{_thread_path(thread_id)}/feedback", body=body)

    async def delete(self, thread_id: str) -> None:
        """Delete a conversation and everything that belongs to it."""
        await self._server.call("DELETE", _thread_path(thread_id))


class RemoteJobs:
    """Ingestions on the server, with those methods of a local Lectern's `jobs` that make sense over HTTP."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server

    async def page(
        self, *, books: frozenset[str] | None = None, limit: int = 20, before: int | None = None
    ) -> tuple[JobRecord, ...]:
        """Jobs of these books (None: of all that the key may ingest), the newest first, without their warnings and
        errors; `limit` is 1 to 100."""
        records: list[JobRecord] = []
        for book in [None] if books is None else sorted(books):
            query = {"book_id": book, "limit": limit, "cursor": before}
            answer = await self._server.call("GET", "/ingestions", query=query)
            with response_errors():
                page = wire_jobs.IngestionPage.model_validate(answer)
            records += [values.record_from(job) for job in page.jobs]
        return tuple(sorted(records, key=lambda record: -record.job.job_id)[:limit])

    async def record(self, job_id: int, books: frozenset[str] | None = None) -> JobRecord:
        """A job of these books (None: of any), as far as it is now."""
        record = _record(await self._server.call("GET", path_of("ingestions", job_id)))
        if books is not None and record.order.book_id not in books:
            raise UnknownJob(f"there is no job {job_id}", field="job_id")
        return record

    async def start(self, order: JobOrder, *, key: str | None = None) -> JobRecord:
        """Queue a job; a second order for the same gets the job that is running. The order's `source` (else its
        `folder`) is a folder of the server; without one the book is read from where it was read before. `key` is an
        idempotency key."""
        body = {"mode": order.mode, "source": order.source or order.folder or None, "replace": order.replace}
        headers = {} if key is None else {"Idempotency-Key": key}
        path = path_of("books", order.book_id, "ingestions")
        return _record(await self._server.call("POST", path, body=body, headers=headers))

    async def cancel(self, job_id: int, books: frozenset[str] | None = None) -> JobRecord:
        """Cancel a job between two steps; finished work stays. A job that has ended stays as it is."""
        if books is not None:
            await self.record(job_id, books)
        return _record(await self._server.call("POST", f"{path_of('ingestions', job_id)}/cancel"))


def _record(answer: object) -> JobRecord:
    with response_errors():
        return values.record_from(wire_jobs.IngestionJob.model_validate(answer))


def _question(
    text: str,
    scope: Scope,
    top_k: int | None,
    similarity_threshold: float | None,
    history: Sequence[Exchange],
    thread: str | None,
) -> dict[str, Any]:
    """The body of a chat request, without options that are not set, so that a thread keeps its filters."""
    check_question(text, top_k, similarity_threshold)
    if history and thread is None:  # a thread has its own
        raise BadInput("a server keeps the history itself: leave it out, and name a `thread` instead", field="history")
    options = {
        "top_k": top_k,
        "similarity_threshold": similarity_threshold,
        "session_id": None if thread is None else checked_id(thread),
    }
    set_options = {name: value for name, value in options.items() if value is not None}
    return {"message": text, **_scope_fields(scope), **set_options}


def _scope_fields(scope: Scope) -> dict[str, Any]:
    return {**fields_of(scope), **({} if scope.book_id is None else {"book_id": scope.book_id})}


def _in_book(scope: Scope | None, book: str | None) -> Scope:
    scope = scope or Scope()
    return scope if book is None else changed(scope, book_id=book)


def _thread_path(thread_id: str) -> str:
    try:
        return path_of("threads", checked_id(thread_id))
    except BadInput:
        raise UnknownThread(f"there is no thread {thread_id!r}", field="thread_id") from None


def _error(body: dict[str, Any]) -> LecternError:
    with response_errors():
        return error_from(body)
