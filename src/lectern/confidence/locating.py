"""Finds where passages answer a question: for each quote the log-odds that it answers. They come from a network that
reads a question together with the pieces of a passage, section by section. The network does not know misspellings, so
the question is respelt as the passages spell it. It reads H1 and G1 as nearly the same word, so a quote that cannot
answer (`requirements`) is excluded, whatever the network says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

from lectern.confidence.requirements import Requirement
from lectern.confidence.spelling import respell
from lectern.ports.answering import AnswerLocator, Passage
from lectern.text.language import is_english
from lectern.text.quotes import Quote, introduced, items_of, quotes_of, sections_of
from lectern.text.words import letters_of

CANNOT_ANSWER = -math.inf  # the log-odds of a quote that does not meet what the question requires
MAX_LOG_ODDS = 8.0  # the network's values are cut here
MIN_LATIN_SHARE = 0.9  # of a question's letters, below which the network cannot read it


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
        sections = [
            sections_of(passage_quotes, passage.heading)
            for passage, passage_quotes in zip(passages, quotes, strict=True)
        ]
        found = await locator.find(respell(question, texts), [*chain.from_iterable(sections)])
        ends = accumulate(map(len, sections))
        by_piece = [
            tuple(chain.from_iterable(found[end - len(passage_sections) : end]))
            for passage_sections, end in zip(sections, ends, strict=True)
        ]
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


def _of_quotes(quotes: Sequence[Quote], odds: Iterable[float]) -> list[float]:
    """The odds of the quotes from those of the pieces. A list has the odds of its best item."""
    of_pieces, by_place = iter(odds), dict[int, float]()
    for quote in quotes:
        items = items_of(quote, quotes) if quote.kind == "list" else []
        by_place[quote.place] = max(by_place[item.place] for item in items) if items else _bounded(next(of_pieces))
    return list(by_place.values())


def _bounded(odds: float) -> float:
    return max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, odds))
