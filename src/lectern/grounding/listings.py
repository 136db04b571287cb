"""Judges a listing line by line against every passage. A listing is supported if the passages have all its lines. It is
doubtful if most of its lines are the book's and another one is a changed line of the book (number, name, operator): a
reader would type it as it is. Comments, brackets and blank lines say nothing.

`//` and `--` begin comments in some languages, and are operators or options in others. Where a line of the book ends is
known from the language on its fence. A comment in the answer is cut off only if the book's line ends there as well."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nsmallest

from lectern.domain.replies import Judgement
from lectern.text.blocks import blocks_of
from lectern.text.words import FUNCTION_WORDS, words_of

MIN_SHARE_FOR_DOUBT = 0.5  # of the lines that are the book's
OTHER_LINE = "The book has another line here."
NEARLY_EQUAL = 0.8  # how similar a changed line is to the line of the book
MAX_LINES = 200  # a longer listing is not read to its end, so it is never supported
MAX_LINES_OF_WORD = 20  # lines of the book with one word that may be the original
MAX_ORIGINALS = 10  # lines of the book that a line is compared with, those with most of its rare words

# Languages in which these signs begin a comment; `#` does in most others, and nowhere else with a space after it.
_SLASHES = frozenset(
    "arduino c cc cpp c++ cs csharp cxx dart glsl go groovy h hpp ino java javascript js json5 jsonc jsx kotlin php "
    "proto rs rust scala swift ts tsx typescript".split()
)
_DASHES = frozenset("ada elm haskell hs lua mysql plsql postgresql psql sql vhdl".split())
# A whole line; `* * * 1 5` is a crontab, and `* 9.81` the rest of a product.
_COMMENT = re.compile(r"\s*(?:#(?=\s|!)|//|/\*|\*(?=\s)(?!\s+[\d*])|%(?=\s)|<!--)")
_DASH_COMMENT = re.compile(r"\s*--\s")
_COMMENT_SIGN = re.compile(r"\s(#|//|--)\s")  # after code
_ROOT_PROMPT = re.compile(r"\s*#\s+(?P<command>[a-z./][\w./-]*)(?P<rest>\s.*)?$")
_ROOT_COMMANDS = frozenset(
    "apt apt-get chmod chown cp dd dnf dpkg fdisk iptables mkdir mkfs modprobe mv pacman passwd rm rpm sysctl "
    "systemctl ufw umount useradd usermod yum zypper".split()
)
_OPTION_OR_PATH = re.compile(r"\s(?:--?\w|~?/\w)")
_VALUE = re.compile(r"\d+(?:\.\d+)?|\b(?:True|False|None|true|false|null|on|off|yes|no)\b")
_OPERATOR = re.compile(r"[<>=!+*/%&|^~-]")
_NAME = re.compile(r"\w+(?:[.-]\w+)*")  # `webhook.gitlab.secret`, `--load-params`
_LEFT_OUT = re.compile(r"/\*[\s.…]*\*/|\.\.\.|…")  # `{ /* ... */ }`


def judge_listing(listing: str, passages: Sequence[str]) -> Judgement:
    """The verdict on a listing, given all passages."""
    all_lines = listing.split("\n")
    has_dash_comments = any(
        language in _DASHES for passage in passages for _, language in _lines_with_language(passage)
    )
    lines = [bare for line in all_lines[:MAX_LINES] if (bare := _without_comment_line(line, dashes=has_dash_comments))]
    if not lines:
        return Judgement(verdict="unconfirmed", support=0.0)
    texts = [_squeezed(passage) for passage in passages]
    found = [[_found(line, passage) for line in lines] for passage in passages]
    known = [next(filter(None, in_passages), None) for in_passages in zip(*found, strict=True)] or [None] * len(lines)
    share = sum(map(bool, known)) / len(lines)
    best = max(range(len(passages)), key=lambda place: sum(map(bool, found[place])), default=None)
    if share >= MIN_SHARE_FOR_DOUBT:
        book_lines = _BookLines(
            (line for passage in passages for line in _lines(passage)), used=set(filter(None, known))
        )
        for line, words in zip(lines, known, strict=True):
            if not words and (original := _original(line, book_lines)):
                return Judgement(
                    verdict="doubtful",
                    support=0.0,
                    evidence=original,
                    passage=next(place for place, text in enumerate(texts) if original in text),
                    reason=OTHER_LINE,
                )
    if all(known) and len(all_lines) <= MAX_LINES:
        return Judgement(verdict="supported", support=share, evidence=next(filter(None, known)) or "", passage=best)
    return Judgement(verdict="unconfirmed", support=share / 2, passage=best if share else None)


def _found(line: str, passage: str) -> str | None:
    """A line as a passage has it: all of it, and not only the beginning of a longer one (`rate = 10` is not `rate =
    100`), or the code before its comment, if a line of the passage ends there as well."""
    if f" {line} " in f" {_squeezed(passage)} ":
        return line
    return next((code for code in _before_comments(line) if code in _lines(passage)), None)


def _before_comments(line: str) -> Iterator[str]:
    """The code before each sign of a line that may begin a comment."""
    return (line[: sign.start()] for sign in _COMMENT_SIGN.finditer(line))


def _original(line: str, book_lines: _BookLines) -> str | None:
    """The line of the book that a line, or its code before a comment, was made from."""
    candidates = (book_lines.original_of(text) for text in (line, *_before_comments(line)))
    return next((original for original in candidates if original), None)


class _BookLines:
    """The lines of the book by their words, so that a line is compared with a few of them and not with all."""

    def __init__(self, lines: Iterable[str], used: Container[str]) -> None:
        self._lines = list(dict.fromkeys(lines))
        self._used = used  # lines that the listing has as they are
        self._names = {name for line in self._lines for name in _NAME.findall(line)}
        self._numbers: dict[str, list[int]] = {}  # of the first lines with a word
        for number, line in enumerate(self._lines):
            for word in set(words_of(line)):
                numbers = self._numbers.setdefault(word, [])
                if len(numbers) < MAX_LINES_OF_WORD:
                    numbers.append(number)

    def original_of(self, line: str) -> str | None:
        """The line of the book that a line was made from by changing a number or a name."""
        words = words_of(line)
        shared: Counter[int] = Counter()  # thousandths: a word of few lines counts more than one of many
        for word in set(words):
            with_word = self._numbers.get(word, ())
            shared.update(dict.fromkeys(with_word, 1_000 // max(1, len(with_word))))
        numbers = nsmallest(MAX_ORIGINALS, shared, key=lambda number: (-shared[number], number))
        candidates = sorted((self._lines[number] for number in numbers), key=self._used.__contains__)
        for candidate in candidates:  # a line that the listing has as well is hardly the original of another
            if self._differs(line, candidate) and _is_nearly_equal(line, candidate):
                return candidate
        return None

    def _differs(self, line: str, candidate: str) -> bool:
        """Whether a line says something else than the book: another value, another operator between the same words, or
        a name that the book does not have. A line with other names of the book may be put together from two places."""
        if _says(line) == _says(candidate):
            return False
        new = set(_NAME.findall(line)) - set(_NAME.findall(candidate))
        return not new or any(_VALUE.fullmatch(name) or name not in self._names for name in new)


def _says(line: str) -> tuple[list[str], list[str]]:
    """The words and operators of a line: what is left if quotes, commas and spaces may differ."""
    return words_of(line), _OPERATOR.findall(_LEFT_OUT.sub("", line))


def _is_nearly_equal(line: str, candidate: str) -> bool:
    if _VALUE.sub("0", line) == _VALUE.sub("0", candidate):  # of `run(13)` and `run(99)` little else is equal
        return True
    matcher = SequenceMatcher(None, line, candidate, autojunk=False)
    estimates = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)  # each is cheaper than the next
    return all(estimate() >= NEARLY_EQUAL for estimate in estimates)


def _without_comment_line(line: str, *, dashes: bool) -> str:
    """A line with single spaces; empty if it has no word or is only a comment."""
    is_comment = _COMMENT.match(line) is not None and not _is_root_command(line)
    if is_comment or (dashes and _DASH_COMMENT.match(line)):
        return ""
    return " ".join(line.split()) if words_of(line) else ""


def _is_root_command(line: str) -> bool:
    """Whether the `#` of a line is the prompt of the superuser: a command follows, and no word of a sentence."""
    prompt = _ROOT_PROMPT.match(line)
    if prompt is None or any(word in FUNCTION_WORDS for word in line.lower().split()):
        return False
    return prompt["command"] in _ROOT_COMMANDS or _OPTION_OR_PATH.search(prompt["rest"] or "") is not None


@lru_cache(maxsize=256)
def _lines(passage: str) -> dict[str, None]:
    """The lines of a passage without comments, in order."""
    lines = (_without_comment(line, language) for line, language in _lines_with_language(passage))
    return dict.fromkeys(line for line in lines if line)


def _without_comment(line: str, language: str) -> str:
    """A line of the book without its comment, by the language of its listing."""
    bare = _without_comment_line(line, dashes=language in _DASHES)
    for sign in _COMMENT_SIGN.finditer(bare):
        if sign[1] == "#" or (language in (_SLASHES if sign[1] == "//" else _DASHES)):
            return bare[: sign.start()]
    return bare


@lru_cache(maxsize=256)
def _lines_with_language(passage: str) -> tuple[tuple[str, str], ...]:
    """The lines of a passage, each with the language of its listing, or nothing."""
    listings = [block for block in blocks_of(passage) if block.kind == "code"]
    languages = {line.text.strip(): block.language.lower() for block in listings for line in block.lines}
    return tuple((line, languages.get(line.strip(" \t>"), "")) for line in passage.split("\n"))


@lru_cache(maxsize=256)
def _squeezed(passage: str) -> str:
    return " ".join(passage.split())
