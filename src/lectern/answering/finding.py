"""Where a passage answers a question: the log-odds that the finder gives for each of its quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lectern.answering.naming import Meant
from lectern.answering.quotes import Quote, quotes_of
from lectern.ports.answering import Finder
from lectern.text.language import english

READABLE = 0.9  # the share of a question's letters that are plain Latin ones
MOST = 8.0  # log-odds beyond this say no more

_LETTERS = re.compile(r"[^\W\d_]")


def readable(question: str, texts: Sequence[str]) -> bool:
    """Whether the finder can make anything of it: it was trained on English."""
    letters = _LETTERS.findall(question)
    plain = sum(letter.isascii() for letter in letters) >= READABLE * len(letters)
    return bool(letters) and plain and english(texts)


async def found_in(finder: Finder, question: str, passages: Sequence[tuple[str, str]]) -> list[list[float]]:
    """For each quote of each passage, given as heading and text, how likely it is that it answers; none is likelier
    than the others where the finder cannot read them."""
    quotes = [quotes_of(text) for _, text in passages]
    if not readable(question, [text for _, text in passages]):
        return [[0.0] * len(some) for some in quotes]
    searched = [(heading, pieces_of(some)) for (heading, _), some in zip(passages, quotes, strict=True)]
    found = await finder.find(question, searched)
    meant = Meant(question)
    return [
        _of_what_is_meant(meant, heading, some, _of_quotes(some, odds))
        for (heading, _), some, odds in zip(passages, quotes, found, strict=True)
    ]


def _of_what_is_meant(meant: Meant, heading: str, quotes: Sequence[Quote], odds: Sequence[float]) -> list[float]:
    """What speaks of another thing than the one named answers nothing, however alike it sounds."""
    around = [(heading, quote.heading, quote.before, quote.text) for quote in quotes]
    return [-MOST if meant.another(texts) else one for texts, one in zip(around, odds, strict=True)]


def pieces_of(quotes: Sequence[Quote]) -> tuple[str, ...]:
    """What is read: a listing with the line that introduces it, a row with the head of each cell, a list by its items,
    and as a whole where these are too short to be quotes."""
    return tuple(_flat(introduced(quote)) for quote in quotes if quote.kind != "list" or not _items(quote, quotes))


def introduced(quote: Quote) -> str:
    """A quote with what it cannot be understood without."""
    match quote.kind:
        case "code":
            return f"{quote.before} {quote.text}"
        case "row":
            return _headed(quote.text.split("|"), quote.before.split("|"))
        case _:
            return quote.text


def _headed(cells: Sequence[str], heads: Sequence[str]) -> str:
    """`grasp | 20 s` below `Phase | Budget`: `Phase: grasp | Budget: 20 s`."""
    if len(cells) != len(heads):
        return " | ".join(cells)
    pairs = [(head.strip(), cell.strip()) for head, cell in zip(heads, cells, strict=True)]
    return " | ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell)


def _items(listed: Quote, quotes: Sequence[Quote]) -> list[Quote]:
    """The quotes that a whole list is made of, which stand before it; none where some of its items are no quotes."""
    lines = [_flat(part) for part in listed.parts[1:]]
    items = [
        one for one in quotes[: listed.place] if one.kind == "item" and any(_flat(one.text) in line for line in lines)
    ]
    return items if all(any(_flat(one.text) in line for one in items) for line in lines) else []


def _of_quotes(quotes: Sequence[Quote], odds: Sequence[float]) -> list[float]:
    """A list that was read by its items answers as well as the best of them."""
    own, made = iter(odds), dict[int, float]()
    for quote in quotes:
        items = _items(quote, quotes) if quote.kind == "list" else []
        made[quote.place] = max(made[one.place] for one in items) if items else _bounded(next(own))
    return list(made.values())


def _bounded(odds: float) -> float:
    return max(-MOST, min(MOST, odds))


def _flat(text: str) -> str:
    return " ".join(text.split())
