"""A reply in the formats of the design documents. Views only format; they make no decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from lectern.domain.evidence import ConfidenceMetrics, Findings, Hit
from lectern.domain.replies import Answer, Citation, Reply
from lectern.text.markers import renumbered

NOTHING_FOUND = "No relevant content found in the book."
MIN_RELEVANT_SCORE = 0.3  # the fifth document's lowest score of a relevant result


def format_for_agent(hits: Sequence[Hit]) -> str:
    """Retrieved passages as plain text for a model."""
    if not hits:
        return NOTHING_FOUND
    lines: list[str] = []
    for number, hit in enumerate(hits, start=1):
        lines += [f"[{number}] Source: {hit.chunk.url}", f"    Score: {hit.similarity:.2f}"]
        lines += [f"    Content: {hit.chunk.text}", ""]
    return "\n".join(lines)


def format_sources_footer(hits: Sequence[Hit]) -> str:
    """The sources below a text."""
    return _footer([(hit.chunk.url, hit.similarity) for hit in hits])


def format_with_sources(reply: Reply) -> str:
    """The reply's text with its sources below."""
    if not isinstance(reply, Answer):
        return reply.text
    return reply.text + _footer([(citation.url, citation.hit.similarity) for citation in reply.citations])


def _footer(sources: Sequence[tuple[str, float]]) -> str:
    if not sources:
        return ""
    lines = [f"[{number}] {url} (score: {score:.2f})" for number, (url, score) in enumerate(sources, start=1)]
    return "\n".join(
        ["", "", "---", "**Sources:**", *lines]
    )  # without the empty line `---` would make the text a heading


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
    scores = tuple(hit.similarity for hit in findings.hits)
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
    error: str | None = None


def agent_response(reply: Reply) -> AgentResponse:
    """The reply as the fifth document's `AgentResponse`; the text names pages as `[Source: Page Title]`."""
    account, metrics = reply.account, reply.account.metrics
    citations: tuple[Citation, ...] = reply.citations if isinstance(reply, Answer) else ()
    pages = {citation.hit.chunk.parent_doc_id: citation.hit.chunk for citation in citations}
    no_hits = metrics.num_chunks == 0
    return AgentResponse(
        answer=_with_page_titles(reply.text, citations),
        citations=tuple(
            PageCitation(page_title=page.page_title, page_url=page.url.partition("#")[0], module_name=page.module)
            for page in pages.values()
        ),
        query=account.question,
        retrieval_time_ms=account.timings.retrieval_time_ms,
        generation_time_ms=account.timings.generation_time_ms,
        total_time_ms=account.timings.total_time_ms,
        confidence="none" if no_hits else "high" if metrics.confidence_level in {"high", "medium"} else "low",
        has_relevant_results=metrics.max_similarity >= MIN_RELEVANT_SCORE,
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
        error=error,
    )


def _with_page_titles(text: str, citations: Sequence[Citation]) -> str:
    titles = {citation.number: citation.hit.chunk.page_title for citation in citations}
    marked = renumbered(text, lambda number: number if number in titles else None)
    for number, title in titles.items():
        marked = marked.replace(f"[{number}]", f"[Source: {title}]")
    return marked
