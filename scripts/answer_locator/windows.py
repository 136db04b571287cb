"""How the network reads: the question, the heading, then pieces with a mark before each, as many as fit; what does not
fit is read in a further window. As in `lectern.models.local.answer_locator`, for word pieces that are known already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

WINDOW, OPENS, PARTS = 256, 101, 102
QUESTION, HEADING, PIECE, MOST = 48, 24, 110, 40  # word pieces of each that are read; pieces a window


class Window(NamedTuple):
    """One reading."""

    ids: list[int]
    second: int  # where the passage begins
    marks: list[int]  # the place before each piece
    first: int  # the number of its first piece in the passage


def windows(question: Sequence[int], heading: Sequence[int], pieces: Sequence[Sequence[int]]) -> Iterator[Window]:
    """All readings of a passage."""
    before = [OPENS, *question[:QUESTION], PARTS, *heading[:HEADING]]
    second = len(question[:QUESTION]) + 2
    ids, marks, first = [*before], list[int](), 0
    for number, piece in enumerate(pieces):
        if marks and (len(ids) + len(piece[:PIECE]) + 2 > WINDOW or len(marks) == MOST):
            yield Window([*ids, PARTS], second, marks, first)
            ids, marks, first = [*before], [], number
        marks.append(len(ids))
        ids += [PARTS, *piece[:PIECE]]
    if marks:
        yield Window([*ids, PARTS], second, marks, first)
