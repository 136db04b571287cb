"""Slugs, titles and numbers from the names of files and folders.

Slugs have lower-case letters of any script, digits and hyphens, at most 64 characters. They have no colon, which
separates the parts of an id.

Titles and labels are put on one line, without control characters, and cut to a limit. They are repeated in every chunk
below them, and a lone surrogate from a JSON file would make the index fail.

A number in a name counts if it is at the beginning (`03-nodes`) or after a word such as chapter (`chapter-26-x`).
Other digits do not count (`ros2-nodes`, `3d-vision`), because they would put many lessons in the wrong place. Neither
do dates (`2023-09-12-news`).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

MAX_SLUG = 64
MAX_DESCRIPTION = 2_000  # characters; readers are shown the first sentences
MAX_TEXT = 300  # characters of a title or label, which is repeated in every chunk
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")  # white space, control characters, lone surrogates
_DATE = r"(?:19|20)\d\d(?:([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])|-(?:0[1-9]|1[0-2]))(?=$|[-_.\s)T])"
_LEADING_DATE = re.compile(rf"\s*{_DATE}")
_LEADING = re.compile(r"\s*(\d{1,9})(?:[.](\d{1,9}))?(?=$|[-_.\s)])")
_WORDED = re.compile(
    r"(?<![^\W\d_])(part|module|chapter|lesson|unit|week|day)s?[-_.\s#]*(\d{1,9})(?![^\W_])|^(ch)[-_.]?(\d{1,9})(?![^\W_])",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[-_.\s]+(\d{1,9})(?=$|[-_.\s])")
_JUNK = re.compile(r"^[-_.:\s)]+|[-_.:\s(]+$")


@lru_cache(maxsize=4096)  # a book has few names, and they are needed often
def slugged(name: str) -> str:
    """The slug of a name. A name without letters and digits gets a slug from its hash, so a slug is never empty."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).lower())
    out: list[str] = []
    for char in plain:
        if char.isdecimal() or (char.isalpha() and not char.isupper()):
            out.append(char)
        elif not unicodedata.category(char).startswith("M") and out and out[-1] != "-":
            out.append("-")
    slug = "".join(out).strip("-")
    if not slug:
        return f"x-{_mark(name)}"
    if len(slug) > MAX_SLUG:  # long names could become equal when cut; the hash tells them apart
        return f"{slug[: MAX_SLUG - 9].rstrip('-')}-{_mark(name)}"
    return slug


def _mark(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def one_line(text: str, limit: int = MAX_TEXT) -> str:
    """The text on one line, cut to the limit; "" if it has no words."""
    words = _UNFIT.sub(" ", text).strip()
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def leading_number(name: str) -> int | None:
    """The number at the beginning of a name; None if there is none."""
    match = _leading(name)
    return int(match[1]) if match else None


def _leading(name: str) -> re.Match[str] | None:
    return None if _LEADING_DATE.match(name) else _LEADING.match(name)


def dotted_number(name: str) -> tuple[int, int] | None:
    """The two numbers at the beginning of a name such as `1.2-setup`; None if there are no two."""
    match = _leading(name)
    return (int(match[1]), int(match[2])) if match and match[2] else None


def worded_numbers(name: str) -> dict[str, int]:
    """The first number after each of part, module, chapter, lesson, unit, week, day; `ch01-02` is chapter 1, lesson
    2."""
    numbers: dict[str, int] = {}
    for match in _WORDED.finditer(name):
        word = (match[1] or "chapter").lower()
        numbers.setdefault(word, int(match[2] or match[4]))
        after = _AFTER.match(name, match.end()) if match[3] else None
        if after:
            numbers.setdefault("lesson", int(after[1]))
    return numbers


def folder_number(name: str) -> int | None:
    """The number in the name of a chapter's folder; None if there is none."""
    number = leading_number(name)
    return number if number is not None else next(iter(worded_numbers(name).values()), None)


def begins_with_number(name: str) -> bool:
    """Whether a name begins with its number: `2. Nodes`, `Unit 2`, but not `Bonus Unit 2`."""
    return _leading(name) is not None or _WORDED.match(name.lstrip()) is not None


def lesson_number(name: str, chapter: int | None) -> int | None:
    """The number of a lesson's file within its chapter; None if the name gives none. `2.3-x` is lesson 3 of chapter 2,
    and `chapter-2-quiz` in chapter 2 gives no lesson."""
    if match := _leading(name):
        return int(match[2]) if match[2] and int(match[1]) == chapter else int(match[1])
    words = worded_numbers(name)
    for word in ("lesson", "unit", "day", "week", "part", "module"):
        if word in words:
            return words[word]
    return words["chapter"] if "chapter" in words and words["chapter"] != chapter else None


def without_number(name: str) -> str:
    """A title from a name, without number and numbered word, with spaces for separators; `chapter-3` becomes `Chapter
    3`. A date stays as it is."""
    bare = name
    if date := _LEADING_DATE.match(name):
        return " ".join([date[0].strip(), *re.sub(r"[-_\s]+", " ", _JUNK.sub("", name[date.end() :])).split()])
    if match := _leading(bare):
        bare = bare[match.end() :]
    elif (worded := _WORDED.match(bare)) and worded.start() == 0:
        bare = bare[worded.end() :]
    bare = " ".join(re.sub(r"[-_\s]+", " ", _JUNK.sub("", bare)).split())
    if not bare:
        bare = " ".join(re.sub(r"[-_\s]+", " ", re.sub(r"(?<=[^\W\d_])(?=\d)", " ", name)).split())
        bare = re.sub(r"(?<= )0+(?=\d)", "", bare)
    return bare[:1].upper() + bare[1:]
