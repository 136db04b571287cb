"""Finds the languages of a repository that has its book in several. Each of them is a book of its own: a reader asks in
one language, and a page with its twelve translations would fill every answer."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

MAX_DEPTH = 3  # folders above those of the languages
MIN_LANGUAGES = 3  # two folders with short names can be anything
_CODES = frozenset(
    "aa ab af am ar as ay az ba be bg bh bi bn bo br bs ca co cs cy da de dz el en eo es et eu fa fi fj fo fr fy ga "
    "gd gl gn gu ha he hi hr hu hy ia id ie ik is it iu ja jw ka kk kl km kn ko ks ku ky la ln lo lt lv mg mi mk ml "
    "mn mr ms mt my na nb ne nl nn no oc om or pa pl ps pt qu rm rn ro ru rw sa sd sg sh si sk sl sm sn so sq sr ss "
    "st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ug uk ur uz vi vo wo xh yi yo za zh zu".split()
)  # ISO 639-1
_CODE = re.compile(r"([a-z]{2})(?:[-_](?:[A-Za-z]{2}|[A-Za-z]{4}|[0-9]{3}))?")


def translations(files: Iterable[str]) -> list[str]:
    """The folders of the languages that most of these files are in; empty for a book in one language."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    total = 0
    for file in files:
        total += 1
        steps = file.split("/")[:-1]
        for depth, step in enumerate(steps[: MAX_DEPTH + 1]):
            if is_language(step):
                counts["/".join(steps[:depth])]["/".join(steps[: depth + 1])] += 1
                break
    largest = max(counts.values(), key=Counter.total, default=Counter())
    return sorted(largest) if len(largest) >= MIN_LANGUAGES and largest.total() * 2 > total else []


def is_language(name: str) -> bool:
    """Whether a name is the code of a language: `en`, `pt-br`, `zh-hant`."""
    match = _CODE.fullmatch(name)
    return match is not None and match[1] in _CODES
