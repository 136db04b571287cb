"""Chunks in responses, in the two forms of the first design document: flat as the index stores them (`QdrantPayload`),
and with their metadata apart (`DocumentChunk`)."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from lectern.domain.books import Layer, Level
from lectern.domain.chunks import IndexedChunk, StampedChunk, direction_of
from lectern.schemas.common import Response
from lectern.schemas.payload import to_payload


class Section(Response):
    """A section that begins inside a chunk."""

    at: int = Field(description="The character of `text` it begins at.")
    title: str
    url: str


class IncludedPart(Response):
    """A part of a chunk that its lesson includes from another file."""

    at: int = Field(description="The character of `text` it begins at.")
    end: int
    file: str
    line_start: int
    line_end: int


class DocumentMetadata(Response):
    """Where a chunk stands, whom it suits, and what it is made from."""

    book_id: str
    module: str
    chapter: int
    lesson: int
    section_title: str | None
    hardware_tier: int
    proficiency_level: Level
    layer: Layer
    source_file: str = Field(description="The path from the book's folder.")
    parent_doc_id: str
    chunk_index: int
    total_chunks: int
    prev_chunk_id: str | None
    next_chunk_id: str | None
    content_hash: str
    source_file_hash: str
    version: int
    created_at: str
    updated_at: str
    trail: list[str] = Field(description="The headings from the lesson's title down.")
    breadcrumb: str
    line_start: int
    line_end: int
    page_title: str
    module_title: str
    chapter_title: str
    lesson_title: str
    url: str
    sections: list[Section] = Field(description="Where sections begin in `text`, if it holds several.")
    included: list[IncludedPart]


class DocumentChunk(Response):
    """A chunk, with its metadata apart."""

    id: str
    text: str
    metadata: DocumentMetadata
    word_count: int
    token_count: int
    char_count: int

    @classmethod
    def of(cls, stored: StampedChunk) -> Self:
        """A stored chunk in this form."""
        payload = to_payload(stored)
        return cls(id=stored.chunk.id, metadata=DocumentMetadata.model_validate(payload), **_outside_metadata(payload))


class EmbeddedChunk(DocumentChunk):
    """A chunk with its vector."""

    embedding: list[float] = Field(description="As long as the embedder's vectors; of several windows, their mean.")
    embedded_at: str
    embedding_model: str

    @classmethod
    def of_indexed(cls, indexed: IndexedChunk) -> Self:
        """An indexed chunk in this form."""
        stamp = indexed.stored.stamp
        return cls(
            **DocumentChunk.of(indexed.stored).model_dump(),
            embedding=list(direction_of(indexed.vectors)),
            embedded_at=stamp.embedded_at,
            embedding_model=stamp.embedding_model,
        )


class QdrantPayload(DocumentMetadata):
    """The payload of a point in Qdrant: the metadata, the text, and how it was embedded."""

    text: str
    word_count: int
    token_count: int
    char_count: int
    embedded_at: str
    embedding_model: str
    schema_version: int = Field(description="The version of this format.")


class StoredChunk(Response):
    """A chunk as the index holds it."""

    id: str
    payload: QdrantPayload

    @classmethod
    def of(cls, stored: StampedChunk) -> Self:
        """A stored chunk as a response."""
        return cls(id=stored.chunk.id, payload=QdrantPayload.model_validate(to_payload(stored)))


def _outside_metadata(payload: dict[str, object]) -> dict[str, object]:
    return {name: payload[name] for name in ("text", "word_count", "token_count", "char_count")}
