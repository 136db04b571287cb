"""What in a claim is not from the passages that a model was handed: names in code that none of them has, and whole
sentences that it was told to write by something that it read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log

from lectern.grounding.claims import code_names, read_claim
from lectern.grounding.judge import speaks_english, word_coverage
from lectern.text.words import content_stems

MIN_TELLING_WORDS = 2  # content words of a claim that can be told from the book's words
MIN_SUPPORT = 0.005  # less is the same
WORDS_WEIGHT = 6.4  # of the share of a claim's words that are the book's, beside the log odds of its support
FOREIGN_BELOW = -0.9  # the sum of both; docs/benchmarks/judge.md says how it was chosen
MIN_PARTS, MAX_PARTS = 3, 8  # of a name whose parts may stand apart
_SIGNS = ("::", ".", "/")
_PART_SIGN = re.compile(r"::|[./]")
_VERSION = re.compile(r"\b([A-Z][\w.+-]{0,30}) (\d{1,4}(?:\.\d{1,4}){0,3})(?![\w%°]|\.\d)")  # ROS 2, Python 3.12


def is_foreign(claim: str, support: float, passages: Sequence[str], question: str) -> bool:
    """Whether a claim has too few words of the passages or of the question for the little support that it has."""
    if len(content_stems(claim)) < MIN_TELLING_WORDS or not speaks_english(read_claim(" ".join(passages))):
        return False
    odds = min(max(support, MIN_SUPPORT), 1 - MIN_SUPPORT)
    shared = word_coverage(claim, [*passages, question])
    return log(odds / (1 - odds)) + WORDS_WEIGHT * shared < FOREIGN_BELOW


def names_unknown_code(claim: str, texts: Iterable[str]) -> bool:
    """Whether a claim names something in code that none of the texts has."""
    names = dict.fromkeys(code_names(claim))
    known = " ".join(texts).casefold().replace("\\", "") if names else ""  # `max\_pool\_size`
    return not all(name in known or _has_parts(name, known) for name in names)


def _has_parts(name: str, known: str) -> bool:
    """Whether a text has the parts of a path or of a qualified name, two neighbours of them together, each as a whole
    word: `std::mem::take` where it imports `std::mem`, and `models/__mocks__/user.js` beside `models/user.js`."""
    parts = [part for part in _PART_SIGN.split(name) if part]
    if not MIN_PARTS <= len(parts) <= MAX_PARTS or not all(_is_word(part, known) for part in parts):
        return False
    return any(_is_word(rf"{first}{sign}{second}", known) for first, second in pairwise(parts) for sign in _SIGNS)


def _is_word(text: str, known: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", known) is not None


def without_known_versions(claim: str, cited: Iterable[str], passages: Iterable[str]) -> str:
    """A claim without the numbers of names that the passages have, such as `ROS 2`: a cited one need not repeat them.
    A number stays where a cited passage has another one for the same name."""
    known = " ".join(passages).casefold() if _VERSION.search(claim) else ""
    near = " ".join(cited).casefold() if known else ""

    def bare(match: re.Match[str]) -> str:
        name = re.escape(match[1].casefold())
        others = re.findall(rf"\b{name}[ -](\d[\d.]*)", near)
        is_known = re.search(rf"\b{name}[ -]{re.escape(match[2])}(?![\d.]*\d)", known)
        return match[1] if is_known and set(others) <= {match[2]} else match[0]

    return _VERSION.sub(bare, claim)
