"""What the network learns from: a statement, its evidence, and whether the one bears out the other."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One statement."""

    statement: str
    evidence: str
    true: int
    kind: str  # how it came about
    group: str  # what it is about: rows of a group are never parted between learning and testing
    part: str  # round of writing, or half of a set
