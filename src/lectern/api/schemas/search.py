"""Searches and what they find, with all that was applied to find it."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from lectern.api.schemas.common import Filters, Response
from lectern.domain.evidence import Findings, Hit, SearchMode
from lectern.domain.filters import ChunkFilter


class SearchQueryIn(Filters):
    """A search in a book."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=1000)]
    limit: int = Field(default=5, ge=1, le=20)
    mode: SearchMode = "hybrid"


class SearchResult(Response):
    """A chunk found, with its scores and its place."""

    text: str
    score: float
    source_file: str
    section_title: str | None
    module: str
    chapter: int
    lesson: int
    hardware_tier: int
    proficiency_level: str
    layer: str
    chunk_index: int
    total_chunks: int
    parent_doc_id: str
    prev_chunk_id: str | None
    next_chunk_id: str | None
    content_hash: str
    id: str
    rank: int
    similarity: float
    page_title: str
    url: str
    breadcrumb: str

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """A hit as programs see it."""
        fields = {name: getattr(hit.chunk, name) for name in cls.model_fields if hasattr(hit.chunk, name)}
        return cls(**fields, score=hit.score, similarity=hit.similarity, rank=hit.rank)


class SearchResponse(Response):
    """The results of a search, and all that was applied to get them."""

    query: str
    results: list[SearchResult]
    total_found: int
    hardware_tier_filter: int
    module_filter: str | None
    book_id: str
    filters: dict[str, Any]
    mode: SearchMode
    query_time_ms: float

    @classmethod
    def of(cls, findings: Findings) -> Self:
        """Findings as programs see them."""
        return cls(
            query=findings.query,
            results=[SearchResult.of(hit) for hit in findings.hits],
            total_found=findings.total_found,
            hardware_tier_filter=findings.where.max_tier,
            module_filter=findings.where.module,
            book_id=findings.where.book_id,
            filters=_applied(findings.where),
            mode=findings.mode,
            query_time_ms=findings.query_time_ms,
        )


def _applied(where: ChunkFilter) -> dict[str, Any]:
    return {
        "book_id": where.book_id,
        "hardware_tier_filter": where.max_tier,
        "module_filter": where.module,
        "chapter_min": where.chapter_min,
        "chapter_max": where.chapter_max,
        "lesson_filter": where.lesson,
        "proficiency_levels": None if where.levels is None else sorted(where.levels),
        "layer_filter": where.layer,
        "parent_doc_id": where.parent_doc_id,
    }
