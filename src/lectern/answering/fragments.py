"""Links that a browser opens at the quoted words: the section's anchor and a text fragment with the first and last
words of one block, as a page shows them. Browsers find nothing if a fragment spans several blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from lectern.reading.headings import plain
from lectern.text.blocks import Block, blocks_of
from lectern.text.pieces import cells_of

FRAGMENT_WORDS = 4  # at either end of a block


class Spot(NamedTuple):
    """A paragraph, list item, row of a table, listing or heading of a passage."""

    start: int
    end: int
    rendered: str  # as a page shows it; of a row only the first cell, because a fragment cannot span cells

    def link(self, url: str) -> str:
        """The link with the first and last words. Browsers do not search inside listings, so these get no words."""
        words = self.rendered.split()
        if not words:
            return url
        short = len(words) <= 2 * FRAGMENT_WORDS
        text = _encode(words) if short else f"{_encode(words[:FRAGMENT_WORDS])},{_encode(words[-FRAGMENT_WORDS:])}"
        return f"{url}{'' if '#' in url else '#'}:~:text={text}"


def spot_at(text: str, at: int) -> Spot:
    """The paragraph, item, row, listing or heading at a position of a passage."""
    before = [spot for block in blocks_of(text) for spot in _spots(block) if spot.start <= at]
    return before[-1] if before else Spot(0, len(text), plain(" ".join(text.split())))


def _spots(block: Block) -> Iterator[Spot]:
    if block.kind == "table":
        yield from (Spot(row.start, row.end, _first_cell(row.text)) for row in block.lines)
    else:
        yield Spot(block.start, block.end, "" if block.kind == "code" else plain(block.text))


def _first_cell(row: str) -> str:
    return next((plain(cell).strip() for cell in cells_of(row).split("|") if cell.strip()), "")


def _encode(words: list[str]) -> str:
    return quote(" ".join(words), safe="").replace("-", "%2D")
