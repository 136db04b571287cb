"""The fitted sum: one logistic sum over the signals and what the network says. `scripts/fit_judge.py` makes the weights
in `weights.json` and says from what. One set is for signals and network, one for signals alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WEIGHTS = Path(__file__).with_name("weights.json")
MAX_LOG_ODDS = 30.0  # more says no more, and may be too much for a float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One set of parameters."""

    sum: Mapping[str, float]
    supported_from: float


@cache
def load_weights(*, entailed: bool) -> Weights:
    """The shipped parameters, for judging with a network or without."""
    sets = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return Weights(**sets["network" if entailed else "rules"])


def weigh(weights: Mapping[str, float], signals: Mapping[str, float]) -> float:
    """The logistic sum, 0…1."""
    terms = (weight * signals[name] for name, weight in weights.items() if name in signals)
    total = weights["intercept"] + math.fsum(terms)
    return 1 / (1 + math.exp(-max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, total))))
