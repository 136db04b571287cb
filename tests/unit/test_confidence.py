"""Confidence: the design's metrics and levels, under each of the three policies."""

import math
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.confidence.calibration import Calibration, shipped_calibration
from lectern.confidence.policies import Calibrated, LevelMinimum, Relevance, Thresholds, diversity, level_of, policy_for
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.errors import ConfigError
from lectern.domain.evidence import Hit
from lectern.ports.answering import ConfidencePolicy
from tests.making import chunk, hit, unit_vector

LOCAL = "local/all-MiniLM-L6-v2-int8/384"
LOCAL_CALIBRATION = shipped_calibration(LOCAL)
POLICIES: list[ConfidencePolicy] = [
    Calibrated(calibration=LOCAL_CALIBRATION),
    Thresholds(calibration=LOCAL_CALIBRATION),
    Relevance(calibration=LOCAL_CALIBRATION),
]
QUESTION = "Which quality of service keeps the last message of a topic?"

similarities = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def hits(values: list[float], text: str = "quality of service of topic number") -> tuple[Hit, ...]:
    """Hits with these similarities, each a text of its own."""
    return tuple(hit(chunk(f"{text} {n}"), value, rank=n + 1) for n, value in enumerate(values))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_no_hits_is_insufficient_with_every_metric_zero(policy: ConfidencePolicy) -> None:
    """Nothing handed out means nothing to answer from, whatever the field holds."""
    metrics = policy.measure(QUESTION, hits([0.9, 0.9]), ())

    assert not metrics.should_answer
    assert metrics.confidence_level == "insufficient"
    assert (metrics.average_similarity, metrics.min_similarity, metrics.max_similarity) == (0, 0, 0)
    assert (metrics.num_chunks, metrics.chunk_diversity, metrics.confidence) == (0, 0, 0)


@pytest.mark.parametrize(
    ("confidence", "level"),
    [(0.85, "high"), (0.849, "medium"), (0.75, "medium"), (0.749, "low"), (0.6, "low"), (0.599, "insufficient")],
)
def test_levels_are_cut_where_the_design_cuts(confidence: float, level: str) -> None:
    """0.85, 0.75 and 0.60 begin high, medium and low."""
    assert level_of(confidence) == level


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@given(values=similarities)
def test_metrics_agree_with_each_other(policy: ConfidencePolicy, values: list[float]) -> None:
    """Min <= average <= max, counts are true, and the level and the decision say the same."""
    hit_list = hits(values)
    metrics = policy.measure(QUESTION, hit_list, hit_list)

    assert metrics.min_similarity <= metrics.average_similarity <= metrics.max_similarity
    assert (metrics.min_similarity, metrics.max_similarity) == (min(values), max(values))
    assert metrics.num_chunks == len(values)
    assert metrics.should_answer == (metrics.confidence_level != "insufficient")
    assert 0 <= metrics.chunk_diversity <= 1
    assert 0 <= metrics.confidence <= 1


@given(values=similarities)
def test_the_calibrated_level_is_cut_from_the_number(values: list[float]) -> None:
    """Under `calibrated` the number alone decides."""
    hit_list = hits(values)
    metrics = POLICIES[0].measure(QUESTION, hit_list, hit_list)

    assert metrics.confidence_level == level_of(metrics.confidence)


@pytest.mark.parametrize(
    ("average", "count", "level"),
    [  # the fourth document's table, at its very edges
        (0.85, 5, "high"),
        (0.85, 4, "medium"),
        (0.8499, 5, "medium"),
        (0.75, 3, "medium"),
        (0.75, 2, "low"),
        (0.7499, 5, "low"),
        (0.60, 2, "low"),
        (0.60, 1, "insufficient"),
        (0.95, 1, "insufficient"),
        (0.5999, 10, "insufficient"),
    ],
)
def test_thresholds_are_the_fourth_documents_table(average: float, count: int, level: str) -> None:
    """Similarity and number of chunks bind together; the number is the average, and a refusal's is below the cut."""
    hit_list = hits([average] * count)
    metrics = Thresholds(calibration=LOCAL_CALIBRATION).measure(QUESTION, hit_list, hit_list)

    assert metrics.confidence_level == level
    assert metrics.should_answer == (level != "insufficient")
    assert metrics.confidence == (min(average, 0.5999) if level == "insufficient" else metrics.average_similarity)
    assert (metrics.confidence >= 0.60) == metrics.should_answer


def test_thresholds_can_be_set() -> None:
    """Other numbers, the same rule; numbers in the wrong order are refused."""
    lenient = Thresholds(
        calibration=LOCAL_CALIBRATION,
        high=LevelMinimum(relevance=0.5, chunks=2),
        medium=LevelMinimum(relevance=0.4, chunks=1),
        low=LevelMinimum(relevance=0.3, chunks=1),
    )

    assert lenient.measure(QUESTION, (), hits([0.5, 0.5])).confidence_level == "high"
    assert lenient.measure(QUESTION, (), hits([0.3])).confidence_level == "low"
    refused = lenient.measure(QUESTION, (), hits([0.29]))
    assert (refused.confidence_level, refused.confidence) == ("insufficient", 0.29)
    with pytest.raises(ConfigError, match="fall"):
        Thresholds(calibration=LOCAL_CALIBRATION, low=LevelMinimum(relevance=0.8, chunks=1))


@pytest.mark.parametrize(
    ("values", "level"), [([0.1, 0.3], "high"), ([0.2999, 0.1], "low"), ([0.0], "low"), ([0.9], "high")]
)
def test_relevance_is_the_fifth_documents_rule(values: list[float], level: str) -> None:
    """A top result of 0.3 is high, anything below is low, and the number is the top result's."""
    metrics = Relevance(calibration=LOCAL_CALIBRATION).measure(QUESTION, (), hits(values))

    assert (metrics.confidence_level, metrics.confidence, metrics.should_answer) == (level, max(values), True)


@given(values=similarities, handed=st.integers(1, 12), floor=st.floats(0, 1))
def test_calibrated_confidence_does_not_follow_top_k_or_threshold(
    values: list[float], handed: int, floor: float
) -> None:
    """The same field gives the same probability, however few of its hits are handed out."""
    hit_list = hits(sorted(values, reverse=True))
    handed_hits = tuple(candidate for candidate in hit_list if candidate.similarity >= floor)[:handed] or hit_list[:1]
    policy = POLICIES[0]

    assert (
        policy.measure(QUESTION, hit_list, handed_hits).confidence
        == policy.measure(QUESTION, hit_list[:CONFIDENCE_HITS], hit_list).confidence
    )


def test_calibrated_confidence_follows_meaning_and_words() -> None:
    """A near passage in the question's own words is answered from; neither a far one nor one that shares a word is."""
    policy = POLICIES[0]
    good = hits([0.62, 0.4], "Transient local quality of service keeps the last message of a topic for late joiners")
    far = hits([0.12, 0.1], "The tide comes twice a day because the moon pulls the sea")
    word = hits([0.2, 0.1], "Our service station sells messages in bottles")

    assert policy.measure(QUESTION, good, good).confidence_level == "high"
    assert policy.measure(QUESTION, far, far).confidence < 0.05
    assert not policy.measure(QUESTION, word, word).should_answer


@given(values=similarities, more=st.floats(0, 1))
def test_nearer_hits_never_lower_the_confidence(values: list[float], more: float) -> None:
    """A book that says the same nearer to the question is no worse a book: the best hit may only help."""
    hit_list = hits(sorted(values, reverse=True))
    nearer = (replace(hit_list[0], similarity=max(hit_list[0].similarity, more)), *hit_list[1:])
    policy = POLICIES[0]

    before, after = (policy.measure(QUESTION, field, field).confidence for field in (hit_list, nearer))
    assert after >= before - 1e-12


def test_a_refusal_never_claims_more_than_insufficient() -> None:
    """A reply that refuses after all carries a number that agrees with its level."""
    hit_list = (hit(chunk("All about nodes and topics."), 0.95),)
    metrics = (
        policy_for("calibrated", "local/all-MiniLM-L6-v2-int8/384")
        .measure("nodes and topics", hit_list, hit_list)
        .refused()
    )

    assert level_of(metrics.confidence) == metrics.confidence_level == "insufficient"
    assert not metrics.should_answer


@pytest.mark.parametrize("name", ["calibrated", "thresholds", "relevance"])
def test_every_policy_has_a_name_and_the_embedders_floor(name: str) -> None:
    """Whatever the policy, retrieval without a threshold leaves out what is noise for this embedder."""
    policy = policy_for(name, LOCAL)

    assert type(policy).__name__.lower() == name
    assert policy.floor == pytest.approx(0.3)


@pytest.mark.parametrize("language", ["de", "ja-JP", "und"])
def test_the_english_calibration_is_never_sure_of_another_language(language: str) -> None:
    """The same evidence is high in an English book and at most medium in another one, unless that book has a
    calibration of its own. Weak evidence stays as it is."""
    good = hits([0.62, 0.4], "Transient local quality of service keeps the last message of a topic for late joiners")
    weak = hits([0.12], "The tide comes twice a day")

    def level(calibration: Calibration | None, language: str) -> str:
        return policy_for("calibrated", LOCAL, calibration, (), language).measure(QUESTION, good, good).confidence_level

    metrics = policy_for("calibrated", LOCAL, language=language).measure(QUESTION, good, good)
    assert level(None, "en-GB") == "high"
    assert (metrics.confidence_level, level_of(metrics.confidence)) == ("medium", "medium")
    assert level(replace(shipped_calibration(LOCAL), notes="fitted on the book"), language) == "high"
    assert not policy_for("calibrated", LOCAL, language=language).measure(QUESTION, weak, weak).should_answer


def test_an_unknown_policy_is_refused_by_name() -> None:
    """The message says which there are."""
    with pytest.raises(ConfigError, match="calibrated, thresholds, relevance"):
        policy_for("brave", LOCAL)


def test_diversity_is_one_minus_the_mean_pairwise_cosine() -> None:
    """The design's formula, zero for fewer than two chunks."""
    vectors = [unit_vector(str(n)) for n in range(4)]
    cosines = [math.fsum(a * b for a, b in zip(x, y, strict=True)) for x, y in combinations(vectors, 2)]

    assert diversity(vectors) == pytest.approx(min(max(1 - sum(cosines) / 6, 0), 1))
    assert diversity(vectors[:1]) == 0


@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), max_size=6))
def test_diversity_stays_within_bounds(vectors: list[list[float]]) -> None:
    """0 for the same chunk twice, 1 for opposites, never outside."""
    assert 0 <= diversity(vectors) <= 1
    assert diversity([[1.0, 0.0, 0.0]] * 2) == 0
    assert diversity([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]) == 1
