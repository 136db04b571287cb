"""Questions and replies, under the names that the design documents give them. One reply object, rendered here."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal, Self

from pydantic import UUID4, Field, StringConstraints

from lectern.api.schemas.common import Filters, Response
from lectern.domain.clock import utc_now
from lectern.domain.evidence import ConfidenceLevel, ConfidenceMetrics, Hit
from lectern.domain.replies import Answer, Citation, Refusal, RefusalReason, Reply, ReplyState


class ChatRequest(Filters):
    """A question about a book."""

    message: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
    session_id: UUID4 | None = Field(default=None, description="UUID v4 of the conversation; made up when left out.")
    stream: Literal[False] = Field(default=False, description="Streaming is not offered yet.")
    top_k: int = Field(default=5, ge=1, le=10, description="How many passages to retrieve.")
    similarity_threshold: float | None = Field(default=None, ge=0, le=1, description="The least cosine of a passage.")


class Source(Response):
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
            section=citation.section,
            url=citation.url,
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


class NearestLessonOut(Response):
    """A lesson that comes near a refused question."""

    title: str
    url: str
    parent_doc_id: str


class ConsideredOut(Response):
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


class MetricsOut(Response):
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


class ChatResponse(Response):
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
