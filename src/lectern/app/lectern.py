"""`Lectern`: what a program does with books, in fifteen methods. `open_lectern` gives one on this machine,
`lectern.connect` one with the same methods on a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lectern.domain.errors import BadInput, ConfigError
from lectern.domain.insights import DEFAULT_DAYS
from lectern.domain.jobs import Finished, IngestionJob, JobEvent, Mode
from lectern.domain.replies import Exchange, Question, Replied, Reply, ReplyEvent, check_question
from lectern.domain.scope import SEARCH_LIMIT, Scope, SearchMode, SearchQuery
from lectern.ingestion.ingest import IngestRequest
from lectern.ingestion.replacing import remove

if TYPE_CHECKING:
    from lectern.app.open import Application
    from lectern.app.threads import OwnThreads
    from lectern.confidence.calibration import CalibrationReport, LabelledQuestion
    from lectern.domain.book_details import BookDetails
    from lectern.domain.books import BookEntry
    from lectern.domain.chunks import StampedChunk
    from lectern.domain.evidence import Findings
    from lectern.domain.insights import Insights
    from lectern.domain.outline import Outline
    from lectern.ingestion.doctor import Finding
    from lectern.jobs.runner import Jobs


class Lectern:
    """Ingests books and answers questions. Made by `open_lectern`."""

    def __init__(self, app: Application) -> None:
        self.app = app  # all parts, for commands, servers and measurements

    async def ingest(
        self, folder: Path | str, *, book: str | None = None, mode: Mode = "incremental", replace: bool = False
    ) -> IngestionJob:
        """Bring the index up to date with the folder; `replace` continues even if it looks like another book."""
        job: IngestionJob | None = None
        async with aclosing(self.ingesting(folder, book=book, mode=mode, replace=replace)) as events:  # type: ignore[type-var]  # an async generator
            async for event in events:
                if isinstance(event, Finished):
                    job = event.job
        assert job is not None  # `Finished` is always the last event
        return job

    def ingesting(
        self, folder: Path | str, *, book: str | None = None, mode: Mode = "incremental", replace: bool = False
    ) -> AsyncIterator[JobEvent]:
        """`ingest` with its events: the plan, the progress, and last the job."""
        request = IngestRequest(folder=Path(folder), book_id=book, mode=mode, replace=replace)
        return self.app.jobs.ingesting(request)

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
        if not 1 <= limit <= SEARCH_LIMIT:
            raise BadInput(f"limit must be 1 to {SEARCH_LIMIT}, not {limit}", field="limit")
        query = SearchQuery(
            text=text,
            scope=_in_book(scope, book),
            limit=limit,
            mode=mode,
            similarity_threshold=similarity_threshold,
            offset=offset,
            expand=expand,
        )
        return await self.app.search(query)

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
        those before it. Without one nothing is stored, and `history` has the earlier turns of the conversation."""
        reply: Reply | None = None
        events = self._events(text, _in_book(scope, book), top_k, similarity_threshold, history, thread, stream=False)
        async with aclosing(events):  # type: ignore[type-var]  # an async generator
            async for event in events:
                if isinstance(event, Replied):
                    reply = event.reply
        assert reply is not None  # `Replied` is always there
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
        """`ask` with its events: states, evidence, checked text, and last the reply."""
        return self._events(text, _in_book(scope, book), top_k, similarity_threshold, history, thread, stream=True)

    async def _events(  # noqa: PLR0913  # one parameter for each thing that can be asked for
        self,
        text: str,
        scope: Scope,
        top_k: int | None,
        similarity_threshold: float | None,
        history: Sequence[Exchange],
        thread: str | None,
        *,
        stream: bool,
    ) -> AsyncIterator[ReplyEvent]:
        check_question(text, top_k, similarity_threshold)
        if thread is not None:
            from lectern.app.threads import turn_in_thread

            events = turn_in_thread(
                self.app.conversations, thread, text, scope, top_k, similarity_threshold, stream=stream
            )
        else:
            question = Question(
                text=text,
                scope=await self.app.library.resolve(scope),
                top_k=top_k,
                similarity_threshold=similarity_threshold,
                history=tuple(history),
                stream=stream,
            )
            events = self.app.ask(question)
        async with aclosing(events):  # type: ignore[type-var]  # an async generator
            async for event in events:
                yield event

    async def lesson(self, parent_doc_id: str, *, book: str | None = None) -> list[StampedChunk]:
        """The whole lesson, in order, however long."""
        return await self.app.library.lesson(parent_doc_id, book=book)

    async def outline(self, book: str | None = None) -> Outline:
        """A book's modules, chapters and lessons, in order."""
        return await self.app.library.outline(book)

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""
        return await self.app.library.books()

    async def book(self, book: str | None = None) -> BookEntry:
        """The book of this name; without one, the only book or the default one."""
        return await self.app.library.book(book)

    async def book_details(self, book: str | None = None) -> BookDetails:
        """What a reader sees of a book before the first question: its description, language, filters, and questions
        that it answers."""
        return await self.app.details.details(await self.app.library.book(book))

    async def remove(self, book: str) -> int:
        """Remove a book from the index, not from the disk; returns how many chunks were removed."""
        entry = await self.book(book)
        deps = self.app.ingest_deps
        async with deps.locks.hold(entry.manifest.book_id):
            return await remove(deps.ledger, deps.collections, entry)

    async def calibrate(self, book: str | None = None, questions: Sequence[LabelledQuestion] = ()) -> CalibrationReport:
        """Fit the confidence to a book, from labelled questions or from the book itself."""
        from lectern.confidence.calibration import CalibrationSource, calibrate

        library = self.app.library
        source = CalibrationSource(search=self.search, chunks=library.chunks, books=library.books, book=library.book)
        book_id = await library.book_id(book, None)
        async with self.app.ingest_deps.locks.hold(book_id):  # two calibrations at once would write the same file
            return await calibrate(source, self.app.home.calibrations, book=book_id, questions=questions)

    async def doctor(self, *, mend: bool = False) -> AsyncIterator[Finding]:
        """Every disagreement between index and ledger; with `mend` each is repaired. Then what the language model can
        do, if there is one: it is asked three short questions."""
        from lectern.app.factories import check_endpoint
        from lectern.ingestion.doctor import Finding, damaged_database, examine, unexamined
        from lectern.store.health import database_faults

        faults = await database_faults(self.app.engine)
        for fault in faults:
            yield damaged_database(fault)
        try:  # nothing is written to a damaged database
            async for finding in examine(self.app.ingest_deps, mend=mend and not faults):
                yield finding
        except Exception as exc:  # noqa: BLE001  # a damaged database raises anything; the operator reads a finding
            yield unexamined(exc)
        try:
            async for check in check_endpoint(self.app.settings):
                yield Finding(kind=check.name, book_id=None, detail=check.detail, severity=check.severity)
        except ConfigError as exc:
            yield Finding(kind="model answer", book_id=None, detail=str(exc))

    async def insights(self, book: str | None = None, *, days: int = DEFAULT_DAYS) -> Insights:
        """What readers asked a book in the last days, added up over all of them."""
        return await self.app.insights(await self.app.library.book_id(book, None), days)

    @property
    def threads(self) -> OwnThreads:
        """The conversations of this terminal or program."""
        from lectern.app.threads import OwnThreads

        return OwnThreads(self.app.conversations.threads)

    @property
    def jobs(self) -> Jobs:
        """Queued and running ingestions, and the records of all."""
        return self.app.jobs


def _in_book(scope: Scope | None, book: str | None) -> Scope:
    scope = scope or Scope()
    return scope if book is None else replace(scope, book_id=book)
