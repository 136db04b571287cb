"""What can be shown of a passage as one answer: a paragraph, a list with the line that introduces it, a table, or a
listing with the sentence before it. An excerpt is made of blocks of the passage in their order, so that it reads as the
book has it. `cited` writes it down with a citation after each sentence, row and listing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from textwrap import dedent
from typing import Literal

from lectern.text.blocks import CACHED_PASSAGES
from lectern.text.pieces import Piece, ends_sentence, read
from lectern.text.quotes import DIAGRAM_LANGUAGES, NEEDS_CONTEXT

ExcerptKind = Literal["paragraph", "list", "table", "listing"]

_INTRODUCED = ("item", "table", "code")  # kinds of blocks that a line may introduce
_INDENTED = re.compile(r"[ \t]{2,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A block of an excerpt, or the sentences of it that are shown."""

    pieces: tuple[Piece, ...]
    is_whole: bool = True  # all of the block is shown

    @property
    def kind(self) -> str:
        """Of its block."""
        return self.pieces[0].block.kind

    @property
    def words(self) -> int:
        """The number of words."""
        return sum(len(piece.text.split()) for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Parts of a passage that are shown together."""

    kind: ExcerptKind
    parts: tuple[Part, ...]
    lead: Part | None = None  # introduces the parts
    heading: str = ""  # the nearest heading above, inside the passage
    is_ordered: bool = False  # a list with numbers

    @property
    def start(self) -> int:
        """Where its own parts begin in the passage."""
        return self.parts[0].pieces[0].start

    @property
    def shown(self) -> tuple[Part, ...]:
        """All parts, with the lead."""
        return (self.lead, *self.parts) if self.lead else self.parts

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces, with those of the lead."""
        return tuple(piece for part in self.shown for piece in part.pieces)

    @property
    def words(self) -> int:
        """The number of words, with the lead."""
        return sum(part.words for part in self.shown)

    @property
    def text(self) -> str:
        """The text, without signs at the beginnings of lines; of a table with its head."""
        head = self.parts[0].pieces[0].head
        return "\n".join([*([head] if head else []), *(piece.text for piece in self.pieces)])


@lru_cache(maxsize=CACHED_PASSAGES)
def excerpts_of(passage: str) -> tuple[Excerpt, ...]:
    """The excerpts of a passage, in order. Exercises, drawings and formulas are left out."""
    return tuple(_excerpts(passage))


def _excerpts(passage: str) -> Iterator[Excerpt]:
    blocks = [Part(pieces=tuple(pieces)) for _, pieces in groupby(read(passage), key=lambda piece: piece.block.start)]
    before: Part | None = None  # the paragraph directly before
    at = 0
    while at < len(blocks):
        block, size = blocks[at], 1
        if block.kind == "item":
            size = _list_size(passage, blocks[at:])
            yield from _made("list", blocks[at : at + size], _lead(before), passage)
        elif block.kind == "table":
            yield from _made("table", [block], _lead(before), passage)
        elif block.kind == "code":
            yield from _made("listing", [block], _lead(before) or _last_sentence(before), passage)
        elif block.kind == "paragraph":
            introduces = _introduces(block) and at + 1 < len(blocks) and blocks[at + 1].kind in _INTRODUCED
            stated = block.pieces[: -len(_lead_pieces(block))] if introduces else block.pieces
            if stated:
                yield from _made("paragraph", [only(block, stated)], None, passage)
        before = block if block.kind == "paragraph" else None
        at += size


def _lead(paragraph: Part | None) -> Part | None:
    """The end of a paragraph that introduces what comes below it."""
    return only(paragraph, _lead_pieces(paragraph)) if paragraph is not None and _introduces(paragraph) else None


def _lead_pieces(paragraph: Part) -> tuple[Piece, ...]:
    """The last sentence, with those before it that it cannot be understood without."""
    first = len(paragraph.pieces) - 1
    while first and NEEDS_CONTEXT.match(paragraph.pieces[first].text):
        first -= 1
    return paragraph.pieces[first:]


def _made(kind: ExcerptKind, parts: Sequence[Part], lead: Part | None, passage: str) -> Iterator[Excerpt]:
    first = parts[0].pieces[0]
    is_drawing = kind == "listing" and first.block.language in DIAGRAM_LANGUAGES
    shown = [part for part in parts if any(piece.kind != "link" for piece in part.pieces)]
    if first.task or is_drawing or not shown:
        return
    line = passage[first.block.start : first.block.end].lstrip()
    yield Excerpt(
        kind=kind,
        parts=tuple(parts),
        lead=lead,
        heading=first.heading,
        is_ordered=kind == "list" and line[:1].isdigit(),
    )


def _list_size(passage: str, blocks: Sequence[Part]) -> int:
    """How many blocks a list has: its items, and what is indented below them."""
    size = 1
    for block in blocks[1:]:
        is_inside = _INDENTED.match(passage, block.pieces[0].block.start) is not None
        if block.kind != "item" and not (is_inside and block.kind in ("code", "paragraph", "table")):
            break
        size += 1
    return size


def _introduces(block: Part) -> bool:
    return block.pieces[-1].text.rstrip("*_ ").endswith(":")


def _last_sentence(paragraph: Part | None) -> Part | None:
    """The last sentence of a paragraph, as the lead of the listing below it."""
    if paragraph is None or paragraph.pieces[-1].kind == "link":
        return None
    return only(paragraph, paragraph.pieces[-1:])


def only(part: Part, pieces: Sequence[Piece]) -> Part:
    """Some pieces of a part."""
    starts = {piece.start for piece in pieces}
    chosen = tuple(piece for piece in part.pieces if piece.start in starts)
    return Part(pieces=chosen, is_whole=part.is_whole and len(chosen) == len(part.pieces))


def without(excerpt: Excerpt, unwanted: Callable[[str], bool]) -> Excerpt | None:
    """The excerpt without its unwanted pieces; nothing if none is left, or if a listing is unwanted."""
    parts = [only(part, [piece for piece in part.pieces if not unwanted(piece.text)]) for part in excerpt.parts]
    lead = excerpt.lead if excerpt.lead and not any(unwanted(piece.text) for piece in excerpt.lead.pieces) else None
    shown = tuple(part for part in parts if part.pieces)
    return replace(excerpt, parts=shown, lead=lead) if shown else None


def cited(excerpt: Excerpt, passage: str, mark: str) -> str:
    """The excerpt as Markdown, with a citation after each sentence, row and listing."""
    blocks = [_written(part, passage, mark) for part in excerpt.shown]
    pieces = [blocks[0]]
    for before, part, block in zip(excerpt.shown, excerpt.shown[1:], blocks[1:], strict=False):
        tight = before.kind == part.kind == "item" and "\n\n" not in passage[_end(before) : _start(part)]
        pieces += ["\n" if tight else "\n\n", block]
    return dedent("".join(pieces)).strip()


def _start(part: Part) -> int:
    return part.pieces[0].block.start


def _end(part: Part) -> int:
    return part.pieces[0].block.end


def _written(part: Part, passage: str, mark: str) -> str:
    block = part.pieces[0].block
    source = passage[block.start : block.end].rstrip("\n")
    indent = source[: len(source) - len(source.lstrip(" \t"))] if source.strip() else ""
    match part.kind:
        case "code":
            fence = "~~~" if "```" in block.text else "```"
            body = "\n".join(line.text for line in block.lines)
            lines = [f"{fence}{block.language}", *dedent(body).split("\n"), fence, "", mark]
            return "\n".join(f"{indent}{line}" if line else "" for line in lines)
        case "table":
            return _table(part, mark)
        case _:
            return _prose(part, passage, mark)


def _table(part: Part, mark: str) -> str:
    rows = [f"| {piece.text} {mark} |" for piece in part.pieces if piece.kind == "row"]
    head = part.pieces[0].head
    cells = max(piece.text.count("|") for piece in part.pieces) + 1
    top = [f"| {head} |"] if head else [f"|{'  |' * cells}"]
    return "\n".join([*top, f"|{' --- |' * cells}", *rows])


def _prose(part: Part, passage: str, mark: str) -> str:
    """The block as it stands, with a mark after each sentence; some of its sentences in one line."""
    block, pieces = part.pieces[0].block, [piece for piece in part.pieces if piece.kind != "link"]
    if not part.is_whole:
        return " ".join(_marked(piece.text, mark) for piece in pieces).rstrip()
    written, at = "", block.start
    for piece in pieces:
        written += f"{passage[at : piece.end]} {mark}"
        at = piece.end
    return written + passage[at : block.end].rstrip("\n")


def _marked(text: str, mark: str) -> str:
    return f"{text} {mark}" if ends_sentence(text) else f"{text} {mark}\n"
