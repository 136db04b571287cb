"""Whether a text is English, as far as its little words tell. A book need not say what language it is in, and the
networks that came with the package read English alone: what they say of another language is noise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from lectern.text.blocks import blocks_of
from lectern.text.words import FUNCTION_WORDS, letters_of

SHARE = 0.06  # of a text's words: so many are another language's little ones only in that language,
TIMES = 2  # and so many times as many as English ones; code and tables have few of either
FEWEST = 5  # below that it may be a name: Rio de Janeiro

FILE = Path(__file__).parent / "little_words.txt"  # of languages that share our letters

_CODE = re.compile(r"`[^`\n]*`|\$[^$]*\$")  # and formulas, in the line
_USUAL = frozenset("die do go id is la me no of on op or per set son sub to un van was we".split())  # in English too


def english(texts: Iterable[str]) -> bool:
    """Whether most words are in our script and another language's little ones few, code left out; English where there
    are no words, and where a language has no line in the file."""
    counts = [_counted(text) for text in texts]
    words, ours, others, foreign = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
    return foreign * 2 <= words and (others < max(FEWEST, SHARE * words) or others <= TIMES * ours)


@lru_cache(maxsize=256)  # the passages that readers ask for come up again and again
def _counted(text: str) -> tuple[int, int, int, int]:
    """Words, English little ones, others' little ones, and those in another script."""
    prose = "\n".join(block.text for block in blocks_of(text) if block.kind not in ("code", "formula"))
    words = [word for word in letters_of(_CODE.sub(" ", prose).lower()) if len(word) > 1]
    ours, others = (sum(word in some for word in words) for some in (FUNCTION_WORDS, _others()))
    return len(words), ours, others, sum(not any(letter.isascii() for letter in word) for word in words)


@cache
def _others() -> frozenset[str]:
    """None of them is English, or usual in its texts and its code."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines for word in line.partition(":")[2].split()) - FUNCTION_WORDS - _USUAL
