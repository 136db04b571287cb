"""Reading indexed books: all of a book, a lesson, a chunk or the outline. Chunks are read within one book."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lectern.app.settings import Settings
from lectern.domain.books import BookEntry
from lectern.domain.chunks import IndexedChunk, StampedChunk
from lectern.domain.errors import BadInput, UnknownLesson
from lectern.domain.evidence import Around
from lectern.domain.jobs import IngestionRecord
from lectern.domain.outline import Outline, outline_of
from lectern.domain.scope import SEARCH_LIMIT, ChunkFilter, ResolvedScope, Scope
from lectern.ports.index import Collections, IndexView
from lectern.ports.ledger import Ledger
from lectern.reading.routes import spellings
from lectern.retrieval.scope import resolve, resolve_book
from lectern.retrieval.search import neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class BookLibrary:
    """What can be read of indexed books without a search."""

    ledger: Ledger
    collections: Collections
    settings: Settings

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""
        return await self.ledger.books()

    async def book(self, book: str | None = None, readable: frozenset[str] | None = None) -> BookEntry:
        """The book with this name, or without a name the default one, among those that may be read."""
        return await resolve_book(book, self.ledger, self.settings.default_book, readable)

    async def book_id(self, book: str | None, readable: frozenset[str] | None) -> str:
        """The id of that book. Later reads use the id, so they need not check again who may read it."""
        return (await self.book(book, readable)).manifest.book_id

    async def default_id(self, readable: frozenset[str] | None = None) -> str | None:
        """The book that a request without a name is about; None where one has to be named."""
        try:
            return await self.book_id(None, readable)
        except BadInput:
            return None

    async def book_ids(self) -> tuple[str, ...]:
        """The ids of all indexed books."""
        return tuple(entry.manifest.book_id for entry in await self.books())

    async def chunks(self, book: str | None = None, parent_doc_id: str | None = None) -> list[StampedChunk]:
        """Every chunk of a book, or of one of its lessons, that the index actually holds."""
        entry = await self.book(book)
        serving = await self.collections.serving(entry)
        where = ChunkFilter(book_id=entry.manifest.book_id, parent_doc_id=parent_doc_id)
        return await serving.index.read(lambda view: view.chunks(where))

    async def lesson(self, parent_doc_id: str, *, book: str | None = None) -> list[StampedChunk]:
        """The whole lesson, in order, however long."""
        entry = await self.book(book)
        serving = await self.collections.serving(entry)
        where = ChunkFilter(book_id=entry.manifest.book_id, parent_doc_id=parent_doc_id)
        chunks = await serving.index.read(lambda view: view.chunks(where))
        if not chunks:
            raise UnknownLesson(
                f"{where.book_id!r} has no lesson {parent_doc_id!r}; search results and `outline --json` have its id",
                field="parent_doc_id",
            )
        return chunks

    async def lesson_at(self, path: str, readable: frozenset[str] | None = None) -> tuple[str, str] | None:
        """The book and the `parent_doc_id` of the lesson whose address is a path, if such a lesson may be read. The
        default book goes first."""
        lessons = await self.ledger.lessons_at(spellings(path))
        places = [place for place in lessons if readable is None or place[0] in readable]
        default_id = await self.default_id(readable) if len(places) > 1 else None
        return min(places, key=lambda place: place[0] != default_id, default=None)

    async def lesson_with_vectors(self, where: ChunkFilter) -> list[IndexedChunk]:
        """A lesson of a reader's scope, with its vectors."""
        entry = await self.book(where.book_id)
        serving = await self.collections.serving(entry)

        async def work(view: IndexView) -> list[IndexedChunk]:
            ids = [stored.chunk.id for stored in await view.chunks(where)]
            chunks_by_id = await view.with_vectors(where.book_id, ids)
            return [chunks_by_id[chunk_id] for chunk_id in ids if chunk_id in chunks_by_id]

        return await serving.index.read(work)

    async def context(
        self, chunk_id: str, *, book: str | None = None, before: int = 1, after: int = 1
    ) -> tuple[StampedChunk, Around]:
        """A chunk of a book with its neighbours in the lesson, at most 20 on either side."""
        for name, count in (("before", before), ("after", after)):
            if not 0 <= count <= SEARCH_LIMIT:
                raise BadInput(f"{name} must be 0 to {SEARCH_LIMIT}, not {count}", field=name)
        entry = await self.book(book)
        book_id = entry.manifest.book_id
        serving = await self.collections.serving(entry)

        async def work(view: IndexView) -> tuple[StampedChunk, Around] | None:
            chunks_by_id = await view.by_ids(book_id, [chunk_id])
            if not chunks_by_id:
                return None
            around = await neighbours(
                view, {name: stored.chunk for name, stored in chunks_by_id.items()}, before, after
            )
            return next(iter(chunks_by_id.values())), next(iter(around.values()))

        if (read := await serving.index.read(work) if _is_uuid(chunk_id) else None) is None:
            raise _unknown_chunk(book_id, chunk_id)
        return read

    async def chunk(self, chunk_id: str, *, book: str | None = None) -> IndexedChunk:
        """A chunk of a book with its vectors."""
        entry = await self.book(book)
        book_id = entry.manifest.book_id
        serving = await self.collections.serving(entry)
        ids = [chunk_id] if _is_uuid(chunk_id) else []
        found = await serving.index.read(lambda view: view.with_vectors(book_id, ids)) if ids else {}
        if chunk_id not in found:
            raise _unknown_chunk(book_id, chunk_id)
        return found[chunk_id]

    async def records(self, entry: BookEntry) -> dict[str, IngestionRecord]:
        """What the ledger knows of each file of a book, by `source_file`."""
        return await self.ledger.records(entry.manifest.book_id, entry.collection_name)

    async def outline(self, book: str | None = None) -> Outline:
        """A book's modules, chapters and lessons, in order."""
        entry = await self.book(book)
        return outline_of(entry.manifest, (await self.records(entry)).values())

    async def resolve(self, scope: Scope, readable: frozenset[str] | None = None) -> ResolvedScope:
        """A reader's scope, resolved: the book, and the filters checked against it."""
        return await resolve(scope, self.ledger, self.settings.default_book, readable)


def _unknown_chunk(book_id: str, chunk_id: str) -> UnknownLesson:
    return UnknownLesson(f"{book_id!r} has no chunk {chunk_id!r}", field="chunk_id")


def _is_uuid(text: str) -> bool:
    """Whether a text is a UUID. Engines reject any other id; for a reader it is simply unknown."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
