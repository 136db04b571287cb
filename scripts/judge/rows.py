"""What the network learns from: a statement, its evidence, and whether the one bears out the other."""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN = -1
GROUND = ("ground-wice", "ground-fm2", "ground-halueval")


class Row(NamedTuple):
    """One statement."""

    statement: str
    evidence: str
    true: int  # 1, 0, or UNKNOWN: then only the teacher says
    kind: str  # how it came about
    group: str  # what it is about: rows of a group are never parted between learning and testing
    part: str  # round of writing, half of a set, or what a variation or a claim of an answer is
    long: str = ""  # more evidence for the teacher, if there is more
    origin: str = ""  # the true statement that a false one was made of
