"""Weights of words by how common they are. A common word in a passage says little about whether the passage answers a
question, so the commonest words of English have the lowest weights. The list holds stems in the order of the local
model's vocabulary, which is roughly the order of frequency. A word that is not in the list has the weight 1, so all
words of other languages have it."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

COMMON_STEMS_FILE = Path(__file__).parent / "everyday.txt"
MIN_WEIGHT = (
    0.3  # of the commonest word; weights grow with the logarithm of the rank and reach 1 at the end of the list
)
RARITY_SPAN = 3.0  # the last word of the list counts as (1 + RARITY_SPAN) times as rare as the first


def word_weight(stem: str) -> float:
    """The weight of a stem, from MIN_WEIGHT to 1."""
    return _weights().get(stem, 1.0)


@cache
def _weights() -> dict[str, float]:
    stems = COMMON_STEMS_FILE.read_text(encoding="utf-8").split()
    return {
        stem: max(MIN_WEIGHT, math.log1p(RARITY_SPAN * rank / len(stems)) / math.log1p(RARITY_SPAN))
        for rank, stem in enumerate(stems)
    }
