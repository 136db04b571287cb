"""From signals to a judgement: one logistic sum over what the rules found and what the network says.
`scripts/fit_judge.py` makes the weights in `support.json` and says from what. One set is for rules and network, one for
rules alone."""

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
FEATURES = (*SIGNALS, *(f"{name}_in_copy" for name in CLOSE), *ALARMS, *GROUPS, "alarmed", "words_held")
FLAGS = ("barred", "kept", "closely_copied", "against")  # rules that decide most of what they are about
MOST_ALARMS = 6  # make `alarmed` full


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


def features(signals: Signals, suspect: Alarms, words_held: float) -> dict[str, float]:
    """Everything that is weighed."""
    found: dict[str, float] = {name: getattr(signals, name) for name in SIGNALS}
    close = max(0.0, signals.sequence - CLOSE_FROM) / (1 - CLOSE_FROM)
    found |= {f"{name}_in_copy": found[name] * close for name in CLOSE}
    found |= {name: getattr(suspect, name) for name in ALARMS}
    counts = {group: sum(found[name] > 0 for name in members) for group, (members, _) in GROUPS.items()}
    found |= {group: min(count / GROUPS[group][1], 1.0) for group, count in counts.items()}
    found["alarmed"] = min(sum(counts.values()) / MOST_ALARMS, 1.0)
    found["words_held"] = words_held
    return found


def weigh(weights: Mapping[str, float], found: Mapping[str, float]) -> float:
    """The logistic sum, 0…1."""
    total = weights["intercept"] + math.fsum(weight * found[name] for name, weight in weights.items() if name in found)
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))
