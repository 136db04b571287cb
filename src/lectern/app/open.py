"""The composition root: opens the parts that the settings name and connects adapters with flows, with the help of
`factories`. Parts are closed in reverse order. What only some commands need is made when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from lectern.app.home import Home, find_home
from lectern.app.lectern import Lectern
from lectern.app.library import BookLibrary
from lectern.app.settings import Settings, load_settings
from lectern.domain.scope import Scope
from lectern.ingestion.ingest import IngestDeps
from lectern.retrieval.search import HybridSearch

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from lectern.answering.ask import AskDeps
    from lectern.app.book_details import DetailedBooks
    from lectern.app.pages import BookPages
    from lectern.confidence.calibration import Calibration
    from lectern.conversations.runs import Runs, Watcher
    from lectern.conversations.turns import Conversations
    from lectern.domain.books import BookEntry
    from lectern.domain.evidence import Hit
    from lectern.domain.insights import Insights
    from lectern.domain.replies import Question, ReplyEvent
    from lectern.jobs.runner import Jobs
    from lectern.ports.answering import ConfidencePolicy
    from lectern.reading.chunking import ReadingRules
    from lectern.store.keys import SqlKeys


class Application:
    """All parts of one process."""

    def __init__(  # one for each thing that is opened first
        self,
        *,
        settings: Settings,
        home: Home,
        engine: AsyncEngine,
        ingest_deps: IngestDeps,
        stack: AsyncExitStack,
        serving: bool,
    ) -> None:
        self.settings = settings
        self.home = home
        self.engine = engine
        self.ingest_deps = ingest_deps
        self.stack = stack  # also closes what is opened later
        self.tracer = ingest_deps.tracer
        self.serving = serving  # True in a server, where a job outlives the request that started it
        self.watchers: list[Watcher] = []  # called when a question has ended
        self.library = BookLibrary(ledger=ingest_deps.ledger, collections=ingest_deps.collections, settings=settings)
        self._runs: dict[AsyncEngine, Runs] = {}

    @cached_property
    def search(self) -> HybridSearch:
        """Search in one book."""
        deps = self.ingest_deps
        return HybridSearch(
            deps.collections, deps.ledger, self.settings.default_book, self._scale_of, self._answer_odds
        )

    @staticmethod
    async def _answer_odds(text: str, hits: Sequence[Hit]) -> Sequence[float]:
        """How likely hits answer a text. Only the mode `reranked` loads the network."""
        from lectern.app.factories import answer_locator
        from lectern.confidence.answerability import answer_odds

        return await answer_odds(answer_locator(), text, hits)

    @cached_property
    def details(self) -> DetailedBooks:
        """What readers see of a book before the first question."""
        from lectern.app.book_details import DetailedBooks

        async def answered(questions: Sequence[str], book_id: str) -> AsyncIterator[str]:
            from lectern.answering.ask import answered_questions

            scope = await self.library.resolve(Scope(book_id=book_id))
            async for question in answered_questions(questions, scope, self.ask_deps):
                yield question

        details = DetailedBooks(self.library, answered)
        self.stack.push_async_callback(details.close)
        return details

    @cached_property
    def pages(self) -> BookPages:
        """Lessons as HTML, and the images of books."""
        from lectern.app.pages import BookPages

        return BookPages(self.library)

    @cached_property
    def jobs(self) -> Jobs:
        """Queued and running ingestions, and the records of all."""
        from lectern.app.factories import build_jobs

        jobs = build_jobs(self.engine, self.ingest_deps, self.settings, serving=self.serving)
        self.stack.push_async_callback(jobs.close)
        return jobs

    @cached_property
    def keys(self) -> SqlKeys:
        """The keys of the API."""
        from lectern.store.keys import SqlKeys

        return SqlKeys(self.engine)

    @cached_property
    def ask_deps(self) -> AskDeps:
        """What answering needs; made for the first question, because a search needs none of it."""
        from lectern.answering.desk import Library
        from lectern.app.factories import build_ask_deps

        library = Library(
            search=self.search.within,
            texts_with=self.search.texts_with,
            resolve=self.library.resolve,
            lesson=self.library.lesson_with_vectors,
            outline=self.library.outline,
            books=self.library.book_ids,
            strings=self.details.strings,
            first_questions=self.details.first_questions,
        )
        return build_ask_deps(self.settings, library, self.policy_of, self.stack, self.tracer)

    def ask(self, question: Question) -> AsyncIterator[ReplyEvent]:
        """Answer a question, event by event; a refusal names only books that the reader may read."""
        from lectern.answering.ask import ask

        deps = self.ask_deps
        if (readable := question.readable) is not None:

            async def books() -> tuple[str, ...]:
                return tuple(name for name in await self.library.book_ids() if name in readable)

            deps = replace(deps, library=replace(deps.library, books=books))
        return self.tracer.over("answer", ask(question, deps), {"lectern.book": question.scope.book_id})

    async def policy_of(self, book_id: str) -> ConfidencePolicy:
        """The confidence policy of a book: with the calibration that `calibrate` stored for it, else with the shipped
        one."""
        from lectern.confidence.policies import Relevance, policy_for

        entry = await self.library.book(book_id)
        thresholds, language = self.settings.thresholds, entry.manifest.language
        calibration = self._stored_calibration(entry)
        policy = policy_for(self.settings.confidence, entry.fingerprint, calibration, thresholds, language)
        if isinstance(policy, Relevance):
            return replace(policy, relevant=self.settings.min_relevance_score)
        return policy

    def _scale_of(self, entry: BookEntry) -> Callable[[float], float]:
        """From a cosine of the book's embedder to its relevance."""
        from lectern.confidence.calibration import shipped_calibration

        return (self._stored_calibration(entry) or shipped_calibration(entry.fingerprint)).scale.of

    def _stored_calibration(self, entry: BookEntry) -> Calibration | None:
        from lectern.confidence.calibration import stored_calibration

        return stored_calibration(self.home.calibrations, entry.manifest.book_id, entry.fingerprint)

    @property
    def conversations(self) -> Conversations:
        """The conversations, each within its owner."""
        return self.runs.conversations

    @property
    def runs(self) -> Runs:
        """The questions in conversations that are being answered."""
        return self.runs_on(self.engine)

    def runs_on(self, engine: AsyncEngine) -> Runs:
        """Runs whose conversations are stored in this database."""
        if engine not in self._runs:
            from lectern.app.threads import build_runs
            from lectern.conversations.turns import Answering

            answering = Answering(ask=self.ask, resolve=self.library.resolve, summarise=self._summarise)
            self._runs[engine] = runs = build_runs(engine, self.settings, answering, self.watchers, self.tracer)
            self.stack.push_async_callback(runs.close, 0)
        return self._runs[engine]

    async def insights(self, book_id: str, days: int) -> Insights:
        """What readers asked a book in the last days."""
        from lectern.conversations.insights import contents_of, read_insights
        from lectern.domain.insights import check_days
        from lectern.store.turn_history import SqlTurnHistory

        check_days(days)  # before the book is read
        outline, chunks = await self.library.outline(book_id), await self.library.chunks(book_id)
        contents = await asyncio.to_thread(contents_of, outline, chunks)
        texts = self.settings.insights_questions
        return await read_insights(SqlTurnHistory(self.engine), contents, days=days, texts=texts)

    async def ephemeral_runs(self) -> Runs:
        """Runs whose conversations end with the process."""
        return self.runs_on(await self._memory())

    async def end_runs(self) -> None:
        """Let answers in progress finish, for as long as the settings allow."""
        await asyncio.gather(*(runs.close(self.settings.shutdown_grace) for runs in self._runs.values()))

    async def warm(self) -> None:
        """Load what the first question would otherwise wait for."""
        deps = await asyncio.to_thread(
            lambda: self.ask_deps
        )  # importing the Agents SDK takes a second: not on the loop
        from lectern.app.factories import load_models

        await load_models(deps, self.ingest_deps.collections.current.embedder)

    async def prepare_details(self) -> None:
        """Begin to read the details of the default book before a reader asks for them. An embedder that costs is not
        used for this."""
        from lectern.app.factories import is_free

        book_id = await self.library.default_id()
        if book_id is not None and is_free(self.ingest_deps.collections.current.embedder):
            self.details.prepare(await self.library.book(book_id))

    async def _summarise(self, questions: Sequence[str]) -> str | None:
        return await self.ask_deps.answerer.summary(questions)

    async def _memory(self) -> AsyncEngine:
        if self._memory_engine is None:
            from lectern.store.database import open_database, sqlite_url

            self._memory_engine = await self.stack.enter_async_context(open_database(sqlite_url(None)))
        return self._memory_engine

    _memory_engine: AsyncEngine | None = None


@asynccontextmanager
async def open_application(
    settings: Settings | None = None, *, create: bool = True, rules: ReadingRules | None = None, serving: bool = False
) -> AsyncIterator[Application]:
    """The parts that the settings name. With `create=False` no folder is created if nothing is indexed. `rules` are for
    measurements with other chunk sizes; `serving` is for a process that answers while it ingests."""
    from lectern.app.factories import PartFactory, open_ingest_deps, open_tracer
    from lectern.store.database import database_url, open_database, sqlite_url

    settings = settings or load_settings()
    home = find_home(settings.home, create=create)
    async with AsyncExitStack() as stack:
        tracer = await stack.enter_async_context(open_tracer(settings))
        remote = settings.database_url
        if remote is None or settings.qdrant_url is None:  # embedded parts have one owner
            stack.enter_context(home.owned())
        url = sqlite_url(home.database) if remote is None else database_url(remote.get_secret_value())
        engine = await stack.enter_async_context(open_database(url, settings.postgres_connections))
        parts = PartFactory(settings, home, engine, stack, serving=serving)
        ingest_deps = await open_ingest_deps(parts, stack, rules)
        home.protect()  # what was made now too
        yield Application(
            settings=settings,
            home=home,
            engine=engine,
            ingest_deps=replace(ingest_deps, tracer=tracer),
            stack=stack,
            serving=serving,
        )


@asynccontextmanager
async def open_lectern(settings: Settings | None = None, *, create: bool = True) -> AsyncIterator[Lectern]:
    """Lectern with the parts that the settings name. With `create=False` no folder is created if nothing is indexed."""
    async with open_application(settings, create=create) as app:
        yield Lectern(app)
