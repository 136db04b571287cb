"""Books, lessons and passages over HTTP."""

from __future__ import annotations

from fastapi import APIRouter

from lectern.api.deps import LecternDep
from lectern.api.schemas.books import BookOut, LessonOut
from lectern.api.schemas.common import Problem
from lectern.api.schemas.search import SearchQueryIn, SearchResponse
from lectern.domain.queries import SearchQuery

router = APIRouter(tags=["books"], responses={404: {"model": Problem}, 422: {"model": Problem}})


@router.post("/search", operation_id="search")
async def search(body: SearchQueryIn, lectern: LecternDep) -> SearchResponse:
    """Find passages of a book."""
    query = SearchQuery(text=body.text, scope=body.scope(), limit=body.limit, mode=body.mode)
    return SearchResponse.of(await lectern.finder(query))


@router.get("/books", operation_id="listBooks")
async def books(lectern: LecternDep) -> list[BookOut]:
    """List the indexed books."""
    return [BookOut.of(entry) for entry in await lectern.books()]


@router.delete("/books/{book_id}", operation_id="removeBook", status_code=204, responses={409: {"model": Problem}})
async def remove(book_id: str, lectern: LecternDep) -> None:
    """Take a book out of the index; its files stay where they are."""
    await lectern.remove(book_id)


@router.get("/lessons/{parent_doc_id}", operation_id="readLesson")
async def lesson(parent_doc_id: str, lectern: LecternDep, book_id: str | None = None) -> LessonOut:
    """Read a whole lesson, in order."""
    return LessonOut.of(await lectern.lesson(parent_doc_id, book=book_id))
