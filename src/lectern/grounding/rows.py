"""Judges the row of a table by the rows of the passages' tables, cell by cell. A row is found by its first cell. It is
supported if one row of the book has all its cells below heads of the same words. It is doubtful if the book's rows of
that name have another number below such a head. Anything else is left to the judge of sentences, to which a row with
many numbers is one of many with similar ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lectern.domain.replies import Judgement
from lectern.text.blocks import blocks_of
from lectern.text.pieces import cells_of, split_cells
from lectern.text.plain import plain
from lectern.text.quantities import Quantity, quantities_of, same
from lectern.text.words import content_stems

MIN_CELLS = 2
MAX_ROWS = 600  # of one passage
SAME_ROW = 0.9  # the support of a row that the book has
OTHER_NUMBER = "The book's table has another number here."

_TOKEN = re.compile(r"[-−–](?=\d)|\d+|[^\W\d_]+")
_THOUSANDS = re.compile(r"(?<=\d)[,\u202f](?=\d{3}(?!\d))")

Cell = tuple[str, str]  # the head of its column, and what it says


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """A cell, read so that it can be compared."""

    head: frozenset[str]  # stems
    tokens: tuple[str, ...]
    numbers: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _BookRow:
    """A row of a table of the book."""

    text: str  # as a reader sees it
    cells: tuple[_Cell, ...]

    def has_any(self, numbers: Sequence[Quantity]) -> bool:
        """Whether one of its cells has one of these numbers."""
        return any(same(number, own) for number in numbers for cell in self.cells for own in cell.numbers)


def judge_row(cells: Sequence[Cell], passages: Sequence[str]) -> Judgement | None:
    """The verdict on a row; `unconfirmed` if a row of the book has its name and all its numbers, but not its heads;
    None if the passages have nothing that it can be compared with."""
    row = [_read(head, cell) for head, cell in cells]
    if len(row) < MIN_CELLS:
        return None
    named = [
        (place, book_row)
        for place, passage in enumerate(passages)
        for book_row in _rows_of(passage)
        if any(cell.tokens == row[0].tokens for cell in book_row.cells)
    ]
    for place, book_row in named:
        if _is_same(row, book_row):
            return Judgement(verdict="supported", support=SAME_ROW, evidence=book_row.text, passage=place)
    if any(_has_numbers(row, book_row) for _, book_row in named):
        return Judgement(verdict="unconfirmed", support=0.0)
    for cell in row[1:]:
        rivals = [(place, book_row) for place, book_row in named if _has_number_for(cell, book_row)]
        if rivals and not any(book_row.has_any(cell.numbers) for _, book_row in rivals):
            place, book_row = max(rivals, key=lambda rival: _agreement(row, rival[1]))
            return Judgement(
                verdict="doubtful", support=0.0, evidence=book_row.text, passage=place, reason=OTHER_NUMBER
            )
    return None


def _is_same(row: Sequence[_Cell], book_row: _BookRow) -> bool:
    """Whether the book's row has each cell in the column of its head."""
    columns = [_column(cell, book_row, is_name=not place) for place, cell in enumerate(row)]
    return all(column is not None and column.tokens == cell.tokens for cell, column in zip(row, columns, strict=True))


def _column(cell: _Cell, book_row: _BookRow, *, is_name: bool = False) -> _Cell | None:
    """The only cell of the book's row whose head has all words of a cell's head. The name of a row may be in a column
    with any head."""
    if is_name and book_row.cells[0].tokens == cell.tokens:
        return book_row.cells[0]
    fitting = [candidate for candidate in book_row.cells if cell.head and cell.head <= candidate.head]
    return fitting[0] if len(fitting) == 1 else None


def _has_numbers(row: Sequence[_Cell], book_row: _BookRow) -> bool:
    numbers = [number for cell in row for number in cell.numbers]
    return bool(numbers) and all(book_row.has_any([number]) for number in numbers)


def _has_number_for(cell: _Cell, book_row: _BookRow) -> bool:
    """Whether the book's row has a number in the column of a cell with a number."""
    column = _column(cell, book_row) if cell.numbers else None
    return column is not None and bool(column.numbers)


def _agreement(row: Sequence[_Cell], book_row: _BookRow) -> int:
    """How many cells a row of the book shares with a row."""
    tokens = {cell.tokens for cell in book_row.cells}
    return sum(cell.tokens in tokens for cell in row)


def _read(head: str, cell: str) -> _Cell:
    text = _THOUSANDS.sub("", plain(cell))
    return _Cell(
        head=frozenset(content_stems(plain(head))),
        tokens=tuple(token.replace("−", "-").replace("–", "-") for token in _TOKEN.findall(text.casefold())),
        numbers=tuple(quantity for quantity in quantities_of(text) if quantity.hard),
    )


@lru_cache(maxsize=512)
def _rows_of(passage: str) -> tuple[_BookRow, ...]:
    """The rows of a passage's tables, the heads left out."""
    return tuple(row for _, row in zip(range(MAX_ROWS), _rows(passage), strict=False))


def _rows(passage: str) -> Iterator[_BookRow]:
    for block in blocks_of(passage):
        if block.kind != "table" or not block.headed:
            continue
        heads, *rows = ([plain(cell) for cell in split_cells(cells_of(line.text))] for line in block.lines)
        for row in rows:
            if row == heads:  # a table may repeat its head
                continue
            columns = zip([*heads, *[""] * len(row)], row, strict=False)
            cells = tuple(_read(head, cell) for head, cell in columns if cell)
            if cells:
                yield _BookRow(text=" | ".join(cell for cell in row if cell), cells=cells)
