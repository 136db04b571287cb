"""Tells whether a text is English, by its function words. A book need not declare its language, and the networks that
are shipped with the package read English only: their scores for other languages are noise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from lectern.text.blocks import blocks_of
from lectern.text.words import FUNCTION_WORDS, letters_of

MIN_FOREIGN_SHARE = 0.06  # share of foreign function words in a text that is not English
MIN_FOREIGN_RATIO = 2  # foreign function words for each English one; code and tables have few of both
MIN_FOREIGN_WORDS = 5  # fewer may be part of a name: Rio de Janeiro

LITTLE_WORDS_FILE = Path(__file__).parent / "little_words.txt"  # function words of languages in Latin script

_CODE_OR_FORMULA = re.compile(r"`[^`\n]*`|\$[^$]*\$")
_ALSO_ENGLISH = frozenset(
    "die do go id is la me no of on op or per set son sub to un van was we".split()
)  # are English words too


def is_english(texts: Iterable[str]) -> bool:
    """Whether texts are English: most words are in Latin script, and few are function words of another language. Code
    does not count. Texts without words, and in languages that the file does not list, count as English."""
    counts = [_count_words(text) for text in texts]
    words, english_little, foreign_little, other_script = (
        (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
    )
    return other_script * 2 <= words and (
        foreign_little < max(MIN_FOREIGN_WORDS, MIN_FOREIGN_SHARE * words)
        or foreign_little <= MIN_FOREIGN_RATIO * english_little
    )


@lru_cache(maxsize=256)  # many questions need the same passages
def _count_words(text: str) -> tuple[int, int, int, int]:
    """The numbers of all words, English function words, foreign function words, and words in another script."""
    prose = "\n".join(block.text for block in blocks_of(text) if block.kind not in ("code", "formula"))
    words = [word for word in letters_of(_CODE_OR_FORMULA.sub(" ", prose).lower()) if len(word) > 1]
    english_little, foreign_little = (
        sum(word in vocabulary for word in words) for vocabulary in (FUNCTION_WORDS, _foreign_little_words())
    )
    return (
        len(words),
        english_little,
        foreign_little,
        sum(not any(letter.isascii() for letter in word) for word in words),
    )


@cache
def _foreign_little_words() -> frozenset[str]:
    """Function words of other languages, without those that also occur in English text or code."""
    lines = LITTLE_WORDS_FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines for word in line.partition(":")[2].split()) - FUNCTION_WORDS - _ALSO_ENGLISH
