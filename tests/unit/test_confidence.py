"""Confidence: the design's metrics and levels."""

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.confidence import coverage, diversity, level_of, measure
from lectern.domain.evidence import Dossier
from tests.making import chunk, hit, unit_vector


def test_no_hits_is_insufficient_with_every_metric_zero() -> None:
    """Nothing found means nothing to answer from."""
    metrics = measure(Dossier(question="anything"))

    assert not metrics.should_answer
    assert metrics.confidence_level == "insufficient"
    assert (metrics.average_similarity, metrics.max_similarity, metrics.num_chunks, metrics.confidence) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("confidence", "level"),
    [(0.85, "high"), (0.849, "medium"), (0.75, "medium"), (0.749, "low"), (0.6, "low"), (0.599, "insufficient")],
)
def test_levels_are_cut_where_the_design_cuts(confidence: float, level: str) -> None:
    """0.85, 0.75 and 0.60 begin high, medium and low."""
    assert level_of(confidence) == level


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_metrics_agree_with_each_other(similarities: list[float]) -> None:
    """Min <= average <= max, and the level, the decision and the number say the same."""
    hits = tuple(hit(chunk(f"text number {n} here"), value) for n, value in enumerate(similarities))

    metrics = measure(Dossier(question="text number here", hits=hits))

    assert metrics.min_similarity <= metrics.average_similarity <= metrics.max_similarity
    assert metrics.should_answer == (metrics.confidence_level != "insufficient")
    assert metrics.confidence_level == level_of(metrics.confidence)
    assert 0 <= metrics.chunk_diversity <= 1


def test_a_refusal_never_claims_more_than_insufficient() -> None:
    """A reply that refuses after all carries a number that agrees with its level."""
    hits = (hit(chunk("All about nodes and topics."), 0.95),)
    metrics = measure(Dossier(question="nodes and topics", hits=hits)).refused()

    assert level_of(metrics.confidence) == metrics.confidence_level == "insufficient"
    assert not metrics.should_answer


def test_diversity_is_one_minus_the_mean_pairwise_cosine() -> None:
    """The design's formula, zero for fewer than two chunks."""
    vectors = [unit_vector(str(n)) for n in range(4)]
    cosines = [math.fsum(a * b for a, b in zip(x, y, strict=True)) for x, y in combinations(vectors, 2)]

    assert diversity(vectors) == pytest.approx(min(max(1 - sum(cosines) / 6, 0), 1))
    assert diversity(vectors[:1]) == 0


def test_coverage_counts_telling_words_only() -> None:
    """Words every question has do not count; endings do not matter."""
    assert coverage("What are the nodes of a robot?", ["A node runs."]) == 0.5
