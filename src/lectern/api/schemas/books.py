"""Books and lessons as programs see them."""

from __future__ import annotations

from typing import Self

from lectern.api.schemas.common import Response
from lectern.domain.chunks import Chunk, StampedChunk
from lectern.ports import BookEntry


class BookOut(Response):
    """A book as `GET /books` lists it."""

    book_id: str
    title: str
    total_chunks: int
    collection_name: str
    fingerprint: str
    last_full_ingest: str | None
    last_incremental_update: str | None

    @classmethod
    def of(cls, entry: BookEntry) -> Self:
        """A ledger entry as programs see it."""
        return cls(
            book_id=entry.manifest.book_id,
            title=entry.manifest.title,
            total_chunks=entry.total_chunks,
            collection_name=entry.collection_name,
            fingerprint=entry.fingerprint,
            last_full_ingest=entry.last_full_ingest,
            last_incremental_update=entry.last_incremental_update,
        )


class LessonChunk(Response):
    """A piece of a lesson, in order."""

    id: str
    chunk_index: int
    section_title: str | None
    text: str
    url: str

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        """A chunk in brief."""
        return cls(
            id=chunk.id,
            chunk_index=chunk.chunk_index,
            section_title=chunk.section_title,
            text=chunk.text,
            url=chunk.url,
        )


class LessonOut(Response):
    """A whole lesson."""

    parent_doc_id: str
    book_id: str
    title: str
    breadcrumb: str
    source_file: str
    url: str
    chunks: list[LessonChunk]

    @classmethod
    def of(cls, stored: list[StampedChunk]) -> Self:
        """The lesson that these chunks make up."""
        first = stored[0].chunk
        return cls(
            parent_doc_id=first.parent_doc_id,
            book_id=first.book_id,
            title=first.lesson_title,
            breadcrumb=" › ".join(dict.fromkeys([first.module_title, first.chapter_title, first.lesson_title])),
            source_file=first.source_file,
            url=first.url.partition("#")[0],
            chunks=[LessonChunk.of(one.chunk) for one in stored],
        )
