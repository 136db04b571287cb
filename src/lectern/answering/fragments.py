"""Links that a browser opens at the quoted words: the section's anchor and a text fragment of the first and last words
of one block, as they are rendered. A fragment must not cross blocks, or browsers find nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from lectern.reading.headings import plain
from lectern.text.blocks import Block, blocks_of
from lectern.text.pieces import cells_of

ENDS = 4  # words at either end


class Spot(NamedTuple):
    """A paragraph, list item, row of a table, listing or heading of a passage."""

    start: int
    end: int
    shown: str  # its words as a page shows them; of a row the first cell, for a fragment cannot cross cells

    def link(self, url: str) -> str:
        """The link, with the first and last words where there are any; browsers do not look inside listings."""
        words = self.shown.split()
        if not words:
            return url
        short = len(words) <= 2 * ENDS
        text = _encoded(words) if short else f"{_encoded(words[:ENDS])},{_encoded(words[-ENDS:])}"
        return f"{url}{'' if '#' in url else '#'}:~:text={text}"


def spot_at(text: str, at: int) -> Spot:
    """What a place of a passage is part of."""
    before = [spot for block in blocks_of(text) for spot in _spots(block) if spot.start <= at]
    return before[-1] if before else Spot(0, len(text), plain(" ".join(text.split())))


def _spots(block: Block) -> Iterator[Spot]:
    if block.kind == "table":
        yield from (Spot(row.start, row.end, _first_cell(row.text)) for row in block.lines)
    else:
        yield Spot(block.start, block.end, "" if block.kind == "code" else plain(block.text))


def _first_cell(row: str) -> str:
    return next((plain(cell).strip() for cell in cells_of(row).split("|") if cell.strip()), "")


def _encoded(words: list[str]) -> str:
    return quote(" ".join(words), safe="").replace("-", "%2D")
