"""Reads misspelt words of a question as the book spells them. Only lower-case words that are no English words and that
no passage has are changed: Austen is not Austin, and "breed" is not a misspelt "bread". What a misspelt word may stand
for is not among the passages that were found with it, so the book is asked for passages that have one of its
`variants`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from lectern.text.words import FUNCTION_WORDS, letters_of, one_edit, stem, word_weight

WORDS_FILE = Path(__file__).parents[1] / "text" / "english.txt"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIN_LETTERS = 4  # of a misspelt word; shorter words are too similar to each other
MIN_REPLACED_LETTERS = 5  # where one letter stands for another one: "gren" is "green" rather than "grey"
MIN_TWICE_LETTERS, TWO = 8, 2  # where two letters are wrong
MAX_UNKNOWN_WORDS = 4  # that the book is asked for

_PLAIN_WORD = re.compile(r"(?<![\w`./-])[^\W\d_]+(?![\w`/-])")  # no part of a path, of code or of a model mark


def respell(question: str, texts: Sequence[str]) -> str:
    """The question with misspelt words corrected: each is replaced by the nearest word of the texts, of several by the
    most frequent one; or by a word such as "should"."""
    frequencies = sum((_words_of(text) for text in texts), Counter[str]())
    text_stems = {stem(word) for word in frequencies}

    def respelt(match: re.Match[str]) -> str:
        word = match.group()
        return _nearest(word, frequencies) if _may_be_misspelt(word, text_stems) else word

    return _PLAIN_WORD.sub(respelt, question) if frequencies else question


def unknown_words(question: str, texts: Sequence[str]) -> list[str]:
    """The words that may be misspelt, because no text has them."""
    text_stems = {stem(word) for text in texts for word in _words_of(text)}
    words = dict.fromkeys(_PLAIN_WORD.findall(question))
    return [word for word in words if _may_be_misspelt(word, text_stems)][:MAX_UNKNOWN_WORDS]


def variants(word: str) -> set[str]:
    """The words that are one letter apart from a word, apart from its first letter."""
    halves = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    without = {first + second[1:] for first, second in halves if second}
    swapped = {first + second[1] + second[0] + second[2:] for first, second in halves if len(second) > 1}
    replaced = {first + letter + second[1:] for first, second in halves if second for letter in LETTERS}
    longer = {first + letter + second for first, second in halves for letter in LETTERS}
    return (without | swapped | replaced | longer) - {word}


def _may_be_misspelt(word: str, text_stems: set[str]) -> bool:
    return (
        word.islower()
        and len(word) >= MIN_LETTERS
        and stem(word) not in text_stems
        and word not in FUNCTION_WORDS
        and word not in _english_words()
        and word_weight(stem(word)) == 1
    )


def _nearest(word: str, frequencies: Counter[str]) -> str:
    """The most frequent word that is one edit away, else two; the word itself if there is none."""
    similar = [other for other in frequencies if len(other) >= MIN_LETTERS and other[0] == word[0]]
    near = [other for other in similar if _is_near(word, other)] or [
        other for other in FUNCTION_WORDS if other[0] == word[0] and len(other) > MIN_LETTERS and _is_near(word, other)
    ]
    if not near and len(word) >= MIN_TWICE_LETTERS:
        near = [other for other in similar if len(other) >= MIN_TWICE_LETTERS and _two_edits(word, other)]
    return min(near, key=lambda other: (-frequencies[other], other), default=word)


def _is_near(word: str, other: str) -> bool:
    """Whether one letter is missing, too many or swapped with the next one; of a longer word also replaced."""
    is_replaced = len(word) == len(other) and sorted(word) != sorted(other)
    return one_edit(word, other) and not (is_replaced and len(word) < MIN_REPLACED_LETTERS)


def _two_edits(word: str, other: str) -> bool:
    return abs(len(word) - len(other)) <= TWO and any(one_edit(step, other) for step in _steps(word, other))


def _steps(word: str, other: str) -> Iterator[str]:
    """The word with its first wrong letter made right, in each way that can be."""
    at = next((place for place, pair in enumerate(zip(word, other, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return
    yield word[:at] + word[at + 1 :]
    yield word[:at] + other[at] + word[at:]
    yield word[:at] + other[at] + word[at + 1 :]
    yield word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]


@cache
def _english_words() -> frozenset[str]:
    return frozenset(WORDS_FILE.read_text(encoding="utf-8").split())


@lru_cache(maxsize=256)  # the same passages are asked for again and again
def _words_of(text: str) -> Counter[str]:
    return Counter(word.lower() for word in letters_of(text))
