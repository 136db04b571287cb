"""Books, lessons and passages over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from lectern.api.deps import AdminCaller, LecternDep, ReadCaller
from lectern.domain.insights import DEFAULT_DAYS, MAX_DAYS
from lectern.index.lexical import shared_words
from lectern.schemas.books import BookDetailsOut, BookOut, ChunkPage, ContextOut, LessonOut, OutlineOut
from lectern.schemas.chunks import DocumentChunk, EmbeddedChunk
from lectern.schemas.common import problems
from lectern.schemas.insights import InsightsOut
from lectern.schemas.search import SearchQuery, SearchResponse
from lectern.schemas.state import IngestionState

router = APIRouter(tags=["books"], responses=problems(401, 403, 404, 422, 429, 503))


@router.post("/search", operation_id="search", responses=problems(408, 413))
async def search(body: SearchQuery, lectern: LecternDep, caller: ReadCaller) -> SearchResponse:
    """Find passages of a book."""
    findings = await lectern.app.search(body.query(), caller.books)
    return SearchResponse.of(findings, shared_words)


@router.get("/books", operation_id="listBooks")
async def books(lectern: LecternDep, caller: ReadCaller) -> list[BookOut]:
    """List the indexed books that you may read."""
    default_id = await lectern.app.library.default_id(caller.books)
    entries = [entry for entry in await lectern.books() if caller.may_read(entry.manifest.book_id)]
    return [BookOut.of(entry, default_id) for entry in entries]


@router.get("/books/{book_id}", operation_id="readBook")
async def book(book_id: str, lectern: LecternDep, caller: ReadCaller) -> BookDetailsOut:
    """A book as a reader meets it: what it is about, what can be filtered, what to ask first. The first request after
    the book has changed takes longer, because the questions are tried."""
    library = lectern.app.library
    entry = await library.book(book_id, caller.books)
    return BookDetailsOut.of_details(await lectern.app.details.details(entry), await library.default_id(caller.books))


@router.delete("/books/{book_id}", operation_id="removeBook", status_code=204, responses=problems(409))
async def remove(book_id: str, lectern: LecternDep, caller: AdminCaller) -> None:
    """Remove a book from the index; its files stay where they are."""
    await lectern.remove(await lectern.app.library.book_id(book_id, caller.books))


@router.get("/books/{book_id}/outline", operation_id="readOutline")
async def outline(book_id: str, lectern: LecternDep, caller: ReadCaller) -> OutlineOut:
    """A book's modules, chapters and lessons, in order."""
    return OutlineOut.of(await lectern.outline(await lectern.app.library.book_id(book_id, caller.books)))


@router.get("/books/{book_id}/state", operation_id="readState")
async def state(book_id: str, lectern: LecternDep, caller: ReadCaller) -> IngestionState:
    """Which files of a book are indexed, with their hashes and the ids of their chunks."""
    library = lectern.app.library
    entry = await library.book(book_id, caller.books)
    return IngestionState.of(entry, await library.records(entry))


@router.get("/books/{book_id}/insights", operation_id="readInsights")
async def insights(
    book_id: str,
    lectern: LecternDep,
    caller: AdminCaller,
    days: Annotated[int, Query(ge=1, le=MAX_DAYS)] = DEFAULT_DAYS,
) -> InsightsOut:
    """What readers asked a book in the last days, added up over all of them: refused questions and answers of low
    confidence by lesson, cited sections, feedback."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    return InsightsOut.of(await lectern.insights(book, days=days))


@router.get("/books/{book_id}/chunks", operation_id="listChunks")
async def chunks(
    book_id: str,
    lectern: LecternDep,
    caller: ReadCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
    parent_doc_id: Annotated[str | None, Query(description="Of this lesson only.")] = None,
) -> ChunkPage:
    """The chunks that the index actually holds of a book, or of one of its lessons, in order, a page at a time."""
    library = lectern.app.library
    stored = await library.chunks(await library.book_id(book_id, caller.books), parent_doc_id)
    return ChunkPage.of(stored, limit, cursor)


@router.get("/chunks/{chunk_id}", operation_id="readChunk")
async def chunk(
    chunk_id: str,
    lectern: LecternDep,
    caller: ReadCaller,
    book_id: str | None = None,
    *,
    embedding: Annotated[bool, Query(description="With its vector.")] = False,
) -> EmbeddedChunk | DocumentChunk:
    """A chunk with its metadata apart, and with its vector if it is asked for."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    indexed = await lectern.app.library.chunk(chunk_id, book=book)
    return EmbeddedChunk.of_indexed(indexed) if embedding else DocumentChunk.of(indexed.stored)


@router.get("/chunks/{chunk_id}/context", operation_id="readContext")
async def context(
    chunk_id: str,
    lectern: LecternDep,
    caller: ReadCaller,
    book_id: str | None = None,
    before: Annotated[int, Query(ge=0, le=20)] = 1,
    after: Annotated[int, Query(ge=0, le=20)] = 1,
) -> ContextOut:
    """A chunk with its neighbours in the lesson."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    stored, around = await lectern.app.library.context(chunk_id, book=book, before=before, after=after)
    return ContextOut.of(stored.chunk, around)


@router.get("/lessons/{parent_doc_id}", operation_id="readLesson")
async def lesson(parent_doc_id: str, lectern: LecternDep, caller: ReadCaller, book_id: str | None = None) -> LessonOut:
    """Read a whole lesson, in order."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    return LessonOut.of(await lectern.lesson(parent_doc_id, book=book))
