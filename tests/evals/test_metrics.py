"""Figures of a ranking: bounds, hand-computed examples, intervals."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.evals.metrics import intervals, means, ndcg, overlap, recall, reciprocal_rank, retrieval_scores

documents = st.integers(0, 40).map(str)
rankings = st.lists(documents, unique=True, max_size=20)
golds = st.dictionaries(documents, st.floats(0.1, 4), min_size=1, max_size=12)
rows = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40)


@given(rankings, golds)
def test_every_score_is_between_0_and_1(ranking: list[str], gold: dict[str, float]) -> None:
    """Whatever was found, and whatever the grades, no figure leaves 0…1."""
    assert all(0 <= score <= 1 for score in retrieval_scores(ranking, gold))


@given(golds, rankings)
def test_a_perfect_ranking_has_the_best_scores(gold: dict[str, float], other_ids: list[str]) -> None:
    """Gold first, best grade first: MRR and nDCG are 1, and recall is 1 as soon as all gold fits."""
    perfect = sorted(gold, key=lambda document: -gold[document])
    ranking = [*perfect, *(document for document in other_ids if document not in gold)]

    assert reciprocal_rank(ranking, gold, 10) == 1
    assert ndcg(ranking, gold, 10) == pytest.approx(1)
    assert recall(ranking, gold, 10) == min(10, len(gold)) / len(gold)


@given(rankings, golds)
def test_recall_never_falls_with_depth(ranking: list[str], gold: dict[str, float]) -> None:
    """Looking further never finds less."""
    recalls = [recall(ranking, gold, depth) for depth in range(1, 21)]

    assert recalls == sorted(recalls)


@given(rankings)
def test_nothing_found_is_0(ranking: list[str]) -> None:
    """Where the gold is not among the results, every figure is 0."""
    assert retrieval_scores(ranking, {"elsewhere": 1.0}) == (0, 0, 0, 0, 0)


def test_all_gold_is_needed() -> None:
    """Recall is the share of the gold that was found, not whether any was."""
    gold = {"a": 1.0, "b": 1.0, "c": 1.0}

    assert recall(["a", "x", "b", "y", "z", "c"], gold, 5) == pytest.approx(2 / 3)
    assert recall(["a", "x", "b", "y", "z", "c"], gold, 10) == 1


def test_mrr_is_one_over_the_first_rank() -> None:
    """Third place is a third; eleventh place is nothing."""
    assert reciprocal_rank(["x", "y", "a", "b"], {"a": 1.0, "b": 1.0}, 10) == pytest.approx(1 / 3)
    assert reciprocal_rank([*"klmnopqrst", "a"], {"a": 1.0}, 10) == 0


def test_graded_ndcg_by_hand() -> None:
    """Gains are the grades: putting the better document second costs what the discount says."""
    gold = {"good": 3.0, "fair": 1.0}

    value = ndcg(["fair", "x", "good"], gold, 10)

    assert value == pytest.approx((1 / log2(2) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3)))


def test_overlap_by_hand() -> None:
    """Four tokens found, three wanted, two in common: 2/3, 2/4 and 2/5."""
    assert overlap(frozenset({1, 2, 3, 4}), frozenset({3, 4, 5})) == pytest.approx((2 / 3, 1 / 2, 2 / 5))
    assert overlap(frozenset(), frozenset({1})) == (0, 0, 0)


def test_nothing_wanted_is_0() -> None:
    """Where no token answers there is nothing to find, and nothing to divide by."""
    assert overlap(frozenset({1, 2}), frozenset()) == (0, 0, 0)
    assert overlap(frozenset(), frozenset()) == (0, 0, 0)


@given(st.frozensets(st.integers(0, 30)), st.frozensets(st.integers(0, 30), min_size=1))
def test_iou_is_the_least_of_the_three(retrieved: frozenset[int], gold: frozenset[int]) -> None:
    """Intersection over union is never above recall or precision, and is 1 only for the same tokens."""
    recalled, precision, iou = overlap(retrieved, gold)

    assert 0 <= iou <= min(recalled, precision) <= 1
    assert (iou == 1) == (retrieved == gold)


@given(rows)
def test_intervals_lie_within_the_values_and_repeat(values: list[tuple[float, float]]) -> None:
    """No interval claims more than the least or the best question gave, and the same questions give the same one."""
    bounds = intervals(values)

    assert bounds == intervals(values)
    for column, (low, high) in enumerate(bounds):
        column_values = [row[column] for row in values]
        assert min(column_values) - 1e-9 <= low <= high <= max(column_values) + 1e-9


def test_equal_values_leave_no_doubt() -> None:
    """Where every question has the same value, the interval is that value."""
    [(low, high), second_interval] = intervals([(0.5, 1.0)] * 9)

    assert low == high == pytest.approx(0.5)
    assert second_interval == pytest.approx((1, 1))


def test_an_interval_is_as_wide_as_chance() -> None:
    """For 400 tosses of a coin the interval is the mean give or take about five points, and holds it."""
    values = [(float(number % 2),) for number in range(400)]

    [(low, high)] = intervals(values)

    assert means(values) == (0.5,)
    assert low < 0.5 < high
    assert high - low == pytest.approx(2 * 1.96 * 0.5 / 20, rel=0.15)
