"""Cuts sections into drafts of chunks. A chunk is a part of one section, except that short neighbouring sections share
a chunk under their common heading. A heading stays with the text after it, and no section is dropped because it is
short.

The text of a chunk never leaves a code fence open. Otherwise a page or a model would read everything after it as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate

from lectern.reading.blocks import Body
from lectern.reading.rules import ReadingRules
from lectern.reading.sections import Section
from lectern.reading.splitting import Cutter, Piece

_FENCE = re.compile(
    r"^[ \t]*((?:>[ \t]*)*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,99}(?=[^`\n]*$)|~{3,99}(?!~))(.*)$", re.MULTILINE
)
MAX_OVERFILL = 1.15  # a chunk may exceed the target by this factor to avoid a tiny one
MIN_FILL = 0.25  # of the target; a smaller chunk joins its neighbour where it fits
MAX_HEADING_SHARE = 1 / 8  # of the characters of a chunk; shorter headings stay with any text, even a long listing


def open_fence(text: str) -> str | None:
    """The line that closes the code fence that a text leaves open; None if it leaves none open."""
    if "```" not in text and "~~~" not in text:
        return None
    marks = quote = ""
    for match in _FENCE.finditer(text):
        if not marks:
            marks, quote = match[2], match[1]
        elif match[2].startswith(marks) and not match[3].strip():
            marks = ""
    return quote + marks if marks else None


def balanced(text: str) -> str:
    """The text, with a closing line if it leaves a code fence open."""
    closing = open_fence(text)
    return text if closing is None else f"{text}\n{closing}"


@dataclass(slots=True)
class Draft:
    """A chunk before it has an id. Lines are 0-based, in the body."""

    title: str | None
    trail: tuple[str, ...]
    anchor: str
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> float:
        """The size in tokens."""
        return sum(piece.size for piece in self.pieces)

    @property
    def first(self) -> int:
        """The first line."""
        return self.pieces[0].first

    @property
    def last(self) -> int:
        """The last line."""
        return self.pieces[-1].last

    def sections(self) -> tuple[tuple[int, str, str], ...]:
        """The positions, titles and anchors of the sections in the text; empty if there is at most one."""
        if sum(1 for piece in self.pieces if piece.opens) <= 1:
            return ()
        parts = self._parts()
        text = "".join(parts)
        trimmed = len(text) - len(text.lstrip())
        ends = list(accumulate(map(len, parts), initial=-trimmed))
        marks = zip(ends[1::2], self.pieces, strict=True)  # a piece begins where its gap ends
        return tuple((max(at, 0), *piece.opens) for at, piece in marks if piece.opens)

    def text(self) -> str:
        """The author's lines with all fences closed, unindented if the chunk begins inside a list."""
        return balanced("".join(self._parts()).strip())

    def _parts(self) -> list[str]:
        """Gaps and pieces in turn; the first gap is empty."""
        parts = ["", _outdented(self.pieces[0].full_text)]
        for piece in self.pieces[1:]:
            parts += [piece.gap, piece.full_text]
        return parts


def _outdented(text: str) -> str:
    shift = len(text) - len(text.lstrip(" \t"))
    if not shift:
        return text
    return "\n".join(line[min(shift, len(line) - len(line.lstrip(" \t"))) :] for line in text.split("\n"))


def drafts_of(body: Body, sections: list[Section], rules: ReadingRules) -> list[Draft]:
    """The drafts of a lesson in order, each at least `rules.min_chars` long, unless the whole lesson is shorter."""
    cutter = Cutter(rules)
    units: list[Draft] = []
    after = 0
    for section in sections:
        unit = Draft(section.title, section.trail, section.anchor)
        for block in section.blocks:
            unit.pieces += cutter.pieces(body, block, after)
            after = block.end
        if section.title and unit.pieces:
            unit.pieces[0] = replace(unit.pieces[0], opens=(section.title, section.anchor))
        units.append(unit)
    packed = [draft for unit in _grouped(_carried(units, rules), rules) for draft in _packed(unit, rules)]
    return _long_enough(packed, rules.min_chars)


def _carried(units: list[Draft], rules: ReadingRules) -> list[Draft]:
    """Join a heading without text to the section after it, which keeps its title and anchor. A last heading without
    text joins the section before it. Headings that are together too long for a chunk become a chunk themselves."""
    out: list[Draft] = []
    bare: Draft | None = None  # headings without text so far, with the title of the last one
    size, chars = 0.0, 0
    for unit in units:
        if not all(piece.heading for piece in unit.pieces):
            out.append(replace(unit, pieces=[*bare.pieces, *unit.pieces]) if bare else unit)
            bare = None
            continue
        more, length = unit.size, sum(len(piece.full_text) for piece in unit.pieces)
        if bare and (size + more > rules.target_tokens or chars + length > rules.max_chars):
            out.append(bare)
            bare = None
        if bare is None:
            bare, size, chars = replace(unit, pieces=[]), 0.0, 0
        bare.pieces += unit.pieces
        bare.title, bare.trail, bare.anchor = unit.title, unit.trail, unit.anchor
        size, chars = size + more, chars + length
    if bare and out:
        out[-1].pieces += bare.pieces
    elif bare:
        out.append(bare)
    return out


def _grouped(units: list[Draft], rules: ReadingRules) -> Iterator[Draft]:
    """Join short neighbouring sections up to the target size."""
    group: Draft | None = None
    for unit in units:
        short = unit.size < rules.short_tokens
        if group is not None and short and group.size + unit.size <= rules.target_tokens:
            group = _shared(group, unit)
            continue
        if group is not None:
            yield group
        group = unit if short else None
        if not short:
            yield unit
    if group is not None:
        yield group


def _shared(first: Draft, second: Draft) -> Draft:
    """Two neighbours as one draft with their common heading and the anchor of the first."""
    same = [a == b for a, b in zip(first.trail, second.trail, strict=False)]
    trail = first.trail[: max(1, same.index(False) if False in same else len(same))]
    titles = {first.trail: first.title, second.trail: second.title}
    return Draft(titles.get(trail) or trail[-1], trail, first.anchor, first.pieces + second.pieces)


def _packed(unit: Draft, rules: ReadingRules) -> list[Draft]:
    """The pieces of a section in as few drafts as the target allows, of about equal size."""
    drafts = _filled(unit, rules.target_tokens, rules)
    if len(drafts) > 1:
        even = _filled(unit, min(rules.target_tokens, MAX_OVERFILL * unit.size / len(drafts)), rules)
        drafts = even if len(even) == len(drafts) else drafts
    if len(drafts) > 1 and drafts[-1].size < MIN_FILL * rules.target_tokens:
        rest = drafts[-1]
        if drafts[-2].size + rest.size <= MAX_OVERFILL * rules.target_tokens:
            drafts = [*drafts[:-2], replace(drafts[-2], pieces=drafts[-2].pieces + rest.pieces)]
    return drafts


def _filled(unit: Draft, limit: float, rules: ReadingRules) -> list[Draft]:
    drafts = [replace(unit, pieces=[])]
    total = _DraftSize()
    for piece in unit.pieces:
        fits = total.size + piece.size <= limit and total.chars + len(piece.full_text) <= rules.max_chars
        if drafts[-1].pieces and not fits and not _belongs(piece, total, rules):
            drafts.append(replace(unit, pieces=[]))
            total = _DraftSize()
        drafts[-1].pieces.append(piece)
        total.add(piece)
    return drafts


@dataclass(slots=True)
class _DraftSize:
    """The size of a draft, updated with each piece: a new count for each piece would take quadratic time."""

    size: float = 0.0
    chars: int = 0
    bare: bool = True  # only headings so far

    def add(self, piece: Piece) -> None:
        self.size, self.chars = self.size + piece.size, self.chars + len(piece.full_text)
        self.bare = self.bare and piece.heading


def _belongs(piece: Piece, draft: _DraftSize, rules: ReadingRules) -> bool:
    """Whether a piece joins a draft although both together exceed the target: a heading is not separated from its text,
    nor a short introduction from its listing. Headings that are as long as a text are separated."""
    size, chars = draft.size + piece.size, draft.chars + len(piece.full_text)
    if draft.bare and piece.heading:
        return size <= 2 * rules.target_tokens and chars <= rules.max_chars
    if draft.bare:
        return draft.chars <= rules.max_chars * MAX_HEADING_SHARE or chars <= 2 * rules.max_chars
    small = draft.size < MIN_FILL * rules.target_tokens and size <= 2 * rules.target_tokens
    return small and piece.size > rules.target_tokens / 2 and chars <= 2 * rules.max_chars


def _long_enough(drafts: list[Draft], min_chars: int) -> list[Draft]:
    """Join drafts with fewer than `min_chars` characters to a neighbour, which keeps its title."""
    out: list[Draft] = []
    for draft in drafts:
        if out and len(out[-1].text()) < min_chars:
            out[-1] = replace(draft, pieces=out[-1].pieces + draft.pieces)
        elif out and len(draft.text()) < min_chars:
            out[-1].pieces += draft.pieces
        else:
            out.append(draft)
    return out
