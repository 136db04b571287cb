"""From signals to a judgement. Two sums are weighed, each a logistic regression whose weights have the sign that
their meaning demands (more of the words found can only help, an alarm can only hurt), but for a few that may have any.

- `truth`: was anything changed? Fitted on sentences of lessons, put in other words or falsified.
- `cover`: is it there at all? Fitted on statements about encyclopedia and news texts.

`scripts/fit_judge.py` makes the weights in `support.json` and says from what. One set is for words alone, one for
words and an embedder's cosines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lectern.answering.alarms import ALARMS, GROUPS, Alarms
from lectern.answering.alignment import SIGNALS, Signals

WEIGHTS = Path(__file__).with_name("support.json")
CLOSE_FROM = 0.4  # share of a sentence's words in the unit's order; from here on an edit tells more than a new wording

# What a close copy differs in is the change; what a new wording differs in is wording.
CLOSE = ("replaced", "moved", "edited", "inserted", "left_out", "borrowed", "strayed", "opposites")
FEATURES = (*SIGNALS, *(f"{name}_in_copy" for name in CLOSE), *ALARMS, *GROUPS, "alarmed", "cosine", "words_held")
MOST_ALARMS = 6  # make `alarmed` full


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One set of parameters."""

    truth: Mapping[str, float]
    cover: Mapping[str, float]
    supported_from: float  # of `truth`
    covered_from: float  # of `cover`


@cache
def load_weights(*, meaning: bool) -> Weights:
    """The shipped parameters, for judging with an embedder or without."""
    sets = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return Weights(**sets["meaning" if meaning else "words"])


def features(signals: Signals, suspect: Alarms, cosine: float, words_held: float) -> dict[str, float]:
    """Everything that is weighed."""
    found: dict[str, float] = {name: getattr(signals, name) for name in SIGNALS}
    close = max(0.0, signals.sequence - CLOSE_FROM) / (1 - CLOSE_FROM)
    found |= {f"{name}_in_copy": found[name] * close for name in CLOSE}
    found |= {name: getattr(suspect, name) for name in ALARMS}
    counts = {group: sum(found[name] > 0 for name in members) for group, (members, _) in GROUPS.items()}
    found |= {group: min(count / GROUPS[group][1], 1.0) for group, count in counts.items()}
    found["alarmed"] = min(sum(counts.values()) / MOST_ALARMS, 1.0)
    found["cosine"] = max(0.0, cosine)
    found["words_held"] = words_held
    return found


def weigh(weights: Mapping[str, float], found: Mapping[str, float]) -> float:
    """The logistic sum, 0…1."""
    total = weights["intercept"] + math.fsum(weight * found[name] for name, weight in weights.items() if name in found)
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
