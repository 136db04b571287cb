"""What can be quoted from a passage: sentences, list items, rows of tables, listings. Every quote is a piece of the
passage as it stands, so that it can be found there again; only the markup around it (bullets, outer pipes, fences) may
be left off. Each quote has what it cannot be understood without: the sentence before, the line that introduces its
list, the head of its table. `pieces_of` gives the quotes as a network reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from lectern.text.sentences import sentences_of

Kind = Literal["sentence", "item", "list", "row", "code"]
Block = Literal["prose", "item", "table", "code", "skipped"]

MAX_LIST_WORDS = 60  # with the lead-in; a longer list is quoted item by item
MAX_LISTING_WORDS = 40  # a longer listing is quoted by its paragraphs or lines
MIN_ROW_CELLS = 2  # one cell alone states nothing

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([\w+-]*)")
_DRAWINGS = frozenset("mermaid plantuml dot svg".split())  # languages that mean nothing when read as text
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*(?:\{#[\w-]+\}\s*)?#*\s*$")
_BULLET = re.compile(r"^\s*(?:>\s*)*(?:[-*+•▪–✓✔✅☐☑]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE = re.compile(r"^[\s|:-]*-[\s|:-]*$")
_COMMENT = re.compile(r"^\s*(#|//|--\s|;|<!--)")
_BOX = re.compile(r"^\s*(?::{3,}|!{3})")  # opens or closes a note or warning
_LABEL = re.compile(r"^(\*\*|__)(?:(?!\1).)+\1[:.]?$")  # a line in bold serves as a heading
_VALUE = re.compile(r"[^:\n]{2,60}:[*_]*\s+[^\n]*\w[^\n]*[^:]")  # a label and what it is for
_LINK = re.compile(r"[\s*_~]*!?\[[^\]\n]*\]\([^)\n]*\)[\s*_~.,;]*")  # a line that is only a link
_LETTERS = re.compile(r"[^\W_]")
# A full stop after these ends no sentence, whatever follows.
_SHORTENED = re.compile(r"(?:\b(?:St|Mt|Ft|Lt|Col|Gen|Sen|Gov|Rev|Capt|Sgt|Jr|vol|pp|ca|c|no|figs?|secs?))\.$")
_ENDED = re.compile(r"[.!?…。！？۔][\"'”’)\]*_`]*$")
# A sentence that ends in such a word continues below, for example in a listing.
_OPEN = re.compile(r"\b(?:is|are|was|the|an?|of|with|and|to|by|as|gives?|need|becomes?|follows|from|for|in)$")
# Announces what a lesson will cover, so it answers nothing itself.
_ANNOUNCES = re.compile(
    r"(?i)\b(?:you(?:'|’)?(?:ll| will|ve| have)|we(?:'|’)ll|we will|let(?:'|’)?s)\s+(?:\w+ly |then |also |now |just )?"
    r"(?:learn|explore|creat|writ|understand|see|buil|discover|master|dive|clarify|look|have|be|know)"
    r"|\b(?:in|by the end of|at the end of) this (?:lesson|chapter|module|section|part|book)\b|^by the end\b"
    r"|^(?:before (?:diving|moving|we|you (?:start|begin))|learning objectives?|next (?:lesson|chapter))\b"
)
_OUTPUT = re.compile(r"(?i)\b(?:output|prints?|result|you should see|looks like)\b[^.]*:\**$")
# A sentence that begins with such a word means something else when it stands alone.
_LEANS = re.compile(
    r"^(It|Its|They|Their|This|That|These|Those|He|She|His|Her|So|But|And|Or|Then|However|Therefore|Also|Thus|Hence"
    r"|Otherwise|Instead|Both|Such|Here|There|Consequently|Moreover|Furthermore|Nevertheless|Similarly|Likewise|Another"
    r"|Conversely|Meanwhile|Neither|As a result|In (this|that|these|those|contrast|addition|turn)|For (this|that))\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A piece of a passage."""

    kind: Kind
    parts: tuple[str, ...]  # each as the passage has it, white space aside; a list's are its lead-in and its lines
    place: int  # its number among the passage's quotes
    before: str = ""  # what it depends on: the sentence before, a list's lead-in, a table's head
    heading: str = ""  # the nearest heading above it inside the passage
    leans: bool = False  # alone it means something else, or nothing
    idle: bool = False  # it announces what a lesson will cover, or shows what a command prints
    language: str = ""  # of a listing, as its fence names it

    @property
    def text(self) -> str:
        """The whole quote."""
        return "\n".join(self.parts)

    @property
    def words(self) -> int:
        """Its length."""
        return len(self.text.split())


def quotes_of(text: str) -> list[Quote]:
    """All quotes of a Markdown passage, in order; exercises are left out."""
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line)
    reader.end()
    return reader.quotes


def pieces_of(quotes: Sequence[Quote]) -> tuple[str, ...]:
    """The quotes as a network reads them: a listing with the line that introduces it, a row with the head of each cell,
    a list by its items, or as a whole where its items are too short to be quotes."""
    return tuple(_flat(introduced(quote)) for quote in quotes if quote.kind != "list" or not items_of(quote, quotes))


def introduced(quote: Quote) -> str:
    """A quote with what it cannot be understood without."""
    match quote.kind:
        case "code":
            return f"{quote.before} {quote.text}"
        case "row":
            return _headed(quote.text.split("|"), quote.before.split("|"))
        case _:
            return quote.text


def items_of(whole_list: Quote, quotes: Sequence[Quote]) -> list[Quote]:
    """The item quotes that a list consists of, which stand before it; none where some item is no quote."""
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
class _Reader:
    """Reads a passage line by line and ends a block where another begins."""

    quotes: list[Quote] = field(default_factory=list)
    _heading: str = ""
    _in_exercises: bool = False
    _block: list[str] = field(default_factory=list)
    _kind: Block = "prose"
    _fence: str = ""
    _language: str = ""
    _previous: str = ""  # the last sentence or lead-in above the current block
    _lead_in: str = ""  # the line that introduces the current list
    _items: list[str] = field(default_factory=list)  # the lines of the current list, bullets included

    def take(self, line: str) -> None:
        fence = _FENCE.match(line)
        if self._kind in ("code", "skipped"):
            self._inside(line)
        elif fence:
            self._begin("skipped" if fence.group(2) in _DRAWINGS else "code")
            self._fence, self._language = fence.groups()
        elif line.strip().startswith("$$"):
            self._begin("skipped")
            self._fence = "$$"
            if self.quotes and self.quotes[-1].kind == "sentence" and not _ENDED.search(self.quotes[-1].text):
                self.quotes.pop()  # the formula is part of it
            if line.strip().endswith("$$", 2):
                self.end_block()
        elif heading := _HEADING.match(line):
            self._begin("prose")
            self._heading, self._previous = heading.group(1), ""
            self._in_exercises = _sets_tasks(line)
        elif not line.strip() or _BOX.match(line):
            self.end_block()
        elif _ROW.match(line):
            self._go_on("table", line)
        elif _BULLET.match(line):
            self._begin("item")
            self._block.append(line)
        else:
            self._go_on("item" if self._kind == "item" and self._block else "prose", line)

    def end(self) -> None:
        """Finish the passage."""
        self.end_block()
        self._end_list()

    def end_block(self) -> None:
        """Turn the collected lines into quotes."""
        block, self._block = self._block, []
        if block and not self._in_exercises and self._kind != "skipped":
            make = {"prose": self._prose, "item": self._item, "table": self._table, "code": self._code}[self._kind]
            make(block)
        self._kind = "prose"

    def _inside(self, line: str) -> None:
        """A line of a listing or formula, or its end."""
        text = line.strip()
        if text.endswith("$$") if self._fence == "$$" else _FENCE.match(line) and text.startswith(self._fence):
            self.end_block()
        else:
            self._block.append(line)

    def _begin(self, what: Block) -> None:
        self.end_block()
        if what != "item":
            introduces_code = what == "code" and not self._items
            self._end_list()
            self._lead_in = self._lead_in if introduces_code else ""
        self._kind = what

    def _end_list(self) -> None:
        items, self._items = self._items, []
        parts = (self._lead_in, *items)
        if self._lead_in and len(items) > 1 and len(" ".join(parts).split()) <= MAX_LIST_WORDS:
            self._add("list", parts, "")

    def _go_on(self, what: Block, line: str) -> None:
        if self._kind != what or not self._block:
            self._begin(what)
        self._block.append(line)

    def _prose(self, lines: list[str]) -> None:
        before = ""
        lines = [line for line in lines if not _LINK.fullmatch(line)]
        for sentence in _whole(sentences_of("\n".join(lines)), lines):
            if not _OPEN.search(sentence) and not _LABEL.match(sentence):
                self._add("sentence", (sentence,), before, leans=bool(_LEANS.match(sentence)))
            before = sentence
        self._previous = before
        last = " ".join(" ".join(lines).split())
        self._lead_in = _introduction(last) if last.endswith(":") else ""

    def _item(self, lines: list[str]) -> None:
        before = self._lead_in
        if _LINK.fullmatch(_BULLET.sub("", " ".join(lines), count=1)):
            return  # an entry of a table of contents states nothing
        self._items.append(" ".join(" ".join(lines).split()))
        sentences = list(_whole(sentences_of("\n".join(lines)), lines))
        if not sentences and _VALUE.fullmatch(bare := _BULLET.sub("", self._items[-1], count=1)):
            sentences = [bare]  # `Weight: 35 kg` is too short for a sentence, yet a full answer
        for sentence in sentences:
            leans = before != self._lead_in and bool(_LEANS.match(sentence))
            self._add("item", (sentence,), before, leans=leans)
            before = sentence
        self._previous = before

    def _table(self, lines: list[str]) -> None:
        ruled = len(lines) > 1 and _RULE.match(lines[1])
        head = _cells(lines[0]) if ruled else ""
        for line in lines[2:] if ruled else lines:
            row = _cells(line)
            if not _RULE.match(line) and row.count("|") >= MIN_ROW_CELLS - 1 and _LETTERS.search(row):
                self._add("row", (row,), head)

    def _code(self, lines: list[str]) -> None:
        before, self._lead_in = self._lead_in or self._previous, ""
        for listing in [lines] if _length(lines) <= MAX_LISTING_WORDS else _pieces(lines):
            if any(_LETTERS.search(line) for line in listing):
                self._add("code", ("\n".join(listing).strip("\n"),), before)

    def _add(self, kind: Kind, parts: tuple[str, ...], before: str, *, leans: bool = False) -> None:
        self.quotes.append(
            Quote(
                kind=kind,
                parts=parts,
                place=len(self.quotes),
                before=before,
                heading=self._heading,
                leans=leans,
                idle=bool(_OUTPUT.search(before) if kind == "code" else _ANNOUNCES.search(parts[0])),
                language=self._language if kind == "code" else "",
            )
        )


def _sets_tasks(heading: str) -> bool:
    """Whether what stands below this heading is exercises and the like."""
    return not sentences_of(f"{heading}\n\nThree plain words.")


def _whole(sentences: list[str], lines: list[str]) -> Iterator[str]:
    """The sentences of these lines, joined again where they were cut after `St.` or `c.`."""
    text = " ".join(" ".join(lines).split())
    pieces: list[tuple[str, bool]] = []  # the whole text, and whether each piece is a sentence
    end = 0
    for sentence in sentences:
        at = text.find(sentence, end)
        if at < 0:  # quotation marks inside it
            yield sentence
            continue
        pieces += [(text[end:at].strip(), False), (sentence, True)]
        end = at + len(sentence)
    joined, states = "", False
    for piece, is_sentence in [*pieces, (text[end:].strip(), False)]:
        joined, states = f"{joined} {piece}".strip(), states or is_sentence
        if not _SHORTENED.search(joined):
            if states:
                yield joined
            joined, states = "", False
    if states:
        yield joined


def _introduction(paragraph: str) -> str:
    """The last sentence of a paragraph that ends with a colon."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z0-9*`\"“])", paragraph)[-1]


def _cells(line: str) -> str:
    """A row without its outer pipes."""
    return line.strip().removeprefix("|").removesuffix("|").strip()


def _length(lines: Sequence[str]) -> int:
    return len(" ".join(lines).split())


def _pieces(lines: list[str]) -> Iterator[list[str]]:
    """A long listing by its paragraphs; a paragraph that is too long line by line."""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if not blank and _length(paragraph) <= MAX_LISTING_WORDS:
            yield paragraph
        elif not blank:
            yield from (line for line in _statements(paragraph) if _length(line) <= MAX_LISTING_WORDS)


def _statements(lines: list[str]) -> Iterator[list[str]]:
    """Single lines, each with the comments right above it and the lines that continue it."""
    first = 0
    for at, line in enumerate(lines):
        if not _COMMENT.match(line) and not line.rstrip().endswith("\\"):
            yield lines[first : at + 1]
            first = at + 1
