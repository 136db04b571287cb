"""Links that a browser opens at the quoted words: the section's anchor and a text fragment of the first and last words
of one block, as they are rendered. A fragment must not cross blocks, or browsers find nothing."""

from __future__ import annotations

import re
from urllib.parse import quote

from lectern.reading.headings import plain

ENDS = 4  # words at either end
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+|#{1,6}\s+)?")
_ITEM = re.compile(r"^\s*(?:>\s*)*(?:[-*+]|\d{1,3}[.)])\s")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_BOX = re.compile(r"^\s*(?::{3,}|!{3}|\?{3})")  # the rim of a note or warning, which no page shows
_ID = re.compile(r"\s*\{[:#][^}]*\}\s*$")


def block_around(text: str, at: int) -> tuple[int, int]:
    """Where the paragraph, list item, table row or listing begins and ends that holds this place."""
    begun, held = 0, (0, len(text))
    for start, end in _blocks(text):
        if start <= at:
            begun, held = start, (start, end)
    return held if held[0] == begun else (0, len(text))


def _blocks(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start, end, at, fence = -1, 0, 0, ""
    for line in text.split("\n"):
        rim = not fence and _BOX.match(line) is not None
        mark = _FENCE.match(line)
        alone = line.lstrip().startswith(("|", "#"))
        if not fence and start >= 0 and (not line.strip() or rim or alone or mark or _ITEM.match(line)):
            found.append((start, end))
            start = -1
        if line.strip() and start < 0 and not rim:
            start = at
        end = at + len(line)
        if fence:
            fence = "" if mark and line.strip().startswith(fence) else fence
        elif mark:
            fence = mark[1]
        if start >= 0 and not fence and (alone or mark):
            found.append((start, end))
            start = -1
        at += len(line) + 1
    if start >= 0:
        found.append((start, end))
    return found


def fragment_link(url: str, block: str) -> str:
    """The link, with the block's first and last rendered words where it has any."""
    words = _rendered(block).split()
    if not words or _FENCE.match(block):
        return url
    marked = words if len(words) <= 2 * ENDS else None
    text = _encoded(words) if marked else f"{_encoded(words[:ENDS])},{_encoded(words[-ENDS:])}"
    return f"{url}{'' if '#' in url else '#'}:~:text={text}"


def _rendered(block: str) -> str:
    """What a reader sees of a block; of a table's row the first cell, for a fragment cannot cross cells."""
    if block.lstrip().startswith("|"):
        return next((plain(cell).strip() for cell in block.split("|") if cell.strip()), "")
    lines = [_LEAD.sub("", line, count=1) for line in block.split("\n")]
    return plain(_ID.sub("", " ".join(line.strip() for line in lines)))


def _encoded(words: list[str]) -> str:
    return quote(" ".join(words), safe="").replace("-", "%2D")
