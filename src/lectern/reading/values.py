"""The values a lesson may carry, in the many shapes that real books write them. What has one obvious meaning is taken
(`"Tier 1"`, `a2`, `CEFR A2`, `Layer 2`, a list, a range by its lower end); anything else is None, and is reported."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"\+?\d{1,9}")
_TO = r"\s*(?:[-–—/,&]|to|and|or)\s*"
_NOTE = r"(?:\s*[(:,;].*|\s+[-–—]\s.*)?"  # what the author says of it: "1 (a laptop)", but not "4 GB"
_BARE = re.compile(rf"([1-4])(?:{_TO}([1-4]))?\+?{_NOTE}", re.IGNORECASE | re.DOTALL)
_TIER_WORD = r"(?:hardware[\s_:-]*)?tiers?[\s_:#-]*"
_TIER = re.compile(
    rf"{_TIER_WORD}([1-4])(?:{_TO}(?:{_TIER_WORD})?([1-4]))?\+?(?:\s.*|{_NOTE})", re.IGNORECASE | re.DOTALL
)
_SHORT_TIER = re.compile(rf"t[\s_:#-]*([1-4])(?:{_TO}t?([1-4]))?\+?{_NOTE}", re.IGNORECASE | re.DOTALL)  # not "T4 GPU"
_LEVEL = re.compile(r"(?<![a-z0-9])([abc][12])(?![a-z0-9])", re.IGNORECASE)
_LAYER = re.compile(r"(?<![a-z0-9])(?:l|layer)[ _:-]{0,3}([1-4])(?!\.?\d)", re.IGNORECASE)


def whole_number(text: str) -> int | None:
    """A number as people write one (`3`, `"3"`, `09`); None for 1.1, -2, words and what no book has."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def tier(texts: list[str]) -> int | None:
    """A hardware tier 1-4, the lowest where several are named; None where any of it is something else, such as the
    number of a board or of gigabytes."""
    found = [_lowest(_whole(text.strip(), _TIER, _SHORT_TIER, _BARE)) for text in texts]
    return min((number for number in found if number), default=None) if all(found) else None


def _whole(text: str, *shapes: re.Pattern[str]) -> re.Match[str] | None:
    return next((match for shape in shapes if (match := shape.fullmatch(text))), None)


def _lowest(match: re.Match[str] | None) -> int | None:
    return min(int(number) for number in match.groups() if number) if match else None


def level(texts: list[str]) -> str | None:
    """A proficiency level A1-C2; the lowest where several are named."""
    return min((match.upper() for text in texts for match in _LEVEL.findall(text)), default=None)


def layer(texts: list[str]) -> str | None:
    """A teaching layer L1-L4; the lowest where several are named. A number without its letter must stand alone."""
    found = [int(match) for text in texts for match in _LAYER.findall(text)]
    found += [number for text in texts if (number := _lowest(_BARE.fullmatch(text.strip())))]
    return f"L{min(found)}" if found else None
