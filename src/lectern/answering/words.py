"""Words as questions and passages share them: lower case and stemmed, so that `nodes` meets `node`."""

from __future__ import annotations

import re
from functools import lru_cache

import snowballstemmer

_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a about an and any are as at be book by can chapter could describe do does explain for from get give has have how "
    "i if in into is it its lesson list made make many me much my of on or our should show so tell than that the their "
    "them then there these they this those to up us use used using was we were what when where which who whom why will "
    "with would you your".split()
)
_stemmer = snowballstemmer.stemmer("english")


@lru_cache(maxsize=50_000)
def _stem(word: str) -> str:
    return str(_stemmer.stemWord(word))


def stems(text: str) -> set[str]:
    """Every word of a text."""
    return {_stem(word) for word in _WORD.findall(text.lower())}


def telling_stems(question: str) -> set[str]:
    """The words that tell what a question is about."""
    return {_stem(word) for word in _WORD.findall(question.lower()) if word not in _COMMON}
