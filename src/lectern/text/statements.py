"""What a passage states, cut as small as it can be held against a sentence: sentences and the halves of those with a
semicolon, rows of tables with the head of each cell, lines of code, headings. All of it is plain text, without
markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal

from lectern.text.blocks import Block, blocks_of
from lectern.text.pieces import cells_of
from lectern.text.plain import plain
from lectern.text.sentences import split_sentences

StatementKind = Literal["prose", "row", "code", "heading"]

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
                yield from ((text, "row") for text in _rows(run[0]))
            case "code":
                yield from ((line.text.strip(), "code") for line in run[0].lines if line.text.strip())
            case "heading":
                yield run[0].text, "heading"


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks one by one, but for a sentence that runs through a formula on a line of its own."""
    run: list[Block] = []
    for block in blocks:
        if run and not _runs_on(run[-1], block):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _runs_on(before: Block, block: Block) -> bool:
    in_line = [one for one in (before, block) if one.kind == "formula" and len(one.lines) == 1]
    prose = before.kind in ("paragraph", "item", "formula") and block.kind in ("paragraph", "formula")
    return bool(in_line) and prose and block.start == before.end + 1


def _halves(paragraph: str) -> Iterator[str]:
    for sentence in split_sentences(paragraph):
        yield from _SEMICOLON.split(sentence)


def _rows(table: Block) -> Iterator[str]:
    """Its rows, each cell with its column's head; or, where the corner is empty and the heads name the things compared,
    its columns, each cell with its row's head."""
    rows = [[cell.strip() for cell in cells_of(line.text).split("|")] for line in table.lines]
    if not rows[0][0]:
        rows = _turned(rows)
    head, *body = rows
    if not body:
        yield ", ".join(head)
    for row in body:
        named = [f"{name} {cell}" for name, cell in zip_longest(head[: len(row)], row, fillvalue="")]
        yield ", ".join(named).strip()


def _turned(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    width = max(len(row) for row in rows)
    return [list(column) for column in zip(*([*row, *[""] * (width - len(row))] for row in rows), strict=True)]
