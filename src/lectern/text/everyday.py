"""How much a word tells. That a passage has a word which any text may have says little about whether it answers, so
the commonest words of English count least. The list holds stems in the order of the local model's vocabulary, which is
about that of frequency; a word that is not on it counts in full, as all words of another language do."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "everyday.txt"
LEAST = 0.3  # of the commonest; it grows with the logarithm of the rank and reaches 1 with the last on the list
SPAN = 3.0  # the list's end is (1 + SPAN) times as rare as its beginning


def telling(stem: str) -> float:
    """The weight of a word, 0.3 to 1."""
    return _weights().get(stem, 1.0)


@cache
def _weights() -> dict[str, float]:
    stems = FILE.read_text(encoding="utf-8").split()
    return {
        stem: max(LEAST, math.log1p(SPAN * rank / len(stems)) / math.log1p(SPAN)) for rank, stem in enumerate(stems)
    }
