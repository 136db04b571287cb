"""What a model thinks aloud before its answer. Models that reason write their thoughts in `<think>` at the beginning of
the content, if the server does not take them out. They are no part of the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENINGS = ("<think>", "<thinking>")
_CLOSING = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_MAX_CLOSING = len("</thinking>")


@dataclass(slots=True)
class ThoughtFilter:
    """Leaves the thoughts out of one answer of a model, as it comes."""

    _begins: bool = True  # nothing of the answer has come yet
    _thinks: bool = False
    _buffer: str = ""

    def feed(self, piece: str) -> str:
        """Add a piece of the content; returns what is answer for certain."""
        if not self._begins:
            return piece
        self._buffer += piece
        while self._begins:
            if self._thinks:
                closing = _CLOSING.search(self._buffer)
                if closing is None:
                    self._buffer = self._buffer[-_MAX_CLOSING:]
                    return ""
                self._thinks, self._buffer = False, self._buffer[closing.end() :]
            self._buffer = self._buffer.lstrip()
            begin = self._buffer[: len(_OPENINGS[-1])].lower()
            opening = next((opening for opening in _OPENINGS if begin.startswith(opening)), "")
            if not opening and any(opening.startswith(begin) for opening in _OPENINGS):
                return ""
            self._thinks, self._begins = bool(opening), bool(opening)
            self._buffer = self._buffer[len(opening) :]
        return self.finish()

    def finish(self) -> str:
        """End the content; returns the rest of the answer. Thoughts without an end are no answer."""
        rest, self._buffer = self._buffer, ""
        return "" if self._thinks else rest


def without_thoughts(text: str) -> str:
    """A whole answer of a model without its thoughts."""
    thoughts = ThoughtFilter()
    return thoughts.feed(text) + thoughts.finish()
