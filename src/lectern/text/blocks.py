"""Reads the blocks of a passage: paragraphs, list items, tables, listings, headings and formulas. Each block has its
lines and their positions in the passage. markdown-it finds the structure; the text is always taken from the passage.
Some syntax of books is in no standard: `•` bullets, tables without a header, the borders of boxes, `$$` formulas. This
module recognises it line by line.

A passage is a part of a page, often cut out of a list, so indented lines are never code. The time is linear in the
length of the text: inline Markdown is not parsed, and only the beginning of a line is parsed for structure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, takewhile
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

BlockKind = Literal["paragraph", "item", "table", "code", "heading", "formula"]

MAX_LOOK = 4_000  # characters of a line that are parsed for structure; a line with 100,000 columns is no table
MAX_NESTING = 20  # lists and quotes deeper than this are read as text
CACHED_PASSAGES = 256  # a turn reads a few dozen passages, and many questions need the same ones

_parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
_parser.enable("table").disable(["reference", "html_block", "code"])

_ITEM_SIGN = re.compile(r"(?:[-*+•▪–✓✔✅☐☑]|\d{1,3}[.)])[ \t]+(?=\S)")
_TASK_BOX = re.compile(r"\[[ xX]\][ \t]+")
_QUOTE_SIGNS = " \t>"
_RULE_SIGNS = "-=*_:| \t>"
_BOX_RIMS = (":::", "!!!", "???")
_FORMULA = "$$"
_ID_OPENINGS, _ID_CLOSING = ("{#", "{:"), "}"  # an explicit anchor of a heading: `Nodes {#nodes}`, `Nodes {: #nodes }`


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a block without list and quote signs, and the position of its text in the passage."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """The position in the passage where the line ends."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A paragraph, list item, table, listing, heading or formula of a passage."""

    kind: BlockKind
    lines: tuple[Line, ...]  # a listing: the lines between the fences, unchanged; a table: its rows without rules
    start: int  # position of the first line in the passage, signs and fences included
    end: int  # end of the last line
    language: str = ""  # of a listing, as written on its fence
    headed: bool = False  # the first line of a table is its header
    opens_section: bool = False  # a heading outside lists and quotes

    @property
    def text(self) -> str:
        """The text of the block: lines of prose joined by a space, other lines unchanged."""
        joint = " " if self.kind in ("paragraph", "item", "heading") else "\n"
        return joint.join(line.text for line in self.lines)


@lru_cache(maxsize=CACHED_PASSAGES)
def blocks_of(passage: str) -> tuple[Block, ...]:
    """The blocks of a passage, in order. No line is in two blocks; rules and the borders of boxes are in none."""
    return tuple(_Reader(passage).blocks())


class _Reader:
    """Reads the blocks of one passage."""

    def __init__(self, passage: str) -> None:
        self._raw = passage.split("\n")
        self._starts = list(accumulate((len(line) + 1 for line in self._raw), initial=0))
        self._numbered_blocks: list[tuple[int, Block]] = []  # each with the number of its first line
        self._free = [bool(line.strip(_RULE_SIGNS)) for line in self._raw]  # lines with text that are in no block yet

    def blocks(self) -> Iterator[Block]:
        """The blocks in the order of the passage."""
        tokens = _tokens(self._raw)
        if hidden := self._hide(tokens):
            tokens = _tokens(["" if number in hidden else line for number, line in enumerate(self._raw)])
        self._take(tokens)
        self._take_the_rest()
        return (block for _, block in sorted(self._numbered_blocks, key=lambda numbered: numbered[0]))

    def _hide(self, tokens: Sequence[Token]) -> set[int]:
        """Add the formulas as blocks, and return the numbers of the lines that markdown-it must not see: formulas and
        the borders of boxes, which it would read as headings, tables or text. In code these signs are left alone."""
        hidden: set[int] = set()
        if not any(sign in line for line in self._raw for sign in (*_BOX_RIMS, _FORMULA)):
            return hidden
        code = {number for token in tokens if token.type == "fence" for number in _numbers(token)}
        closings = [at for at, line in enumerate(self._raw) if line.rstrip().endswith(_FORMULA) and at not in code]
        number = 0
        while number < len(self._raw):
            bare = self._raw[number].strip(_QUOTE_SIGNS)
            end = number
            if number not in code and bare.startswith(_BOX_RIMS):
                hidden.add(number)
                self._free[number] = False
            elif number not in code and bare.startswith(_FORMULA):
                end = self._formula_end(number, bare, closings[-1] if closings else -1)
                hidden.update(range(number, end + 1))
                numbers = range(number, end + 1)
                self._add("formula", numbers, [self._line(at, self._sign_width(at)) for at in numbers])
            number = end + 1
        return hidden

    def _formula_end(self, number: int, bare: str, last_closing: int) -> int:
        """The line that ends a formula. This is its first line if that has both signs, or if nothing closes it."""
        if _FORMULA in bare[len(_FORMULA) :] or number >= last_closing:
            return number
        return next(at for at in range(number + 1, last_closing + 1) if self._raw[at].rstrip().endswith(_FORMULA))

    def _take(self, tokens: Sequence[Token]) -> None:
        """Add blocks from markdown-it's tokens. The first block of a list item has the bullet on its first line."""
        begins_item = False
        for number, token in enumerate(tokens):
            if token.type == "list_item_open":
                begins_item = True
            elif token.type == "paragraph_open":
                inline = tokens[number + 1]
                contents = inline.content.split("\n")
                lines = [self._content(at, content) for at, content in zip(_numbers(inline), contents, strict=False)]
                self._paragraph(_numbers(inline).start, lines, begins_item=begins_item)
            elif token.type == "heading_open":
                self._heading(tokens[number + 1], opens_section=token.level == 0)
            elif token.type == "fence":
                self._code(token)
            elif token.type == "table_open":
                self._table(_numbers(token), begins_item=begins_item)
            if token.type in ("paragraph_open", "heading_open", "fence", "table_open"):
                begins_item = False

    def _paragraph(self, first: int, lines: Sequence[Line], *, begins_item: bool) -> None:
        """Add the lines of a paragraph. A line that begins with a bullet or looks like a table row begins a new
        block."""
        run: list[Line] = []
        kind: BlockKind = "paragraph"
        for number, line in enumerate(lines, start=first):
            starts_item = begins_item and number == first
            sign = None if starts_item else _ITEM_SIGN.match(line.text)
            row = line.text.startswith("|")
            if run and (sign or row != (kind == "table")):
                self._add(kind, range(number - len(run), number), run)
                run = []
            if not run:
                kind = "table" if row else "item" if sign or starts_item else "paragraph"
            bare = _without(line, _ITEM_SIGN) if sign else line
            run.append(_without(bare, _TASK_BOX) if sign or starts_item else bare)
        self._add(kind, range(first + len(lines) - len(run), first + len(lines)), run)

    def _heading(self, inline: Token, *, opens_section: bool) -> None:
        numbers = _numbers(inline)
        contents = inline.content.split("\n")
        if len(contents) == 1:  # closing signs such as `##` come after the text
            begin = max(self._raw[numbers.start].rfind(contents[0]), 0)
            words = _without_id(contents[0] if len(contents[0]) < MAX_LOOK // 2 else self._raw[numbers.start][begin:])
            lines = [Line(words.rstrip(), self._starts[numbers.start] + begin)]
        else:
            lines = [self._content(at, content) for at, content in zip(numbers, contents, strict=False)]
        self._add("heading", numbers, lines, opens_section=opens_section)

    def _code(self, token: Token) -> None:
        numbers = _numbers(token)
        # the rest are fences; the last line of a text may be of a listing that nothing closes
        count = token.content.count("\n") + bool(token.content and not token.content.endswith("\n"))
        inside = range(numbers.start + 1, min(numbers.start + 1 + count, numbers.stop))
        contents = token.content.split("\n")
        quoted = self._raw[numbers.start].lstrip().startswith(">")
        lines = [
            self._content(at, content) if quoted else Line(self._raw[at], self._starts[at])
            for at, content in zip(inside, contents, strict=False)
        ]
        info = token.info.strip()
        language = "".join(takewhile(lambda sign: sign.isalnum() or sign in "_+-", info))
        self._add("code", numbers, lines, language=language)

    def _table(self, numbers: range, *, begins_item: bool) -> None:
        """Add a table. It ends before the first line without a bar; the lines after that are prose, although the
        standard says otherwise."""
        end = next((at for at in numbers[2:] if "|" not in self._raw[at]), numbers.stop)
        lines = [self._line(at, self._sign_width(at)) for at in range(numbers.start, end)]
        if begins_item:
            lines[0] = _without(lines[0], _ITEM_SIGN)
        self._add("table", range(numbers.start, end), lines)
        if end < numbers.stop:
            rest = [self._line(at, self._sign_width(at)) for at in range(end, numbers.stop)]
            self._paragraph(end, rest, begins_item=False)

    def _take_the_rest(self) -> None:
        """Add lines that are nested too deep for the parser as paragraphs."""
        remaining = [number for number, free in enumerate(self._free) if free]
        for _, run in groupby(enumerate(remaining), key=lambda pair: pair[1] - pair[0]):
            numbers = [number for _, number in run]
            lines = [self._line(at, self._sign_width(at)) for at in numbers]
            self._paragraph(numbers[0], lines, begins_item=False)

    def _add(
        self, kind: BlockKind, numbers: range, lines: Sequence[Line], *, language: str = "", opens_section: bool = False
    ) -> None:
        for number in numbers:
            self._free[number] = False
        headed = kind == "table" and [_is_rule(line.text) for line in lines[:2]] == [False, True]
        rows = [line for line in lines if not _is_rule(line.text)] if kind == "table" else lines
        last = numbers.stop - 1
        block = Block(
            kind=kind,
            lines=tuple(rows),
            start=self._starts[numbers.start],
            end=self._starts[last] + len(self._raw[last]),
            language=language,
            headed=headed,
            opens_section=opens_section,
        )
        self._numbered_blocks.append((numbers.start, block))

    def _content(self, number: int, content: str) -> Line:
        """A line with the text `content`; everything before it on the line is signs."""
        beginning = self._raw[number][:MAX_LOOK].rstrip()
        return self._line(number, max(0, len(beginning) - len(content.strip())))

    def _line(self, number: int, begin: int) -> Line:
        """A line's text from `begin` on, without the white space around it."""
        text = self._raw[number][begin:]
        bare = text.lstrip()
        return Line(bare.rstrip(), self._starts[number] + begin + len(text) - len(bare))

    def _sign_width(self, number: int) -> int:
        return len(self._raw[number]) - len(self._raw[number].lstrip(_QUOTE_SIGNS))


def _tokens(lines: Sequence[str]) -> list[Token]:
    tokens: list[Token] = []
    _parser.block.parse("\n".join(line[:MAX_LOOK] for line in lines), _parser, {}, tokens)
    return tokens


def _numbers(token: Token) -> range:
    """The numbers of a token's lines."""
    return range(*token.map) if token.map else range(0)


def _without(line: Line, sign: re.Pattern[str]) -> Line:
    """A line without the sign at its beginning."""
    match = sign.match(line.text)
    return Line(line.text[match.end() :], line.start + match.end()) if match else line


def _without_id(heading: str) -> str:
    begin = heading.rfind("{")
    has_id = heading.startswith(_ID_OPENINGS, max(begin, 0)) and heading.endswith(_ID_CLOSING)
    return heading[:begin] if has_id else heading


def _is_rule(row: str) -> bool:
    """Whether a row of a table is only the rule below the header."""
    return "-" in row and not row.strip("-:| \t")
