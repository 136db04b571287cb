"""Sections into drafts of chunks. A chunk never crosses a section, except that short neighbours share one under the
heading above them; a heading always travels with what follows it; and no section is dropped for being short.

Balance. Whatever was cut where, a chunk's text never leaves a code fence open: a page that shows it, or a model that
reads it, would take everything after it for code.
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
SLACK = 1.15  # a chunk may exceed its share by this where the alternative is a crumb
CRUMB = 0.25  # of the target: too little to stand alone
HEADINGS = 1 / 8  # of a chunk's characters: so many of headings go with anything, be it a listing of twice its size


def open_fence(text: str) -> str | None:
    """The line that would close the fence that a text leaves open; None where all are closed."""
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
    """The text, with a closing line where it leaves a fence open."""
    closing = open_fence(text)
    return text if closing is None else f"{text}\n{closing}"


@dataclass(slots=True)
class Draft:
    """A chunk before it has an identity. Lines are 0-based, in the body."""

    title: str | None
    trail: tuple[str, ...]
    anchor: str
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> float:
        """In tokens."""
        return sum(piece.size for piece in self.pieces)

    @property
    def first(self) -> int:
        """The line it begins on."""
        return self.pieces[0].first

    @property
    def last(self) -> int:
        """The line it ends on."""
        return self.pieces[-1].last

    def sections(self) -> tuple[tuple[int, str, str], ...]:
        """Where sections begin in the text, with their titles and anchors; nothing where there is only one."""
        if sum(1 for piece in self.pieces if piece.opens) <= 1:
            return ()
        parts = self._parts()
        text = "".join(parts)
        trimmed = len(text) - len(text.lstrip())
        ends = list(accumulate(map(len, parts), initial=-trimmed))
        marks = zip(ends[1::2], self.pieces, strict=True)  # a piece begins where its gap ends
        return tuple((max(at, 0), *piece.opens) for at, piece in marks if piece.opens)

    def text(self) -> str:
        """The author's lines, brought to the margin where a chunk begins inside a list, every fence closed."""
        return balanced("".join(self._parts()).strip())

    def _parts(self) -> list[str]:
        """Each piece after its gap, in turn; nothing stands before the first."""
        parts = ["", _outdented(self.pieces[0].shown)]
        for piece in self.pieces[1:]:
            parts += [piece.gap, piece.shown]
        return parts


def _outdented(text: str) -> str:
    shift = len(text) - len(text.lstrip(" \t"))
    if not shift:
        return text
    return "\n".join(line[min(shift, len(line) - len(line.lstrip(" \t"))) :] for line in text.split("\n"))


def drafts_of(body: Body, sections: list[Section], rules: ReadingRules) -> list[Draft]:
    """A lesson's chunks in order, each at least as long as the rules ask, unless the whole lesson is shorter."""
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
    """A heading without text of its own goes along with the section that follows (the last one: with the one before),
    and takes nothing of that section's name and place away. More of them than a chunk holds are a chunk themselves."""
    out: list[Draft] = []
    bare: Draft | None = None  # headings on their way, under the last one's name
    size, chars = 0.0, 0
    for unit in units:
        if not all(piece.heading for piece in unit.pieces):
            out.append(replace(unit, pieces=[*bare.pieces, *unit.pieces]) if bare else unit)
            bare = None
            continue
        more, length = unit.size, sum(len(piece.shown) for piece in unit.pieces)
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
    """Short neighbours together, up to the target."""
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


def _shared(one: Draft, two: Draft) -> Draft:
    """Two neighbours under the heading they have in common, opened where the first begins."""
    same = [a == b for a, b in zip(one.trail, two.trail, strict=False)]
    trail = one.trail[: max(1, same.index(False) if False in same else len(same))]
    titles = {one.trail: one.title, two.trail: two.title}
    return Draft(titles.get(trail) or trail[-1], trail, one.anchor, one.pieces + two.pieces)


def _packed(unit: Draft, rules: ReadingRules) -> list[Draft]:
    """One section's pieces in as few chunks as the target allows, and those of about equal size."""
    drafts = _filled(unit, rules.target_tokens, rules)
    if len(drafts) > 1:
        even = _filled(unit, min(rules.target_tokens, SLACK * unit.size / len(drafts)), rules)
        drafts = even if len(even) == len(drafts) else drafts
    if len(drafts) > 1 and drafts[-1].size < CRUMB * rules.target_tokens:
        crumb = drafts[-1]
        if drafts[-2].size + crumb.size <= SLACK * rules.target_tokens:
            drafts = [*drafts[:-2], replace(drafts[-2], pieces=drafts[-2].pieces + crumb.pieces)]
    return drafts


def _filled(unit: Draft, limit: float, rules: ReadingRules) -> list[Draft]:
    drafts = [replace(unit, pieces=[])]
    held = _Held()
    for piece in unit.pieces:
        fits = held.size + piece.size <= limit and held.chars + len(piece.shown) <= rules.max_chars
        if drafts[-1].pieces and not fits and not _belongs(piece, held, rules):
            drafts.append(replace(unit, pieces=[]))
            held = _Held()
        drafts[-1].pieces.append(piece)
        held.add(piece)
    return drafts


@dataclass(slots=True)
class _Held:
    """What a draft holds so far, counted as it grows: counting it anew for every piece would take a square of time."""

    size: float = 0.0
    chars: int = 0
    bare: bool = True  # nothing but headings

    def add(self, piece: Piece) -> None:
        self.size, self.chars = self.size + piece.size, self.chars + len(piece.shown)
        self.bare = self.bare and piece.heading


def _belongs(piece: Piece, held: _Held, rules: ReadingRules) -> bool:
    """Whether a piece stays with what is held although both are more than the target: a heading is not left behind, nor
    the one line that leads to a listing. Headings that are themselves as long as a text are."""
    size, chars = held.size + piece.size, held.chars + len(piece.shown)
    if held.bare and piece.heading:
        return size <= 2 * rules.target_tokens and chars <= rules.max_chars
    if held.bare:
        return held.chars <= rules.max_chars * HEADINGS or chars <= 2 * rules.max_chars
    small = held.size < CRUMB * rules.target_tokens and size <= 2 * rules.target_tokens
    return small and piece.size > rules.target_tokens / 2 and chars <= 2 * rules.max_chars


def _long_enough(drafts: list[Draft], least: int) -> list[Draft]:
    """No chunk under the least number of characters while it has a neighbour to go to, under the neighbour's name."""
    out: list[Draft] = []
    for draft in drafts:
        if out and len(out[-1].text()) < least:
            out[-1] = replace(draft, pieces=out[-1].pieces + draft.pieces)
        elif out and len(draft.text()) < least:
            out[-1].pieces += draft.pieces
        else:
            out.append(draft)
    return out
