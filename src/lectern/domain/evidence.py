"""What was found for a question, and how well it covers the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from lectern.domain.chunks import Chunk, ChunkId, direction_of
from lectern.domain.scope import ChunkFilter, SearchMode

ConfidenceLevel = Literal["high", "medium", "low", "insufficient"]
LEVELS: tuple[ConfidenceLevel, ...] = ("insufficient", "low", "medium", "high")
HIGH, MEDIUM, LOW = 0.85, 0.75, 0.60  # the design's cuts; below the last, evidence is insufficient
INSUFFICIENT_BELOW = 0.5999  # the most that a refusal may claim: just under the last cut


class Candidate(NamedTuple):  # a hundred a search: a frozen dataclass takes three times as long to make
    """A chunk that the index proposes, with both raw scores, whichever search proposed it."""

    id: ChunkId
    content_hash: str
    cosine: float
    bm25: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk found for a query."""

    chunk: Chunk
    rank: int  # 1-based
    score: float  # 0…1, what the order follows
    similarity: float  # cosine, clamped to 0…1
    relevance: float  # the cosine on a scale that means the same for every embedder, 0…1
    lexical: float  # 0…1, BM25 against the best candidate's
    windows: tuple[Sequence[float], ...]  # the chunk's own vectors, each of unit length
    before: tuple[Chunk, ...] = ()  # neighbours within the lesson, in its order
    after: tuple[Chunk, ...] = ()

    @property
    def vector(self) -> tuple[float, ...]:
        """One direction for the chunk, of unit length: the mean of its windows where it has several."""
        return direction_of(self.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The result of one search: its hits and everything that was applied to get them."""

    query: str
    mode: SearchMode
    where: ChunkFilter
    language: str  # of the book
    hits: tuple[Hit, ...]
    vector: tuple[float, ...]  # of the query
    total_found: int
    query_time_ms: float
    absent: tuple[str, ...] = ()  # rare words of the query that no text in the scope has, if that was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceMetrics:
    """How well the evidence covers the question, in figures. The three similarities are relevances."""

    average_similarity: float
    min_similarity: float
    max_similarity: float
    num_chunks: int
    chunk_diversity: float
    confidence: float  # the number the level is cut from
    confidence_level: ConfidenceLevel
    should_answer: bool

    def refused(self) -> ConfidenceMetrics:
        """These metrics for a refusal, so that level, decision and number agree."""
        ceiling = min(self.confidence, INSUFFICIENT_BELOW)
        return replace(self, confidence=ceiling, confidence_level="insufficient", should_answer=False)

    def capped(self, level: ConfidenceLevel, ceiling: float) -> ConfidenceMetrics:
        """These metrics with at most this level, and a number that agrees with it."""
        if LEVELS.index(self.confidence_level) <= LEVELS.index(level):
            return self
        return replace(self, confidence=min(self.confidence, ceiling), confidence_level=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """A chunk's neighbours, both in the lesson's order."""

    before: tuple[Chunk, ...]
    after: tuple[Chunk, ...]
