"""The composition root: the only place where adapters meet flows, opened in order and closed in reverse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lectern.domain.chunks import StampedChunk
from lectern.domain.errors import BadInput, UnknownLesson
from lectern.domain.evidence import Findings, SearchMode
from lectern.domain.filters import ChunkFilter
from lectern.domain.jobs import Finished, IngestionJob, JobEvent, Mode
from lectern.domain.outlines import Outline, outline_of
from lectern.domain.queries import SEARCH_LIMIT, Scope, SearchQuery
from lectern.domain.replies import Exchange, Reply
from lectern.home import Home, find_home
from lectern.ingestion.ingest import IngestRequest, Workshop, ingest
from lectern.ingestion.replacing import recover, remove, verify_all
from lectern.ports import BookEntry, ConfidencePolicy, IndexedChunk, IndexView, Stand
from lectern.retrieval.neighbours import Around, neighbours
from lectern.retrieval.scope import resolve_book, resolve_scope
from lectern.retrieval.search import HybridSearch
from lectern.settings import Settings, load_settings

if TYPE_CHECKING:
    from lectern.answering.calibrating import CalibrationReport, LabelledQuestion
    from lectern.answering.turns import Question, ReplyEvent, Staff
    from lectern.ingestion.doctor import Finding
    from lectern.reading.rules import ReadingRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Lectern:
    """Books in, questions answered. Made by `open_lectern`."""

    settings: Settings
    home: Home
    workshop: Workshop
    finder: HybridSearch
    closing: AsyncExitStack  # what is opened late is closed with the rest
    late: dict[str, Any] = field(default_factory=dict)

    def ingesting(self, request: IngestRequest) -> AsyncIterator[JobEvent]:
        """Ingest a book and follow it, event by event."""
        return ingest(request, self.workshop)

    async def ingest(self, folder: Path | str, *, book: str | None = None, mode: Mode = "incremental") -> IngestionJob:
        """Bring the index to what the folder says."""
        request = IngestRequest(folder=Path(folder), book_id=book, mode=mode)
        job: IngestionJob | None = None
        async with aclosing(ingest(request, self.workshop)) as events:  # type: ignore[type-var]  # an async generator
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

    async def context(
        self, chunk_id: str, *, book: str | None = None, before: int = 1, after: int = 1
    ) -> tuple[StampedChunk, Around]:
        """A chunk of a book with its neighbours in the lesson, at most 20 on either side."""
        for name, count in (("before", before), ("after", after)):
            if not 0 <= count <= SEARCH_LIMIT:
                raise BadInput(f"{name} must be 0 to {SEARCH_LIMIT}, not {count}", field=name)
        entry = await self.book(book)
        book_id = entry.manifest.book_id
        stand = await self.workshop.shelf.stand(entry)

        async def work(view: IndexView) -> tuple[StampedChunk, Around] | None:
            found = await view.by_ids(book_id, [chunk_id])
            if not found:
                return None
            around = await neighbours(view, {name: one.chunk for name, one in found.items()}, before, after)
            return next(iter(found.values())), next(iter(around.values()))

        if (read := await stand.index.read(work) if _is_uuid(chunk_id) else None) is None:
            raise UnknownLesson(f"{book_id!r} has no chunk {chunk_id!r}", field="chunk_id")
        return read

    async def ask(  # one parameter for each thing that can be asked for
        self,
        text: str,
        *,
        book: str | None = None,
        top_k: int | None = None,
        scope: Scope | None = None,
        history: Sequence[Exchange] = (),
    ) -> Reply:
        """An answer made of the book, or a refusal; `history` are earlier turns that a follow-up may lean on."""
        from lectern.answering.turns import Question

        where = _in_book(scope, book)
        return await self.reply(Question(text=text, scope=where, top_k=top_k, history=tuple(history)))

    def stream(
        self,
        text: str,
        *,
        book: str | None = None,
        top_k: int | None = None,
        scope: Scope | None = None,
        history: Sequence[Exchange] = (),
    ) -> AsyncIterator[ReplyEvent]:
        """The same as it comes: states, evidence, checked text, and last the reply."""
        from lectern.answering.turns import Question

        where = _in_book(scope, book)
        return self.answering(Question(text=text, scope=where, top_k=top_k, history=tuple(history), stream=True))

    async def reply(self, question: Question) -> Reply:
        """The reply to a question, once it is complete."""
        from lectern.answering.turns import Replied

        reply: Reply | None = None
        async for event in self.answering(question):
            if isinstance(event, Replied):
                reply = event.reply
        assert reply is not None  # `Replied` is always the last event
        return reply

    def answering(self, question: Question) -> AsyncIterator[ReplyEvent]:
        """Ask and follow, event by event."""
        from lectern.answering.ask import ask

        return ask(question, self.staff())

    async def chunks(self, book: str | None = None) -> list[StampedChunk]:
        """Every chunk of a book that the index really holds."""
        entry = await self.book(book)
        stand = await self.workshop.shelf.stand(entry)
        where = ChunkFilter(book_id=entry.manifest.book_id)
        return await stand.index.read(lambda view: view.chunks(where))

    async def lesson(self, parent_doc_id: str, *, book: str | None = None) -> list[StampedChunk]:
        """The whole lesson, in order, however long."""
        entry = await self.book(book)
        stand = await self.workshop.shelf.stand(entry)
        where = ChunkFilter(book_id=entry.manifest.book_id, parent_doc_id=parent_doc_id)
        found = await stand.index.read(lambda view: view.chunks(where))
        if not found:
            raise UnknownLesson(f"{where.book_id!r} has no lesson {parent_doc_id!r}", field="parent_doc_id")
        return found

    async def outline(self, book: str | None = None) -> Outline:
        """A book's modules, chapters and lessons, in order."""
        entry = await self.book(book)
        records = await self.workshop.ledger.records(entry.manifest.book_id, entry.collection_name)
        return outline_of(entry.manifest, records.values())

    async def remove(self, book: str) -> int:
        """Take a book out of the index, not off the disk; how many chunks that were."""
        entry = await self.book(book)
        with self.workshop.alone(entry.manifest.book_id):
            return await remove(self.workshop.ledger, self.workshop.shelf, entry)

    def examine(self, *, mend: bool = False) -> AsyncIterator[Finding]:
        """Every disagreement between index and ledger; with `mend` each is put right."""
        from lectern.ingestion.doctor import examine

        return examine(self.workshop, mend=mend)

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""
        return await self.workshop.ledger.books()

    async def book(self, book: str | None = None) -> BookEntry:
        """The book that is meant by this name, or by none."""
        return await resolve_book(book, self.workshop.ledger, self.settings.default_book)

    def staff(self) -> Staff:
        """Everybody who has a part in an answer; made when the first question comes."""
        if "staff" not in self.late:
            from lectern.answering.desk import Library
            from lectern.staffing import staff_of

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

    async def where(self, scope: Scope) -> ChunkFilter:
        """What a reader's scope means: the book, and the filters checked against it."""
        entry = await self.book(scope.book_id)
        return await resolve_scope(scope, entry.manifest, self.workshop.ledger)

    async def policy_of(self, book_id: str) -> ConfidencePolicy:
        """How confidence is worked out for a book: by what `calibrate` kept for it, else by what is shipped."""
        from lectern.answering.calibration import stored
        from lectern.answering.confidence import policy_for

        entry = await self.book(book_id)
        own = stored(self.home.calibrations, book_id, entry.fingerprint)
        return policy_for(self.settings.confidence, entry.fingerprint, own)

    async def calibrate(self, book: str | None = None, questions: Sequence[LabelledQuestion] = ()) -> CalibrationReport:
        """Fit the confidence to a book, from labelled questions or from the book itself."""
        from lectern.answering.calibrating import calibrate

        return await calibrate(self, self.home.calibrations, book=book, questions=questions)

    async def book_ids(self) -> tuple[str, ...]:
        """The names of all indexed books."""
        return tuple(entry.manifest.book_id for entry in await self.books())

    async def lesson_in(self, where: ChunkFilter) -> list[IndexedChunk]:
        """A lesson of a reader's scope, with its vectors."""
        entry = await self.book(where.book_id)
        stand = await self.workshop.shelf.stand(entry)

        async def work(view: IndexView) -> list[IndexedChunk]:
            ids = [stored.chunk.id for stored in await view.chunks(where)]
            found = await view.with_vectors(where.book_id, ids)
            return [found[one] for one in ids if one in found]

        return await stand.index.read(work)


@asynccontextmanager
async def open_lectern(
    settings: Settings | None = None, *, create: bool = True, rules: ReadingRules | None = None
) -> AsyncIterator[Lectern]:
    """Lectern on the parts that the settings name; with `create=False` no folder is left where nothing was indexed.
    `rules` are for those who measure other sizes of chunks."""
    from lectern.index.schema import collection_name
    from lectern.parts import Parts
    from lectern.reading.rules import ReadingRules
    from lectern.records.database import open_database, sqlite_url
    from lectern.records.ledger import SqlLedger
    from lectern.records.vectors import SqlVectorCache
    from lectern.stands import OpenShelf

    settings = settings or load_settings()
    home = find_home(settings.home, create=create)
    async with AsyncExitStack() as stack:
        stack.enter_context(home.owned())
        engine = await stack.enter_async_context(open_database(sqlite_url(home.database)))
        parts = Parts(settings, home, engine, stack)
        embedder = parts.embedder()
        name = collection_name(settings.collection_stem, embedder.fingerprint)
        index = await stack.enter_async_context(parts.index(name, embedder.dimensions))
        shelf = OpenShelf(stack, Stand(embedder=embedder, index=index), parts.index, parts.embedder_of)
        ledger = SqlLedger(engine)
        await recover(ledger, shelf)
        await verify_all(ledger, shelf)
        rules = rules or ReadingRules(max_file_bytes=int(settings.max_file_mib * 1024 * 1024))
        shop = Workshop(ledger=ledger, shelf=shelf, vectors=SqlVectorCache(engine), rules=rules)
        finder = HybridSearch(shelf, ledger, settings.default_book)
        yield Lectern(settings=settings, home=home, workshop=shop, finder=finder, closing=stack)


def _is_uuid(text: str) -> bool:
    """Engines refuse any other name; to a reader it is simply unknown."""
    from uuid import UUID

    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _in_book(scope: Scope | None, book: str | None) -> Scope:
    from dataclasses import replace

    scope = scope or Scope()
    return scope if book is None else replace(scope, book_id=book)
