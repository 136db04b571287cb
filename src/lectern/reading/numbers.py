"""Numbers in names. A leading number counts (`03-nodes`), or one after a word that numbers things (`chapter-26-x`);
a digit elsewhere does not (`ros2-nodes`, `3d-vision`), or half of a real book ends up in the wrong place."""

from __future__ import annotations

import re

_LEADING = re.compile(r"\s*(\d{1,9})(?:[.](\d{1,9}))?(?=$|[-_.\s)])")
_WORDED = re.compile(
    r"(?<![^\W\d_])(part|module|chapter|lesson|unit|week|day)s?[-_.\s#]*(\d{1,9})(?![^\W_])|^(ch)[-_.]?(\d{1,9})(?![^\W_])",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[-_.\s]+(\d{1,9})(?=$|[-_.\s])")
_JUNK = re.compile(r"^[-_.:\s)]+|[-_.:\s(]+$")


def leading_number(name: str) -> int | None:
    """The number that a name begins with."""
    match = _LEADING.match(name)
    return int(match[1]) if match else None


def worded_numbers(name: str) -> dict[str, int]:
    """Numbers after part, module, chapter, lesson, unit, week, day (first of each); `ch01-02`: chapter 1, lesson 2."""
    found: dict[str, int] = {}
    for match in _WORDED.finditer(name):
        word = (match[1] or "chapter").lower()
        found.setdefault(word, int(match[2] or match[4]))
        after = _AFTER.match(name, match.end()) if match[3] else None
        if after:
            found.setdefault("lesson", int(after[1]))
    return found


def folder_number(name: str) -> int | None:
    """The number of a chapter's folder."""
    number = leading_number(name)
    return number if number is not None else next(iter(worded_numbers(name).values()), None)


def lesson_number(name: str, chapter: int | None) -> int | None:
    """The number of a lesson's file within its chapter. `2.3-x` is lesson 3 of chapter 2, and `chapter-2-quiz` in
    chapter 2 says nothing about the lesson."""
    if match := _LEADING.match(name):
        return int(match[2]) if match[2] and int(match[1]) == chapter else int(match[1])
    words = worded_numbers(name)
    for word in ("lesson", "unit", "day", "week", "part", "module"):
        if word in words:
            return words[word]
    return words["chapter"] if "chapter" in words and words["chapter"] != chapter else None


def without_number(name: str) -> str:
    """A name for people: no number, no word that numbers, spaces for separators; `chapter-3` alone is `Chapter 3`."""
    bare = name
    if match := _LEADING.match(bare):
        bare = bare[match.end() :]
    elif (worded := _WORDED.match(bare)) and worded.start() == 0:
        bare = bare[worded.end() :]
    bare = " ".join(re.sub(r"[-_\s]+", " ", _JUNK.sub("", bare)).split())
    if not bare:
        bare = " ".join(re.sub(r"[-_\s]+", " ", re.sub(r"(?<=[^\W\d_])(?=\d)", " ", name)).split())
        bare = re.sub(r"(?<= )0+(?=\d)", "", bare)
    return bare[:1].upper() + bare[1:]
