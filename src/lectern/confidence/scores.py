"""How good probabilities are: whether they separate covered from uncovered questions (AUROC), and whether 0.8 means
four in five (expected calibration error, log loss). Intervals come from resampling the questions of each class with a
fixed seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

BINS = 10
SEED = 2
RESAMPLES = 1000
INTERVAL_LEVEL = 0.95
MIN_PROBABILITY = 1e-4  # a single mistake must not cost infinitely much

Numbers = NDArray[np.float64]
Interval = tuple[float, float]
Figure = Callable[[Numbers, Numbers], float]  # of probabilities and labels (1: covered)


def auroc(chances: Numbers, labels: Numbers) -> float:
    """How often a covered question gets a higher probability than an uncovered one; ties count half."""
    covered, uncovered = chances[labels > 0], np.sort(chances[labels <= 0])
    if not len(covered) or not len(uncovered):
        return float("nan")
    below = np.searchsorted(uncovered, covered, "left") + np.searchsorted(uncovered, covered, "right")
    return float(below.sum() / 2 / len(covered) / len(uncovered))


def ece(chances: Numbers, labels: Numbers) -> float:
    """The mean difference of probability and share of covered questions, over ten equal bins."""
    gaps = [abs(float((chances[bin_] - labels[bin_]).sum())) for bin_ in bins(chances)]
    return sum(gaps) / len(chances) if len(chances) else float("nan")


def bins(chances: Numbers) -> list[NDArray[np.bool_]]:
    """Which probabilities are in each bin; 1.0 is in the last."""
    bin_numbers = np.minimum((chances * BINS).astype(int), BINS - 1)
    return [bin_numbers == index for index in range(BINS)]


def log_loss(chances: Numbers, labels: Numbers) -> float:
    """The mean log loss; each class counts half."""
    clipped = np.clip(chances, MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    losses = [-np.log(clipped[labels > 0]), -np.log(1 - clipped[labels <= 0])]
    return float(np.mean([loss.mean() for loss in losses if len(loss)]))


def share_below(chances: Numbers, cut: float) -> float:
    """The share of probabilities below a cut: the questions that are refused."""
    return float((chances < cut).mean()) if len(chances) else float("nan")


def interval(figure: Figure, chances: Sequence[float], labels: Sequence[float], *, seed: int = SEED) -> Interval:
    """The interval that holds the figure in 95 % of 1,000 resamples; each has as many questions of both classes."""
    values, truth = np.asarray(chances, float), np.asarray(labels, float)
    generator = np.random.default_rng(seed)
    classes = [np.flatnonzero(truth > 0), np.flatnonzero(truth <= 0)]
    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([generator.choice(members, len(members)) for members in classes if len(members)])
        drawn.append(figure(values[rows], truth[rows]))
    outside = (1 - INTERVAL_LEVEL) / 2
    low, high = np.quantile(drawn, [outside, 1 - outside])
    return float(low), float(high)
