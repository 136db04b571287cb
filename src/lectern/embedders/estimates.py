"""Pieces of text for models whose tokenizer we do not have, guessed so that the guess is not too low. Where to cut is
the business of `windows`, which is told these in place of a tokenizer's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lectern.embedders.windows import Pieces, Span, fitting

# Three letters of a word, a digit, a sign. Word pieces of English have 4 to 5 letters, of names in code near 3.
_TOKEN = re.compile(r"[A-Za-z]{1,3}|[^\sA-Za-z]")
_VISIBLE = re.compile(r"\S\s*")
MOST_BYTES = 20  # of a character and the white space after it; tokenizers take long runs of white space in one


def token_pieces(text: str) -> Sequence[Span]:
    """About 1.5 times the word pieces of English prose and code; a character of another script counts twice."""
    found = [match.span() for match in _TOKEN.finditer(text)]
    if text.isascii():
        return found
    return [span for span in found for _ in range(1 if text[span[0]].isascii() else 2)]


def byte_pieces(text: str) -> Sequence[Span]:
    """One a byte, white space counted with what stands before it: no token is shorter, so this needs no guessing."""
    spans: list[Span] = []
    for match in _VISIBLE.finditer(text):
        size = min(len(match.group().encode("utf-8", "surrogatepass")), MOST_BYTES)
        spans += [(match.start(), match.start() + 1)] * size
    return spans


def passages(trail: Sequence[str], text: str, *, limit: int, pieces: Pieces) -> tuple[str, ...]:
    """Trail and text in one window or several, the trail at the head of each."""
    head = " > ".join(" ".join(name.split()) for name in trail if name.strip())
    whole = f"{head}\n{text}" if head else text
    if len(whole.encode("utf-8", "surrogatepass")) <= limit:  # no piece is shorter than a byte
        return (whole,)
    used = len(pieces(head))
    if used > limit // 4:  # a head that leaves little room is read once, as text
        return tuple(fitting(whole.strip(), limit, pieces))
    return tuple(f"{head}\n{part}" if head else part for part in fitting(text.strip(), limit - used - 1, pieces))
