"""Where sentences end in a line of prose, in scripts that write a blank between sentences and in those that do not. A
full stop that belongs to an abbreviation ends none, and nothing ends inside code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lectern.text.words import words_of

LEAST_WORDS = 3  # of a sentence that states something

_END = re.compile(r"(?<=[.!?…])[\"'”’)\]*_`]*\s+(?=[\"'“‘(\[*_`]*[A-Z0-9À-ÞА-Я])|(?<=[。！？۔])\s*")
_ALWAYS_SHORT = (
    "e.g i.e etc vs cf c ca pp Fig Eq No Dr Mr Ms Mrs Prof approx resp al "
    "St Mt Ft Lt Col Gen Sen Gov Rev Capt Sgt Jr"  # titles and names of places
)
_SHORT_BEFORE_NUMBERS = "vol no fig figs sec secs"  # `no. 5`; before a word they may well end a sentence
_ABBREVIATION = re.compile(rf"(?:\b(?:{'|'.join(map(re.escape, _ALWAYS_SHORT.split()))})|\b[A-Z])\.$")
_BEFORE_NUMBER = re.compile(rf"\b(?:{'|'.join(_SHORT_BEFORE_NUMBERS.split())})\.$")
_LONGEST_SHORT = 12  # characters that are looked at before a full stop
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`]{1,200}\1(?!`)")  # longer is a text in the wrong clothes
_DIGIT_NEXT = re.compile(r"\s*\d")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where each sentence of a text begins and ends; the white space between them is in none."""
    spans: list[tuple[int, int]] = []
    start = 0
    for cut in _cuts(text):
        spans.append((start, cut))
        start = cut
    spans.append((start, len(text)))
    return [span for begin, end in spans if (span := _trimmed(text, begin, end))]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


def states(sentence: str) -> bool:
    """Whether a sentence says something: some words, and neither a question nor the beginning of a list."""
    return not sentence.endswith(("?", ":")) and len(words_of(sentence)) >= LEAST_WORDS


def ends_abbreviated(text: str, stop: int) -> bool:
    """Whether the full stop just before `stop` belongs to an abbreviation."""
    before = text[max(0, stop - _LONGEST_SHORT) : stop]
    if _ABBREVIATION.search(before):
        return True
    return _BEFORE_NUMBER.search(before) is not None and _DIGIT_NEXT.match(text, stop) is not None


def _cuts(text: str) -> Iterator[int]:
    """Where a sentence ends, closing signs and white space included."""
    code = _CODE_SPAN.finditer(text)
    span = next(code, None)
    for end in _END.finditer(text):
        while span is not None and span.end() <= end.start():
            span = next(code, None)
        inside = span is not None and span.start() < end.start()
        if not inside and not ends_abbreviated(text, end.start()):
            yield end.end()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    begin = start + len(piece) - len(piece.lstrip())
    end = start + len(piece.rstrip())
    return (begin, end) if begin < end else None
