"""The fitted weights of the judge: a logistic regression over the signals and the network's score.
`scripts/fit_judge.py` makes `weights.json` and documents its data. One set of weights is for the signals with the
network, one for the signals only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WEIGHTS = Path(__file__).with_name("weights.json")
MAX_LOG_ODDS = 30.0  # higher values change nothing and could overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One set of weights, and the sums from which a claim is supported and below which it is doubtful."""

    sum: Mapping[str, float]
    supported_from: float
    doubtful_below: float


@cache
def load_weights(*, entailed: bool) -> Weights:
    """The shipped weights, for judging with a network or without."""
    sets = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return Weights(**sets["network" if entailed else "rules"])


def weigh(weights: Mapping[str, float], signals: Mapping[str, float]) -> float:
    """The logistic function of the weighted sum, from 0 to 1."""
    terms = (weight * signals[name] for name, weight in weights.items() if name in signals)
    total = weights["intercept"] + math.fsum(terms)
    return 1 / (1 + math.exp(-max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, total))))
