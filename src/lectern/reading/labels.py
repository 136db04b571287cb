"""Titles and labels as others wrote them, made fit to be stored and shown: one line, printable, of bounded length.
Every title that enters a book passes here, because each is repeated in every chunk below it, and one lone surrogate
from a JSON file would stop the index in the middle of its work."""

from __future__ import annotations

import re

MAX_TEXT = 300  # characters of a title or label; more is a mistake and would be repeated in every chunk
_UNFIT = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")  # white space, control characters, halves of characters


def one_line(written: str, limit: int = MAX_TEXT) -> str:
    """The words on one line, cut to the limit; "" where there are none."""
    words = _UNFIT.sub(" ", written).strip()
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"
