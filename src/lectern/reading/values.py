"""The values a lesson may carry, in the many shapes that real books write them. What has one obvious meaning is taken
(`"Tier 1"`, `a2`, `CEFR A2`, `Layer 2`, a list, a range by its lower end); anything else is None, and is reported."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"\+?\d{1,9}")
_TIER = re.compile(r"(?<![\w.])(?:hardware|tier|t|\s|[-_:#])*([1-4])(?![\w.]*\d)", re.IGNORECASE)
_LEVEL = re.compile(r"(?<![a-z0-9])([abc][12])(?![a-z0-9])", re.IGNORECASE)
_LAYER = re.compile(r"(?<![a-z0-9])(?:l|layer)?[ _:-]{0,3}([1-4])(?!\.?\d)", re.IGNORECASE)


def whole_number(text: str) -> int | None:
    """A number as people write one (`3`, `"3"`, `09`); None for 1.1, -2, words and what no book has."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def tier(texts: list[str]) -> int | None:
    """A hardware tier 1-4; the lowest where several are named."""
    found = [int(match) for text in texts for match in _TIER.findall(text)]
    return min(found, default=None)


def level(texts: list[str]) -> str | None:
    """A proficiency level A1-C2; the lowest where several are named."""
    return min((match.upper() for text in texts for match in _LEVEL.findall(text)), default=None)


def layer(texts: list[str]) -> str | None:
    """A teaching layer L1-L4; the lowest where several are named."""
    return min((f"L{match}" for text in texts for match in _LAYER.findall(text)), default=None)
