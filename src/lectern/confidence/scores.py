"""How good probabilities are: do they tell covered questions from uncovered ones (AUROC), and does 0.8 mean four in
five (expected calibration error, log loss)? Intervals come from drawing questions again, each class by itself, with a
fixed seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

BINS = 10
SEED = 2
RESAMPLES = 1000
LEVEL = 0.95
CERTAIN = 1e-4  # nobody is surer than this; a single mistake must not cost infinitely much

Numbers = NDArray[np.float64]
Interval = tuple[float, float]
Figure = Callable[[Numbers, Numbers], float]  # of probabilities and labels (1: covered)


def auroc(chances: Numbers, labels: Numbers) -> float:
    """How often a covered question gets a higher probability than an uncovered one; ties count half."""
    covered, others = chances[labels > 0], np.sort(chances[labels <= 0])
    if not len(covered) or not len(others):
        return float("nan")
    below = np.searchsorted(others, covered, "left") + np.searchsorted(others, covered, "right")
    return float(below.sum() / 2 / len(covered) / len(others))


def ece(chances: Numbers, labels: Numbers) -> float:
    """The mean distance of probability and share of covered questions, over ten equal bins."""
    gaps = [abs(float((chances[bin_] - labels[bin_]).sum())) for bin_ in bins(chances)]
    return sum(gaps) / len(chances) if len(chances) else float("nan")


def bins(chances: Numbers) -> list[NDArray[np.bool_]]:
    """Which probabilities are in each bin; 1.0 is in the last."""
    number = np.minimum((chances * BINS).astype(int), BINS - 1)
    return [number == one for one in range(BINS)]


def log_loss(chances: Numbers, labels: Numbers) -> float:
    """The mean surprise, each class counting half."""
    sure = np.clip(chances, CERTAIN, 1 - CERTAIN)
    losses = [-np.log(sure[labels > 0]), -np.log(1 - sure[labels <= 0])]
    return float(np.mean([loss.mean() for loss in losses if len(loss)]))


def share_below(chances: Numbers, cut: float) -> float:
    """How many are refused."""
    return float((chances < cut).mean()) if len(chances) else float("nan")


def interval(figure: Figure, chances: Sequence[float], labels: Sequence[float], *, seed: int = SEED) -> Interval:
    """Where the figure lies in 95 % of 1,000 draws of as many covered and as many uncovered questions."""
    values, truth = np.asarray(chances, float), np.asarray(labels, float)
    generator = np.random.default_rng(seed)
    classes = [np.flatnonzero(truth > 0), np.flatnonzero(truth <= 0)]
    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([generator.choice(one, len(one)) for one in classes if len(one)])
        drawn.append(figure(values[rows], truth[rows]))
    outside = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [outside, 1 - outside])
    return float(low), float(high)
