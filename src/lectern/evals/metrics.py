"""Metrics of a ranking, with confidence intervals. Recall is the share of the gold documents that were found, so a
question with several gold documents has full recall only if all are found. Gains are linear in the grade, as in
trec_eval. Intervals come from resampling questions with a fixed seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

METRICS = ("recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10")
TOKEN_METRICS = ("token_recall", "token_precision", "token_iou")
SEED = 2
RESAMPLES = 1000
LEVEL = 0.95

Gold = Mapping[str, float]  # document → grade, above 0
Interval = tuple[float, float]


def recall(ranking: Sequence[str], gold: Gold, depth: int) -> float:
    """The share of the gold documents among the first `depth`."""
    return len(gold.keys() & set(ranking[:depth])) / len(gold)


def reciprocal_rank(ranking: Sequence[str], gold: Gold, depth: int) -> float:
    """1 / the rank of the first gold document; 0 if none is among the first `depth`."""
    return next((1 / rank for rank, document in enumerate(ranking[:depth], start=1) if document in gold), 0.0)


def ndcg(ranking: Sequence[str], gold: Gold, depth: int) -> float:
    """The discounted gain of the first `depth` documents, as a share of the best order's."""
    ideal = _gain(sorted(gold.values(), reverse=True)[:depth])
    return _gain([gold.get(document, 0.0) for document in ranking[:depth]]) / ideal


def _gain(grades: Sequence[float]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def retrieval_scores(ranking: Sequence[str], gold: Gold) -> tuple[float, ...]:
    """One value for each of METRICS; the ranking names no document twice."""
    return (
        recall(ranking, gold, 1),
        recall(ranking, gold, 5),
        recall(ranking, gold, 10),
        reciprocal_rank(ranking, gold, 10),
        min(ndcg(ranking, gold, 10), 1.0),  # by rounding, a perfect order may exceed 1 a little
    )


def overlap(retrieved: frozenset[int], gold: frozenset[int]) -> tuple[float, float, float]:
    """Recall, precision and intersection over union of two sets of tokens; 0 if they share none."""
    shared = len(retrieved & gold)
    return (shared / len(gold), shared / len(retrieved), shared / len(retrieved | gold)) if shared else (0.0, 0.0, 0.0)


def means(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean of each column."""
    return tuple(float(mean) for mean in np.asarray(rows, dtype=float).mean(axis=0))


def intervals(rows: Sequence[Sequence[float]], *, seed: int = SEED) -> tuple[Interval, ...]:
    """The 95 % interval of each column's mean, over 1,000 resamples of the rows."""
    values = np.asarray(rows, dtype=float)
    count = len(values)
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    drawn = draws @ values / count
    outside = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [outside, 1 - outside], axis=0)
    return tuple((float(lower), float(upper)) for lower, upper in zip(low, high, strict=True))
