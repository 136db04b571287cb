"""What a browser shows of a book: lessons as HTML, and the images in the book's folder. The folder is read only as long
as it may be: a folder that a caller named must still be below one of those that the operator listed."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

from lectern.app.library import BookLibrary
from lectern.domain.books import BookEntry
from lectern.domain.chunks import StampedChunk
from lectern.domain.errors import UnknownFile
from lectern.domain.outline import OutlineLesson
from lectern.jobs.runner import may_read
from lectern.reading.files import read_bytes
from lectern.reading.problems import Unreadable
from lectern.rendering.lessons import LessonInBook, LessonPage, LessonPages, lessons_of
from lectern.rendering.links import image_type

MAX_FILE_BYTES = 5 * 1024 * 1024
MAX_PATH = 1_024  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class PageInBook:
    """A rendered lesson, its chunks, and the lessons before and after it in the book's order."""

    page: LessonPage
    chunks: list[StampedChunk]
    previous: OutlineLesson | None
    next: OutlineLesson | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookFile:
    """An image of a book."""

    content: bytes
    media_type: str
    digest: str


class BookPages:
    """Renders the lessons of indexed books, and reads their images."""

    def __init__(self, library: BookLibrary) -> None:
        self._library = library
        self._pages = LessonPages()

    async def page(self, parent_doc_id: str, *, book: str | None = None) -> PageInBook:
        """A lesson as HTML."""
        entry = await self._library.book(book)
        chunks = await self._library.lesson(parent_doc_id, book=entry.manifest.book_id)
        outline = await self._library.outline(entry.manifest.book_id)
        lesson = LessonInBook(
            chunks=[stored.chunk for stored in chunks],
            outline=outline,
            manifest=entry.manifest,
            folder=await self._folder(entry),
            include_limits=tuple(map(str, self._library.settings.books)),
        )
        lessons = lessons_of(outline)
        place = next((at for at, other in enumerate(lessons) if other.parent_doc_id == parent_doc_id), None)
        return PageInBook(
            page=await self._pages.page(lesson),
            chunks=chunks,
            previous=lessons[place - 1] if place else None,
            next=lessons[place + 1] if place is not None and place + 1 < len(lessons) else None,
        )

    async def file(self, book: str, path: str) -> BookFile:
        """An image in the book's folder. Raises UnknownFile for everything else."""
        folder = await self._folder(await self._library.book(book))
        media_type = image_type(path)
        if folder is None or media_type is None or not _is_plain(path):
            raise UnknownFile
        try:
            content = await asyncio.to_thread(read_bytes, folder, path, MAX_FILE_BYTES)
        except (Unreadable, OSError, ValueError):
            raise UnknownFile from None
        return BookFile(content=content, media_type=media_type, digest=hashlib.sha256(content).hexdigest()[:32])

    async def _folder(self, entry: BookEntry) -> Path | None:
        return Path(entry.source) if await may_read(entry, self._library.settings.books) else None


def _is_plain(path: str) -> bool:
    """Whether a path only leads down, through folders that are not hidden."""
    steps = path.split("/")
    return (
        len(path) <= MAX_PATH
        and path.isprintable()
        and "\\" not in path
        and all(step and not step.startswith(".") for step in steps)
    )
