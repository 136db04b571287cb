"""What can be quoted from a passage: sentences, list items, rows of tables, listings. Every quote is a piece of the
passage as it stands, so that it can be found there again; only markup at its rim (bullets, outer pipes, fences) may be
left off. Each knows what it leans on: the sentence before, the line above its list, the head of its table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from lectern.text.sentences import sentences_of

Kind = Literal["sentence", "item", "list", "row", "code"]
Block = Literal["prose", "item", "table", "code", "skipped"]

WHOLE_LIST = 60  # words, lead-in and all: a longer list is quoted by its items
LISTING = 40  # words of code that are quoted whole; of a longer listing its paragraphs or lines are
ROW_CELLS = 2  # cells that a row has at least: one alone says nothing of another

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([\w+-]*)")
_DRAWN = frozenset("mermaid plantuml dot svg".split())  # says nothing when it is read as text
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*(?:\{#[\w-]+\}\s*)?#*\s*$")
_BULLET = re.compile(r"^\s*(?:>\s*)*(?:[-*+•▪–✓✔✅☐☑]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE = re.compile(r"^[\s|:-]*-[\s|:-]*$")
_COMMENT = re.compile(r"^\s*(#|//|--\s|;|<!--)")
_BOX = re.compile(r"^\s*(?::{3,}|!{3})")  # the rim of a note or warning
_LABEL = re.compile(r"^(\*\*|__)(?:(?!\1).)+\1[:.]?$")  # a line in bold is a heading of sorts
_VALUE = re.compile(r"[^:\n]{2,60}:[*_]*\s+[^\n]*\w[^\n]*[^:]")  # a label and what it is for
_LINK = re.compile(r"[\s*_~]*!?\[[^\]\n]*\]\([^)\n]*\)[\s*_~.,;]*")  # all of a line that only points elsewhere
_LETTERS = re.compile(r"[^\W_]")
# A full stop after these ends no sentence, whatever follows.
_SHORTENED = re.compile(r"(?:\b(?:St|Mt|Ft|Lt|Col|Gen|Sen|Gov|Rev|Capt|Sgt|Jr|vol|pp|ca|c|no|figs?|secs?))\.$")
_ENDED = re.compile(r"[.!?…。！？۔][\"'”’)\]*_`]*$")
# A sentence that ends so goes on below it, in a listing for example.
_OPEN = re.compile(r"\b(?:is|are|was|the|an?|of|with|and|to|by|as|gives?|need|becomes?|follows|from|for|in)$")
# Announces what a lesson will tell, or introduces what a command prints; answers nothing itself.
_ANNOUNCES = re.compile(
    r"(?i)\b(?:you(?:'|’)?(?:ll| will|ve| have)|we(?:'|’)ll|we will|let(?:'|’)?s)\s+(?:\w+ly |then |also |now |just )?"
    r"(?:learn|explore|creat|writ|understand|see|buil|discover|master|dive|clarify|look|have|be|know)"
    r"|\b(?:in|by the end of|at the end of) this (?:lesson|chapter|module|section|part|book)\b|^by the end\b"
    r"|^(?:before (?:diving|moving|we|you (?:start|begin))|learning objectives?|next (?:lesson|chapter))\b"
)
_OUTPUT = re.compile(r"(?i)\b(?:output|prints?|result|you should see|looks like)\b[^.]*:\**$")
# A sentence that begins so says something else, or the opposite, when it stands alone.
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
    place: int  # among the passage's quotes
    before: str = ""  # what it leans on: quotable as well where it is a sentence, a list's lead-in or a table's head
    heading: str = ""  # the nearest above it inside the passage
    leans: bool = False  # alone it says something else, or nothing
    idle: bool = False  # it announces what will be told, or shows what a command prints
    language: str = ""  # of a listing, as its fence names it

    @property
    def text(self) -> str:
        """The whole of it."""
        return "\n".join(self.parts)

    @property
    def words(self) -> int:
        """How long it is."""
        return len(self.text.split())


def quotes_of(text: str) -> list[Quote]:
    """All that a Markdown passage offers, in order; tasks set to the reader are left out."""
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line)
    reader.end()
    return reader.quotes


@dataclass(slots=True)
class _Reader:
    """Goes through a passage line by line and closes a block where another begins."""

    quotes: list[Quote] = field(default_factory=list)
    _heading: str = ""
    _task: bool = False
    _block: list[str] = field(default_factory=list)
    _is: Block = "prose"
    _fence: str = ""
    _language: str = ""
    _said: str = ""  # the last sentence or lead-in above the present block
    _lead: str = ""  # the line that introduces the present list
    _items: list[str] = field(default_factory=list)  # its lines so far, bullets included

    def take(self, line: str) -> None:
        fence = _FENCE.match(line)
        if self._is in ("code", "skipped"):
            self._inside(line)
        elif fence:
            self._begin("skipped" if fence.group(2) in _DRAWN else "code")
            self._fence, self._language = fence.groups()
        elif line.strip().startswith("$$"):
            self._begin("skipped")
            self._fence = "$$"
            if self.quotes and self.quotes[-1].kind == "sentence" and not _ENDED.search(self.quotes[-1].text):
                self.quotes.pop()  # it ends in the formula
            if line.strip().endswith("$$", 2):
                self.end_block()
        elif heading := _HEADING.match(line):
            self._begin("prose")
            self._heading, self._said = heading.group(1), ""
            self._task = _sets_tasks(line)
        elif not line.strip() or _BOX.match(line):
            self.end_block()
        elif _ROW.match(line):
            self._go_on("table", line)
        elif _BULLET.match(line):
            self._begin("item")
            self._block.append(line)
        else:
            self._go_on("item" if self._is == "item" and self._block else "prose", line)

    def end(self) -> None:
        """Nothing follows."""
        self.end_block()
        self._end_list()

    def end_block(self) -> None:
        """Quote what was gathered."""
        block, self._block = self._block, []
        if block and not self._task and self._is != "skipped":
            make = {"prose": self._prose, "item": self._item, "table": self._table, "code": self._code}[self._is]
            make(block)
        self._is = "prose"

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
            introduced = what == "code" and not self._items
            self._end_list()
            self._lead = self._lead if introduced else ""
        self._is = what

    def _end_list(self) -> None:
        items, self._items = self._items, []
        parts = (self._lead, *items)
        if self._lead and len(items) > 1 and len(" ".join(parts).split()) <= WHOLE_LIST:
            self._add("list", parts, "")

    def _go_on(self, what: Block, line: str) -> None:
        if self._is != what or not self._block:
            self._begin(what)
        self._block.append(line)

    def _prose(self, lines: list[str]) -> None:
        before = ""
        lines = [line for line in lines if not _LINK.fullmatch(line)]
        for sentence in _whole(sentences_of("\n".join(lines)), lines):
            if not _OPEN.search(sentence) and not _LABEL.match(sentence):
                self._add("sentence", (sentence,), before, leans=bool(_LEANS.match(sentence)))
            before = sentence
        self._said = before
        last = " ".join(" ".join(lines).split())
        self._lead = _introduction(last) if last.endswith(":") else ""

    def _item(self, lines: list[str]) -> None:
        before = self._lead
        if _LINK.fullmatch(_BULLET.sub("", " ".join(lines), count=1)):
            return  # an entry of a table of contents states nothing
        self._items.append(" ".join(" ".join(lines).split()))
        told = list(_whole(sentences_of("\n".join(lines)), lines))
        if not told and _VALUE.fullmatch(bare := _BULLET.sub("", self._items[-1], count=1)):
            told = [bare]  # `Weight: 35 kg` is too short for a sentence, and says all that is asked for
        for sentence in told:
            leans = before != self._lead and bool(_LEANS.match(sentence))
            self._add("item", (sentence,), before, leans=leans)
            before = sentence
        self._said = before

    def _table(self, lines: list[str]) -> None:
        ruled = len(lines) > 1 and _RULE.match(lines[1])
        head = _cells(lines[0]) if ruled else ""
        for line in lines[2:] if ruled else lines:
            row = _cells(line)
            if not _RULE.match(line) and row.count("|") >= ROW_CELLS - 1 and _LETTERS.search(row):
                self._add("row", (row,), head)

    def _code(self, lines: list[str]) -> None:
        before, self._lead = self._lead or self._said, ""
        for listing in [lines] if _length(lines) <= LISTING else _pieces(lines):
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
    """Whether nothing below this heading counts as a statement."""
    return not sentences_of(f"{heading}\n\nThree plain words.")


def _whole(sentences: list[str], lines: list[str]) -> Iterator[str]:
    """Sentences, put together again where they were cut after `St.` or `c.`; `lines` say how they stood."""
    text = " ".join(" ".join(lines).split())
    pieces: list[tuple[str, bool]] = []  # all of the text, and whether each piece was called a sentence
    end = 0
    for sentence in sentences:
        at = text.find(sentence, end)
        if at < 0:  # quote marks stand inside it
            yield sentence
            continue
        pieces += [(text[end:at].strip(), False), (sentence, True)]
        end = at + len(sentence)
    held, states = "", False
    for piece, is_sentence in [*pieces, (text[end:].strip(), False)]:
        held, states = f"{held} {piece}".strip(), states or is_sentence
        if not _SHORTENED.search(held):
            if states:
                yield held
            held, states = "", False
    if states:
        yield held


def _introduction(paragraph: str) -> str:
    """The last sentence of a paragraph that ends with a colon."""
    return re.split(r"(?<=[.!?])\s+(?=[A-Z0-9*`\"“])", paragraph)[-1]


def _cells(line: str) -> str:
    """A row without its outer pipes."""
    return line.strip().removeprefix("|").removesuffix("|").strip()


def _length(lines: Sequence[str]) -> int:
    return len(" ".join(lines).split())


def _pieces(lines: list[str]) -> Iterator[list[str]]:
    """A long listing by its paragraphs; those that are too long themselves line by line."""
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if not blank and _length(paragraph) <= LISTING:
            yield paragraph
        elif not blank:
            yield from (line for line in _statements(paragraph) if _length(line) <= LISTING)


def _statements(lines: list[str]) -> Iterator[list[str]]:
    """Single lines, each with the comments right above it and with what it is continued on."""
    first = 0
    for at, line in enumerate(lines):
        if not _COMMENT.match(line) and not line.rstrip().endswith("\\"):
            yield lines[first : at + 1]
            first = at + 1
