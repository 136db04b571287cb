"""Windows for a model whose tokenizer we have: every window begins with the trail, none is over the limit, and together
they hold every word of the text in order. As few windows as needed, of like size, cut where the text breaks by itself:
one more window is a lower price than a cut inside a sentence, and a full window beside a tiny one finds worse than two
halves.

Pieces of text for models whose tokenizer we do not have, guessed so that the guess is not too low. Where to cut is
the business of `windows`, which is told these in place of a tokenizer's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor

Span = tuple[int, int]  # a word piece's first character and the one after its last
Pieces = Callable[[str], Sequence[Span]]  # of a text, in order, without special ones

LONGEST_TRAIL = 64  # pieces; a quarter of the local model's window, so that the text keeps the larger part
SWAY = 0.4  # how far a window may be from an even share to end at a better break
PARAGRAPH, LINE, SENTENCE, WORD = range(4)  # kinds of breaks, best first
_BLANK_LINE = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?:;][\"')\]»”’*_`]*\Z|[。！？]\Z")
# Three letters of a word, a digit, a sign. Word pieces of English have 4 to 5 letters, of names in code near 3.
_TOKEN = re.compile(r"[A-Za-z]{1,3}|[^\sA-Za-z]")
_VISIBLE = re.compile(r"\S\s*")
MOST_BYTES = 20  # of a character and the white space after it; tokenizers take long runs of white space in one


def windows(trail: Sequence[str], text: str, *, limit: int, pieces: Pieces) -> tuple[str, ...]:
    """What is embedded for one chunk: trail and text together, in one window or several."""
    head = heading(trail, pieces)
    parts = fitting(text, limit - len(pieces(head)), pieces)
    return tuple(f"{head}\n{part}" if head else part for part in parts)


def heading(trail: Sequence[str], pieces: Pieces) -> str:
    """The trail on one line; of a monstrous one the last headings, of a monstrous heading its beginning."""
    names = [" ".join(name.split()) for name in trail if name.strip()]
    for first in range(len(names)):
        line = " > ".join(names[first:])
        spans = pieces(line)
        if len(spans) <= LONGEST_TRAIL:
            return line
        if first == len(names) - 1:
            return line[: spans[LONGEST_TRAIL - 1][1]]
    return ""


def fitting(text: str, room: int, pieces: Pieces) -> list[str]:
    """The text in parts of at most `room` pieces; one that fits stays as it is."""
    spans = pieces(text)
    if len(spans) <= room:
        return [text]
    # A word that had to be cut may have more pieces in halves than it had whole, so each part is counted anew.
    return [fit for part in _parts(text, spans, room) if part for fit in fitting(part, room, pieces)]


def _parts(text: str, spans: Sequence[Span], room: int) -> Iterator[str]:
    first = start = 0
    while len(spans) - first > room:
        size, end = _cut(text, spans[first:], room)
        yield text[start:end].strip()
        first, start = first + size, end
    yield text[start:].strip()


def _cut(text: str, spans: Sequence[Span], room: int) -> tuple[int, int]:
    """Where the next window ends: how many pieces it has, and at which character."""
    fewest = ceil(len(spans) / room)
    for count in (fewest, fewest + 1):
        share = len(spans) / count
        least = max(len(spans) - room * (count - 1), ceil(share * (1 - SWAY)))
        breaks = _breaks(text, spans, range(least, min(room, floor(share * (1 + SWAY))) + 1))
        if good := [found for found in breaks if found[0] < WORD]:
            return _best(good, share)
    share = len(spans) / fewest
    least = len(spans) - room * (fewest - 1)
    if words := _breaks(text, spans, range(least, room + 1)):
        return _best(words, share)
    if words := _breaks(text, spans, range(1, least)):
        return words[-1][1:]
    return _inside_a_word(spans, room)


def _best(breaks: Sequence[tuple[int, int, int]], share: float) -> tuple[int, int]:
    _, size, end = min(breaks, key=lambda found: (found[0], abs(found[1] - share)))
    return size, end


def _breaks(text: str, spans: Sequence[Span], sizes: range) -> list[tuple[int, int, int]]:
    """Kind, size and end of each window that would end at white space."""
    found = []
    for size in sizes:
        (_, before), (after, _) = spans[size - 1], spans[size]
        gap = text[before:after]
        visible = len(gap.rsplit(None, 1)[-1]) if gap.strip() and not gap[-1].isspace() else 0
        if visible < len(gap):  # the tokenizer drops some characters; where they follow white space they begin a word
            found.append((_kind(text, before, gap), size, after - visible))
    return found


def _kind(text: str, before: int, gap: str) -> int:
    if _BLANK_LINE.search(gap):
        return PARAGRAPH
    if "\n" in gap:
        return LINE
    return SENTENCE if _SENTENCE_END.search(text, max(0, before - 6), before) else WORD


def _inside_a_word(spans: Sequence[Span], room: int) -> tuple[int, int]:
    """The last place where a piece ends; several may share one character, as a Korean syllable's up to three do."""
    size = next(size for size in range(room, 0, -1) if spans[size - 1][1] <= spans[size][0])
    return size, spans[size][0]


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
