"""Answerability: a second check of the evidence, for an answerer that can only quote. A passage can be similar to a
question and still not answer it. The answer locator reads the best passages with the question, and the excerpts that
would be quoted are ranked. What it says of them, where they were found and which words the book lacks become the
confidence: how likely what is quoted answers the question. `scripts/fit_answerability.py` makes the weights in
`answerability.json`."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

from lectern.confidence.locating import CANNOT_ANSWER, MAX_LOG_ODDS, locate, readable
from lectern.confidence.policies import level_of
from lectern.confidence.ranking import MIN_LOG_ODDS, Ranked, Shortlist, candidates_of
from lectern.confidence.requirements import asks
from lectern.confidence.signals import CONFIDENCE_HITS, signals_of
from lectern.domain.evidence import HIGH, LOW, MEDIUM, ConfidenceMetrics, Hit
from lectern.ports.answering import AnswerLocator, Passage

WEIGHTS = Path(__file__).with_name("answerability.json")
ENGLISH = "en"
MAX_PASSAGES = 8  # fixed, so that confidence does not depend on the `top_k` of a request
MIN_PART_WORDS = 2  # of a part that counts as a question
MAX_PARTS = 3  # questions of one text that are also checked one by one
MAX_ABSENT = 3  # words that the book lacks; more say no more
TYPICAL_LEAD = 0.10  # how far the nearest hit is ahead of another one on average
MAX_EXPONENT = 30.0  # larger log-odds do not change the probability
MIN_CHANCE = 1e-12  # so that log-odds are finite
LEVELS = {"low": LOW, "medium": MEDIUM, "high": HIGH}  # the confidence at which each begins

_QUESTION_GAP = re.compile(r"(?<=[.!?])\s+")  # readers begin a question in lower case, books no sentence

Signals = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Answerability:
    """Lowers the confidence if the evidence does not seem to answer the question."""

    locator: AnswerLocator

    async def adjust(
        self, question: str, hits: Sequence[Hit], metrics: ConfidenceMetrics, language: str, absent: int = 0
    ) -> ConfidenceMetrics:
        """The metrics, with a lower confidence if what would be quoted hardly answers the question; `absent` is the
        number of its rare words that the book lacks. They are unchanged if the locator cannot read the language. A text
        that is no question but a subject is never refused here: the book's passages on it are shown."""
        if not hits or not language.startswith(ENGLISH):
            return metrics
        if not readable(question, [hit.chunk.text for hit in hits[:MAX_PASSAGES]]):
            return metrics
        likely = confidence_of(probability(await self.signals(question, hits, absent), fitted_weights()))
        confidence = min(metrics.confidence, likely if asks(question) else max(likely, LOW))
        level = level_of(confidence)
        return replace(metrics, confidence=confidence, confidence_level=level, should_answer=level != "insufficient")

    async def signals(self, question: str, hits: Sequence[Hit], absent: int) -> Signals:
        """The signals that the excerpts of the passages answer the question."""
        passages = [passage_of(number, hit) for number, hit in enumerate(hits[:MAX_PASSAGES], start=1)]
        by_part = await asyncio.gather(*(locate(self.locator, part, passages) for part in questions_in(question)))
        odds = [
            [max(quote_odds) for quote_odds in zip(*passage_odds, strict=True)]
            for passage_odds in zip(*by_part, strict=True)
        ]
        ranked = Shortlist(question, candidates_of(question, passages, odds)).ranked()
        similarities = [hit.similarity for hit in hits[:CONFIDENCE_HITS]]
        missing = CONFIDENCE_HITS - len(similarities)  # a small book has few others to be ahead of
        first = ranked[0].candidate if ranked else None
        return {
            "best": max(_combined(passage_odds) for passage_odds in odds),
            "first": first.any_odds if first else MIN_LOG_ODDS,
            "page": _share_of_page(ranked, hits[:MAX_PASSAGES]),
            "lead": fmean([similarities[0] - similarity for similarity in similarities] + [TYPICAL_LEAD] * missing),
            "place": (first.similarity if first else 0.0) - similarities[0],
            "pairs": signals_of(question, hits).pairs,
            "absent": float(min(absent, MAX_ABSENT)),
        }


async def answer_odds(locator: AnswerLocator, question: str, hits: Sequence[Hit]) -> list[float]:
    """The log-odds that each hit answers a question; the same for all if the locator cannot read them."""
    odds = await locate(locator, question, [passage_of(number, hit) for number, hit in enumerate(hits, start=1)])
    return [_combined(passage_odds) for passage_odds in odds]


def questions_in(question: str) -> list[str]:
    """The question, followed by its parts if it consists of several: a passage that answers one part is worth
    showing."""
    parts = [part for part in _QUESTION_GAP.split(question.strip()) if part.endswith("?") and readable(part, ())]
    questions = [part for part in parts if len(part.split()) >= MIN_PART_WORDS and part != question.strip()]
    return [question, *questions[:MAX_PARTS]]


def probability(signals: Signals, weights: Mapping[str, float]) -> float:
    """The logistic sum."""
    total = weights["intercept"] + math.fsum(weights[name] * value for name, value in signals.items())
    return 1 / (1 + math.exp(-max(-MAX_EXPONENT, min(MAX_EXPONENT, total))))


def confidence_of(probability: float) -> float:
    """The confidence that stands for a probability to answer right: the levels begin at fitted probabilities, and
    between them the log-odds of both are proportional."""
    chances = fitted_levels()
    steps = [(_log_odds(chances[level]), _log_odds(least)) for level, least in LEVELS.items()]
    at = max(-MAX_EXPONENT, min(MAX_EXPONENT, _log_odds(probability)))
    (left, low), (right, high) = steps[:2] if at < steps[1][0] else steps[1:]
    return 1 / (1 + math.exp(-(low + (at - left) * (high - low) / (right - left))))


@cache
def fitted_weights() -> Mapping[str, float]:
    """The fitted weights of the signals."""
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    return weights


@cache
def fitted_levels() -> Mapping[str, float]:
    """The probabilities at which the levels begin."""
    levels: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["levels"]
    return levels


def passage_of(number: int, hit: Hit) -> Passage:
    """A hit as the networks read it."""
    page = hit.chunk.page_title or ""
    return Passage(
        number=number,
        text=hit.chunk.text,
        heading=hit.chunk.section_title or page,
        similarity=hit.similarity,
        page=page,
    )


def _share_of_page(ranked: Sequence[Ranked], hits: Sequence[Hit]) -> float:
    """The probability that the answer is on the page of the first excerpt, as if there were one more passage: where
    there is little to choose from, that they agree says little. Two excerpts of a page seldom exclude each other, so
    that the first is no likelier than the second one does not make the reply doubtful."""
    files = [hits[entry.candidate.number - 1].chunk.source_file for entry in ranked]
    share = sum(entry.probability for entry, file in zip(ranked, files, strict=True) if file == files[0])
    return share * len(hits) / (len(hits) + 1)


def _log_odds(chance: float) -> float:
    bounded = max(MIN_CHANCE, min(1 - MIN_CHANCE, chance))
    return math.log(bounded / (1 - bounded))


def _combined(odds: Sequence[float]) -> float:
    """The log-odds that any quote of a passage answers."""
    top = max(odds, default=CANNOT_ANSWER)
    if top == CANNOT_ANSWER:
        return -MAX_LOG_ODDS
    return top + math.log(math.fsum(math.exp(value - top) for value in odds))
