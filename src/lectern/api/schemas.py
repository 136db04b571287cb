"""Requests and responses, under the names that the design documents give them. One reply object, rendered here."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from lectern.domain.chunks import Chunk, StampedChunk
from lectern.domain.clock import utc_now
from lectern.domain.evidence import ConfidenceLevel, ConfidenceMetrics, Findings, Hit, SearchMode
from lectern.domain.filters import ChunkFilter
from lectern.domain.queries import Scope
from lectern.domain.replies import Answer, Citation, Refusal, RefusalReason, Reply, ReplyState
from lectern.ports import BookEntry


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Response(BaseModel):
    model_config = ConfigDict(frozen=True)


class Filters(_Request):
    """What a reader may narrow a question to; all of it is ANDed."""

    book_id: str | None = Field(default=None, description="The book; may be left out while only one is indexed.")
    hardware_tier_filter: int | None = Field(default=None, ge=1, le=4, description="This tier or lower.")
    module_filter: str | None = None
    chapter_min: int | None = Field(default=None, ge=0)
    chapter_max: int | None = Field(default=None, ge=0)
    lesson_filter: int | None = Field(default=None, ge=0)
    proficiency_levels: list[str] | None = Field(default=None, description="Any of these.")
    layer_filter: str | None = None
    parent_doc_id: str | None = Field(default=None, description="One lesson only.")

    def scope(self) -> Scope:
        """The filters as the flows take them."""
        levels = None if self.proficiency_levels is None else tuple(self.proficiency_levels)
        return Scope(
            book_id=self.book_id,
            hardware_tier_filter=self.hardware_tier_filter,
            module_filter=self.module_filter,
            chapter_min=self.chapter_min,
            chapter_max=self.chapter_max,
            lesson_filter=self.lesson_filter,
            proficiency_levels=levels,
            layer_filter=self.layer_filter,
            parent_doc_id=self.parent_doc_id,
        )


class ChatRequest(Filters):
    """A question about a book."""

    message: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
    session_id: uuid.UUID | None = Field(
        default=None, description="UUID v4 of the conversation; made up when left out."
    )
    stream: Literal[False] = Field(default=False, description="Streaming is not offered yet.")
    top_k: int = Field(default=5, ge=1, le=10, description="How many passages to retrieve.")
    similarity_threshold: float | None = Field(default=None, ge=0, le=1, description="The least cosine of a passage.")


class SearchQueryIn(Filters):
    """A search in a book."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=1000)]
    limit: int = Field(default=5, ge=1, le=20)
    mode: SearchMode = "hybrid"


class Source(_Response):
    """A cited passage and the link that opens it."""

    chunk_text: str
    similarity_score: float
    chapter: str
    section: str
    url: str
    chunk_index: int
    number: int = Field(description="The marker in the response: `[number]`.")
    chunk_id: str
    parent_doc_id: str
    page_title: str
    breadcrumb: str
    source_file: str
    line_start: int
    line_end: int

    @classmethod
    def of(cls, citation: Citation) -> Self:
        """A citation as readers and programs see it."""
        chunk = citation.hit.chunk
        return cls(
            chunk_text=citation.passage,
            similarity_score=citation.hit.similarity,
            chapter=chunk.chapter_title,
            section=chunk.section_title or chunk.lesson_title,
            url=chunk.url,
            chunk_index=chunk.chunk_index,
            number=citation.number,
            chunk_id=chunk.id,
            parent_doc_id=chunk.parent_doc_id,
            page_title=chunk.page_title,
            breadcrumb=chunk.breadcrumb,
            source_file=chunk.source_file,
            line_start=chunk.line_start,
            line_end=chunk.line_end,
        )


class NearestLessonOut(_Response):
    """A lesson that comes near a refused question."""

    title: str
    url: str
    parent_doc_id: str


class ConsideredOut(_Response):
    """A passage that was handed out and not cited."""

    chunk_id: str
    page_title: str
    section: str
    url: str
    similarity_score: float

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """The hit in brief."""
        chunk = hit.chunk
        return cls(
            chunk_id=chunk.id,
            page_title=chunk.page_title,
            section=chunk.section_title or chunk.lesson_title,
            url=chunk.url,
            similarity_score=hit.similarity,
        )


class MetricsOut(_Response):
    """The parts of the confidence."""

    average_similarity: float
    min_similarity: float
    max_similarity: float
    num_chunks: int
    chunk_diversity: float
    confidence_level: ConfidenceLevel
    should_answer: bool

    @classmethod
    def of(cls, metrics: ConfidenceMetrics) -> Self:
        """The metrics as the design lists them."""
        return cls.model_validate(metrics, from_attributes=True)


class ChatResponse(_Response):
    """An answer with its sources, or a refusal with the nearest lessons; both are HTTP 200."""

    response: str
    confidence: float
    sources: list[Source]
    session_id: str
    timestamp: str
    confidence_level: ConfidenceLevel
    should_answer: bool
    book_id: str
    state: ReplyState
    reason: RefusalReason | None
    nearest: list[NearestLessonOut]
    considered: list[ConsideredOut]
    metrics: MetricsOut
    model: str
    tokens_used: int
    retrieval_count: int
    retrieval_time_ms: float
    generation_time_ms: float
    total_time_ms: float
    invented_citations: int

    @classmethod
    def of(cls, reply: Reply, *, book_id: str, session_id: uuid.UUID | None = None) -> Self:
        """The one reply object, as the chat endpoints and `lectern ask --json` show it."""
        return cls(
            response=reply.text,
            confidence=reply.metrics.confidence,
            sources=[Source.of(citation) for citation in reply.citations] if isinstance(reply, Answer) else [],
            session_id=str(session_id or uuid.uuid4()),
            timestamp=utc_now(),
            confidence_level=reply.metrics.confidence_level,
            should_answer=reply.metrics.should_answer,
            book_id=book_id,
            state=reply.state,
            reason=reply.reason if isinstance(reply, Refusal) else None,
            nearest=[
                NearestLessonOut(title=lesson.title, url=lesson.url, parent_doc_id=lesson.parent_doc_id)
                for lesson in (reply.nearest if isinstance(reply, Refusal) else ())
            ],
            considered=[ConsideredOut.of(hit) for hit in reply.considered],
            metrics=MetricsOut.of(reply.metrics),
            model=reply.model,
            tokens_used=reply.tokens_used,
            retrieval_count=reply.retrieval_count,
            retrieval_time_ms=reply.timings.retrieval_time_ms,
            generation_time_ms=reply.timings.generation_time_ms,
            total_time_ms=reply.timings.total_time_ms,
            invented_citations=reply.invented_citations if isinstance(reply, Answer) else 0,
        )


class SearchResult(_Response):
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


class SearchResponse(_Response):
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


class BookOut(_Response):
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


class LessonChunk(_Response):
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


class LessonOut(_Response):
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


class Health(_Response):
    """Whether the server lives, or can answer."""

    status: Literal["ok"] = "ok"


class Problem(_Response):
    """An error, in the one shape every error has (application/problem+json)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    field: str | None = None
