"""Which tokens of a document a chunk holds. A chunk is the author's lines less their markup, plus what the reader adds
to keep fences and tables whole; so its words are followed through the lines it comes from, in order, what was dropped
is stepped over, and what was added counts as nothing."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from lectern.domain.chunks import Chunk

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LINE = re.compile(r"\r\n|\r|\n")
DROPPED, LEEWAY = 3, 1000  # how far the rest of a chunk is looked for: markup may be longer than the text in it


class TokenText:
    """A text in tokens, each known by its place."""

    def __init__(self, text: str) -> None:
        found = list(_TOKEN.finditer(text))
        self.words = [match[0] for match in found]
        self._starts = [match.start() for match in found]
        self._ends = [match.end() for match in found]
        self._lines = [0, *(match.end() for match in _LINE.finditer(text)), len(text)]

    def between(self, start: int, end: int) -> range:
        """The tokens that have a character in `start` to `end`."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))

    def of_lines(self, first: int, last: int) -> range:
        """The tokens of some lines, counted from 1."""
        top = len(self._lines) - 1
        return self.between(self._lines[min(first - 1, top)], self._lines[min(last, top)])


def held(text: TokenText, chunks: Iterable[Chunk]) -> dict[str, frozenset[int]]:
    """The tokens that each chunk of a document holds; the chunks come in order."""
    found: dict[str, frozenset[int]] = {}
    cursor = 0
    for chunk in chunks:
        lines = text.of_lines(chunk.line_start, chunk.line_end)
        places = _followed(text.words, _TOKEN.findall(chunk.text), range(max(cursor, lines.start), lines.stop))
        cursor = max([cursor, *(place + 1 for place in places)])
        found[chunk.id] = frozenset(places)
    return found


def _followed(words: Sequence[str], wanted: Sequence[str], within: range) -> list[int]:
    """Where these words stand: one after the other as far as that goes, the rest by the longest runs in common."""
    same = 0
    for at, word in zip(within, wanted, strict=False):
        if words[at] != word:
            break
        same += 1
    places = list(within[:same])
    rest, begin = wanted[same:], within.start + same
    there = words[begin : min(within.stop, begin + len(rest) * DROPPED + LEEWAY)]
    matcher = SequenceMatcher(None, rest, there, autojunk=False)
    for run in matcher.get_matching_blocks() if rest else ():
        places += range(begin + run.b, begin + run.b + run.size)
    return places
