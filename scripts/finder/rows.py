"""What the network learns from, as lines of JSON: a question, the pieces of a passage, and which of them answer it.
Needs neither Lectern nor torch, so that both sides read the same files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
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


def write(file: Path, rows: Iterable[Row]) -> int:
    """Keep rows; how many there were."""
    count = 0
    with gzip.open(file, "wt", encoding="utf-8") as out:
        for count, row in enumerate(rows, start=1):  # noqa: B007  # the last number is the count
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def read(file: Path, most: int | None = None) -> list[Row]:
    """Kept rows, or the first of them."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [Row(*json.loads(line)) for number, line in enumerate(lines) if most is None or number < most]
