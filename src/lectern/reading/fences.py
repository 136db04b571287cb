"""Balance. Whatever was cut where, a chunk's text never leaves a code fence open: a page that shows it, or a model that
reads it, would take everything after it for code."""

from __future__ import annotations

import re

_FENCE = re.compile(
    r"^[ \t]*((?:>[ \t]*)*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,99}(?=[^`\n]*$)|~{3,99}(?!~))(.*)$", re.MULTILINE
)


def open_fence(text: str) -> str | None:
    """The line that would close the fence that a text leaves open; None where all are closed."""
    if "```" not in text and "~~~" not in text:
        return None
    marks = quote = ""
    for match in _FENCE.finditer(text):
        if not marks:
            marks, quote = match[2], match[1]
        elif match[2].startswith(marks) and not match[3].strip():
            marks = ""
    return quote + marks if marks else None


def balanced(text: str) -> str:
    """The text, with a closing line where it leaves a fence open."""
    closing = open_fence(text)
    return text if closing is None else f"{text}\n{closing}"
