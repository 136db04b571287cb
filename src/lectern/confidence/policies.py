"""How well the evidence covers the question, by one of three policies. The metrics are the design's, over the hits that
are handed out. A cosine says little by itself (a good hit may have 0.35), so the default policy cuts the level from a
probability; the design documents' own two rules are kept for those who want them. Level, decision and number agree."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from lectern.confidence.calibration import Calibration, shipped
from lectern.domain.errors import ConfigError
from lectern.domain.evidence import HIGH, INSUFFICIENT_BELOW, LOW, MEDIUM, ConfidenceLevel, ConfidenceMetrics, Hit
from lectern.ports.answering import ConfidencePolicy

RELEVANT = 0.3  # the fifth design document's min_relevance_score
POLICIES = ("calibrated", "thresholds", "relevance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The probability that the book answers, cut at the design's 0.85, 0.75 and 0.60."""

    calibration: Calibration

    @property
    def floor(self) -> float | None:
        """The embedder's."""
        return self.calibration.floor

    def measure(self, question: str, field: Sequence[Hit], handed: Sequence[Hit]) -> ConfidenceMetrics:
        """The probability comes from the field alone, so no `top_k` and no threshold moves it."""
        if not handed:
            return _nothing()
        confidence = self.calibration.probability(question, field or handed)
        return _metrics(handed, confidence, level_of(confidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a level takes."""

    similarity: float  # of all chunks on average
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The fourth design document's table: the average similarity, and enough chunks to speak of an average."""

    high: Bar = Bar(similarity=HIGH, chunks=5)
    medium: Bar = Bar(similarity=MEDIUM, chunks=3)
    low: Bar = Bar(similarity=LOW, chunks=2)
    floor: float | None = None

    def __post_init__(self) -> None:
        bars = (self.high, self.medium, self.low)
        if not 1 >= self.high.similarity >= self.medium.similarity >= self.low.similarity > 0:
            raise ConfigError("thresholds must fall from high to low, within 0 and 1")
        if any(bar.chunks < 1 for bar in bars):
            raise ConfigError("a level takes one chunk at least")

    def measure(self, question: str, field: Sequence[Hit], handed: Sequence[Hit]) -> ConfidenceMetrics:
        """Confidence is the average similarity; where chunks are missing for any answer, just below the last cut."""
        if not handed:
            return _nothing()
        average = _average([hit.similarity for hit in handed])
        level = self._level(average, len(handed))
        below = self.low.similarity - (LOW - INSUFFICIENT_BELOW)
        return _metrics(handed, min(average, max(below, 0.0)) if level == "insufficient" else average, level)

    def _level(self, average: float, count: int) -> ConfidenceLevel:
        bars: dict[ConfidenceLevel, Bar] = {"high": self.high, "medium": self.medium, "low": self.low}
        for level, bar in bars.items():
            if average >= bar.similarity and count >= bar.chunks:
                return level
        return "insufficient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """The fifth design document's rule: a good first hit is high, any other hit low, none insufficient."""

    relevant: float = RELEVANT
    floor: float | None = None

    def measure(self, question: str, field: Sequence[Hit], handed: Sequence[Hit]) -> ConfidenceMetrics:
        """Confidence is the best similarity."""
        if not handed:
            return _nothing()
        best = max(hit.similarity for hit in handed)
        return _metrics(handed, best, "high" if best >= self.relevant else "low")


def policy_for(
    name: str, fingerprint: str, calibration: Calibration | None = None, bars: Sequence[tuple[float, int]] = ()
) -> ConfidencePolicy:
    """The policy of this name for an embedder; `calibration` is the book's own, where it has one, `bars` what high,
    medium and low take under `thresholds`, where that is not the design's."""
    known = calibration or shipped(fingerprint)
    match name:
        case "calibrated":
            return Calibrated(calibration=known)
        case "thresholds":
            if not bars:
                return Thresholds(floor=known.floor)
            high, medium, low = (Bar(similarity=similarity, chunks=chunks) for similarity, chunks in bars)
            return Thresholds(high=high, medium=medium, low=low, floor=known.floor)
        case "relevance":
            return Relevance(floor=known.floor)
        case _:
            raise ConfigError(f"there is no confidence policy {name!r}; there are {', '.join(POLICIES)}")


def level_of(confidence: float) -> ConfidenceLevel:
    """The design's four levels."""
    if confidence >= HIGH:
        return "high"
    if confidence >= MEDIUM:
        return "medium"
    return "low" if confidence >= LOW else "insufficient"


def diversity(vectors: Sequence[Sequence[float]]) -> float:
    """One minus the mean cosine of every two chunks, within 0…1."""
    cosines = [sum(map(operator.mul, one, other)) for one, other in combinations(vectors, 2)]
    return min(max(1 - fmean(cosines), 0.0), 1.0) if cosines else 0.0


def _nothing() -> ConfidenceMetrics:
    return ConfidenceMetrics(
        average_similarity=0.0,
        min_similarity=0.0,
        max_similarity=0.0,
        num_chunks=0,
        chunk_diversity=0.0,
        confidence=0.0,
        confidence_level="insufficient",
        should_answer=False,
    )


def _metrics(handed: Sequence[Hit], confidence: float, level: ConfidenceLevel) -> ConfidenceMetrics:
    similarities = [hit.similarity for hit in handed]
    return ConfidenceMetrics(
        average_similarity=_average(similarities),
        min_similarity=min(similarities),
        max_similarity=max(similarities),
        num_chunks=len(similarities),
        chunk_diversity=diversity([hit.vector for hit in handed]),
        confidence=confidence,
        confidence_level=level,
        should_answer=level != "insufficient",
    )


def _average(similarities: Sequence[float]) -> float:
    """Rounding must not lift a mean above the largest."""
    return min(max(fmean(similarities), min(similarities)), max(similarities))
