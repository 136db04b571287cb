"""Answerability: a second look at the evidence, for a model that can only quote. A passage can be near to a question
and still not answer it. The answer locator reads the best passages with the question. Its estimates are combined with
the policy's confidence, and with whether the best passage contains the names in the question.
`scripts/fit_answerability.py` makes the weights in `answerability.json`."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from lectern.confidence.location import CANNOT_ANSWER, MAX_LOG_ODDS, locate, readable
from lectern.confidence.policies import level_of
from lectern.domain.evidence import ConfidenceMetrics, Hit
from lectern.ports.answering import AnswerLocator, Passage

WEIGHTS = Path(__file__).with_name("answerability.json")
ENGLISH = "en"
PASSAGES = 5  # that are looked at, however many are handed out: the number must not move with what a reader asks for
LEAST_WORDS = 2  # of a question among several
MOST_PARTS = 3  # questions in one text that are looked at one by one
SURE = 30.0  # log-odds beyond this say no more

# A word that names: it has a digit, a capital letter inside or at its head, or is written as code.
_NAME = re.compile(r"`([^`]+)`|(?<![\w'])([A-Za-z]*[A-Z0-9](?:[\w.-]*\w)?[+#]*)|\b(\w+_\w+)\b")
_NO_NAMES = frozenset(("i", "ok"))

_ASKS = re.compile(
    r"(?i)\?|^\W*(?:and |but |so |ok(?:ay)?,? |hi,? )?(?:what|why|how|when|where|which|who|whom|whose"
    r"|is|are|was|were|do|does|did|can|could|should|would|will|has|have|may|must|am)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_FIRST = re.compile(r"(?:^|[.!?]\s+)\W*[A-Z]")  # capital because a sentence begins

Signals = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Answerability:
    """Reads the evidence before anything is quoted from it."""

    locator: AnswerLocator

    async def adjust(
        self, question: str, hits: Sequence[Hit], metrics: ConfidenceMetrics, language: str
    ) -> ConfidenceMetrics:
        """The metrics, less sure where these passages, the best of the ranking, hardly answer; as they were where the
        finder cannot read, and where nothing is asked: whoever names a subject is shown what the book has on it."""
        if not hits or not language.startswith(ENGLISH) or not asks(question):
            return metrics
        if not readable(question, [hit.chunk.text for hit in hits[:PASSAGES]]):
            return metrics
        signals = await self.signals(question, hits, metrics.confidence)
        confidence = min(metrics.confidence, probability(signals, learnt()))
        level = level_of(confidence)
        return replace(metrics, confidence=confidence, confidence_level=level, should_answer=level != "insufficient")

    async def signals(self, question: str, hits: Sequence[Hit], confidence: float) -> Signals:
        """What speaks for an answer being there."""
        hits = hits[:PASSAGES]
        passages = [_passage(number, hit) for number, hit in enumerate(hits, start=1)]
        askings = await asyncio.gather(*(locate(self.locator, part, passages) for part in parts_of(question)))
        odds = [[max(each) for each in zip(*some, strict=True)] for some in zip(*askings, strict=True)]
        by_passage = sorted((_together(some) for some in odds), reverse=True)
        best = max(range(len(hits)), key=lambda place: max(odds[place], default=CANNOT_ANSWER))
        chunk = hits[best].chunk
        return {
            "best": by_passage[0],
            "second": by_passage[:2][-1],  # a book of one page has no second passage, and is none the worse for it
            "confidence": _log_odds(confidence),
            "named": _named(question, " ".join((*chunk.trail, chunk.text))),
        }


def asks(text: str) -> bool:
    """Whether it is put as a question, not as a subject or an errand."""
    return _ASKS.search(text) is not None


def parts_of(question: str) -> list[str]:
    """The question, and where it is made of several, these too: a passage that answers one of them is one to show."""
    parts = [part for part in _SENTENCE.split(question.strip()) if part.endswith("?") and readable(part, ())]
    asked = [part for part in parts if len(part.split()) >= LEAST_WORDS and part != question.strip()]
    return [question, *asked[:MOST_PARTS]]


def probability(signals: Signals, weights: Mapping[str, float]) -> float:
    """The logistic sum: how probable an answer is where covered and uncovered questions are as frequent as the weights
    suppose."""
    total = weights["intercept"] + math.fsum(weights[name] * value for name, value in signals.items())
    return 1 / (1 + math.exp(-max(-SURE, min(SURE, total))))


@cache
def learnt() -> Mapping[str, float]:
    """The weights that were fitted."""
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    return weights


def _passage(number: int, hit: Hit) -> Passage:
    page = hit.chunk.page_title or ""
    return Passage(number=number, text=hit.chunk.text, heading=hit.chunk.section_title or page, page=page)


def _together(odds: Sequence[float]) -> float:
    """The log-odds that any of the quotes answers."""
    top = max(odds, default=CANNOT_ANSWER)
    if top == CANNOT_ANSWER:
        return -MAX_LOG_ODDS
    return top + math.log(math.fsum(math.exp(one - top) for one in odds))


def _log_odds(chance: float) -> float:
    bounded = min(max(chance, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


def _named(question: str, text: str) -> float:
    """The share of the question's names that the passage has; 1 where it names nothing."""
    lowered = _FIRST.sub(lambda found: found.group().lower(), question)
    names = {next(filter(None, found)).lower() for found in _NAME.findall(lowered)} - _NO_NAMES
    there = text.lower()
    held = [re.search(rf"(?<!\w){re.escape(name)}(?!\w)", there) is not None for name in names]
    return sum(held) / len(held) if held else 1.0
