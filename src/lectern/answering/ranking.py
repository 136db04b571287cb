"""How likely a quote is to answer a question: a weighted sum of signals, made into shares that add up to one over all
quotes at hand. The weights come from questions with known answers (`scripts/fit_offline.py`) and lie beside this file;
what they say can be read off them. Rarity, nearness and length are all relative to the quotes at hand, so nothing here
knows any book."""

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

from lectern.answering.question_types import asked_for, holds
from lectern.answering.quotes import Quote
from lectern.domain.chunks import Vector
from lectern.text.words import stems, telling_stems

WEIGHTS = Path(__file__).parent / "ranking.json"
ALIKE = 5  # letters that two stems share when they may be forms of one word
NEWS = 2  # words beyond the question's that a quote has at least, if it is to tell anything

_NUMBER = re.compile(r"\d+")

Signals = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A quote where it was found."""

    quote: Quote
    number: int  # its passage's
    heading: str  # above it
    similarity: float = 0.0  # of its passage to the question
    odds: float = 0.0  # the finder's, that it answers

    @property
    def context(self) -> str:
        """The quote as a reader comes to it from above; a row means nothing without its head."""
        before = self.quote.before if self.quote.kind in ("row", "code") else ""
        return "\n".join(part for part in (self.heading, before, self.quote.text) if part)


class Question:
    """A question, with the quotes that may answer it."""

    def __init__(self, text: str, found: Sequence[Found]) -> None:
        self.text = text
        self.asked = asked_for(text)
        self.found = found
        self._bags = [stems(one.quote.text) for one in found]
        spread = Counter(word for bag in self._bags for word in bag)
        self._weights = {word: math.log(1 + len(found) / (1 + spread[word])) for word in telling_stems(text)}
        self._total = sum(self._weights.values()) or 1.0
        self._numbers = _NUMBER.findall(text)

    def overlaps(self) -> list[float]:
        """The share of the question's words that each quote has, rare ones counting more."""
        return [self._shared(bag) for bag in self._bags]

    def adds(self, text: str, other: str) -> bool:
        """Whether a text shares words with the question that another one lacks."""
        return self._shared(stems(text) | stems(other)) > self._shared(stems(other))

    def signals(self, cosines: Sequence[float]) -> list[Signals]:
        """For each quote, what speaks for or against it; `cosines` say how near it is in meaning."""
        nearest = sorted(range(len(cosines)), key=lambda place: -cosines[place])
        nearer = {place: -math.log(1 + rank) for rank, place in enumerate(nearest)}
        echoes = {(one.number, one.quote.place) for one in self.found if self._echoes(one.quote)}
        best = max((one.similarity for one in self.found), default=0.0)
        most = max((one.odds for one in self.found), default=0.0)
        return [
            {
                "cosine": cosines[place],
                "nearest": nearer[place],
                "rank": -math.log(one.number),
                "odds": one.odds,
                "likeliest": float(one.odds == most),
                "similarity": one.similarity - best,
                "echo": float((one.number, one.quote.place) in echoes),
                "beside_echo": float(any((one.number, one.quote.place + step) in echoes for step in (-1, 1))),
                **self._words(one, bag),
                **self._form(one.quote),
            }
            for place, (one, bag) in enumerate(zip(self.found, self._bags, strict=True))
        ]

    def _words(self, found: Found, bag: set[str]) -> Signals:
        around = stems(found.quote.before) | stems(found.heading)
        known = _NUMBER.findall(f"{found.heading} {found.quote.text}") if self._numbers else []
        return {
            "shared": self._shared(bag),
            "shared_loosely": self._loosely(bag),
            "context": self._shared(bag | around),
            "numbers": float(bool(self._numbers) and all(number in known for number in self._numbers)),
        }

    def _form(self, quote: Quote) -> Signals:
        signals = {
            quote.kind: 1.0,
            f"{quote.kind}_for_code": float(self.asked == "code"),
            "leans": float(quote.leans),
            "idle": float(quote.idle),
        }
        if self.asked not in ("other", "code"):
            signals[f"fits_{self.asked}"] = 1.0 if holds(self.asked, quote.text, self.text) else -1.0
        return signals

    def _echoes(self, quote: Quote) -> bool:
        """Whether it tells nothing that the question does not say itself, as where a question quotes the book."""
        return len(telling_stems(quote.text) - self._weights.keys()) < NEWS

    def _shared(self, words: set[str]) -> float:
        return sum(weight for word, weight in self._weights.items() if word in words) / self._total

    def _loosely(self, bag: set[str]) -> float:
        """The same for forms of one word that a stemmer keeps apart: origin and originate."""
        heads = {word[:ALIKE] for word in bag if len(word) >= ALIKE}
        return sum(weight for word, weight in self._weights.items() if word[:ALIKE] in heads) / self._total


def shares(signals: Sequence[Signals], weights: Mapping[str, float]) -> list[float]:
    """How likely each of these quotes is the one that answers; together 1."""
    scores = [sum(weights.get(name, 0.0) * value for name, value in one.items()) for one in signals]
    top = max(scores, default=0.0)
    raised = [math.exp(score - top) for score in scores]
    total = sum(raised)
    return [value / total for value in raised]


def cosine(one: Vector, other: Vector) -> float:
    """How near two vectors are in direction."""
    length = math.hypot(*one) * math.hypot(*other)
    return sum(map(mul, one, other)) / length if length else 0.0


@cache
def learnt() -> Mapping[str, float]:
    """The weights that were fitted."""
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    return weights
