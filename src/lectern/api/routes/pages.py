"""Lessons as HTML, and the images of books, for the web page and the widget."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from fastapi.responses import Response

from lectern.api.deps import LecternDep, ReadCaller
from lectern.app.pages import MAX_PATH, PageInBook
from lectern.domain.outline import OutlineLesson
from lectern.rendering.links import IMAGE_TYPES
from lectern.schemas.books import ChunkLinesOut, HeadingOut, LessonLinkOut, LessonOut, LessonPageOut
from lectern.schemas.common import problems

router = APIRouter(tags=["books"], responses=problems(401, 403, 404, 422, 429, 503))
_BINARY = {"schema": {"type": "string", "format": "binary"}}
IMAGE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The image", "content": dict.fromkeys(sorted(set(IMAGE_TYPES.values())), _BINARY)},
    304: {"description": "The image that `If-None-Match` names"},
}
SVG = "image/svg+xml"
# An SVG that is opened by itself is a document: no script of it runs, and it loads nothing.
SVG_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


@router.get("/lessons/{parent_doc_id}/page", operation_id="readLessonPage")
async def lesson_page(
    parent_doc_id: str, lectern: LecternDep, caller: ReadCaller, book_id: str | None = None
) -> LessonPageOut:
    """A lesson as HTML, with the lines of its file, the anchors of the site and the lessons beside it."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    return _page_out(await lectern.app.pages.page(parent_doc_id, book=book))


@router.get(
    "/books/{book_id}/files/{path:path}",
    operation_id="readFile",
    response_class=Response,
    responses=IMAGE_RESPONSES,
)
async def file(
    book_id: str,
    path: Annotated[str, Path(max_length=MAX_PATH, description="The image's path below the book's folder.")],
    lectern: LecternDep,
    caller: ReadCaller,
    if_none_match: Annotated[str | None, Header(max_length=200, description="The `ETag` that is stored.")] = None,
) -> Response:
    """An image of a book's folder: PNG, JPEG, GIF, WebP, AVIF or SVG, at most 5 MB."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    image = await lectern.app.pages.file(book, path)
    # `no-cache` lets a browser store the image, and asks here each time whether the key may still read it
    headers = {
        "ETag": f'"{image.digest}"',
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if image.media_type == SVG:
        headers["Content-Security-Policy"] = SVG_POLICY
    if if_none_match is not None and image.digest in if_none_match:
        return Response(status_code=304, headers=headers)
    return Response(image.content, media_type=image.media_type, headers=headers)


def _page_out(lesson: PageInBook) -> LessonPageOut:
    head = LessonOut.of(lesson.chunks)
    chunks = [stored.chunk for stored in lesson.chunks]
    return LessonPageOut(
        parent_doc_id=head.parent_doc_id,
        book_id=head.book_id,
        title=head.title,
        breadcrumb=head.breadcrumb,
        url=head.url,
        source_file=head.source_file,
        from_=lesson.page.origin,
        html=lesson.page.html,
        headings=[HeadingOut.model_validate(heading, from_attributes=True) for heading in lesson.page.headings],
        chunks=[ChunkLinesOut(id=chunk.id, line_start=chunk.line_start, line_end=chunk.line_end) for chunk in chunks],
        previous=_link(lesson.previous),
        next=_link(lesson.next),
    )


def _link(lesson: OutlineLesson | None) -> LessonLinkOut | None:
    return LessonLinkOut(parent_doc_id=lesson.parent_doc_id, title=lesson.title) if lesson else None
