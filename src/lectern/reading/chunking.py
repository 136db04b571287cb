"""Sections into drafts of chunks. A chunk never crosses a section, except that short neighbours share one under the
heading above them; a heading always travels with what follows it; and no section is dropped for being short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lectern.reading.blocks import Body
from lectern.reading.fences import balanced
from lectern.reading.pieces import Cutter, Piece
from lectern.reading.rules import ReadingRules
from lectern.reading.sections import Section

SLACK = 1.15  # a chunk may exceed its share by this where the alternative is a crumb
CRUMB = 0.25  # of the target: too little to stand alone


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
        found, at = [], -len(self.pieces[0].shown) + len(self.pieces[0].shown.lstrip())
        for number, piece in enumerate(self.pieces):
            at += len(piece.gap) if number else 0
            if piece.opens:
                found.append((max(at, 0), *piece.opens))
            at += len(piece.shown)
        return tuple(found) if len(found) > 1 else ()

    def text(self) -> str:
        """The author's lines, brought to the margin where a chunk begins inside a list, every fence closed."""
        first = self.pieces[0].shown
        shift = len(first) - len(first.lstrip(" \t"))
        parts = [_outdented(first, shift)]
        for piece in self.pieces[1:]:
            parts += [piece.gap, piece.shown]
        return balanced("".join(parts).strip())


def _outdented(text: str, shift: int) -> str:
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
    packed = [draft for unit in _grouped(_carried(units), rules) for draft in _packed(unit, rules)]
    return _long_enough(packed, rules.min_chars)


def _carried(units: list[Draft]) -> list[Draft]:
    """A heading without text of its own goes along with the section that follows (the last one: with the one before),
    and takes nothing of that section's name and place away."""
    out: list[Draft] = []
    bare: list[Piece] = []
    for unit in units:
        pieces = bare + unit.pieces
        if all(piece.heading for piece in pieces):
            bare = pieces
        else:
            out.append(replace(unit, pieces=pieces))
            bare = []
    if bare and out:
        out[-1].pieces += bare
    elif bare:
        out.append(replace(units[-1], pieces=bare))
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
    size, chars = 0.0, 0
    for piece in unit.pieces:
        held, length = drafts[-1].pieces, len(piece.shown)
        fits = size + piece.size <= limit and chars + length <= rules.max_chars
        if held and not fits and not _belongs(piece, held, size, rules):
            drafts.append(replace(unit, pieces=[]))
            size, chars = 0.0, 0
        drafts[-1].pieces.append(piece)
        size, chars = size + piece.size, chars + length
    return drafts


def _belongs(piece: Piece, held: list[Piece], size: float, rules: ReadingRules) -> bool:
    """Whether a piece stays with what is held although both are more than the target: a heading is not left behind, nor
    the one line that leads to a listing."""
    if all(other.heading for other in held):
        return True
    target, chars = rules.target_tokens, sum(len(other.shown) for other in held)
    small = size < CRUMB * target and size + piece.size <= 2 * target
    return small and piece.size > target / 2 and chars + len(piece.shown) <= 2 * rules.max_chars


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
