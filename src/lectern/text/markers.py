"""Citation markers in a text: `[2]`, `[1, 3]`. Brackets in code and the text of links are no markers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lectern.text.blocks import blocks_of

MARKER = r"\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\](?!\()"  # `[1](url)` is a link, not a citation
_CODE = r"(?P<code>`+[^`\n]*`+)"  # `ranges[0]` in code is no citation
_CODE_OR_MARKER = re.compile(rf"{_CODE}|(?P<gap>[ \t]*)(?P<marker>{MARKER})")


def numbers_in(text: str) -> list[int]:
    """The numbers that a text cites, in the order of their first mention."""
    numbers = [number for marker in _markers(text) for number in _numbers(marker)]
    return list(dict.fromkeys(numbers))


def has_marker(text: str) -> bool:
    """Whether a text has something that would be read as a citation."""
    return bool(_markers(text))


def without_markers(text: str) -> str:
    """The text without its markers and the spaces before them."""
    return renumbered(text, lambda _: None)


def renumbered(text: str, number: Callable[[int], int | None]) -> str:
    """The text with each cited number replaced by `number(cited)`, or removed if that is None."""

    def replace(marker: re.Match[str]) -> str:
        if marker.group("code") is not None or is_interval(_numbers(marker)):
            return marker.group()
        numbers = [number(cited) for cited in _numbers(marker)]
        markers = "".join(f"[{new_number}]" for new_number in dict.fromkeys(numbers) if new_number is not None)
        return f"{marker.group('gap')}{markers}" if markers else ""  # a removed marker takes the space before it along

    return _CODE_OR_MARKER.sub(replace, text).strip()


def marker_spans(text: str) -> list[tuple[int, int]]:
    """The positions of the markers in a text of several lines; brackets in code and in listings are none."""
    listings = [(block.start, block.end) for block in blocks_of(text) if block.kind == "code"]
    spans = [match.span("marker") for match in _markers(text)]
    return [(start, end) for start, end in spans if not any(first <= start < last for first, last in listings)]


def cited_numbers(marker: str) -> list[int]:
    """The numbers inside one marker."""
    return [int(number) for number in re.findall(r"\d+", marker)]


def is_interval(numbers: Sequence[int]) -> bool:
    """Whether numbers in brackets are an interval such as `[0, 1]`: passages are numbered from 1."""
    return 0 in numbers and len(numbers) > 1


def _markers(text: str) -> list[re.Match[str]]:
    return [
        match
        for match in _CODE_OR_MARKER.finditer(text)
        if match.group("code") is None and not is_interval(_numbers(match))
    ]


def _numbers(marker: re.Match[str]) -> list[int]:
    return cited_numbers(marker.group("marker"))
