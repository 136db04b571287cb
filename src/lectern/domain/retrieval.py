"""A retrieval as other programs see it: each passage under every name that the design documents give its fields, and
all of them together with the query."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lectern.domain.clock import utc_now
from lectern.domain.evidence import Findings, Hit

NOTHING_FOUND = "No relevant content found in the book."
MIN_RELEVANCE_SCORE = 0.3  # the fifth document's lowest score of a relevant result


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedPassage:
    """One retrieved chunk: the `RetrievalResult` of the second and third documents, the `SearchResult` of the fifth.
    The fourth has another `RetrievalResult`, which is a whole retrieval."""

    query_id: str  # of the retrieval
    chunk_text: str
    source_url: str
    page_title: str
    section_heading: str | None
    breadcrumb: str
    chunk_index: int
    similarity_score: float  # the relevance
    similarity: float  # the cosine
    metadata: Mapping[str, Any]  # everything else that the index stores of the chunk
    rank: int
    page_url: str
    module_name: str

    @property
    def content(self) -> str:
        """The text, as the third document calls it."""
        return self.chunk_text

    @property
    def text(self) -> str:
        """The text, as the fifth document calls it."""
        return self.chunk_text

    @property
    def score(self) -> float:
        """The score, as the third and fifth documents call it."""
        return self.similarity_score


def passage_of(hit: Hit, *, rank: int, query_id: str = "") -> RetrievedPassage:
    """A hit as a passage; `rank` is its number in the answer or among the results."""
    chunk = hit.chunk
    metadata = asdict(chunk)
    for name in ("text", "page_title", "section_title", "breadcrumb", "chunk_index"):
        del metadata[name]
    return RetrievedPassage(
        query_id=query_id,
        chunk_text=chunk.text,
        source_url=chunk.url,
        page_title=chunk.page_title,
        section_heading=chunk.section_title,
        breadcrumb=chunk.breadcrumb,
        chunk_index=chunk.chunk_index,
        similarity_score=hit.relevance,
        similarity=hit.similarity,
        metadata=metadata,
        rank=rank,
        page_url=chunk.page_url,
        module_name=chunk.module_name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalContext:
    """What was retrieved for a query: the `RetrievalContext` of the third and the fifth document in one."""

    query: str
    results: tuple[RetrievedPassage, ...]
    query_time_ms: float = 0.0
    retrieved_at: str = field(default_factory=utc_now)
    filter_applied: Mapping[str, Any] | None = None  # the filters that were set
    min_relevance_score: float = MIN_RELEVANCE_SCORE

    @property
    def chunks(self) -> tuple[RetrievedPassage, ...]:
        """The passages, as the fifth document calls them."""
        return self.results

    @property
    def total_found(self) -> int:
        """The number of passages that were returned."""
        return len(self.results)

    @property
    def has_relevant_results(self) -> bool:
        """Whether a passage has at least the score of a relevant one."""
        return any(passage.score >= self.min_relevance_score for passage in self.results)

    def format_for_agent(self) -> str:
        """The passages as plain text for a model."""
        return format_for_agent(self.results)

    def format_sources_footer(self) -> str:
        """The sources below a text."""
        return format_sources_footer(self.results)


def retrieval_context(findings: Findings, *, min_relevance_score: float = MIN_RELEVANCE_SCORE) -> RetrievalContext:
    """The findings of a search as a context."""
    query_id = str(uuid.uuid4())
    filters = {name: value for name, value in asdict(findings.where).items() if value not in (None, ())}
    return RetrievalContext(
        query=findings.query,
        results=tuple(passage_of(hit, rank=hit.rank, query_id=query_id) for hit in findings.hits),
        query_time_ms=findings.query_time_ms,
        filter_applied=filters or None,
        min_relevance_score=min_relevance_score,
    )


def format_for_agent(results: Sequence[Hit | RetrievedPassage]) -> str:
    """Retrieved passages as plain text for a model."""
    if not results:
        return NOTHING_FOUND
    lines: list[str] = []
    for number, passage in enumerate(_passages(results), start=1):
        lines += [f"[{number}] Source: {passage.source_url}", f"    Score: {passage.score:.2f}"]
        lines += [f"    Content: {passage.content}", ""]
    return "\n".join(lines)


def format_sources_footer(results: Sequence[Hit | RetrievedPassage]) -> str:
    """The sources below a text."""
    if not results:
        return ""
    lines = [
        f"[{number}] {passage.source_url} (score: {passage.score:.2f})"
        for number, passage in enumerate(_passages(results), start=1)
    ]
    return "\n".join(
        ["", "", "---", "**Sources:**", *lines]
    )  # without the empty line `---` would make the text a heading


def _passages(results: Sequence[Hit | RetrievedPassage]) -> list[RetrievedPassage]:
    return [
        passage_of(result, rank=number) if isinstance(result, Hit) else result
        for number, result in enumerate(results, start=1)
    ]
