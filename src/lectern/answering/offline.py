"""The model without a key: it answers with the book's own best sentences, each cited, and adds no word of its own."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lectern.answering.citations import has_marker
from lectern.answering.sentences import sentences_of
from lectern.answering.words import stems, telling_stems
from lectern.ports import Embedder, Vector

MODEL_NAME = "offline-extractive"
MOST_WORDS = 60
MOST_SENTENCES = 3
WORTH_ADDING = 0.85  # of the best sentence's score: below that a further sentence rarely helps
LEXICAL_SHARE = 0.5
# A sentence that leans on the one before it says something else, or the opposite, when it stands alone.
_LEANS = re.compile(r"^(It|They|This|That|These|Those|He|She|So|But|And|Or|Then|However|Therefore|Also)\b|\b[Tt]hem\b")
RANK_PENALTY = 0.02  # the same sentence counts a little less in a passage further down


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as the tool response gives it."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quote:
    number: int
    place: int  # where it stands among the passage's sentences
    text: str
    score: float


class OfflineWriter:
    """Picks sentences by meaning and by shared words."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    async def write(self, question: str, passages: Sequence[Passage]) -> str:
        """The best sentences with their numbers, or nothing where there is none."""
        found = [
            (passage.number, sentence)
            for passage in passages
            for sentence in sentences_of(passage.text)
            if not has_marker(sentence)  # a footnote of the book's own would read as a citation of ours
        ]
        if not found:
            return ""
        texts = [sentence for _, sentence in found]
        vectors = await self._embedder.embed([question], purpose="question")
        vectors += await self._embedder.embed(
            [self._embedder.passages((), text)[0] for text in texts], purpose="passage"
        )
        words = _shared_words(question, texts)
        quotes = [
            _Quote(
                number=number,
                place=place,
                text=sentence,
                score=_cosine(vectors[0], vector) + LEXICAL_SHARE * shared - RANK_PENALTY * (number - 1),
            )
            for place, ((number, sentence), vector, shared) in enumerate(zip(found, vectors[1:], words, strict=True))
        ]
        return " ".join(f"{quote.text} [{quote.number}]" for quote in _choose(quotes))


def _choose(quotes: list[_Quote]) -> list[_Quote]:
    ranked = sorted(quotes, key=lambda quote: (-quote.score, quote.number, quote.text))
    chosen: list[_Quote] = []
    words = 0
    for quote in ranked:
        size = len(quote.text.split())
        if chosen and (quote.score < WORTH_ADDING * ranked[0].score or words + size > MOST_WORDS):
            continue
        if chosen and _LEANS.search(quote.text):
            continue
        if any(quote.text == other.text for other in chosen):
            continue
        chosen.append(quote)
        words += size
        if len(chosen) == MOST_SENTENCES:
            break
    first, *more = chosen
    return [first, *sorted(more, key=lambda quote: (quote.number, quote.place))]


def _shared_words(question: str, texts: Sequence[str]) -> list[float]:
    """The share of the question's words that each text has, rare words counting more."""
    bags = [stems(text) for text in texts]
    spread = Counter(word for bag in bags for word in bag)
    asked = {word: math.log(1 + len(texts) / (1 + spread[word])) for word in telling_stems(question)}
    total = sum(asked.values()) or 1.0
    return [sum(weight for word, weight in asked.items() if word in bag) / total for bag in bags]


def _cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))
