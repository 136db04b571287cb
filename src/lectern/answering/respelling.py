"""A question in the passages' spelling. The finder knows words and not their misspellings: asked for a `gyrosope`, it
finds nothing about gyroscopes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from lectern.text.everyday import telling
from lectern.text.wording import stem
from lectern.text.words import one_edit

LEAST = 5  # letters: shorter words are too near to each other

_WORD = re.compile(r"[^\W\d_]+")
_PLAIN = re.compile(r"(?<![\w`./-])[^\W\d_]+(?![\w`/-])")  # no part of a path, of code or of a mark with digits


def respelt(question: str, texts: Sequence[str]) -> str:
    """The question, with each rare word that no text has written as the word of theirs that is one letter apart; the
    most frequent of these, if there are several. What is written as a name stays: Austen is not Austin."""
    held = sum((_words_of(text) for text in texts), Counter[str]())
    known = {stem(word) for word in held}

    def spelt(found: re.Match[str]) -> str:
        word = found.group()
        if not word.islower() or len(word) < LEAST or stem(word) in known or telling(stem(word)) < 1:
            return word
        near = [one for one in held if len(one) >= LEAST and one[0] == word[0] and one_edit(word, one)]
        return min(near, key=lambda one: (-held[one], one), default=word)

    return _PLAIN.sub(spelt, question)


@lru_cache(maxsize=256)  # the passages that readers ask for come up again and again
def _words_of(text: str) -> Counter[str]:
    return Counter(word.lower() for word in _WORD.findall(text))
