"""Splits the text of a chunk into windows that an embedding model can read. A window begins with the trail and is not
over the limit; together the windows hold every word of the text in order. They are few and of similar size, and end at
a paragraph, a line or a sentence if possible: one more window is better than a cut inside a sentence. A full window and
a tiny one would be found worse than two halves.

`token_pieces` and `byte_pieces` replace the tokenizer for models whose tokenizer is not available. They count too many
pieces rather than too few.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor

Span = tuple[int, int]  # a word piece's first character and the one after its last
Pieces = Callable[[str], Sequence[Span]]  # the word pieces of a text, in order, without special tokens

MAX_TRAIL_PIECES = 64  # a quarter of the local model's window, so that the text has the larger part
SIZE_TOLERANCE = 0.4  # how much a window may differ from an even share to end at a better break
PARAGRAPH, LINE, SENTENCE, WORD = range(4)  # kinds of breaks, best first
_BLANK_LINE = re.compile(r"\n\s*\n")
_CLAUSE_END = re.compile(r"[.!?:;][\"')\]»”’*_`]*\Z|[。！？]\Z")  # a colon is a good break too
# Three letters of a word, a digit, a sign. Word pieces of English have 4 to 5 letters, of names in code near 3.
_TOKEN = re.compile(r"[A-Za-z]{1,3}|[^\sA-Za-z]")
_VISIBLE = re.compile(r"\S\s*")
MAX_CHARACTER_BYTES = 20  # of a character and the white space after it; a long run of white space is one token


def windows(trail: Sequence[str], text: str, *, limit: int, pieces: Pieces) -> tuple[str, ...]:
    """The texts that are embedded for one chunk: trail and text together, in one window or several."""
    head = heading(trail, pieces)
    parts = split_to_fit(text, limit - len(pieces(head)), pieces)
    return tuple(f"{head}\n{part}" if head else part for part in parts)


def heading(trail: Sequence[str], pieces: Pieces) -> str:
    """The trail on one line. If it is too long, its last headings; if the last heading is too long, its beginning."""
    names = [" ".join(name.split()) for name in trail if name.strip()]
    for first in range(len(names)):
        line = " > ".join(names[first:])
        spans = pieces(line)
        if len(spans) <= MAX_TRAIL_PIECES:
            return line
        if first == len(names) - 1:
            return line[: spans[MAX_TRAIL_PIECES - 1][1]]
    return ""


def split_to_fit(text: str, limit: int, pieces: Pieces) -> list[str]:
    """The text in parts of at most `limit` pieces; a text that is short enough is not changed."""
    spans = pieces(text)
    if len(spans) <= limit:
        return [text]
    # The halves of a word that was cut may have more pieces than the word, so each part is counted again.
    return [fit for part in _parts(text, spans, limit) if part for fit in split_to_fit(part, limit, pieces)]


def _parts(text: str, spans: Sequence[Span], limit: int) -> Iterator[str]:
    first = start = 0
    while len(spans) - first > limit:
        size, end = _cut(text, spans[first:], limit)
        yield text[start:end].strip()
        first, start = first + size, end
    yield text[start:].strip()


def _cut(text: str, spans: Sequence[Span], limit: int) -> tuple[int, int]:
    """Where the next window ends: how many pieces it has, and at which character."""
    min_windows = ceil(len(spans) / limit)
    for count in (min_windows, min_windows + 1):
        share = len(spans) / count
        min_size = max(len(spans) - limit * (count - 1), ceil(share * (1 - SIZE_TOLERANCE)))
        breaks = _breaks(text, spans, range(min_size, min(limit, floor(share * (1 + SIZE_TOLERANCE))) + 1))
        if natural := [candidate for candidate in breaks if candidate[0] < WORD]:
            return _best(natural, share)
    share = len(spans) / min_windows
    min_size = len(spans) - limit * (min_windows - 1)
    if words := _breaks(text, spans, range(min_size, limit + 1)):
        return _best(words, share)
    if words := _breaks(text, spans, range(1, min_size)):
        return words[-1][1:]
    return _inside_a_word(spans, limit)


def _best(breaks: Sequence[tuple[int, int, int]], share: float) -> tuple[int, int]:
    _, size, end = min(breaks, key=lambda candidate: (candidate[0], abs(candidate[1] - share)))
    return size, end


def _breaks(text: str, spans: Sequence[Span], sizes: range) -> list[tuple[int, int, int]]:
    """Kind, size and end of each window that would end at white space."""
    breaks = []
    for size in sizes:
        (_, before), (after, _) = spans[size - 1], spans[size]
        gap = text[before:after]
        visible = len(gap.rsplit(None, 1)[-1]) if gap.strip() and not gap[-1].isspace() else 0
        if visible < len(gap):  # the tokenizer drops some characters; after white space they begin a word
            breaks.append((_kind(text, before, gap), size, after - visible))
    return breaks


def _kind(text: str, before: int, gap: str) -> int:
    if _BLANK_LINE.search(gap):
        return PARAGRAPH
    if "\n" in gap:
        return LINE
    return SENTENCE if _CLAUSE_END.search(text, max(0, before - 6), before) else WORD


def _inside_a_word(spans: Sequence[Span], limit: int) -> tuple[int, int]:
    """The last position between two characters where a piece ends; up to three pieces share a Korean syllable."""
    size = next(size for size in range(limit, 0, -1) if spans[size - 1][1] <= spans[size][0])
    return size, spans[size][0]


def token_pieces(text: str) -> Sequence[Span]:
    """About 1.5 times as many spans as English prose and code have word pieces; a character of another script counts
    twice."""
    spans = [match.span() for match in _TOKEN.finditer(text)]
    if text.isascii():
        return spans
    return [span for span in spans for _ in range(1 if text[span[0]].isascii() else 2)]


def byte_pieces(text: str) -> Sequence[Span]:
    """One span for each byte; white space counts with the character before it. No token is shorter than a byte."""
    spans: list[Span] = []
    for match in _VISIBLE.finditer(text):
        size = min(len(match.group().encode("utf-8", "surrogatepass")), MAX_CHARACTER_BYTES)
        spans += [(match.start(), match.start() + 1)] * size
    return spans


def passages(trail: Sequence[str], text: str, *, limit: int, pieces: Pieces) -> tuple[str, ...]:
    """Trail and text in one window or several, by estimated pieces. The trail begins each window unless it is too
    long."""
    head = " > ".join(" ".join(name.split()) for name in trail if name.strip())
    whole = f"{head}\n{text}" if head else text
    if len(whole.encode("utf-8", "surrogatepass")) <= limit:  # no piece is shorter than a byte
        return (whole,)
    head_pieces = len(pieces(head))
    if head_pieces > limit // 4:  # a trail that leaves little space for text is read once, as text
        return tuple(split_to_fit(whole.strip(), limit, pieces))
    return tuple(
        f"{head}\n{part}" if head else part for part in split_to_fit(text.strip(), limit - head_pieces - 1, pieces)
    )
