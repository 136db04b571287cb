"""How well the evidence covers a question, by one of three policies. The metrics are those of the design, over the hits
that the answerer gets, in relevances: a cosine says little by itself (a good hit may have 0.35). The default policy
takes the level from a probability. The two rules of the design documents can be chosen instead. Level, decision and
number always agree."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from lectern.confidence.calibration import Calibration, shipped_calibration
from lectern.confidence.signals import ENGLISH
from lectern.domain.errors import ConfigError
from lectern.domain.evidence import HIGH, INSUFFICIENT_BELOW, LOW, MEDIUM, ConfidenceLevel, ConfidenceMetrics, Hit
from lectern.ports.answering import ConfidencePolicy
from lectern.text.language import main_code

MIN_RELEVANT_SCORE = 0.3  # the fifth design document's min_relevance_score
GAP = 0.0001  # between the cut of a level and the highest confidence below it
POLICIES = ("calibrated", "thresholds", "relevance")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Policy:
    """What all policies take from the embedder's calibration, or the book's."""

    calibration: Calibration

    @property
    def floor(self) -> float:
        """The relevance of the calibration's floor."""
        return self.relevance(self.calibration.floor)

    def relevance(self, cosine: float) -> float:
        """The cosine on the calibration's scale."""
        return self.calibration.scale.of(cosine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(_Policy):
    """The probability that the book answers, cut at the design's 0.85, 0.75 and 0.60."""

    language: str = ENGLISH  # of the book
    highest: ConfidenceLevel = "high"  # that the calibration can vouch for

    def ceiling(self, level: ConfidenceLevel) -> float:
        """The highest confidence of a level."""
        return {"high": 1.0, "medium": HIGH - GAP, "low": MEDIUM - GAP, "insufficient": LOW - GAP}[level]

    def measure(self, question: str, field: Sequence[Hit], hits: Sequence[Hit]) -> ConfidenceMetrics:
        """The metrics; the probability depends on `field` alone, not on `top_k` or a threshold."""
        if not hits:
            return _nothing()
        confidence = self.calibration.probability(question, field or hits, self.language)
        metrics = _metrics(hits, confidence, level_of(confidence))
        return metrics.capped(self.highest, self.ceiling(self.highest))


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMinimum:
    """What a level needs at least."""

    relevance: float  # of all chunks on average
    chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds(_Policy):
    """The fourth design document's table: an average relevance and a number of chunks for each level."""

    high: LevelMinimum = LevelMinimum(relevance=HIGH, chunks=5)
    medium: LevelMinimum = LevelMinimum(relevance=MEDIUM, chunks=3)
    low: LevelMinimum = LevelMinimum(relevance=LOW, chunks=2)

    def __post_init__(self) -> None:
        minimums = (self.high, self.medium, self.low)
        if not 1 >= self.high.relevance >= self.medium.relevance >= self.low.relevance > 0:
            raise ConfigError("thresholds must fall from high to low, within 0 and 1")
        if any(minimum.chunks < 1 for minimum in minimums):
            raise ConfigError("a level takes one chunk at least")

    def ceiling(self, level: ConfidenceLevel) -> float:
        """The highest confidence of a level."""
        minimums = {"medium": self.high, "low": self.medium, "insufficient": self.low}
        return minimums[level].relevance - GAP if level in minimums else 1.0

    def measure(self, question: str, field: Sequence[Hit], hits: Sequence[Hit]) -> ConfidenceMetrics:
        """The metrics; confidence is the average relevance. With too few chunks it is just below the lowest level."""
        if not hits:
            return _nothing()
        average = _average([hit.relevance for hit in hits])
        level = self._level(average, len(hits))
        below = self.low.relevance - (LOW - INSUFFICIENT_BELOW)
        return _metrics(hits, min(average, max(below, 0.0)) if level == "insufficient" else average, level)

    def _level(self, average: float, count: int) -> ConfidenceLevel:
        minimums: dict[ConfidenceLevel, LevelMinimum] = {"high": self.high, "medium": self.medium, "low": self.low}
        for level, minimum in minimums.items():
            if average >= minimum.relevance and count >= minimum.chunks:
                return level
        return "insufficient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance(_Policy):
    """The fifth design document's rule: a good first hit is high, any other hit low, none insufficient."""

    relevant: float = MIN_RELEVANT_SCORE

    def ceiling(self, level: ConfidenceLevel) -> float:
        """The highest confidence of a level. The rule itself gives no medium, so medium has no ceiling of its own."""
        return 1.0 if level in ("high", "medium") else self.relevant - GAP

    def measure(self, question: str, field: Sequence[Hit], hits: Sequence[Hit]) -> ConfidenceMetrics:
        """The metrics; confidence is the best relevance."""
        if not hits:
            return _nothing()
        best = max(hit.relevance for hit in hits)
        return _metrics(hits, best, "high" if best >= self.relevant else "low")


def policy_for(
    name: str,
    fingerprint: str,
    calibration: Calibration | None = None,
    minimums: Sequence[tuple[float, int]] = (),
    language: str = ENGLISH,
) -> ConfidencePolicy:
    """The policy of this name for an embedder. `calibration` is the book's, if it has one. `minimums` replace those of
    the design for the levels high, medium and low of `thresholds`. The shipped calibration was fitted on English books:
    of a book in another `language` it never says high, unless its weights were fitted on the book."""
    shipped = shipped_calibration(fingerprint)
    parameters = calibration or shipped
    is_fitted = replace(parameters, scale=shipped.scale) != shipped or main_code(language) == ENGLISH
    match name:
        case "calibrated":
            highest: ConfidenceLevel = "high" if is_fitted else "medium"
            return Calibrated(calibration=parameters, language=language, highest=highest)
        case "thresholds":
            if not minimums:
                return Thresholds(calibration=parameters)
            high, medium, low = (LevelMinimum(relevance=relevance, chunks=chunks) for relevance, chunks in minimums)
            return Thresholds(calibration=parameters, high=high, medium=medium, low=low)
        case "relevance":
            return Relevance(calibration=parameters)
        case _:
            raise ConfigError(f"there is no confidence policy {name!r}; there are {', '.join(POLICIES)}")


def level_of(confidence: float) -> ConfidenceLevel:
    """The level of a confidence, one of the design's four."""
    if confidence >= HIGH:
        return "high"
    if confidence >= MEDIUM:
        return "medium"
    return "low" if confidence >= LOW else "insufficient"


def diversity(vectors: Sequence[Sequence[float]]) -> float:
    """One minus the mean cosine of every two chunks, within 0…1."""
    cosines = [sum(map(operator.mul, first, second)) for first, second in combinations(vectors, 2)]
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


def _metrics(hits: Sequence[Hit], confidence: float, level: ConfidenceLevel) -> ConfidenceMetrics:
    relevances = [hit.relevance for hit in hits]
    return ConfidenceMetrics(
        average_similarity=_average(relevances),
        min_similarity=min(relevances),
        max_similarity=max(relevances),
        num_chunks=len(relevances),
        chunk_diversity=diversity([hit.vector for hit in hits]),
        confidence=confidence,
        confidence_level=level,
        should_answer=level != "insufficient",
    )


def _average(values: Sequence[float]) -> float:
    """The mean, never above the largest or below the smallest value because of rounding."""
    return min(max(fmean(values), min(values)), max(values))
