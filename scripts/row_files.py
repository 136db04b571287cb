"""Rows that networks learn from, as lines of JSON in a compressed file. Needs neither Lectern nor torch, so that those
who make rows and those who learn from them read the same files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

R = TypeVar("R", bound=tuple[Any, ...])


def write(file: Path, rows: Iterable[tuple[Any, ...]]) -> int:
    """Keep rows; how many there were."""
    count = 0
    with gzip.open(file, "wt", encoding="utf-8") as out:
        for count, row in enumerate(rows, start=1):  # noqa: B007  # the last number is the count
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def read(file: Path, kind: Callable[..., R], most: int | None = None) -> list[R]:
    """Kept rows, or the first of them."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [kind(*json.loads(line)) for number, line in enumerate(lines) if most is None or number < most]
