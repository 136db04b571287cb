"""Judges a listing line by line against every passage. A listing is supported if the passages have its lines. It is
doubtful if most of its lines are the book's and another one is a line of the book with a changed number or name: a
reader would type it as it is. Comments, brackets and blank lines say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from lectern.domain.replies import Judgement
from lectern.text.words import words_of

MIN_KNOWN_SHARE = 0.9  # of the lines, for support
MIN_SHARE_FOR_DOUBT = 0.5
NEARLY_EQUAL = 0.8  # how similar a changed line is to the line of the book
MAX_LINES = 200
_COMMENT = re.compile(r"^\s*(?:#(?=\s|!)|//|--(?=\s)|/\*|\*(?=\s)|%(?=\s)|<!--).*$|\s+(?:#|//|--)\s.*$")


def judge_listing(listing: str, passages: Sequence[str]) -> Judgement:
    """The verdict on a listing, given all passages."""
    lines = [bare for line in listing.split("\n")[:MAX_LINES] if (bare := _bare(line))]
    if not lines:
        return Judgement(verdict="unconfirmed", support=0.0)
    book_lines = [line for passage in passages for line in _lines(passage)]
    texts = [_squeezed(passage) for passage in passages]
    known = [any(_has(text, line) for text in texts) for line in lines]
    share = sum(known) / len(lines)
    best = max(range(len(passages)), key=lambda place: sum(_has(texts[place], line) for line in lines), default=None)
    if share >= MIN_KNOWN_SHARE:
        return Judgement(verdict="supported", support=share, evidence=_first(lines, known), passage=best)
    if share >= MIN_SHARE_FOR_DOUBT:
        for line, is_known in zip(lines, known, strict=True):
            if not is_known and (original := _changed_from(line, book_lines)):
                return Judgement(
                    verdict="doubtful",
                    support=0.0,
                    evidence=original,
                    passage=next(place for place, text in enumerate(texts) if original in text),
                    reason="The book has another line here.",
                )
    return Judgement(verdict="unconfirmed", support=share / 2, passage=best if share else None)


def _has(text: str, line: str) -> bool:
    """Whether a text has a line, and not only the beginning of a longer one: `rate = 10` is not `rate = 100`."""
    return f" {line} " in f" {text} "


def _changed_from(line: str, book_lines: Sequence[str]) -> str | None:
    """The line of the book that a line was made from by changing a number or a name."""
    for candidate in book_lines:
        matcher = SequenceMatcher(None, line, candidate, autojunk=False)
        if matcher.real_quick_ratio() < NEARLY_EQUAL or matcher.quick_ratio() < NEARLY_EQUAL:
            continue
        if matcher.ratio() >= NEARLY_EQUAL and words_of(line) != words_of(candidate):
            return candidate
    return None


def _first(lines: Sequence[str], known: Sequence[bool]) -> str:
    return next(line for line, is_known in zip(lines, known, strict=True) if is_known)


def _bare(line: str) -> str:
    """A line without its comment and with single spaces; empty if it has no word."""
    bare = " ".join(_COMMENT.sub("", line).split())
    return bare if words_of(bare) else ""


@lru_cache(maxsize=256)
def _lines(passage: str) -> tuple[str, ...]:
    return tuple(bare for line in passage.split("\n") if (bare := _bare(line)))


@lru_cache(maxsize=256)
def _squeezed(passage: str) -> str:
    return " ".join(passage.split())
