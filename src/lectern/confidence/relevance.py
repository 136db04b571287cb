"""Relevance: the cosine on a scale that means the same for every embedder, so that a threshold of 0.7 does with every
embedder what the design documents say. It is a piecewise-linear map through the points that were measured.

Three points define it: 0.30 is the noise floor, 0.70 keeps the best passage of 95 in 100 questions that a book covers,
and 0.85 is the best passage of the median covered question.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

NOISE_RELEVANCE, COVERED_RELEVANCE, MEDIAN_RELEVANCE = 0.30, 0.70, 0.85
COVERED_SHARE = 0.95  # of covered questions whose best passage has COVERED_RELEVANCE or more
PRIOR_QUESTIONS = 10  # that a measured prior counts as


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceScale:
    """A map from cosine to relevance, both 0 to 1, that never falls."""

    points: tuple[tuple[float, float], ...]  # cosine and relevance, from (0, 0) to (1, 1)
    n: int  # covered questions it was fitted on; 0: a starting point that nobody has measured

    def __post_init__(self) -> None:
        if self.points[:1] != ((0.0, 0.0),) or self.points[-1:] != ((1.0, 1.0),):
            raise ValueError("a relevance scale begins at (0, 0) and ends at (1, 1)")
        if any(not (low[0] < high[0] and low[1] < high[1]) for low, high in pairwise(self.points)):
            raise ValueError("cosine and relevance must rise from point to point")

    def of(self, cosine: float) -> float:
        """The relevance of a cosine; one below 0 counts as 0."""
        clamped = min(max(cosine, 0.0), 1.0)
        after = min(bisect_right(self.points, clamped, key=lambda point: point[0]), len(self.points) - 1)
        (low, bottom), (high, top) = self.points[after - 1], self.points[after]
        # rounding must not lift the end of a segment above the start of the next
        return min(bottom + (clamped - low) * (top - bottom) / (high - low), top)


def scale_of(floor: float, covered: float, middle: float, n: int) -> RelevanceScale:
    """The scale through the three cosines that have a meaning."""
    return RelevanceScale(
        points=(
            (0.0, 0.0),
            (floor, NOISE_RELEVANCE),
            (covered, COVERED_RELEVANCE),
            (middle, MEDIAN_RELEVANCE),
            (1.0, 1.0),
        ),
        n=n,
    )


def scale_from(cosines: Sequence[float], *, floor: float | None, prior: RelevanceScale) -> RelevanceScale:
    """The scale for the best cosines of covered questions. It is drawn to `prior`, because the 5th percentile of a
    short list says little; a prior that nobody has measured counts as one question. Without a `floor` the noise floor
    is the prior's."""
    import numpy as np

    covered, middle = (float(value) for value in np.quantile(cosines, (1 - COVERED_SHARE, 0.5)))
    previous = [cosine for cosine, _ in prior.points[1:-1]]
    noise = previous[0] if floor is None else floor
    share = len(cosines) / (len(cosines) + (PRIOR_QUESTIONS if prior.n else 1))
    measured = (min(noise, covered), covered, middle)
    drawn = [share * new + (1 - share) * old for new, old in zip(measured, previous, strict=True)]
    return scale_of(drawn[0], drawn[1], drawn[2], n=len(cosines))


def misfit(scale: RelevanceScale, cosines: Sequence[float]) -> float:
    """How far the best cosines of covered questions are from what the scale says of them."""
    relevances = [scale.of(cosine) for cosine in cosines]
    kept = sum(relevance >= COVERED_RELEVANCE for relevance in relevances) / len(relevances)
    return abs(kept - COVERED_SHARE) + abs(median(relevances) - MEDIAN_RELEVANCE)


# for an embedder that nobody has measured: about the local one's scale
UNMEASURED = scale_of(0.13, 0.29, 0.53, n=0)
