"""Finds the ends of sentences in a line of prose, in scripts with and without a space between sentences. The full stop
of an abbreviation does not end a sentence, and no sentence ends inside code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lectern.text.words import words_of

MIN_STATEMENT_WORDS = 3  # a shorter sentence states nothing

_END = re.compile(r"(?<=[.!?…])[\"'”’)\]*_`]*\s+(?=[\"'“‘(\[*_`]*[A-Z0-9À-ÞА-Я])|(?<=[。！？۔])\s*")
_ALWAYS_SHORT = (
    "e.g i.e etc vs cf c ca pp Fig Eq No Dr Mr Ms Mrs Prof approx resp al "
    "St Mt Ft Lt Col Gen Sen Gov Rev Capt Sgt Jr"  # titles and names of places
)
_SHORT_BEFORE_NUMBERS = "vol no fig figs sec secs"  # `no. 5`; before a word they may end a sentence
_ABBREVIATION = re.compile(rf"(?:\b(?:{'|'.join(map(re.escape, _ALWAYS_SHORT.split()))})|\b[A-Z])\.$")
_BEFORE_NUMBER = re.compile(rf"\b(?:{'|'.join(_SHORT_BEFORE_NUMBERS.split())})\.$")
_MAX_ABBREVIATION = 12  # characters that are searched before a full stop
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`]{1,200}\1(?!`)")  # longer spans are prose between stray backticks
_DIGIT_NEXT = re.compile(r"\s*\d")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The start and end of each sentence of a text, without the white space between sentences."""
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
    """Whether a sentence states something: it has enough words, and is no question and no introduction of a list."""
    return not sentence.endswith(("?", ":")) and len(words_of(sentence)) >= MIN_STATEMENT_WORDS


def ends_abbreviated(text: str, stop: int) -> bool:
    """Whether the full stop just before `stop` belongs to an abbreviation."""
    before = text[max(0, stop - _MAX_ABBREVIATION) : stop]
    if _ABBREVIATION.search(before):
        return True
    return _BEFORE_NUMBER.search(before) is not None and _DIGIT_NEXT.match(text, stop) is not None


def _cuts(text: str) -> Iterator[int]:
    """The positions where sentences end, closing signs and white space included."""
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
