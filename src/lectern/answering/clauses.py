"""Clauses: what a sentence states part by part, and whether two parts have exchanged something. `A does x, B does y`
has all the words of `A does y, B does x`; only their company tells the two apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from lectern.answering.claims import Claim

MOST_WORDS = 120
LEAST = 2  # content words; less is no clause of its own
MOST_SEGMENTS = 40
MOST_WHOLES = 8

_BREAKS = frozenset("while whereas but because which although and or if when unless".split())
_PARTS = frozenset("while whereas but and".split())


def clauses_of(sentence: Claim) -> list[Claim]:
    """The sentence's clauses; the sentence itself where it has but one."""
    cuts = [0]
    content = 0
    for number, word in enumerate(sentence.words[:MOST_WORDS]):
        if content >= LEAST and (word.text in _BREAKS or word.opens):
            cuts.append(number)
            content = 0
        content += word.kind != "function"
    if len(cuts) > 1 and content < LEAST:
        cuts.pop()
    if len(cuts) == 1:
        return [sentence]
    return [sentence.part(start, end) for start, end in zip(cuts, [*cuts[1:], len(sentence.words)], strict=True)]


def crossed(clauses: Sequence[Claim], units: Sequence[Claim]) -> bool:
    """Whether two clauses each take something of one segment and something of another, where it is not the same."""
    said = [_tokens(clause) for clause in clauses]
    segments = [segment for unit in units for segment in _segments(unit)][:MOST_SEGMENTS]
    wholes = [_tokens(unit) for unit in units][:MOST_WHOLES]
    for one, other in (*combinations(segments, 2), *combinations(wholes, 2)):
        here, there = one - other, other - one
        mixed = [clause for clause in said if clause & here and clause & there]
        for first, second in combinations(mixed, 2):
            if not (first & here) & (second & here) and not (first & there) & (second & there):
                return True
    return False


def _segments(unit: Claim) -> Iterator[frozenset[str]]:
    """A row as a whole, prose between its commas and conjunctions."""
    if unit.kind != "prose":
        yield _tokens(unit)
        return
    start = 0
    for number, word in enumerate(unit.words):
        if number > start and (word.text in _PARTS or (word.opens and not _bracketed(unit, number))):
            yield _tokens(unit.part(start, number))
            start = number
    yield _tokens(unit.part(start, len(unit.words)) if start else unit)


def _bracketed(unit: Claim, number: int) -> bool:
    """Whether only a bracket opens here: `aborted (the server gave up)` is one thing."""
    between = unit.text[unit.words[number - 1].start : unit.words[number].start]
    return "(" in between and not any(sign in between for sign in ".!?:;,)")


def _tokens(claim: Claim) -> frozenset[str]:
    numbers = {f"{one.kind}#{one.value:g}" for one in claim.quantities if one.hard}
    return frozenset(claim.stems | numbers)
