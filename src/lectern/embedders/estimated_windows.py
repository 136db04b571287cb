"""Windows for models whose tokenizer we do not have: cut where the text breaks by itself, never beyond a limit, by a
measure that guesses high. Nothing is lost: put together, the windows are the text again but for white space at cuts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

Measure = Callable[[str], int]  # of two texts joined: never more than of both alone

# After a blank line, a line, a sentence, a word; what is left then is one long word, and is cut anywhere.
_BREAKS = (r"(?<=\n\n)", r"(?<=\n)", r"(?<=[.!?]\s)|(?<=[。！？])", r"(?<=\s)(?=\S)")
_RUN = re.compile(r"[A-Za-z]+|[0-9]|[^\sA-Za-z0-9]")
LETTERS_A_TOKEN = 3  # English words have 4 to 5 letters a piece; names in code come near 3
TOKENS_A_FOREIGN_CHARACTER = 2


def windows(trail: Sequence[str], text: str, *, limit: int, measure: Measure) -> tuple[str, ...]:
    """Trail and text in as many windows as it takes, the trail at the head of each."""
    head = f"{' > '.join(trail)}\n" if trail else ""
    if measure(head) > limit // 2:  # a head that leaves no room is read once, as text
        head, text = "", head + text
    return tuple(head + piece for piece in fitting(text, limit - measure(head), measure))


def fitting(text: str, room: int, measure: Measure) -> list[str]:
    """The text in pieces of at most `room`, as few as the breaks allow; one that fits stays as it is."""
    if measure(text) <= room:
        return [text]
    packed = [""]
    filled = 0
    for piece in _pieces(text, room, measure, _BREAKS):
        size = measure(piece)
        if filled + size > room:
            packed.append("")
            filled = 0
        packed[-1] += piece
        filled += size
    return [stripped for window in packed if (stripped := window.strip())] or [text]


def _pieces(text: str, room: int, measure: Measure, breaks: Sequence[str]) -> Iterator[str]:
    if measure(text) <= room:
        yield text
    elif not breaks:
        yield from text
    else:
        for part in re.split(breaks[0], text):
            yield from _pieces(part, room, measure, breaks[1:])


def estimated_tokens(text: str) -> int:
    """About 1.5 times the word pieces of English prose and code, so that the guess is not too low where it matters."""
    return sum(map(_tokens, _RUN.findall(text)))


def _tokens(run: str) -> int:
    if not run.isascii():
        return TOKENS_A_FOREIGN_CHARACTER
    return -(-len(run) // LETTERS_A_TOKEN)
