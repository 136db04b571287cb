"""The ledger of a book in responses: the first design document's IngestionState."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import Field

from lectern.domain.books import BookEntry
from lectern.domain.jobs import IngestionRecord as DomainRecord
from lectern.schemas.common import Response


class IngestionRecord(Response):
    """What the ledger knows of one indexed file."""

    source_file: str
    file_hash: str = Field(description="SHA-256 of the file when it was indexed.")
    chunk_ids: list[str]
    chunk_count: int
    ingested_at: str
    book_id: str
    module: str
    chapter: int
    lesson: int
    parent_doc_id: str
    url: str

    @classmethod
    def of(cls, record: DomainRecord) -> Self:
        """A record as a response."""
        return cls(
            source_file=record.source_file,
            file_hash=record.file_hash,
            chunk_ids=list(record.chunk_ids),
            chunk_count=record.chunk_count,
            ingested_at=record.ingested_at,
            book_id=record.place.book_id,
            module=record.place.module,
            chapter=record.place.chapter,
            lesson=record.place.lesson,
            parent_doc_id=record.parent_doc_id,
            url=record.url,
        )


class IngestionState(Response):
    """Which files of a book are indexed, and with which chunks."""

    book_id: str
    collection_name: str
    records: dict[str, IngestionRecord] = Field(description="By `source_file`.")
    last_full_ingest: str | None
    last_incremental_update: str | None
    total_chunks: int
    fingerprint: str = Field(description="The embedder: provider, model and dimensions.")

    @classmethod
    def of(cls, entry: BookEntry, records: Mapping[str, DomainRecord]) -> Self:
        """A book's entry and its records as a response."""
        return cls(
            book_id=entry.manifest.book_id,
            collection_name=entry.collection_name,
            records={file: IngestionRecord.of(record) for file, record in sorted(records.items())},
            last_full_ingest=entry.last_full_ingest,
            last_incremental_update=entry.last_incremental_update,
            total_chunks=sum(record.chunk_count for record in records.values()),
            fingerprint=entry.fingerprint,
        )
