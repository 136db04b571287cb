"""Citation markers in a text: `[2]`, `[1, 3]`. What stands in code, or is the text of a link, is none."""

from __future__ import annotations

import re
from collections.abc import Callable

MARKER = r"\[\d{1,4}(?:\s*,\s*\d{1,4})*\](?!\()"  # the text of a link cites nothing
_CODE = r"(?P<code>`+[^`\n]*`+)"  # nor does `ranges[0]`
_CODE_OR_MARKER = re.compile(rf"{_CODE}|(?P<gap>[ \t]*)(?P<marker>{MARKER})")


def numbers_in(text: str) -> list[int]:
    """The numbers that a text cites, by first mention."""
    found = [number for marker in _markers(text) for number in _numbers(marker)]
    return list(dict.fromkeys(found))


def has_marker(text: str) -> bool:
    """Whether a text of the book's own would be read as a citation."""
    return bool(_markers(text))


def without_markers(text: str) -> str:
    """The text alone, no gap where a marker was."""
    return renumbered(text, lambda _: None)


def renumbered(text: str, number: Callable[[int], int | None]) -> str:
    """The text with each number replaced, or taken out where it becomes None."""

    def replace(marker: re.Match[str]) -> str:
        if marker.group("code") is not None:
            return marker.group()
        kept = [number(cited) for cited in _numbers(marker)]
        shown = "".join(f"[{one}]" for one in dict.fromkeys(kept) if one is not None)
        return f"{marker.group('gap')}{shown}" if shown else ""  # the gap goes with the marker, and nothing else

    return _CODE_OR_MARKER.sub(replace, text).strip()


def _markers(text: str) -> list[re.Match[str]]:
    return [found for found in _CODE_OR_MARKER.finditer(text) if found.group("code") is None]


def _numbers(marker: re.Match[str]) -> list[int]:
    return [int(part) for part in marker.group("marker")[1:-1].split(",")]
