"""Which excerpts of the passages may answer a question, and how likely each is the one: a weighted sum of a few
signals, turned into probabilities that add up to one over all candidates. The weights were fitted on questions with
known answers (`scripts/fit_offline.py`) and are in `ranking.json`. Rarity and similarity are relative to the other
candidates, so nothing here depends on a book."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lectern.confidence.locating import CANNOT_ANSWER
from lectern.confidence.requirements import with_code
from lectern.ports.answering import Passage
from lectern.text.excerpts import Excerpt, excerpts_of, without
from lectern.text.markers import has_marker
from lectern.text.pieces import Piece
from lectern.text.quotes import quotes_of
from lectern.text.words import content_stems, stems

WEIGHTS = Path(__file__).with_name("ranking.json")
MIN_LOG_ODDS = -9.0  # of an excerpt that no quote is in

_REFERENCE = re.compile(  # says where, not what: `See [lesson 1.2](…).`
    r"\W*(?:see|compare|cf)\b\.?\s*(?:also\s+)?(?:\[[^\]]*\]\([^)]*\)|(?:\d\.\d|[^.]){1,50})\W*", re.IGNORECASE
)

Signals = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An excerpt that may answer, and its place."""

    excerpt: Excerpt
    number: int  # of its passage
    passage: str
    heading: str  # above it
    similarity: float  # of its passage to the question
    odds: Mapping[int, float]  # by the start of a quote in the passage: the network's log-odds that it answers

    @property
    def any_odds(self) -> float:
        """The log-odds that any quote of the excerpt answers."""
        top = max(self.odds.values(), default=MIN_LOG_ODDS)
        if top <= MIN_LOG_ODDS:
            return MIN_LOG_ODDS
        return top + math.log(math.fsum(math.exp(value - top) for value in self.odds.values()))

    def odds_of(self, pieces: Sequence[Piece]) -> float:
        """The highest log-odds of the quotes in some pieces of one block."""
        first, last = pieces[0].start, pieces[-1].end
        return max((odds for start, odds in self.odds.items() if first <= start < last), default=MIN_LOG_ODDS)


def candidates_of(question: str, passages: Sequence[Passage], odds: Sequence[Sequence[float]]) -> list[Candidate]:
    """All excerpts that may answer; `odds` has the log-odds of each passage's quotes. Listings are left out unless the
    question asks for code or names an identifier."""
    takes_code = with_code(question)
    return [
        candidate
        for passage, passage_odds in zip(passages, odds, strict=True)
        for candidate in _of_passage(passage, passage_odds)
        if takes_code or candidate.excerpt.kind != "listing"
    ]


def _of_passage(passage: Passage, odds: Sequence[float]) -> list[Candidate]:
    """The excerpts of a passage. What announces, points elsewhere, cannot answer or has brackets that read as our
    citations is left out."""
    by_start: dict[int, float] = {}
    for quote, value in zip(quotes_of(passage.text), odds, strict=True):
        if quote.kind != "list":
            bounded = MIN_LOG_ODDS if quote.idle or value == CANNOT_ANSWER else max(value, MIN_LOG_ODDS)
            by_start[quote.start] = max(by_start.get(quote.start, MIN_LOG_ODDS), bounded)
    candidates = []
    for whole in excerpts_of(passage.text):
        excerpt = without(whole, _is_unquotable)
        own = {start: value for start, value in by_start.items() if excerpt and _contains(excerpt, start)}
        if excerpt is None or all(value == MIN_LOG_ODDS for value in own.values()):
            continue
        candidates.append(
            Candidate(
                excerpt=excerpt,
                number=passage.number,
                passage=passage.text,
                heading=excerpt.heading or passage.heading,
                similarity=passage.similarity,
                odds=own,
            )
        )
    return candidates


def _contains(excerpt: Excerpt, start: int) -> bool:
    return any(part.pieces[0].block.start <= start < part.pieces[0].block.end for part in excerpt.shown)


def _is_unquotable(text: str) -> bool:
    return has_marker(text) or _REFERENCE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its signals and the probability that it is the one that answers."""

    candidate: Candidate
    signals: Signals
    probability: float


class Shortlist:
    """A question with the candidates that may answer it."""

    def __init__(self, question: str, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self._question_stems = content_stems(question) or stems(question)  # `let else` has no word with content
        self._stems = [stems(candidate.excerpt.text) for candidate in candidates]
        spread = Counter(word for words in self._stems for word in words)
        self._weights = {word: math.log(1 + len(candidates) / (1 + spread[word])) for word in self._question_stems}
        self._total = sum(self._weights.values()) or 1.0

    def signals(self) -> list[Signals]:
        """The signals of each candidate."""
        max_similarity = max((candidate.similarity for candidate in self.candidates), default=0.0)
        max_odds = max((max(candidate.odds.values(), default=MIN_LOG_ODDS) for candidate in self.candidates), default=0)
        return [
            {
                "odds": candidate.any_odds,
                "likeliest": float(max(candidate.odds.values(), default=MIN_LOG_ODDS) == max_odds),
                "rank": -math.log(candidate.number),
                "similarity": candidate.similarity - max_similarity,
                "shared": self._share(words),
                "context": self._share(words | stems(candidate.heading)),
                "heading": self._heading(candidate.heading),
                "words": math.log(1 + candidate.excerpt.words) / 4,
            }
            for candidate, words in zip(self.candidates, self._stems, strict=True)
        ]

    def ranked(self) -> list[Ranked]:
        """The candidates, the most likely first."""
        signals = self.signals()
        entries = [
            Ranked(candidate=candidate, signals=values, probability=probability)
            for candidate, values, probability in zip(
                self.candidates, signals, probabilities(signals, fitted_weights()), strict=True
            )
        ]
        return sorted(entries, key=lambda entry: -entry.probability)

    def missing(self, chosen: Sequence[Candidate]) -> set[str]:
        """The question's words that no chosen candidate has, headings included."""
        words = [stems(f"{candidate.heading} {candidate.excerpt.text}") for candidate in chosen]
        return self._question_stems - set().union(*words)

    def _share(self, words: set[str]) -> float:
        """The share of the question's words; rare words count more."""
        return sum(weight for word, weight in self._weights.items() if word in words) / self._total

    def _heading(self, heading: str) -> float:
        """How far a heading and the question have the same words."""
        words = content_stems(heading)
        if not words or not self._question_stems:
            return 0.0
        shared = len(words & self._question_stems)
        return shared / len(words) * shared / len(self._question_stems)


def probabilities(signals: Sequence[Signals], weights: Mapping[str, float]) -> list[float]:
    """The probability of each candidate to be the one that answers; they add up to 1."""
    scores = [sum(weights.get(name, 0.0) * value for name, value in values.items()) for values in signals]
    top = max(scores, default=0.0)
    raised = [math.exp(score - top) for score in scores]
    total = sum(raised)
    return [value / total for value in raised]


@cache
def fitted_weights() -> Mapping[str, float]:
    """The fitted weights of the signals."""
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    return weights
