"""The claims of an answer: a sentence that states something, a list item with its lead, a table row with its head, a
listing. Each has its position in the answer, the markers that stand with it, and the text that is judged. A claim has
only the markers of its own: it inherits none from the sentence before it. Headings, leads, questions, "Yes." and what
an answer says about the book itself are no claims."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from lectern.text.blocks import blocks_of
from lectern.text.markers import cited_numbers, marker_spans
from lectern.text.pieces import Piece, read, states
from lectern.text.plain import plain
from lectern.text.words import FUNCTION_WORDS, words_of

ClaimKind = Literal["sentence", "item", "row", "listing", "quote"]

MIN_CONTENT_WORDS = 2  # of a sentence that claims something
MIN_LEAD_WORDS = 2  # content words of a lead that says what its items are about
MAX_LEAD_WORDS = 40

# What an answer says about the book itself: that it does not say something.
_BOOK = r"(?:book|passages?|excerpts?|chapters?|lessons?|documentation|docs|handbook|guide|text|sources?|sections?)"
_SAYING = (
    r"(?:says?|said|stated?|states|mentions?|mentioned|covers?|covered|describes?|described|gives?|given|specif(?:y|ies|ied)"
    r"|explains?|explained|shows?|shown|provides?|provided|includes?|included|lists?|listed|discuss(?:es|ed)?|compares?"
    r"|compared|names?|named|tells?|answers?|answered|goes?|contains?|contained|found)"
)
_NOT = r"(?:not|n't|n’t|never|nothing|no|nor|nowhere|only)"
_ABOUT_THE_BOOK = re.compile(
    rf"(?i)^\W*(?:(?:however|but|also|unfortunately|that said|note that),?\s+)?(?:the|this|these|those)\s+"
    rf"(?:\w+\s+){{0,2}}?{_BOOK}\b[^.;,]{{0,30}}?\b{_NOT}\b[^.;,]{{0,40}}?\b{_SAYING}\b"
    rf"|^[^.;,]{{0,80}}?\b{_NOT}\b[^.;,]{{0,30}}?\b{_SAYING}\b[^.;,]{{0,20}}?\b(?:in|by)\s+(?:the|this|these|those)\s+"
    rf"(?:\w+\s+){{0,2}}?{_BOOK}\b"
)
_DIGIT = re.compile(r"\d")  # what has a number states more
_LABEL = re.compile(r"(?:\*\*[^*]+\*\*|__[^_]+__)[.:]?")  # stands before what is said of it
_KINDS: dict[str, ClaimKind] = {"item": "item", "row": "row", "code": "listing"}
_GAP = re.compile(r"(?<=\w) +(?=[.,;:!?](?:\s|$))")
_REFERENCE = re.compile(
    r"(?i)^\W*(?:see|for (?:more|details|further)|refer to|more on this)\b[^.]{0,60}?"
    r"\b(?:lessons?|chapters?|sections?|modules?|parts?|pages?|passages?|above|below|book|documentation)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerClaim:
    """A claim of an answer."""

    kind: ClaimKind
    text: str  # what is judged: plain text with lead or head, or the lines of a listing
    bare: str  # the same without lead or head
    start: int  # position in the answer, without list signs; of a listing that of its fence
    end: int  # after the claim's markers
    markers: tuple[tuple[int, int], ...]  # positions of its markers
    citations: tuple[int, ...]  # the numbers in its markers


def claims_of(answer: str) -> list[AnswerClaim]:
    """The claims of an answer, in order."""
    spans = marker_spans(answer)
    blank = _without_markers(answer, spans)
    pieces = read(blank)
    quotes = _quoted_lines(answer)
    starts = [piece.start for piece in pieces]
    owned: list[list[tuple[int, int]]] = [[] for _ in pieces]
    for span in spans:  # a marker belongs to the piece that it is in or that ends before it
        if (place := bisect_right(starts, span[0]) - 1) >= 0:
            owned[place].append(span)
    return [
        claim
        for piece, markers in zip(pieces, owned, strict=True)
        if (claim := _claim(piece, answer, tuple(markers), quotes)) is not None
    ]


def _claim(piece: Piece, answer: str, markers: tuple[tuple[int, int], ...], quotes: set[int]) -> AnswerClaim | None:
    text = _judged_text(piece)
    if text is None:
        return None
    kind = _KINDS.get(piece.kind, "sentence")
    if kind != "listing" and answer.count("\n", 0, piece.start) in quotes:
        kind = "quote"
    return AnswerClaim(
        kind=kind,
        text=text,
        bare=piece.text if kind == "listing" else _plain(piece.text),
        start=piece.block.start if kind == "listing" else piece.start,
        end=max([piece.block.end if kind == "listing" else piece.end, *(end for _, end in markers)]),
        markers=markers,
        citations=tuple(dict.fromkeys(number for start, end in markers for number in cited_numbers(answer[start:end]))),
    )


def _judged_text(piece: Piece) -> str | None:
    """The text of a piece as it is judged; None if it claims nothing."""
    match piece.kind:
        case "code":
            return piece.text if any(line.strip() for line in piece.text.split("\n")) else None
        case "row":
            return ", ".join(_cells(piece)) or None
        case "sentence" | "item":
            bare = _plain(piece.text)
            if _LABEL.fullmatch(piece.text) and not _is_whole_item(piece):
                return None
            if not _claims(bare, item=piece.kind == "item"):
                return None
            lead = plain(piece.lead).rstrip(": ")
            return f"{lead}: {bare}" if piece.kind == "item" and _is_telling(lead) else bare
        case _:
            return None


def _plain(text: str) -> str:
    """Plain text without the blank that a marker left before a full stop."""
    return _GAP.sub("", plain(text))


def _is_whole_item(piece: Piece) -> bool:
    """Whether a piece is all that its list item says."""
    return piece.kind == "item" and piece.block.text.strip() == piece.text


def _claims(text: str, *, item: bool) -> bool:
    if _REFERENCE.match(text) or (_ABOUT_THE_BOOK.search(text) and not _DIGIT.search(text)):
        return False
    if item:  # one word may be an item of an enumeration
        return bool(_content(text)) and not text.endswith(("?", ":"))
    return states(text) and len(_content(text)) >= MIN_CONTENT_WORDS  # "Yes, it matters." states nothing of the book


def _is_telling(lead: str) -> bool:
    """Whether a lead says what its items are about. `Here are the steps` does not."""
    return len(_content(lead)) >= MIN_LEAD_WORDS and len(lead.split()) <= MAX_LEAD_WORDS


def _content(text: str) -> list[str]:
    return [word for word in words_of(text.lower()) if word not in FUNCTION_WORDS]


def _cells(row: Piece) -> Iterator[str]:
    """The cells of a row, each with the head of its column."""
    heads = [plain(cell).strip() for cell in row.head.split("|")] if row.head else []
    cells = [plain(cell).strip() for cell in row.text.split("|")]
    for head, cell in zip_longest(heads[: len(cells)], cells, fillvalue=""):
        if cell:
            yield f"{head} {cell}".strip()


def _without_markers(answer: str, spans: Sequence[tuple[int, int]]) -> str:
    """The answer with white space for each marker, so that all positions stay."""
    parts, end = [], 0
    for start, stop in spans:
        parts += [answer[end:start], " " * (stop - start)]
        end = stop
    return "".join([*parts, answer[end:]])


def _quoted_lines(answer: str) -> set[int]:
    """The numbers of the lines of block quotes; the lines of listings are none."""
    listing = {
        number
        for block in blocks_of(answer)
        if block.kind == "code"
        for number in range(answer.count("\n", 0, block.start), answer.count("\n", 0, block.end) + 1)
    }
    return {
        number
        for number, line in enumerate(answer.split("\n"))
        if line.lstrip().startswith(">") and number not in listing
    }
