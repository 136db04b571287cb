"""Searches and their results in requests and responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints

from lectern.domain.chunks import Chunk
from lectern.domain.evidence import Findings, Hit
from lectern.domain.scope import SearchMode
from lectern.domain.scope import SearchQuery as DomainQuery
from lectern.schemas.chunks import Section
from lectern.schemas.common import RELEVANCE, Filters, Response
from lectern.schemas.scope import applied

Marks = Callable[[str, str, str], list[tuple[int, int]]]  # of text, query and language


class SearchQuery(Filters):
    """A search in a book."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=1000)]
    limit: int = Field(default=5, ge=1, le=20)
    mode: SearchMode = "hybrid"
    offset: int = Field(default=0, ge=0, le=99, description="Results to pass over: the pages before this one.")
    similarity_threshold: float | None = Field(default=None, ge=0, le=1, description="The least relevance of a result.")
    expand: int = Field(default=0, ge=0, le=5, description="Neighbours to read on either side of each result.")

    def query(self) -> DomainQuery:
        """The request as a value."""
        return DomainQuery(
            text=self.text,
            scope=self.scope(),
            limit=self.limit,
            mode=self.mode,
            offset=self.offset,
            similarity_threshold=self.similarity_threshold,
            expand=self.expand,
        )


class Neighbour(Response):
    """A chunk beside another, in its lesson."""

    id: str
    chunk_index: int
    section_title: str | None
    text: str
    url: str

    @classmethod
    def of(cls, chunk: Chunk) -> Self:
        """A chunk in brief."""
        return cls.model_validate(chunk, from_attributes=True)


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
    similarity: float = Field(description="The cosine, 0 to 1.")
    relevance: float = Field(description=RELEVANCE)
    lexical: float = Field(description="BM25 against the best candidate's, 0 to 1; 0 in a dense search.")
    page_title: str
    url: str
    page_url: str = Field(description="`url` without the heading's anchor.")
    module_name: str = Field(description="`module`, as the design's citations call it.")
    breadcrumb: str
    lesson_title: str
    line_start: int
    line_end: int
    sections: list[Section] = Field(description="Where sections begin in `text`, if it holds several.")
    marks: list[tuple[int, int]] = Field(description="Where words of the query begin and end in `text`.")
    before: list[Neighbour] = Field(description="The chunks before it in its lesson, as many as `expand` asks for.")
    after: list[Neighbour]

    @classmethod
    def of(cls, hit: Hit, marks: list[tuple[int, int]]) -> Self:
        """A hit as a response."""
        fields = {name: getattr(hit.chunk, name) for name in cls.model_fields if hasattr(hit.chunk, name)}
        fields["sections"] = [Section.model_validate(mark, from_attributes=True) for mark in hit.chunk.sections]
        return cls(
            **fields,
            score=hit.score,
            similarity=hit.similarity,
            relevance=hit.relevance,
            lexical=hit.lexical,
            rank=hit.rank,
            marks=marks,
            before=[Neighbour.of(chunk) for chunk in hit.before],
            after=[Neighbour.of(chunk) for chunk in hit.after],
        )


class SearchResponse(Response):
    """The results of a search, and everything that was applied to get them."""

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
    def of(cls, findings: Findings, marks: Marks) -> Self:
        """Findings as a response; `marks` finds the query's words in a text, as the index splits them."""
        return cls(
            query=findings.query,
            results=[
                SearchResult.of(hit, marks(hit.chunk.text, findings.query, findings.language)) for hit in findings.hits
            ],
            total_found=findings.total_found,
            hardware_tier_filter=findings.where.max_tier,
            module_filter=findings.where.module,
            book_id=findings.where.book_id,
            filters=applied(findings.where),
            mode=findings.mode,
            query_time_ms=findings.query_time_ms,
        )
