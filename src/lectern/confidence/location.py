"""Where passages answer a question: for each of their quotes the log-odds that it answers, from the network that reads
a question together with the pieces of a passage. The network knows words and not their misspellings, so the question is
read as the passages spell it; and it takes H1 and G1 for nearly the same word, so a quote that cannot answer
(`requirements`) is excluded whatever the network says."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from lectern.confidence.requirements import Requirement
from lectern.ports.answering import AnswerLocator, Passage
from lectern.text.everyday import telling
from lectern.text.language import english
from lectern.text.quotes import Quote, introduced, items_of, pieces_of, quotes_of
from lectern.text.words import one_edit, stem

CANNOT_ANSWER = -math.inf  # the log-odds of a quote that does not meet what the question requires
MAX_LOG_ODDS = 8.0  # beyond this they say no more
MIN_LATIN_SHARE = 0.9  # of a question's letters, below which the network cannot read it
MIN_RESPELT_LETTERS = 5  # shorter words are too near to each other

_LETTERS = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_PLAIN_WORD = re.compile(r"(?<![\w`./-])[^\W\d_]+(?![\w`/-])")  # no part of a path, of code or of a model mark


def readable(question: str, texts: Sequence[str]) -> bool:
    """Whether the network can read them: it was trained on English."""
    letters = _LETTERS.findall(question)
    latin = sum(letter.isascii() for letter in letters) >= MIN_LATIN_SHARE * len(letters)
    return bool(letters) and latin and english(texts)


async def locate(locator: AnswerLocator, question: str, passages: Sequence[Passage]) -> list[list[float]]:
    """For each quote of each passage the log-odds that it answers: all 0 where the network cannot read them, and
    CANNOT_ANSWER where the quote lacks what the question requires."""
    texts = [passage.text for passage in passages]
    quotes = [quotes_of(text) for text in texts]
    if readable(question, texts):
        pieces = [(passage.heading, pieces_of(some)) for passage, some in zip(passages, quotes, strict=True)]
        by_piece = await locator.find(respell(question, texts), pieces)
        by_quote = [_of_quotes(some, odds) for some, odds in zip(quotes, by_piece, strict=True)]
    else:
        by_quote = [[0.0] * len(some) for some in quotes]
    requirement = Requirement(question, [title for passage in passages for title in (passage.page, passage.heading)])
    return [
        [
            value if _may_answer(requirement, passage, quote) else CANNOT_ANSWER
            for quote, value in zip(some, odds, strict=True)
        ]
        for passage, some, odds in zip(passages, quotes, by_quote, strict=True)
    ]


def _may_answer(requirement: Requirement, passage: Passage, quote: Quote) -> bool:
    titles = (passage.page, passage.heading, quote.heading)
    return requirement.met_by(introduced(quote), before=quote.before, titles=titles)


def respell(question: str, texts: Sequence[str]) -> str:
    """The question, with each rare word that no text has replaced by the word of theirs that is one letter apart; by
    the most frequent, if there are several. What is written as a name stays: Austen is not Austin."""
    frequencies = sum((_words_of(text) for text in texts), Counter[str]())
    known = {stem(word) for word in frequencies}

    def respelt(match: re.Match[str]) -> str:
        word = match.group()
        if not word.islower() or len(word) < MIN_RESPELT_LETTERS or stem(word) in known or telling(stem(word)) < 1:
            return word
        near = [
            other
            for other in frequencies
            if len(other) >= MIN_RESPELT_LETTERS and other[0] == word[0] and one_edit(word, other)
        ]
        return min(near, key=lambda other: (-frequencies[other], other), default=word)

    return _PLAIN_WORD.sub(respelt, question)


def _of_quotes(quotes: Sequence[Quote], odds: Sequence[float]) -> list[float]:
    """The odds of the quotes from those of the pieces: a list read by its items answers as well as the best of them."""
    of_pieces, by_place = iter(odds), dict[int, float]()
    for quote in quotes:
        items = items_of(quote, quotes) if quote.kind == "list" else []
        by_place[quote.place] = max(by_place[item.place] for item in items) if items else _bounded(next(of_pieces))
    return list(by_place.values())


def _bounded(odds: float) -> float:
    return max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, odds))


@lru_cache(maxsize=256)  # the same passages are asked for again and again
def _words_of(text: str) -> Counter[str]:
    return Counter(word.lower() for word in _WORD.findall(text))
