"""Citations are made here, never by a model. A number is that of a passage of this turn. The excerpt is word for word
from the book, and the link opens the section and the block that was quoted.

Links that a browser opens at the quoted words: the section's anchor and a text fragment with the first and last
words of one block, as a page shows them. Browsers find nothing if a fragment spans several blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

from lectern.domain.chunks import Chunk
from lectern.domain.evidence import Hit
from lectern.domain.replies import Citation
from lectern.reading.headings import plain
from lectern.text.blocks import Block, blocks_of
from lectern.text.pieces import cells_of
from lectern.text.words import words_of

FRAGMENT_WORDS = 4  # at either end of a block
PASSAGE_LENGTH = 500
LONG_WORD = 4  # letters; shorter words occur in every line


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


def citation(number: int, hit: Hit, sentence: str) -> Citation:
    """The citation of a chunk, with the link to the place that the sentence is from."""
    chunk = hit.chunk
    at = position_of(chunk.text, sentence)
    section = chunk.section_at(at)
    url = section.url if section else chunk.url
    spot = spot_at(chunk.text, at)
    lines = _lines_of(chunk, spot)
    return Citation(
        number=number,
        hit=hit,
        passage=excerpt(chunk.text, sentence),
        section=section.title if section else chunk.section_title or chunk.lesson_title,
        url=url,
        fragment_url=spot.link(url),
        source_file=lines.file,
        line_start=lines.first,
        line_end=lines.last,
    )


class _FileLines(NamedTuple):
    """Lines of a file of the book."""

    file: str
    first: int
    last: int


def _lines_of(chunk: Chunk, spot: Spot) -> _FileLines:
    """The lines of a quoted block: in the file that it was included from, or in the lesson's. If the chunk's text does
    not tell, because blank lines were left out or other files are between, they are the chunk's."""
    parts = [part for part in chunk.included if part.at < spot.end and spot.start < part.end]
    if parts and {part.file for part in parts} == {parts[0].file}:
        return _FileLines(parts[0].file, min(part.line_start for part in parts), max(part.line_end for part in parts))
    if chunk.included or chunk.text.count("\n") != chunk.line_end - chunk.line_start:
        return _FileLines(chunk.source_file, chunk.line_start, chunk.line_end)
    first, last = (chunk.line_start + chunk.text.count("\n", 0, at) for at in (spot.start, spot.end))
    return _FileLines(chunk.source_file, first, last)


def position_of(text: str, sentence: str) -> int:
    """Where a sentence begins, with any line breaks; else the line with most of its words, or the start."""
    words = sentence.split()
    match = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
    return match.start() if match else _nearest(text, _long_words(sentence))


def _nearest(text: str, words: set[str]) -> int:
    """The start of the line that shares most words with a sentence."""
    best, place, at = 0, 0, 0
    for line in text.split("\n"):
        shared = len(words & _long_words(line))
        if shared > best and not line.lstrip().startswith("#"):
            best, place = shared, at
        at += len(line) + 1
    return place


def _long_words(text: str) -> set[str]:
    return {word for word in words_of(text.lower()) if len(word) >= LONG_WORD}


def excerpt(text: str, sentence: str) -> str:
    """At most 500 characters of a passage around a sentence, cut at words."""
    if len(text) <= PASSAGE_LENGTH:
        return text
    at = position_of(text, sentence)
    length = PASSAGE_LENGTH - 2  # for the two ellipses
    start = max(0, min(at - max(0, (length - len(sentence)) // 2), len(text) - length))
    end = min(len(text), start + length)
    if start > 0:
        cut = re.search(r"\s", text[start:end])
        start += cut.end() if cut else 0
    if end < len(text):
        cut_at = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = cut_at if cut_at > start else end
    return f"{'…' if start > 0 else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"
