"""How well the dossier covers the question. A cosine says little by itself (a good hit may have 0.35), so the number
the level is cut from is a probability, estimated from how near the best passages are and how many of the question's
words they hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from lectern.answering.words import stems, telling_stems
from lectern.domain.evidence import HIGH, LOW, MEDIUM, ConfidenceLevel, ConfidenceMetrics, Dossier

# Logistic regression; `scripts/fit_confidence.py` made these and says from what.
INTERCEPT, BY_SIMILARITY, BY_COVERAGE = -13.587, 13.121, 10.549


def measure(dossier: Dossier) -> ConfidenceMetrics:
    """The metrics of a dossier, and whether it is enough to answer from."""
    if not dossier.hits:
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
    similarities = [hit.similarity for hit in dossier.hits]
    passages = [" ".join([*hit.chunk.trail, hit.chunk.text]) for hit in dossier.hits]
    confidence = probability(max(similarities), coverage(dossier.question, passages))
    level = level_of(confidence)
    return ConfidenceMetrics(
        average_similarity=min(max(fmean(similarities), min(similarities)), max(similarities)),
        min_similarity=min(similarities),
        max_similarity=max(similarities),
        num_chunks=len(similarities),
        chunk_diversity=diversity([hit.vector for hit in dossier.hits]),
        confidence=confidence,
        confidence_level=level,
        should_answer=level != "insufficient",
    )


def level_of(confidence: float) -> ConfidenceLevel:
    """The design's four levels."""
    if confidence >= HIGH:
        return "high"
    if confidence >= MEDIUM:
        return "medium"
    return "low" if confidence >= LOW else "insufficient"


def probability(similarity: float, covered: float) -> float:
    """How probable it is that the book answers the question."""
    return 1 / (1 + math.exp(-(INTERCEPT + BY_SIMILARITY * similarity + BY_COVERAGE * covered)))


def coverage(question: str, passages: Sequence[str]) -> float:
    """The share of the question's telling words that the passages hold between them."""
    asked = telling_stems(question)
    held = {word for passage in passages for word in stems(passage)}
    return len(asked & held) / len(asked) if asked else 0.0


def diversity(vectors: Sequence[Sequence[float]]) -> float:
    """One minus the mean cosine of every two chunks, within 0…1."""
    cosines = [sum(a * b for a, b in zip(one, other, strict=True)) for one, other in combinations(vectors, 2)]
    return min(max(1 - fmean(cosines), 0.0), 1.0) if cosines else 0.0
