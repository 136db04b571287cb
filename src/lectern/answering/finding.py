"""Where a passage answers a question: the log-odds that the finder gives for each of its quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lectern.answering.quotes import Quote, quotes_of
from lectern.ports import Finder

READABLE = 0.9  # the share of a question's letters that are of the alphabet the finder was trained on
MOST = 8.0  # log-odds beyond this say no more

_LETTERS = re.compile(r"[^\W\d_]")


def readable(question: str) -> bool:
    """Whether the finder can make anything of it: it was trained on English."""
    letters = _LETTERS.findall(question)
    return bool(letters) and sum(letter.isascii() for letter in letters) >= READABLE * len(letters)


async def found_in(finder: Finder, question: str, passages: Sequence[tuple[str, str]]) -> list[list[float]]:
    """For each quote of each passage, given as heading and text, how likely it is that it answers; none is likelier
    than the others where the finder cannot read the question."""
    quotes = [quotes_of(text) for _, text in passages]
    if not readable(question):
        return [[0.0] * len(some) for some in quotes]
    searched = [(heading, pieces_of(some)) for (heading, _), some in zip(passages, quotes, strict=True)]
    found = await finder.find(question, searched)
    return [_of_quotes(some, pieces[1], odds) for some, pieces, odds in zip(quotes, searched, found, strict=True)]


def pieces_of(quotes: Sequence[Quote]) -> tuple[str, ...]:
    """What is read: a whole list is read by its items, a listing with the line that introduces it."""
    return tuple(_flat(_introduced(quote)) for quote in quotes if quote.kind != "list")


def _introduced(quote: Quote) -> str:
    return f"{quote.before} {quote.text}" if quote.kind == "code" else quote.text


def _of_quotes(quotes: Sequence[Quote], pieces: Sequence[str], odds: Sequence[float]) -> list[float]:
    """A list answers as well as the best of its items."""
    own = iter(odds)
    known = dict(zip(pieces, odds, strict=True))
    made: list[float] = []
    for quote in quotes:
        if quote.kind != "list":
            made.append(_bounded(next(own)))
        else:
            whole = _flat(quote.text)
            made.append(_bounded(max((value for text, value in known.items() if text in whole), default=-MOST)))
    return made


def _bounded(odds: float) -> float:
    return max(-MOST, min(MOST, odds))


def _flat(text: str) -> str:
    return " ".join(text.split())
