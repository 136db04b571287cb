"""A reply in the formats of the design documents. Views only format; they make no decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from lectern.domain.clock import utc_now
from lectern.domain.errors import LecternError
from lectern.domain.evidence import ConfidenceMetrics, Findings
from lectern.domain.replies import Answer, Citation, Reply
from lectern.domain.retrieval import (
    MIN_RELEVANCE_SCORE,
    NOTHING_FOUND,
    RetrievalContext,
    RetrievedPassage,
    format_for_agent,
    format_sources_footer,
    retrieval_context,
)
from lectern.schemas.tool_response import format_tool_response
from lectern.text.markers import renumbered

__all__ = [
    "NOTHING_FOUND",
    "AgentResponse",
    "ChunkMetadata",
    "PageCitation",
    "RetrievalContext",
    "RetrievalResult",
    "RetrievedPassage",
    "agent_response",
    "answer_or_error",
    "build_prompt",
    "failed_response",
    "format_for_agent",
    "format_sources_footer",
    "format_tool_response",
    "format_with_sources",
    "retrieval_context",
    "retrieval_result",
]
PROMPT = """
You are an expert assistant for {book}.

RULES:
1. ONLY answer using the CONTEXT provided below
2. If the answer is not in the CONTEXT, say "I couldn't find that information in the book"
3. ALWAYS cite your sources using [Source: Page Title] format
4. Be concise and accurate

CONTEXT:
{passages}

USER QUESTION: {question}
"""


def format_with_sources(reply: Reply) -> str:
    """The reply's text with its sources below."""
    return reply.format_with_sources()


def build_prompt(context: RetrievalContext, *, book_title: str | None = None) -> str:
    """The fifth document's prompt for a model without tools. Lectern itself has longer instructions."""
    passages = "\n\n".join(
        f"[{number}] {passage.page_title}\n{passage.text}" for number, passage in enumerate(context.chunks, start=1)
    )
    book = f"the {book_title} book" if book_title else "this book"
    return PROMPT.format(book=book, passages=passages, question=context.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMetadata:
    """The place of a retrieved chunk, as in the fourth document."""

    chapter: str
    section: str
    url: str
    chunk_index: int
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalResult:
    """The fourth document's view of a retrieval."""

    chunks: tuple[str, ...]
    scores: tuple[float, ...]
    metadata: tuple[ChunkMetadata, ...]
    average_score: float
    has_sufficient_context: bool
    query_embedding: tuple[float, ...]


def retrieval_result(findings: Findings, metrics: ConfidenceMetrics) -> RetrievalResult:
    """The findings of a search as the fourth document's `RetrievalResult`."""
    scores = tuple(hit.relevance for hit in findings.hits)
    return RetrievalResult(
        chunks=tuple(hit.chunk.text for hit in findings.hits),
        scores=scores,
        metadata=tuple(
            ChunkMetadata(
                chapter=hit.chunk.chapter_title,
                section=hit.chunk.section_title or hit.chunk.lesson_title,
                url=hit.chunk.url,
                chunk_index=hit.chunk.chunk_index,
                content_hash=hit.chunk.content_hash,
            )
            for hit in findings.hits
        ),
        average_score=fmean(scores) if scores else 0.0,
        has_sufficient_context=metrics.confidence_level in {"high", "medium"},
        query_embedding=findings.vector,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCitation:
    """The fifth document's citation: a page."""

    page_title: str
    page_url: str | None
    module_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResponse:
    """The fifth document's view of a reply."""

    answer: str
    citations: tuple[PageCitation, ...]
    query: str
    retrieval_time_ms: float
    generation_time_ms: float
    total_time_ms: float
    confidence: Literal["high", "low", "none"]
    has_relevant_results: bool
    created_at: str
    error: str | None = None


async def answer_or_error(reply: Awaitable[Reply], query: str) -> AgentResponse:
    """The fifth document's `AgentResponse` of a question, whatever happens: a failure is in its `error`."""
    try:
        return agent_response(await reply)
    except LecternError as exc:
        return failed_response(query, str(exc))


def agent_response(reply: Reply, *, min_relevance_score: float = MIN_RELEVANCE_SCORE) -> AgentResponse:
    """The reply as the fifth document's `AgentResponse`; the text names pages as `[Source: Page Title]`."""
    account, metrics = reply.account, reply.account.metrics
    citations: tuple[Citation, ...] = reply.citations if isinstance(reply, Answer) else ()
    pages = {citation.hit.chunk.parent_doc_id: citation.hit.chunk for citation in citations}
    no_hits = metrics.num_chunks == 0
    return AgentResponse(
        answer=_with_page_titles(reply.text, citations),
        citations=tuple(
            PageCitation(page_title=page.page_title, page_url=page.page_url, module_name=page.module_name)
            for page in pages.values()
        ),
        query=account.question,
        retrieval_time_ms=account.timings.retrieval_time_ms,
        generation_time_ms=account.timings.generation_time_ms,
        total_time_ms=account.timings.total_time_ms,
        confidence="none" if no_hits else "high" if metrics.confidence_level in {"high", "medium"} else "low",
        has_relevant_results=metrics.max_similarity >= min_relevance_score,
        created_at=account.created_at,
    )


def failed_response(query: str, error: str) -> AgentResponse:
    """The fifth document's `AgentResponse` for a turn that failed."""
    return AgentResponse(
        answer="",
        citations=(),
        query=query,
        retrieval_time_ms=0.0,
        generation_time_ms=0.0,
        total_time_ms=0.0,
        confidence="none",
        has_relevant_results=False,
        created_at=utc_now(),
        error=error,
    )


def _with_page_titles(text: str, citations: Sequence[Citation]) -> str:
    titles = {citation.number: citation.hit.chunk.page_title for citation in citations}
    marked = renumbered(text, lambda number: number if number in titles else None)
    for number, title in titles.items():
        marked = marked.replace(f"[{number}]", f"[Source: {title}]")
    return marked
