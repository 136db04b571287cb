"""How likely a quote is to answer a question: a weighted sum of signals, turned into probabilities that add up to one
over all candidates. The weights were fitted on questions with known answers (`scripts/fit_offline.py`) and are in
`ranking.json`. Rarity and similarity are relative to the other candidates, so nothing here depends on a book."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import mul
from pathlib import Path

from lectern.confidence.requirements import asks_for_code
from lectern.domain.chunks import Vector
from lectern.text.quotes import Quote
from lectern.text.words import content_stems, stems

WEIGHTS = Path(__file__).with_name("ranking.json")
SHARED_PREFIX = 5  # letters that two stems share when they may be forms of one word
MIN_NEW_WORDS = 2  # words beyond the question's that a quote needs to tell anything

_DIGITS = re.compile(r"\d+")

Signals = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A quote that may answer, and its place."""

    quote: Quote
    number: int  # of its passage
    heading: str  # above it
    similarity: float = 0.0  # of its passage to the question
    odds: float = 0.0  # the network's log-odds that it answers

    @property
    def context(self) -> str:
        """The quote with its heading; a row or listing also with the text before it, without which it means little."""
        before = self.quote.before if self.quote.kind in ("row", "code") else ""
        return "\n".join(part for part in (self.heading, before, self.quote.text) if part)


class Shortlist:
    """A question with the candidates that may answer it."""

    def __init__(self, question: str, candidates: Sequence[Candidate]) -> None:
        self.question = question
        self.candidates = candidates
        self._for_code = asks_for_code(question)
        self._stems = [stems(candidate.quote.text) for candidate in candidates]
        spread = Counter(word for words in self._stems for word in words)
        self._weights = {word: math.log(1 + len(candidates) / (1 + spread[word])) for word in content_stems(question)}
        self._total = sum(self._weights.values()) or 1.0
        self._numbers = _DIGITS.findall(question)

    def overlaps(self) -> list[float]:
        """The share of the question's words that each quote has; rare words count more."""
        return [self._shared(words) for words in self._stems]

    def adds(self, text: str, base: str) -> bool:
        """Whether a text has words of the question that `base` lacks."""
        return self._shared(stems(text) | stems(base)) > self._shared(stems(base))

    def signals(self, cosines: Sequence[float]) -> list[Signals]:
        """The signals of each quote; `cosines` are those of the quotes and the question."""
        by_cosine = sorted(range(len(cosines)), key=lambda place: -cosines[place])
        nearness = {place: -math.log(1 + rank) for rank, place in enumerate(by_cosine)}
        echoes = {(entry.number, entry.quote.place) for entry in self.candidates if self._echoes(entry.quote)}
        max_similarity = max((entry.similarity for entry in self.candidates), default=0.0)
        max_odds = max((entry.odds for entry in self.candidates), default=0.0)
        return [
            {
                "cosine": cosines[place],
                "nearest": nearness[place],
                "rank": -math.log(entry.number),
                "odds": entry.odds,
                "likeliest": float(entry.odds == max_odds),
                "similarity": entry.similarity - max_similarity,
                "echo": float((entry.number, entry.quote.place) in echoes),
                "beside_echo": float(any((entry.number, entry.quote.place + step) in echoes for step in (-1, 1))),
                **self._words(entry, words),
                **self._form(entry.quote),
            }
            for place, (entry, words) in enumerate(zip(self.candidates, self._stems, strict=True))
        ]

    def _words(self, candidate: Candidate, words: set[str]) -> Signals:
        around = stems(candidate.quote.before) | stems(candidate.heading)
        numbers = _DIGITS.findall(f"{candidate.heading} {candidate.quote.text}") if self._numbers else []
        return {
            "shared": self._shared(words),
            "shared_loosely": self._shared_loosely(words),
            "context": self._shared(words | around),
            "numbers": float(bool(self._numbers) and all(number in numbers for number in self._numbers)),
        }

    def _form(self, quote: Quote) -> Signals:
        return {
            quote.kind: 1.0,
            f"{quote.kind}_for_code": float(self._for_code),
            "leans": float(quote.leans),
            "idle": float(quote.idle),
        }

    def _echoes(self, quote: Quote) -> bool:
        """Whether it says nothing beyond the question, as when a question quotes the book."""
        return len(content_stems(quote.text) - self._weights.keys()) < MIN_NEW_WORDS

    def _shared(self, words: set[str]) -> float:
        return sum(weight for word, weight in self._weights.items() if word in words) / self._total

    def _shared_loosely(self, words: set[str]) -> float:
        """The weighted share of the question's words, with forms that a stemmer does not join: origin, originate."""
        prefixes = {word[:SHARED_PREFIX] for word in words if len(word) >= SHARED_PREFIX}
        return sum(weight for word, weight in self._weights.items() if word[:SHARED_PREFIX] in prefixes) / self._total


def probabilities(signals: Sequence[Signals], weights: Mapping[str, float]) -> list[float]:
    """The probability of each quote to be the one that answers; they add up to 1."""
    scores = [sum(weights.get(name, 0.0) * value for name, value in values.items()) for values in signals]
    top = max(scores, default=0.0)
    raised = [math.exp(score - top) for score in scores]
    total = sum(raised)
    return [value / total for value in raised]


def cosine(first: Vector, second: Vector) -> float:
    """The cosine of two vectors."""
    length = math.hypot(*first) * math.hypot(*second)
    return sum(map(mul, first, second)) / length if length else 0.0


@cache
def fitted_weights() -> Mapping[str, float]:
    """The fitted weights of the signals."""
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    return weights
