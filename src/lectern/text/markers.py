"""Citation markers in a text. Lectern writes one number in each: `[2]`. A model may also write several, `[1, 3]`, or a
range, `[1-3]`, and in other forms: `[[1]]`, `[Passage 1]`, `【1†source】`. In an answer that leaves they are all like
`[2]`; what has another form is no marker. Brackets in code and the text of links are no markers, and neither is the
index of a word, `array[0]`.

Marks of notes are read here too: `[^1]`, `word¹` and `(1)` at the end of a sentence, and what some models write in
place of a marker: `(Passage 1)`, or `[1]` with escaped brackets. They are no part of what a sentence says, and some
models cite with them."""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from markdown_it import MarkdownIt

from lectern.text.blocks import blocks_of
from lectern.text.page_markdown import CITATION, MAX_SOURCES, is_glued, page_parser

MAX_RANGE = 10  # passages of a range; models get about as many
VALUE_CONTEXT = 200  # characters of a line before a bracket that say whether it has values

_NUMBERS = r"\d{1,4}(?:\s*[-–]\s*\d{1,4})?"
_NO_LINK = r"(?!\()"  # `[1](url)` is a link, not a citation
_NEXT = r"(?:\s*[,;]\s*(?:(?:and|und)\s+)?|\s+(?:and|und|&)\s+)"
_NAME = (
    r"(?i:(?:passages?|sources?|ranks?|quellen?|documents?|docs?|excerpts?|citations?|references?|refs?)"
    r"(?:(?=\d)|\b[\s:#.]*))"
)
_INSIDE = rf"{_NAME}?{_NUMBERS}(?:{_NEXT}{_NUMBERS})*"
MAX_REMARK = 80  # characters that a model may add to a marker: `【1†source】`
_DOUBLE = rf"\[\[{_INSIDE}\]\]"
DRAFT_MARKER = (
    rf"(?:{_DOUBLE}|\[{_INSIDE}(?:†[^\[\]\n]{{0,{MAX_REMARK}}})?\]|【{_INSIDE}(?:†[^【】\n]{{0,{MAX_REMARK}}})?】)"
)
_CODE = r"(?P<code>`+[^`\n]*`+)"  # `ranges[0]` in code is no citation
_CODE_OR_DRAFT_MARKER = re.compile(rf"{_CODE}|(?P<gap>(?:(?<![ \t])[ \t]+)?)(?P<marker>{DRAFT_MARKER}{_NO_LINK})")
_PLAIN_MARKER = re.compile(r"\[{1,2}\d[^†a-z]*\]")  # may also be an array, an interval or an index
_BEFORE_VALUES = re.compile(r"(?i)(?:[=∈∉]|\\in|\b(?:range|interval|list|array|vector|tuple)s?)[ \t]*\Z")
_DOUBLE_MARKER = re.compile(_DOUBLE)
_NOTE_MARK = re.compile(
    rf"{_CODE}|(?P<label>\[\^(?P<name>[^\]\s]{{1,20}})\](?P<colon>:?))"
    r"|(?P<raised>(?:(?<=[^\W\d_]{3})|(?<=[.!?]))[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}(?=[\s.,;:!?]|\Z))"
    r"|(?P<round>(?<=\w)[ ]\((?P<inside>\d{1,2})\)(?=[.!?](?:\s|\Z)))"
    rf"|(?P<named>\((?:see |source: )?{_NAME}(?P<list>{_NUMBERS}(?:{_NEXT}{_NUMBERS})*)\))"
    r"|(?P<escaped>\\\[(?P<number>\d{1,2})\\\])"
)
_FORMULA_SIGN = re.compile(r"(?<!\\)\$+(?!\d)")  # `$5` is a price


def has_marker(text: str) -> bool:
    """Whether a text has something that may be read as a citation."""
    return any(match["marker"] for match in _CODE_OR_DRAFT_MARKER.finditer(text))


def without_markers(text: str) -> str:
    """The text without its markers and the spaces before them."""
    return _CODE_OR_DRAFT_MARKER.sub(lambda match: "" if _cited(match) else match[0], text).strip()


def renumbered(text: str, number: Callable[[int], int | None]) -> str:
    """The text with each cited number replaced by `number(cited)`. A marker for which that is None is removed; what has
    several numbers is then no marker."""
    index_end = -1

    def replace(match: re.Match[str]) -> str:
        nonlocal index_end
        numbers = [number(cited) for cited in _cited(match)]
        start, end = match.span("marker")
        if start == index_end or (is_glued(text, start) and numbers in ([], [None])):
            index_end = end  # `grid[0][1]`
            return match[0]
        if not numbers or (None in numbers and len(numbers) > 1):
            return match[0]
        markers = "".join(f"[{new_number}]" for new_number in dict.fromkeys(numbers) if new_number is not None)
        return f"{match['gap']}{markers}" if markers else ""  # a removed marker takes the space before it along

    return _CODE_OR_DRAFT_MARKER.sub(replace, text).strip()


def marker_spans(text: str) -> list[tuple[int, int]]:
    """The positions of the markers in a finished text: those that a page shows as citations."""
    candidates = list(CITATION.finditer(text))[:MAX_SOURCES]
    if not candidates:
        return []
    # each gets a number of its own, so that it can be found again among the tokens
    places = itertools.count()
    numbered = CITATION.sub(lambda _: f"[{next(places)}]", text, count=len(candidates))
    env: dict[str, Any] = {"sources": MAX_SOURCES, "numbers": [int(match[1]) for match in candidates]}
    tokens = [child for token in _parser().parse(numbered, env) for child in token.children or ()]
    cited = {int(token.content) for token in tokens if token.type == "citation"}
    return [match.span() for place, match in enumerate(candidates) if place in cited]


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return page_parser()


def cited_numbers(marker: str) -> list[int]:
    """The numbers that a marker names; none if a range in it is too long or falls."""
    numbers: list[int] = []
    for part in re.findall(_NUMBERS, marker.partition("†")[0]):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        named = range(ends[0], ends[-1] + 1)
        if not 0 < len(named) <= MAX_RANGE:
            return []
        numbers += named
    return numbers


@dataclass(frozen=True, slots=True)
class NoteMark:
    """A mark of a note in a text."""

    form: Literal["label", "raised", "round", "named"]
    name: str
    start: int
    end: int
    is_definition: bool = False  # `[^1]:` at the beginning of a line

    @property
    def numbers(self) -> list[int]:
        """The numbers that the mark has for a name."""
        return cited_numbers(self.name) if self.form == "named" or self.name.isdecimal() else []


def note_marks(text: str) -> list[NoteMark]:
    """The marks of notes in an answer; what is in code is none."""
    if not _NOTE_MARK.search(text):
        return []
    listings = [block for block in blocks_of(text) if block.kind == "code"]
    starts = [block.start for block in listings]
    marks = []
    for match in _NOTE_MARK.finditer(text):
        at = bisect_right(starts, match.start())
        if match["code"] or (at and match.start() < listings[at - 1].end):
            continue
        if match["label"]:
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            is_definition = bool(match["colon"]) and not line.strip(" \t>")
            end = match.end() if is_definition else match.end("name") + 1
            marks.append(NoteMark("label", match["name"], match.start(), end, is_definition))
        elif match["raised"]:
            marks.append(NoteMark("raised", unicodedata.normalize("NFKC", match[0]), *match.span()))
        elif match["round"]:
            marks.append(NoteMark("round", match["inside"], *match.span()))
        else:
            marks.append(NoteMark("named", match["list"] or match["number"], *match.span()))
    return marks


def is_double(marker: str) -> bool:
    """Whether a marker has two brackets on each side, so that it may also be a matrix."""
    return _DOUBLE_MARKER.fullmatch(marker) is not None


def is_plain(marker: str) -> bool:
    """Whether a marker has numbers alone, so that it may also be values or an index."""
    return _PLAIN_MARKER.fullmatch(marker) is not None


def precedes_values(line: str) -> bool:
    """Whether numbers in brackets after this part of a line are an interval or an array: `x ∈ [1, 2]`."""
    line = line[-VALUE_CONTEXT:]
    return _BEFORE_VALUES.search(line) is not None or len(_FORMULA_SIGN.findall(line)) % 2 == 1


def _cited(match: re.Match[str]) -> list[int]:
    """The numbers of a marker in a draft; none if the match is code, values or an index."""
    marker = match["marker"] or ""
    numbers = cited_numbers(marker)
    start = match.start("marker")
    if not numbers or not is_plain(marker):
        return numbers
    if 0 in numbers:
        return []
    if len(numbers) == 1:
        return numbers
    line = match.string[max(0, start - VALUE_CONTEXT) : max(0, start)].rpartition("\n")[2]
    return [] if precedes_values(line) else numbers
