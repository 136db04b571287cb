"""What the network learns from: a question, the pieces of a passage, and which of them answer it."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One question and one passage."""

    question: str
    heading: str
    pieces: list[str]
    answers: list[int]  # pieces that answer, the best first; none where the passage does not say
    counts: float  # what the row is worth
    kind: str  # how it came about
    group: str  # what it is about: rows of a group are never parted between learning and testing
