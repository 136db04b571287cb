"""Answerability: a second check of the evidence, for an answerer that can only quote. A passage can be similar to a
question and still not answer it. The answer locator reads the best passages with the question. Its estimates are
combined with the policy's confidence, and with whether the best passage contains the names in the question.
`scripts/fit_answerability.py` makes the weights in `answerability.json`.

Finds where passages answer a question: for each quote the log-odds that it answers. They come from a network that
reads a question together with the pieces of a passage. The network does not know misspellings, so the question is
respelt as the passages spell it. It reads H1 and G1 as nearly the same word, so a quote that cannot answer
(`requirements`) is excluded, whatever the network says.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from lectern.confidence.policies import level_of
from lectern.confidence.requirements import Requirement
from lectern.domain.evidence import ConfidenceMetrics, Hit
from lectern.ports.answering import AnswerLocator, Passage
from lectern.text.language import is_english
from lectern.text.quotes import Quote, introduced, items_of, pieces_of, quotes_of
from lectern.text.words import letters_of, one_edit, stem, word_weight

CANNOT_ANSWER = -math.inf  # the log-odds of a quote that does not meet what the question requires
MAX_LOG_ODDS = 8.0  # the network's values are cut here
MIN_LATIN_SHARE = 0.9  # of a question's letters, below which the network cannot read it
MIN_RESPELT_LETTERS = 5  # shorter words are too similar to each other

_PLAIN_WORD = re.compile(r"(?<![\w`./-])[^\W\d_]+(?![\w`/-])")  # no part of a path, of code or of a model mark
WEIGHTS = Path(__file__).with_name("answerability.json")
ENGLISH = "en"
MAX_PASSAGES = 5  # fixed, so that confidence does not depend on the `top_k` of a request
MIN_PART_WORDS = 2  # of a part that counts as a question
MAX_PARTS = 3  # questions of one text that are also checked one by one
MAX_EXPONENT = 30.0  # larger log-odds do not change the probability

# A name: a word with a digit or a capital letter, or written as code.
_NAME = re.compile(r"`([^`]+)`|(?<![\w'])([A-Za-z]*[A-Z0-9](?:[\w.-]*\w)?[+#]*)|\b(\w+_\w+)\b")
_NOT_NAMES = frozenset(("i", "ok"))

_ASKS = re.compile(
    r"(?i)\?|^\W*(?:and |but |so |ok(?:ay)?,? |hi,? )?(?:what|why|how|when|where|which|who|whom|whose"
    r"|is|are|was|were|do|does|did|can|could|should|would|will|has|have|may|must|am)\b"
)
_QUESTION_GAP = re.compile(r"(?<=[.!?])\s+")  # readers begin a question in lower case, books no sentence
_FIRST_CAPITAL = re.compile(r"(?:^|[.!?]\s+)\W*[A-Z]")  # of a sentence; it does not mark a name

Signals = Mapping[str, float]


def readable(question: str, texts: Sequence[str]) -> bool:
    """Whether the network can read the question and the texts. It was trained on English."""
    letters = "".join(letters_of(question))
    latin = sum(letter.isascii() for letter in letters) >= MIN_LATIN_SHARE * len(letters)
    return bool(letters) and latin and is_english(texts)


async def locate(locator: AnswerLocator, question: str, passages: Sequence[Passage]) -> list[list[float]]:
    """For each quote of each passage the log-odds that it answers. They are 0 if the network cannot read the texts, and
    CANNOT_ANSWER if the quote lacks what the question requires."""
    texts = [passage.text for passage in passages]
    quotes = [quotes_of(text) for text in texts]
    if readable(question, texts):
        pieces = [
            (passage.heading, pieces_of(passage_quotes))
            for passage, passage_quotes in zip(passages, quotes, strict=True)
        ]
        by_piece = await locator.find(respell(question, texts), pieces)
        by_quote = [_of_quotes(passage_quotes, odds) for passage_quotes, odds in zip(quotes, by_piece, strict=True)]
    else:
        by_quote = [[0.0] * len(passage_quotes) for passage_quotes in quotes]
    requirement = Requirement(question, [title for passage in passages for title in (passage.page, passage.heading)])
    return [
        [
            value if _may_answer(requirement, passage, quote) else CANNOT_ANSWER
            for quote, value in zip(passage_quotes, odds, strict=True)
        ]
        for passage, passage_quotes, odds in zip(passages, quotes, by_quote, strict=True)
    ]


def _may_answer(requirement: Requirement, passage: Passage, quote: Quote) -> bool:
    titles = (passage.page, passage.heading, quote.heading)
    return requirement.met_by(introduced(quote), before=quote.before, titles=titles)


def respell(question: str, texts: Sequence[str]) -> str:
    """The question with misspelt words corrected: a rare word that no text has is replaced by the most frequent word of
    the texts that is one letter apart. Names stay: Austen is not Austin."""
    frequencies = sum((_words_of(text) for text in texts), Counter[str]())
    text_stems = {stem(word) for word in frequencies}

    def respelt(match: re.Match[str]) -> str:
        word = match.group()
        if (
            not word.islower()
            or len(word) < MIN_RESPELT_LETTERS
            or stem(word) in text_stems
            or word_weight(stem(word)) < 1
        ):
            return word
        near = [
            candidate
            for candidate in frequencies
            if len(candidate) >= MIN_RESPELT_LETTERS and candidate[0] == word[0] and one_edit(word, candidate)
        ]
        return min(near, key=lambda candidate: (-frequencies[candidate], candidate), default=word)

    return _PLAIN_WORD.sub(respelt, question)


def _of_quotes(quotes: Sequence[Quote], odds: Sequence[float]) -> list[float]:
    """The odds of the quotes from those of the pieces. A list has the odds of its best item."""
    of_pieces, by_place = iter(odds), dict[int, float]()
    for quote in quotes:
        items = items_of(quote, quotes) if quote.kind == "list" else []
        by_place[quote.place] = max(by_place[item.place] for item in items) if items else _bounded(next(of_pieces))
    return list(by_place.values())


def _bounded(odds: float) -> float:
    return max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, odds))


@lru_cache(maxsize=256)  # the same passages are asked for again and again
def _words_of(text: str) -> Counter[str]:
    return Counter(word.lower() for word in letters_of(text))


@dataclass(frozen=True, slots=True)
class Answerability:
    """Lowers the confidence if the evidence does not seem to answer the question."""

    locator: AnswerLocator

    async def adjust(
        self, question: str, hits: Sequence[Hit], metrics: ConfidenceMetrics, language: str
    ) -> ConfidenceMetrics:
        """The metrics, with a lower confidence if the best passages hardly answer the question. They are unchanged if
        the locator cannot read the language, or if the text is no question: for a subject, the book's passages are
        shown."""
        if not hits or not language.startswith(ENGLISH) or not asks(question):
            return metrics
        if not readable(question, [hit.chunk.text for hit in hits[:MAX_PASSAGES]]):
            return metrics
        signals = await self.signals(question, hits, metrics.confidence)
        confidence = min(metrics.confidence, probability(signals, fitted_weights()))
        level = level_of(confidence)
        return replace(metrics, confidence=confidence, confidence_level=level, should_answer=level != "insufficient")

    async def signals(self, question: str, hits: Sequence[Hit], confidence: float) -> Signals:
        """The signals that the passages answer the question."""
        hits = hits[:MAX_PASSAGES]
        passages = [_passage(number, hit) for number, hit in enumerate(hits, start=1)]
        by_part = await asyncio.gather(*(locate(self.locator, part, passages) for part in questions_in(question)))
        odds = [
            [max(quote_odds) for quote_odds in zip(*passage_odds, strict=True)]
            for passage_odds in zip(*by_part, strict=True)
        ]
        by_passage = sorted((_combined(passage_odds) for passage_odds in odds), reverse=True)
        best = max(range(len(hits)), key=lambda place: max(odds[place], default=CANNOT_ANSWER))
        chunk = hits[best].chunk
        return {
            "best": by_passage[0],
            "second": by_passage[:2][-1],  # the best again if there is only one passage
            "confidence": _log_odds(confidence),
            "named": _name_share(question, " ".join((*chunk.trail, chunk.text))),
        }


def asks(text: str) -> bool:
    """Whether a text is a question, not a subject or an instruction."""
    return _ASKS.search(text) is not None


def questions_in(question: str) -> list[str]:
    """The question, followed by its parts if it consists of several: a passage that answers one part is worth
    showing."""
    parts = [part for part in _QUESTION_GAP.split(question.strip()) if part.endswith("?") and readable(part, ())]
    questions = [part for part in parts if len(part.split()) >= MIN_PART_WORDS and part != question.strip()]
    return [question, *questions[:MAX_PARTS]]


def probability(signals: Signals, weights: Mapping[str, float]) -> float:
    """The logistic sum: the probability of an answer if covered and uncovered questions are as frequent as in the
    fit."""
    total = weights["intercept"] + math.fsum(weights[name] * value for name, value in signals.items())
    return 1 / (1 + math.exp(-max(-MAX_EXPONENT, min(MAX_EXPONENT, total))))


@cache
def fitted_weights() -> Mapping[str, float]:
    """The fitted weights of the signals."""
    weights: dict[str, float] = json.loads(WEIGHTS.read_text(encoding="utf-8"))["weights"]
    return weights


def _passage(number: int, hit: Hit) -> Passage:
    page = hit.chunk.page_title or ""
    return Passage(number=number, text=hit.chunk.text, heading=hit.chunk.section_title or page, page=page)


def _combined(odds: Sequence[float]) -> float:
    """The log-odds that any quote of a passage answers."""
    top = max(odds, default=CANNOT_ANSWER)
    if top == CANNOT_ANSWER:
        return -MAX_LOG_ODDS
    return top + math.log(math.fsum(math.exp(value - top) for value in odds))


def _log_odds(chance: float) -> float:
    bounded = min(max(chance, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


def _name_share(question: str, text: str) -> float:
    """The share of the question's names that a text has; 1 if the question has no names."""
    lowered = _FIRST_CAPITAL.sub(lambda match: match.group().lower(), question)
    names = {next(filter(None, groups)).lower() for groups in _NAME.findall(lowered)} - _NOT_NAMES
    lower_text = text.lower()
    present = [re.search(rf"(?<!\w){re.escape(name)}(?!\w)", lower_text) is not None for name in names]
    return sum(present) / len(present) if present else 1.0
