"""What a question names, and whether a text speaks of its brother instead: of the G1 where the H1 was asked about. To a
network the two are nearly the same word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import permutations

from lectern.text.words import stems

# A mark of letters and digits, such as a model or a version has: H1, RT-2, D435i, v3.
_MARK = re.compile(r"(?<![\w.])(?:[^\W\d_]+-?\d+|\d+[^\W\d_])[^\W_]*(?![\w])")
_UNIT = re.compile(
    r"\d+(?:[kmgt]?b|[cmk]?m|[mnµ]?s|[km]?g|[kmg]?hz|k|x|d|v|w|a|h|th|st|nd|rd|px|fps|dof)", re.IGNORECASE
)
WORD = 3  # letters from which they are a word and not a mark


class Meant:
    """The marks that a question names."""

    def __init__(self, question: str) -> None:
        self._marks = marks_of(question)
        self._shapes = {_shape(mark) for mark in self._marks}

    def in_any(self, texts: Sequence[str]) -> bool:
        """Whether these name one of them; true where the question names none."""
        return not self._marks or not self._marks.isdisjoint(set().union(*map(marks_of, texts)))

    def another(self, texts: Sequence[str]) -> bool:
        """Whether these say nothing of what was named, but name another of the same make."""
        if not self._marks:
            return False
        here = set().union(*map(marks_of, texts))
        return self._marks.isdisjoint(here) and any(_shape(mark) in self._shapes for mark in here)


class Siblings:
    """Titles that differ in one word, such as “Oxalic acid” and “Formic acid”, of which a question names one."""

    def __init__(self, question: str, titles: Iterable[str]) -> None:
        asked = stems(question)
        self._others: dict[str, set[str]] = {}  # a title that is not meant, and the words by which its sibling is
        for mine, other in permutations({title for title in titles if title}, 2):
            differing = _differing(mine, other)
            if differing is not None and differing[0] <= asked and not differing[1] & asked:
                self._others.setdefault(other, set()).update(differing[0])

    def another(self, title: str, texts: Sequence[str]) -> bool:
        """Whether what stands under this title is about the sibling, and says nothing of the one that was named."""
        named = self._others.get(title)
        return named is not None and not any(named & stems(text) for text in texts)


def _differing(one: str, other: str) -> tuple[set[str], set[str]] | None:
    """The word of each in which two titles of at least two words differ; None where they are no siblings."""
    mine, its = one.split(), other.split()
    apart = [(a, b) for a, b in zip(mine, its, strict=False) if a.casefold() != b.casefold()]
    if len(mine) != len(its) or len(mine) < 2 or len(apart) != 1:  # noqa: PLR2004  # a word alone has no sibling
        return None
    found = stems(apart[0][0]), stems(apart[0][1])
    return found if all(some and not any(word.isdigit() for word in some) for some in found) else None


def marks_of(text: str) -> set[str]:
    """The marks in a text, in small letters; numbers with their unit are none."""
    return {mark.lower() for mark in _MARK.findall(text) if not _UNIT.fullmatch(mark)}


def _shape(mark: str) -> str:
    """Of one shape are H1 and G1, RT-1 and GR-2, ros1 and ros2; not ros2 and python3, whose letters are words."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", _letters, mark))


def _letters(found: re.Match[str]) -> str:
    return found.group() if len(found.group()) >= WORD else "a" * len(found.group())
