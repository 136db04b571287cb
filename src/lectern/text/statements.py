"""Cuts a passage into the smallest texts that a sentence can be compared with: sentences (cut at semicolons), rows of
tables with the header of each cell, lines of code, headings. Prose is plain text without markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal

from lectern.text.blocks import Block, blocks_of
from lectern.text.pieces import cells_of, split_sentences
from lectern.text.plain import plain

StatementKind = Literal["prose", "row", "code", "heading"]
Cell = tuple[str, str]  # the header of its column, and what it says

_SEMICOLON = re.compile(r"(?<=;)\s+")


def statements_of(passage: str) -> Iterator[tuple[str, StatementKind]]:
    """The statements of a passage with their kinds, in order."""
    for run in _runs(blocks_of(passage)):
        match run[0].kind:
            case "paragraph" | "item" | "formula":
                prose = " ".join(
                    block.text.replace("$$", " ") if block.kind == "formula" else block.text for block in run
                )
                yield from ((text, "prose") for text in _halves(plain(prose)))
            case "table":
                yield from ((_row_text(cells), "row") for cells in _rows(run[0]))
            case "code":
                yield from ((line.text.strip(), "code") for line in run[0].lines if line.text.strip())
            case "heading":
                yield run[0].text, "heading"


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Each block by itself, except that a sentence which continues through a one-line formula is one run of blocks."""
    run: list[Block] = []
    for block in blocks:
        if run and not _runs_on(run[-1], block):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _runs_on(before: Block, block: Block) -> bool:
    in_line = [formula for formula in (before, block) if formula.kind == "formula" and len(formula.lines) == 1]
    prose = before.kind in ("paragraph", "item", "formula") and block.kind in ("paragraph", "formula")
    return bool(in_line) and prose and block.start == before.end + 1


def _halves(paragraph: str) -> Iterator[str]:
    for sentence in split_sentences(paragraph):
        yield from _SEMICOLON.split(sentence)


def rows_of(passage: str) -> dict[str, list[Cell]]:
    """The rows of a passage's tables, by the text of their statements."""
    tables = [block for block in blocks_of(passage) if block.kind == "table"]
    return {_row_text(cells): cells for table in tables for cells in _rows(table)}


def rows_as_written(passage: str) -> Iterator[str]:
    """The rows of a passage's tables from left to right, each cell with the head of its column, also where the columns
    name the things that are compared."""
    for table in (block for block in blocks_of(passage) if block.kind == "table"):
        head, *body = _written_rows(table) or [[]]
        yield from (_row_text(list(zip_longest(head[: len(row)], row, fillvalue=""))) for row in body)


def _row_text(cells: Sequence[Cell]) -> str:
    return ", ".join(f"{head} {cell}" for head, cell in cells).strip()


def _rows(table: Block) -> Iterator[list[Cell]]:
    """The rows of a table, each cell with the header of its column. If the first cell of the header is empty, the
    columns name the things that are compared: then the columns, each cell with the first cell of its row."""
    rows = _written_rows(table)
    if not rows:  # a rule without a table
        return
    if not rows[0][0]:
        rows = _transpose(rows)
    head, *body = rows
    if not body:
        yield [("", name) for name in head]
    for row in body:
        yield list(zip_longest(head[: len(row)], row, fillvalue=""))


def _written_rows(table: Block) -> list[list[str]]:
    return [[cell.strip() for cell in cells_of(line.text).split("|")] for line in table.lines]


def _transpose(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    width = max(len(row) for row in rows)
    return [list(column) for column in zip(*([*row, *[""] * (width - len(row))] for row in rows), strict=True)]
