"""Finds what can be quoted from a passage: sentences, list items, rows of tables, listings. A quote is the unchanged
text of the passage, so that it can be found there again; only the markup around it (bullets, outer pipes, fences) may
be missing. Each quote has the context that is needed to understand it: the sentence before, the line that introduces
its list, the header of its table. `sections_of` gives the quotes in the form that a network reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from lectern.text.pieces import Piece, ends_sentence, read
from lectern.text.words import parts_of

Kind = Literal["sentence", "item", "list", "row", "code"]

MAX_LIST_WORDS = 60  # with the lead-in; a longer list is quoted item by item
MAX_LISTING_WORDS = 40  # a longer listing is quoted by its paragraphs or lines
MAX_LABEL_CHARACTERS = 60
MIN_ROW_CELLS = 2  # a single cell states nothing

DIAGRAM_LANGUAGES = frozenset("mermaid plantuml dot svg".split())  # their source means nothing as text
_COMMENT = re.compile(r"^\s*(#|//|--\s|;|<!--)")
_BOLD_LINE = re.compile(r"^(\*\*|__)(?:(?!\1).)+\1[:.]?$")  # a line in bold serves as a heading
# A sentence that ends in such a word continues below, for example in a listing.
_UNFINISHED = re.compile(r"\b(?:is|are|was|the|an?|of|with|and|to|by|as|gives?|need|becomes?|follows|from|for|in)$")
# Announces what a lesson will cover, so it answers nothing itself.
_ANNOUNCES = re.compile(
    r"(?i)\b(?:you(?:'|’)?(?:ll| will|ve| have)|we(?:'|’)ll|we will|let(?:'|’)?s)\s+(?:\w+ly |then |also |now |just )?"
    r"(?:learn|explore|creat|writ|understand|see|buil|discover|master|dive|clarify|look|have|be|know)"
    r"|\b(?:in|by the end of|at the end of) this (?:lesson|chapter|module|section|part|book)\b|^by the end\b"
    r"|^(?:before (?:diving|moving|we|you (?:start|begin))|learning objectives?|next (?:lesson|chapter))\b"
)
_OUTPUT = re.compile(r"(?i)\b(?:output|prints?|result|you should see|looks like)\b")
# A sentence that begins with such a word cannot be understood without the sentence before.
NEEDS_CONTEXT = re.compile(
    r"^(It|Its|They|Their|This|That|These|Those|He|She|His|Her|So|But|And|Or|Then|However|Therefore|Also|Thus|Hence"
    r"|Otherwise|Instead|Both|Such|Here|There|Consequently|Moreover|Furthermore|Nevertheless|Similarly|Likewise|Another"
    r"|Conversely|Meanwhile|Neither|As a result|In (this|that|these|those|contrast|addition|turn)|For (this|that))\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A text that can be quoted from a passage, with its context."""

    kind: Kind
    parts: tuple[str, ...]  # as in the passage, except white space; of a list: its lead-in and its lines
    place: int  # index among the passage's quotes
    start: int = 0  # position in the passage; of a list or a long listing: where it begins
    before: str = ""  # its context: the sentence before, a list's lead-in, a table's header
    lead: str = ""  # the line that introduces its list or table
    heading: str = ""  # the nearest heading above, inside the passage
    leans: bool = False  # it cannot be understood without `before`
    idle: bool = False  # it announces what a lesson will cover, or shows the output of a command
    language: str = ""  # of a listing, as written on its fence

    @property
    def text(self) -> str:
        """The parts of the quote, one on each line."""
        return "\n".join(self.parts)

    @property
    def words(self) -> int:
        """The number of words."""
        return len(self.text.split())


def quotes_of(text: str) -> list[Quote]:
    """All quotes of a Markdown passage, in order; exercises are left out."""
    maker = _QuoteMaker(text)
    for _, pieces in groupby(read(text), key=lambda piece: piece.block.start):
        maker.take(list(pieces))
    maker.end_list()
    return maker.quotes


def sections_of(quotes: Sequence[Quote], heading: str) -> list[tuple[str, tuple[str, ...]]]:
    """The quotes in the form that a network reads, by the headings above them; `heading` is above those that have none
    inside the passage."""
    return [
        (title, tuple(text for _, text in section))
        for title, section in groupby(_pieces(quotes), key=lambda piece: piece[0].heading or heading)
    ]


def _pieces(quotes: Sequence[Quote]) -> Iterator[tuple[Quote, str]]:
    """Each quote that is read: a listing with the line that introduces it, a row with the header of each cell, a list
    by its items, or as a whole if its items are too short to be quotes. The line that introduces a list or table is
    read with its first entry below each heading."""
    above = ("", "")
    for quote in quotes:
        if quote.kind != "list" or not items_of(quote, quotes):
            begins = (quote.heading, quote.lead) != above and quote.kind != "list"
            yield quote, _flat(f"{quote.lead} {introduced(quote)}" if begins else introduced(quote))
            above = (quote.heading, quote.lead)


def introduced(quote: Quote) -> str:
    """The text of a quote: code after the line that introduces it, a row with the headers of its cells."""
    match quote.kind:
        case "code":
            return f"{quote.before} {quote.text}"
        case "row":
            return _headed(quote.text.split("|"), quote.before.split("|"))
        case _:
            return quote.text


def items_of(whole_list: Quote, quotes: Sequence[Quote]) -> list[Quote]:
    """The quotes of a list's items, which come before the list; none if some item is no quote."""
    lines = [_flat(part) for part in whole_list.parts[1:]]
    items = [
        quote
        for quote in quotes[: whole_list.place]
        if quote.kind == "item" and any(_flat(quote.text) in line for line in lines)
    ]
    return items if all(any(_flat(item.text) in line for item in items) for line in lines) else []


def _headed(cells: Sequence[str], heads: Sequence[str]) -> str:
    """`grasp | 20 s` below `Phase | Budget` becomes `Phase: grasp | Budget: 20 s`."""
    if len(cells) != len(heads):
        return " | ".join(cells)
    pairs = [(head.strip(), cell.strip()) for head, cell in zip(heads, cells, strict=True)]
    return " | ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell)


def _flat(text: str) -> str:
    return " ".join(text.split())


@dataclass(slots=True)
class _QuoteMaker:
    """Makes the quotes of a passage, block by block."""

    passage: str
    quotes: list[Quote] = field(default_factory=list)
    _first: Piece | None = None  # the first piece of the current list
    _items: list[str] = field(default_factory=list)  # its lines so far, bullets included

    def take(self, pieces: Sequence[Piece]) -> None:
        """Add the quotes of the next block."""
        block = pieces[0].block
        if block.kind != "item":
            self.end_list()
        if pieces[0].task:
            return
        match block.kind:
            case "paragraph":
                self._prose(pieces)
            case "item":
                self._item(pieces)
            case "table":
                self._table(pieces)
            case "code":
                self._code(pieces[0])
            case "formula":
                self._formula()

    def end_list(self) -> None:
        """Close the current list, and add a quote of all its items if it is short enough."""
        items, self._items = self._items, []
        first, self._first = self._first, None
        if first is None or not first.lead or len(items) == 1:
            return
        parts = (first.lead, *items)
        if _length(parts) <= MAX_LIST_WORDS:
            self._add("list", parts, "", first)

    def _prose(self, pieces: Sequence[Piece]) -> None:
        before = ""
        for piece in pieces:
            if not piece.states:
                continue
            if not _UNFINISHED.search(piece.text) and not _BOLD_LINE.match(piece.text):
                self._add("sentence", (piece.text,), before, piece, leans=bool(NEEDS_CONTEXT.match(piece.text)))
            before = piece.text

    def _item(self, pieces: Sequence[Piece]) -> None:
        if all(piece.kind == "link" for piece in pieces):
            return  # an entry of a table of contents states nothing
        first, block = pieces[0], pieces[0].block
        self._first = self._first or first
        self._items.append(" ".join(self.passage[block.start : block.end].split()))
        statements = [piece.text for piece in pieces if piece.states]
        if not statements and _gives_value(block.text):
            statements = [block.text]  # `Weight: 35 kg` is too short for a sentence, yet a full answer
        before = first.lead
        for number, sentence in enumerate(statements):
            self._add("item", (sentence,), before, first, leans=number > 0 and bool(NEEDS_CONTEXT.match(sentence)))
            before = sentence

    def _table(self, rows: Sequence[Piece]) -> None:
        for row in rows:
            if row.text.count("|") >= MIN_ROW_CELLS - 1 and parts_of(row.text):
                self._add("row", (row.text,), row.head, row)

    def _code(self, listing: Piece) -> None:
        if listing.block.language in DIAGRAM_LANGUAGES:
            return
        lines = listing.text.split("\n")
        for part in [lines] if _length(lines) <= MAX_LISTING_WORDS else _paragraphs(lines):
            if any(map(parts_of, part)):
                self._add("code", ("\n".join(part).strip("\n"),), listing.lead, listing)

    def _formula(self) -> None:
        if self.quotes and self.quotes[-1].kind == "sentence" and not ends_sentence(self.quotes[-1].text):
            self.quotes.pop()  # the sentence continues in the formula, so it is incomplete

    def _add(self, kind: Kind, parts: tuple[str, ...], before: str, piece: Piece, *, leans: bool = False) -> None:
        self.quotes.append(
            Quote(
                kind=kind,
                parts=parts,
                place=len(self.quotes),
                start=piece.start,
                before=before,
                lead=piece.lead if kind in ("item", "list", "row") else "",
                heading=piece.heading,
                leans=leans,
                idle=_shows_output(before) if kind == "code" else _ANNOUNCES.search(parts[0]) is not None,
                language=piece.block.language,
            )
        )


def _gives_value(item: str) -> bool:
    """Whether an item is a label with a value: `Weight: 35 kg`."""
    label, colon, rest = item.partition(":")
    value = rest.lstrip("*_")
    fits = bool(colon) and 1 < len(label) <= MAX_LABEL_CHARACTERS and value[:1].isspace()
    return fits and not item.endswith(":") and re.search(r"\w", value) is not None


def _shows_output(lead: str) -> bool:
    """Whether the line before a listing introduces it as output."""
    bare = lead.rstrip("*")
    return bare.endswith(":") and _OUTPUT.search(bare, bare.rfind(".") + 1) is not None


def _length(lines: Sequence[str]) -> int:
    return len(" ".join(lines).split())


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Cut a long listing into its paragraphs, and a paragraph that is too long into statements."""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if not blank and _length(paragraph) <= MAX_LISTING_WORDS:
            yield paragraph
        elif not blank:
            yield from (line for line in _statements(paragraph) if _length(line) <= MAX_LISTING_WORDS)


def _statements(lines: list[str]) -> Iterator[list[str]]:
    """Single lines, each with the comments directly above it and its continuation lines."""
    first = 0
    for at, line in enumerate(lines):
        if not _COMMENT.match(line) and not line.rstrip().endswith("\\"):
            yield lines[first : at + 1]
            first = at + 1
