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
from lectern.text.words import letters_of

ExcerptKind = Literal["paragraph", "list", "table", "listing"]

_INTRODUCED = ("item", "table", "code")  # kinds of blocks that a line may introduce
_POINTS_BELOW = re.compile(r"(?i)\b(?:below|following|as follows|like (?:this|so)|for example|here (?:is|are))\b")
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
    above: tuple[Part, ...] = ()  # what comes before it in the book, and what follows it
    below: tuple[Part, ...] = ()

    @property
    def start(self) -> int:
        """Where its own parts begin in the passage."""
        return self.parts[0].pieces[0].start

    @property
    def shown(self) -> tuple[Part, ...]:
        """All parts, with the lead and what is around them."""
        lead = (self.lead,) if self.lead else ()
        return (*self.above, *lead, *self.parts, *self.below)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces that are shown."""
        return tuple(piece for part in self.shown for piece in part.pieces)

    @property
    def words(self) -> int:
        """The number of words that are shown."""
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
    groups = _groups_of(passage)
    before: Part | None = None  # the paragraph directly before
    for at, group in enumerate(groups):
        block = group[0]
        if block.kind == "item":
            yield from _made("list", group, _lead(before), passage)
        elif block.kind == "table":
            yield from _made("table", group, _lead(before), passage)
        elif block.kind == "code":
            yield from _made("listing", group, _lead(before) or _last_sentence(before), passage)
        elif block.kind == "paragraph":
            introduces = _introduces(block) and at + 1 < len(groups) and groups[at + 1][0].kind in _INTRODUCED
            stated = block.pieces[: -len(_lead_pieces(block))] if introduces else block.pieces
            if stated:
                yield from _made("paragraph", [only(block, stated)], None, passage)
        before = block if block.kind == "paragraph" else None


@lru_cache(maxsize=CACHED_PASSAGES)
def _groups_of(passage: str) -> tuple[tuple[Part, ...], ...]:
    """The blocks of a passage, in order; those of one list together."""
    blocks = [Part(pieces=tuple(pieces)) for _, pieces in groupby(read(passage), key=lambda piece: piece.block.start)]
    groups, at = list[tuple[Part, ...]](), 0
    while at < len(blocks):
        size = _list_size(passage, blocks[at:]) if blocks[at].kind == "item" else 1
        groups.append(tuple(blocks[at : at + size]))
        at += size
    return tuple(groups)


def continued(
    excerpt: Excerpt, passage: str, max_words: int, max_announced_words: int, *, with_listings: bool
) -> Excerpt:
    """The excerpt with what comes below it under the same heading, as far as it fits: a paragraph often says what is to
    be done, and the listing, list or paragraph below says how. What its last sentence announces ("as shown below:") may
    be longer, and may be a listing; other listings are left out unless they are wanted. Nothing is added to an excerpt
    that is itself cut."""
    last = excerpt.shown[-1]
    if not all(part.is_whole or part.kind == "paragraph" for part in excerpt.shown) or not _ends_block(last, passage):
        return excerpt
    added, words, before = list[Part](), excerpt.words, last
    for group in _groups_below(last, passage):
        is_listing = group[0].kind == "code"
        is_announced = _announces(before) or (is_listing and with_listings)
        if is_listing and not with_listings and (added or not is_announced):
            added = _without_lead(added)
            continue
        words += sum(part.words for part in group)
        if words > (max_announced_words if is_announced else max_words) or not _is_continuation(group):
            break
        added += group
        before = group[-1]
    return replace(excerpt, below=tuple(_without_lead(added)))


def preceded(excerpt: Excerpt, passage: str, max_words: int) -> Excerpt:
    """The excerpt with the paragraphs and lists directly above it under the same heading, as far as they fit: what
    "this setting" is stands there."""
    start = excerpt.shown[0].pieces[0].block.start
    above, words = list[Part](), excerpt.words
    for group in reversed([group for group in _groups_of(passage) if group[0].pieces[0].block.start < start]):
        words += sum(part.words for part in group)
        if words > max_words or not _is_continuation(group) or group[0].kind not in ("paragraph", "item"):
            break
        above = [*group, *above]
    return replace(excerpt, above=tuple(above))


def _without_lead(parts: list[Part]) -> list[Part]:
    """The parts without a last one that introduces what is not shown."""
    return parts[:-1] if parts and _introduces(parts[-1]) else parts


def _ends_block(part: Part, passage: str) -> bool:
    """Whether nothing of the part's block is below it, or only the line that introduces what is below."""
    whole = _whole(part, passage)
    rest = [piece for piece in whole.pieces if piece.start > part.pieces[-1].start]
    return not rest or (_introduces(whole) and len(rest) <= len(_lead_pieces(whole)))


def _whole(part: Part, passage: str) -> Part:
    """The block that a part belongs to."""
    start = part.pieces[0].block.start
    return next(block for group in _groups_of(passage) for block in group if block.pieces[0].block.start == start)


def _groups_below(part: Part, passage: str) -> Iterator[tuple[Part, ...]]:
    """The rest of the part's paragraph, if it announces what is below, and the groups after it."""
    whole = _whole(part, passage)
    rest = [piece for piece in whole.pieces if piece.start > part.pieces[-1].start]
    if rest:
        yield (only(whole, rest),)
    start = part.pieces[0].block.start
    yield from (group for group in _groups_of(passage) if group[0].pieces[0].block.start > start)


def _announces(part: Part) -> bool:
    """Whether the end of a part announces what is below it."""
    return _introduces(part) or _POINTS_BELOW.search(part.pieces[-1].text) is not None


def _is_continuation(group: Sequence[Part]) -> bool:
    """Whether a group may continue an excerpt: it is no heading, formula, exercise, drawing or row of links."""
    first = group[0].pieces[0]
    is_drawing = first.kind == "code" and first.block.language in DIAGRAM_LANGUAGES
    says = any(piece.kind != "link" and letters_of(piece.text) for part in group for piece in part.pieces)
    return first.kind not in ("heading", "formula") and not first.task and not is_drawing and says


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
