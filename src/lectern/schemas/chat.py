"""Questions, replies and runs in requests and responses, under the names that the design documents give them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Self, TypeVar

from pydantic import UUID4, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from lectern.domain.evidence import ConfidenceLevel, Hit
from lectern.domain.evidence import ConfidenceMetrics as DomainMetrics
from lectern.domain.replies import (
    Answer,
    Citation,
    CutReason,
    NearestLesson,
    Refusal,
    RefusalReason,
    Reply,
    ReplyState,
    Statement,
    Verdict,
)
from lectern.domain.threads import Run, RunState
from lectern.schemas.common import RELEVANCE, Filters, Metadata, Response, decodable
from lectern.schemas.scope import applied

Out = TypeVar("Out", bound=Response)


class ChatRequest(Filters):
    """A question about a book."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"message": "How do ROS 2 nodes communicate?"},
                {"message": "How do ROS 2 nodes communicate?", "hardware_tier_filter": 2, "top_k": 5, "stream": False},
            ]
        }
    )

    message: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000), BeforeValidator(decodable)
    ]
    session_id: UUID4 | None = Field(default=None, description="UUID v4 of the conversation; made up when left out.")
    stream: bool = Field(default=False, description="Answer as Server-Sent Events, as `/chat/stream` does.")
    html: bool = Field(
        default=False, description="Add the answer and its passages as sanitised HTML, and `block` events to a stream."
    )
    top_k: int | None = Field(
        default=None, ge=1, le=10, description="How many passages to retrieve; default: AGENT_TOP_K, else 5."
    )
    similarity_threshold: float | None = Field(
        default=None, ge=0, le=1, description="The least relevance of a passage; default: the embedder's noise floor."
    )
    metadata: Metadata | None = Field(
        default=None, description="Kept with a new conversation (user_id, tags …); at most 4 KiB as JSON."
    )


class PassageScores(Response):
    """How near a passage is to the question."""

    similarity_score: float = Field(description="The relevance, under the name of the design document.")
    relevance: float = Field(description=RELEVANCE)
    similarity: float = Field(description="The cosine, 0 to 1.")

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, fields: Any) -> Any:  # noqa: ANN401  # unchecked yet
        """A reply that an earlier version stored has `similarity_score` alone, a cosine."""
        if isinstance(fields, dict) and "relevance" not in fields and "similarity_score" in fields:
            return {**fields, **dict.fromkeys(("relevance", "similarity"), fields["similarity_score"])}
        return fields


class Source(PassageScores):
    """A cited passage and the link that opens it."""

    chunk_text: str
    chapter: str
    section: str
    url: str
    chunk_index: int
    number: int = Field(description="The marker in the response: `[number]`.")
    chunk_id: str
    parent_doc_id: str
    page_title: str
    page_url: str = Field(default="", description="`url` without the heading's anchor.")
    module_name: str = Field(default="", description="The module's slug.")
    breadcrumb: str
    source_file: str = Field(description="The file of the quoted block: the lesson's, or one that the lesson includes.")
    line_start: int = Field(description="First line of the quoted block in that file.")
    line_end: int
    fragment_url: str = Field(description="The link, and a browser marks the quoted block.")
    html: str | None = Field(default=None, description="`chunk_text` as HTML, if the request asked for it.")

    @classmethod
    def of(cls, citation: Citation) -> Self:
        """A citation as a response."""
        chunk = citation.hit.chunk
        return cls(
            chunk_text=citation.passage,
            similarity_score=citation.hit.relevance,
            relevance=citation.hit.relevance,
            similarity=citation.hit.similarity,
            chapter=chunk.chapter_title,
            section=citation.section,
            url=citation.url,
            chunk_index=chunk.chunk_index,
            number=citation.number,
            chunk_id=chunk.id,
            parent_doc_id=chunk.parent_doc_id,
            page_title=chunk.page_title,
            page_url=chunk.page_url,
            module_name=chunk.module_name,
            breadcrumb=chunk.breadcrumb,
            source_file=citation.source_file,
            line_start=citation.line_start,
            line_end=citation.line_end,
            fragment_url=citation.fragment_url,
        )


class StatementOut(Response):
    """A claim of the response, judged against the passages."""

    text: str
    start: int = Field(description="Position of the claim in `response`, in characters (code points).")
    end: int
    citations: list[int]
    verdict: Verdict = Field(
        description="`supported`: a passage says it; `doubtful`: strong evidence against; `unconfirmed`: cannot tell."
    )
    support: float
    evidence: str = Field(default="", description="The words of a passage that say it, or that say otherwise.")
    chunk_id: str | None = Field(default=None, description="The passage with these words.")
    reason: str = Field(default="", description="Why the claim is doubtful.")

    @classmethod
    def of(cls, statement: Statement) -> Self:
        """A statement as a response."""
        return cls.model_validate(statement, from_attributes=True)


class RemovedOut(Response):
    """Counts of what was removed from the draft or changed in it."""

    invented_citations: int = Field(default=0, description="Markers that were never issued.")
    links: int = Field(default=0, description="Links, images and active tags that the passages do not have.")
    blocked: int = Field(default=0, description="Words of the instructions, and secrets.")
    characters: int = Field(default=0, description="Control characters, and what exceeds the cap.")
    hidden: int = Field(default=0, description="Doubtful claims, if the operator hides them.")
    corrected_citations: int = Field(
        default=0, description="Claims that got the marker of the passage that bears them."
    )


class NearestLessonOut(Response):
    """A lesson that is near to a refused question."""

    title: str
    url: str
    parent_doc_id: str


class ConsideredOut(PassageScores):
    """A passage that was handed out but not cited."""

    chunk_id: str
    page_title: str
    section: str
    url: str

    @classmethod
    def of(cls, hit: Hit) -> Self:
        """The hit in brief."""
        chunk = hit.chunk
        return cls(
            chunk_id=chunk.id,
            page_title=chunk.page_title,
            section=chunk.section_title or chunk.lesson_title,
            url=chunk.url,
            similarity_score=hit.relevance,
            relevance=hit.relevance,
            similarity=hit.similarity,
        )


class ConfidenceMetrics(Response):
    """The parts of the confidence. The three similarities are relevances."""

    average_similarity: float
    min_similarity: float
    max_similarity: float
    num_chunks: int
    chunk_diversity: float
    confidence_level: ConfidenceLevel
    should_answer: bool

    @classmethod
    def of(cls, metrics: DomainMetrics) -> Self:
        """The metrics as the design lists them."""
        return cls.model_validate(metrics, from_attributes=True)


class ChatResponse(Response):
    """An answer with its sources, or a refusal with the nearest lessons; both are HTTP 200."""

    response: str
    html: str | None = Field(
        default=None,
        description="`response` as sanitised HTML, if the request asked for it: `a.cite[data-source]` are citations, "
        "`[data-claim]` stands where the claim of that number in `statements` ends.",
    )
    confidence: float = Field(
        description="How likely the book answers the question, 0 to 1; below 0.60 the reply is a refusal. "
        "Whether each sentence is borne out is said by its verdict."
    )
    sources: list[Source]
    session_id: str
    timestamp: str
    confidence_level: ConfidenceLevel
    should_answer: bool
    book_id: str
    state: ReplyState
    reason: RefusalReason | None
    nearest: list[NearestLessonOut]
    outside_scope: list[NearestLessonOut] = Field(description="Lessons that have it, which the filters hide.")
    other_books: list[str] = Field(description="Other indexed books that cover a refused question.")
    suggestions: list[str] = Field(
        default_factory=list, description="Questions that the book answers, near to a refused one; empty on answers."
    )
    statements: list[StatementOut]
    withdrawn: bool = Field(
        default=False, description="A draft of the model was withdrawn: its claims do not rest on the book."
    )
    lowered: bool = Field(
        default=False, description="`confidence_level` is lower than the passages alone make it, because of verdicts."
    )
    cut: CutReason | None = Field(default=None, description="Why the answer ends early, if it does.")
    removed: RemovedOut
    standalone: str = Field(description="The question as it was searched for.")
    filters: dict[str, Any] = Field(
        default_factory=dict,
        description="All that was applied: given now, earlier in the conversation, or by the book.",
    )
    considered: list[ConsideredOut]
    metrics: ConfidenceMetrics
    model: str
    tokens_used: int
    retrieval_count: int
    retrieval_time_ms: float
    generation_time_ms: float
    total_time_ms: float
    invented_citations: int

    @classmethod
    def of(cls, reply: Reply, *, book_id: str, session_id: str | None = None) -> Self:
        """A reply as the chat endpoints and `lectern ask --json` show it."""
        account, metrics, refusal = reply.account, reply.account.metrics, isinstance(reply, Refusal)
        return cls(
            response=reply.text,
            confidence=metrics.confidence,
            sources=[Source.of(citation) for citation in reply.citations] if isinstance(reply, Answer) else [],
            session_id=session_id or str(uuid.uuid4()),
            timestamp=account.created_at,
            confidence_level=metrics.confidence_level,
            should_answer=metrics.should_answer,
            book_id=book_id,
            state=account.state,
            reason=reply.reason if isinstance(reply, Refusal) else None,
            nearest=_lessons(reply.nearest if isinstance(reply, Refusal) else ()),
            outside_scope=_lessons(reply.outside_scope if isinstance(reply, Refusal) else ()),
            other_books=list(reply.other_books) if isinstance(reply, Refusal) else [],
            suggestions=list(reply.suggestions) if isinstance(reply, Refusal) else [],
            statements=[] if refusal else [StatementOut.of(item) for item in getattr(reply, "statements", ())],
            withdrawn=reply.withdrawn if isinstance(reply, Refusal) else False,
            lowered=reply.lowered if isinstance(reply, Answer) else False,
            cut=reply.cut if isinstance(reply, Answer) else None,
            removed=_as(RemovedOut, reply.removed),
            standalone=account.standalone,
            filters=applied(account.where) if account.where else {},
            considered=[ConsideredOut.of(hit) for hit in reply.considered],
            metrics=ConfidenceMetrics.of(metrics),
            model=account.model,
            tokens_used=account.tokens_used,
            retrieval_count=account.retrieval_count,
            retrieval_time_ms=account.timings.retrieval_time_ms,
            generation_time_ms=account.timings.generation_time_ms,
            total_time_ms=account.timings.total_time_ms,
            invented_citations=reply.removed.invented_citations,
        )


def _lessons(lessons: Sequence[NearestLesson]) -> list[NearestLessonOut]:
    return [_as(NearestLessonOut, lesson) for lesson in lessons]


def _as(kind: type[Out], value: object) -> Out:
    return kind.model_validate(value, from_attributes=True)


class RunOut(Response):
    """One attempt at a turn."""

    run_id: str
    session_id: str
    state: RunState
    error: str | None

    @classmethod
    def of(cls, run: Run) -> Self:
        """A run as the turn log stores it."""
        return cls(run_id=run.run_id, session_id=run.thread_id, state=run.state, error=run.error)
