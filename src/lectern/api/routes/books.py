"""Books, lessons and passages over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from lectern.api.deps import LecternDep
from lectern.schemas.books import BookOut, ChunkPage, ContextOut, LessonOut, OutlineOut
from lectern.schemas.common import Problem
from lectern.schemas.search import SearchQueryIn, SearchResponse

router = APIRouter(tags=["books"], responses={404: {"model": Problem}, 422: {"model": Problem}})


@router.post("/search", operation_id="search")
async def search(body: SearchQueryIn, lectern: LecternDep) -> SearchResponse:
    """Find passages of a book."""
    return SearchResponse.of(await lectern.finder(body.query()))


@router.get("/books", operation_id="listBooks")
async def books(lectern: LecternDep) -> list[BookOut]:
    """List the indexed books."""
    return [BookOut.of(entry) for entry in await lectern.books()]


@router.delete("/books/{book_id}", operation_id="removeBook", status_code=204, responses={409: {"model": Problem}})
async def remove(book_id: str, lectern: LecternDep) -> None:
    """Take a book out of the index; its files stay where they are."""
    await lectern.remove(book_id)


@router.get("/books/{book_id}/outline", operation_id="readOutline")
async def outline(book_id: str, lectern: LecternDep) -> OutlineOut:
    """A book's modules, chapters and lessons, in order."""
    return OutlineOut.of(await lectern.outline(book_id))


@router.get("/books/{book_id}/chunks", operation_id="listChunks")
async def chunks(
    book_id: str,
    lectern: LecternDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
) -> ChunkPage:
    """What the index really holds of a book, by file and place, a page at a time."""
    return ChunkPage.of(await lectern.chunks(book_id), limit, cursor)


@router.get("/chunks/{chunk_id}/context", operation_id="readContext")
async def context(
    chunk_id: str,
    lectern: LecternDep,
    book_id: str | None = None,
    before: Annotated[int, Query(ge=0, le=20)] = 1,
    after: Annotated[int, Query(ge=0, le=20)] = 1,
) -> ContextOut:
    """A chunk with its neighbours in the lesson."""
    stored, around = await lectern.context(chunk_id, book=book_id, before=before, after=after)
    return ContextOut.of(stored.chunk, around)


@router.get("/lessons/{parent_doc_id}", operation_id="readLesson")
async def lesson(parent_doc_id: str, lectern: LecternDep, book_id: str | None = None) -> LessonOut:
    """Read a whole lesson, in order."""
    return LessonOut.of(await lectern.lesson(parent_doc_id, book=book_id))
