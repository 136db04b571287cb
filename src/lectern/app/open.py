"""The composition root: the only place where adapters meet flows, opened in order and closed in reverse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lectern.app.home import Home, find_home
from lectern.app.library import ReadingRoom
from lectern.app.settings import Settings, load_settings
from lectern.domain.errors import BadInput
from lectern.domain.evidence import Findings
from lectern.domain.jobs import Finished, IngestionJob, JobEvent, Mode
from lectern.domain.replies import Exchange, Reply
from lectern.domain.scope import SEARCH_LIMIT, Scope, SearchMode, SearchQuery
from lectern.ingestion.ingest import IngestRequest
from lectern.ingestion.replacing import remove
from lectern.ports.answering import ConfidencePolicy
from lectern.retrieval.search import HybridSearch

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from lectern.answering.ask import Staff
    from lectern.app.threads import OwnThreads
    from lectern.confidence.calibration import CalibrationReport, LabelledQuestion
    from lectern.conversations.runs import Runs, Watcher
    from lectern.conversations.turns import Talk
    from lectern.domain.replies import Question, ReplyEvent
    from lectern.ingestion.doctor import Finding
    from lectern.jobs.runner import Jobs
    from lectern.reading.rules import ReadingRules
    from lectern.store.keys import SqlKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Lectern(ReadingRoom):
    """Books in, questions answered. Made by `open_lectern`."""

    home: Home
    engine: AsyncEngine
    finder: HybridSearch
    closing: AsyncExitStack  # what is opened late is closed with the rest
    late: dict[str, Any] = field(default_factory=dict)
    watchers: list[Watcher] = field(default_factory=list)  # told of every question that a server has answered
    serving: bool = False  # jobs outlive whoever began them

    @property
    def jobs(self) -> Jobs:
        """The ingestions that are queued and under way, and the records of all."""
        if "jobs" not in self.late:
            from lectern.app.factories import jobs_on

            self.late["jobs"] = jobs_on(self.engine, self.workshop, self.settings, serving=self.serving)
            self.closing.push_async_callback(self.late["jobs"].close)
        made: Jobs = self.late["jobs"]
        return made

    def ingesting(self, request: IngestRequest) -> AsyncIterator[JobEvent]:
        """Ingest a book and follow it, event by event."""
        return self.jobs.ingesting(request)

    async def ingest(self, folder: Path | str, *, book: str | None = None, mode: Mode = "incremental") -> IngestionJob:
        """Bring the index to what the folder says."""
        request = IngestRequest(folder=Path(folder), book_id=book, mode=mode)
        job: IngestionJob | None = None
        async with aclosing(self.ingesting(request)) as events:  # type: ignore[type-var]  # an async generator
            async for event in events:
                if isinstance(event, Finished):
                    job = event.job
        assert job is not None  # `Finished` is always the last event
        return job

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
        """The passages of a book that are nearest to a text; `limit` is 1 to 20, `expand` reads their neighbours."""
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
        return await self.finder(query)

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
        """An answer made of the book, or a refusal. With a `thread` (a UUID v4) the turn is kept there and follows up
        on those before it; without one nothing is kept, and `history` are the turns that a follow-up may lean on."""
        where = _in_book(scope, book)
        if thread is not None:
            from lectern.app.threads import ask_in_thread

            return await ask_in_thread(self.talk, thread, text, where, top_k, similarity_threshold)
        return await self.reply(_question(text, where, top_k, similarity_threshold, history))

    def stream(
        self,
        text: str,
        *,
        book: str | None = None,
        top_k: int | None = None,
        similarity_threshold: float | None = None,
        scope: Scope | None = None,
        history: Sequence[Exchange] = (),
    ) -> AsyncIterator[ReplyEvent]:
        """The same as it comes: states, evidence, checked text, and last the reply."""
        asked = _question(text, _in_book(scope, book), top_k, similarity_threshold, history)
        return self.answering(replace(asked, stream=True))

    async def reply(self, question: Question) -> Reply:
        """The reply to a question, once it is complete."""
        from lectern.domain.replies import Replied

        reply: Reply | None = None
        async for event in self.answering(question):
            if isinstance(event, Replied):
                reply = event.reply
        assert reply is not None  # `Replied` is always the last event
        return reply

    def answering(self, question: Question) -> AsyncIterator[ReplyEvent]:
        """Ask and follow, event by event."""
        from lectern.answering.ask import ask

        return ask(question, self._staff_for(question.readable))

    @property
    def talk(self) -> Talk:
        """Conversations, for whoever asks in some owner's name."""
        return self.runs.talk

    @property
    def threads(self) -> OwnThreads:
        """The conversations of this terminal, or this program."""
        from lectern.app.threads import OwnThreads

        return OwnThreads(self.talk.threads)

    @property
    def runs(self) -> Runs:
        """The questions that are being answered in conversations."""
        return self.runs_on(self.engine)

    def runs_on(self, engine: AsyncEngine) -> Runs:
        """The same, with conversations kept in another database."""
        name = f"runs {id(engine)}"
        if name not in self.late:
            from lectern.app.threads import runs_on
            from lectern.conversations.turns import Responder

            responder = Responder(answer=self.answering, book=self.book_id, where=self.where, summary=self._summary)
            self.late[name] = runs_on(engine, self.settings, responder, self.watchers)
            self.closing.push_async_callback(self.late[name].close, 0)
        made: Runs = self.late[name]
        return made

    async def _summary(self, questions: Sequence[str]) -> str | None:
        return await self.staff().answerer.summary(questions)

    async def end_runs(self) -> None:
        """Let answers that are being made come to their end, for as long as the settings allow."""
        made = [runs for name, runs in self.late.items() if name.startswith("runs ")]
        await asyncio.gather(*(runs.close(self.settings.shutdown_grace) for runs in made))

    async def runs_in(self, *, ephemeral: bool) -> Runs:
        """The runs whose conversations are kept, or those of which nothing is."""
        if not ephemeral:
            return self.runs
        if "nowhere" not in self.late:
            from lectern.store.database import open_database, sqlite_url

            self.late["nowhere"] = await self.closing.enter_async_context(open_database(sqlite_url(None)))
        return self.runs_on(self.late["nowhere"])

    @property
    def keys(self) -> SqlKeys:
        """Who may come in over HTTP."""
        if "keys" not in self.late:
            from lectern.store.keys import SqlKeys

            self.late["keys"] = SqlKeys(self.engine)
        made: SqlKeys = self.late["keys"]
        return made

    async def remove(self, book: str) -> int:
        """Take a book out of the index, not off the disk; how many chunks that were."""
        entry = await self.book(book)
        async with self.workshop.locks.alone(entry.manifest.book_id):
            return await remove(self.workshop.ledger, self.workshop.shelf, entry)

    def examine(self, *, mend: bool = False) -> AsyncIterator[Finding]:
        """Every disagreement between index and ledger; with `mend` each is put right."""
        from lectern.ingestion.doctor import examine

        return examine(self.workshop, mend=mend)

    def staff(self) -> Staff:
        """Everybody who has a part in an answer; made when the first question comes."""
        if "staff" not in self.late:
            from lectern.answering.desk import Library
            from lectern.app.factories import staff_of

            library = Library(
                search=self.finder,
                where=self.where,
                lesson=self.lesson_in,
                outline=self.outline,
                books=self.book_ids,
            )
            self.late["staff"] = staff_of(self.settings, library, self.policy_of, self.closing)
        made: Staff = self.late["staff"]
        return made

    async def warm(self) -> None:
        """Load what the first question would otherwise wait for."""
        staff = await asyncio.to_thread(self.staff)  # to import the Agents SDK takes a second: not on the loop
        from lectern.app.factories import warm

        await warm(staff, self.workshop.shelf.current.embedder)

    def _staff_for(self, readable: frozenset[str] | None) -> Staff:
        """The staff in front of a reader who may not read every book."""
        staff = self.staff()
        if readable is None:
            return staff

        async def books() -> tuple[str, ...]:
            return tuple(name for name in await self.book_ids() if name in readable)

        return replace(staff, library=replace(staff.library, books=books))

    async def policy_of(self, book_id: str) -> ConfidencePolicy:
        """How confidence is worked out for a book: by what `calibrate` kept for it, else by what is shipped."""
        from lectern.confidence.calibration import stored
        from lectern.confidence.policies import policy_for

        entry = await self.book(book_id)
        own = stored(self.home.calibrations, book_id, entry.fingerprint)
        return policy_for(self.settings.confidence, entry.fingerprint, own, self.settings.thresholds)

    async def calibrate(self, book: str | None = None, questions: Sequence[LabelledQuestion] = ()) -> CalibrationReport:
        """Fit the confidence to a book, from labelled questions or from the book itself."""
        from lectern.confidence.calibration import calibrate

        return await calibrate(self, self.home.calibrations, book=book, questions=questions)


@asynccontextmanager
async def open_lectern(
    settings: Settings | None = None, *, create: bool = True, rules: ReadingRules | None = None, serving: bool = False
) -> AsyncIterator[Lectern]:
    """Lectern on the parts that the settings name; with `create=False` no folder is left where nothing was indexed.
    `rules` are for those who measure other sizes of chunks; `serving` for a process that answers while it ingests."""
    from lectern.app.factories import Parts, open_workshop
    from lectern.store.database import database_url, open_database, sqlite_url

    settings = settings or load_settings()
    home = find_home(settings.home, create=create)
    async with AsyncExitStack() as stack:
        remote = settings.database_url
        if remote is None or settings.qdrant_url is None:  # what is embedded has one owner
            stack.enter_context(home.owned())
        url = sqlite_url(home.database) if remote is None else database_url(remote.get_secret_value())
        engine = await stack.enter_async_context(open_database(url))
        parts = Parts(settings, home, engine, stack, serving=serving)
        shop = await open_workshop(parts, stack, rules)
        finder = HybridSearch(shop.shelf, shop.ledger, settings.default_book)
        yield Lectern(
            settings=settings, home=home, workshop=shop, finder=finder, engine=engine, closing=stack, serving=serving
        )


def _question(
    text: str, scope: Scope, top_k: int | None, similarity_threshold: float | None, history: Sequence[Exchange]
) -> Question:
    from lectern.domain.replies import Question

    return Question(
        text=text, scope=scope, top_k=top_k, similarity_threshold=similarity_threshold, history=tuple(history)
    )


def _in_book(scope: Scope | None, book: str | None) -> Scope:
    scope = scope or Scope()
    return scope if book is None else replace(scope, book_id=book)
