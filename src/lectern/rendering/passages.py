"""Quoted passages as HTML. A passage is cut at words, so it may begin inside a table or a listing: what remains of them
is shown as a table and as a listing. A row that lost its beginning, and a heading that lost its text, are left out."""

from __future__ import annotations

import re

from lectern.rendering.answers import text_html

CUT = "…"  # stands where a passage was cut
_FENCE_OPENING = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_DELIMITERS = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_BARE_HEADING = re.compile(r"\n#{1,6}[ \t][^\n]*\n*…$")


def passage_html(text: str) -> str:
    """A quoted passage as HTML."""
    return text_html(whole_blocks(text))


def whole_blocks(text: str) -> str:
    """The passage, where it begins with a part of a listing or table with the fence or the head that was cut off."""
    text = _BARE_HEADING.sub("", text)
    if not text.startswith(CUT):
        return text
    if fence := _lost_fence(text):
        return f"{CUT}\n\n{fence}\n{text.removeprefix(CUT).lstrip()}"
    rest = text.partition("\n")[2]
    if not rest.startswith("|"):
        return text
    row, _, below = rest.partition("\n")
    columns = row.count("|") - 1
    rows = below if _DELIMITERS.fullmatch(row) else rest
    return f"{CUT}\n\n{'| ' * columns}|\n{'|---' * columns}|\n{rows}"


def _lost_fence(text: str) -> str:
    """The fence of the listing that the passage begins in; "" if it begins outside of one. A fence with a language
    begins a listing, and so does one after a blank line."""
    fences = list(_FENCE_OPENING.finditer(text))
    if not fences or fences[0][2].strip():
        return ""
    before = text[: fences[0].start()]
    opens_next = len(fences) > 1 and bool(fences[1][2].strip())
    is_odd = len(fences) % 2 == 1 and not before.endswith(("\n\n", ":\n"))
    return fences[0][1] if opens_next or is_odd else ""
