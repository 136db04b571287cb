"""Words as questions and passages share them: lower case and stemmed, so that `nodes` meets `node`."""

from __future__ import annotations

import re

from lectern.text.wording import stem

_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a about an and any are as at be book by can chapter could describe do does explain for from get give has have how "
    "i if in into is it its lesson list made make many me much my of on or our should show so tell than that the their "
    "them then there these they this those to up us use used using was we were what when where which who whom why will "
    "with would you your".split()
)


def stems(text: str) -> set[str]:
    """Every word of a text."""
    return {stem(word) for word in _WORD.findall(text.lower())}


def telling_stems(question: str) -> set[str]:
    """The words that tell what a question is about."""
    return {stem(word) for word in _WORD.findall(question.lower()) if word not in _COMMON}


def one_edit(one: str, other: str) -> bool:
    """Whether two different words are one letter more, less, other or swapped apart."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if len(longer) - len(shorter) > 1:
        return False
    at = next((place for place, letter in enumerate(shorter) if longer[place] != letter), len(shorter))
    if len(longer) > len(shorter):
        return longer[at + 1 :] == shorter[at:]
    if longer[at + 1 :] == shorter[at + 1 :]:
        return True
    return longer[at : at + 2] == shorter[at : at + 2][::-1] and longer[at + 2 :] == shorter[at + 2 :]
