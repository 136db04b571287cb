"""Cuts a passage into pieces, in order. A piece is a sentence of prose, a sentence of a list item, a row of a table, a
listing, a heading or a formula. It has its position in the passage and the context that is needed to understand it:
the line that introduces it, the header of its table, the heading above.

Finds the ends of sentences in a line of prose, in scripts with and without a space between sentences. The full stop
of an abbreviation does not end a sentence, and no sentence ends inside code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Literal

from lectern.text.blocks import CACHED_PASSAGES, Block, Line, blocks_of
from lectern.text.plain import plain
from lectern.text.words import words_of

MIN_STATEMENT_WORDS = 3  # a shorter sentence states nothing
CHARACTERS_OF_WORD = 2  # in scripts without spaces between words; most Chinese words have two

# Signs that end a sentence: before a space, and in scripts without spaces between sentences.
STOPS, UNSPACED_STOPS = ".!?…؟", "。！？۔।॥"
NO_STATEMENT_ENDS = ("?", ":", "？", "：", "؟")  # of questions and introductions
CLOSERS = r"[\"'”’)\]*_`]*"  # signs between the stop and the space
_PICTURES = "[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff\u200d\ufe0f]"  # `⚠️ It needs`
_OPENERS = rf"(?:{_PICTURES}{{1,8}}\s?)?[\"'“‘(\[*_]*"  # signs between the space and the first word
_SENTENCE_GAP = re.compile(  # code begins a sentence in any case: `rqt` shows it
    rf"(?<=[{STOPS}]){CLOSERS}\s+(?={_OPENERS}(?:(?P<first>[^\W_])|`[^\s`]))|(?<=[{UNSPACED_STOPS}])\s*"
)
_UNSPACED = re.compile(  # Thai and Lao, Burmese, Khmer, Japanese, Chinese
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u3096\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
_SENTENCE_END = re.compile(rf"[{STOPS}{UNSPACED_STOPS}]{CLOSERS}$")
_ALWAYS_SHORT = (
    "e.g i.e etc vs cf c ca pp Fig Eq No Dr Mr Ms Mrs Prof approx resp al "
    "St Mt Ft Lt Col Gen Sen Gov Rev Capt Sgt Jr"  # titles and names of places
)
_SHORT_BEFORE_NUMBERS = "vol no fig figs sec secs"  # `no. 5`; before a word they may end a sentence
_ABBREVIATION = re.compile(rf"(?:\b(?:{'|'.join(map(re.escape, _ALWAYS_SHORT.split()))})|(?<!°)\b[A-Z])\.$")
_BEFORE_NUMBER = re.compile(rf"\b(?:{'|'.join(_SHORT_BEFORE_NUMBERS.split())})\.$")
_MAX_ABBREVIATION = 12  # characters that are searched before a full stop
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)[^`]{1,200}\1(?!`)")  # longer spans are prose between stray backticks
_BAR_OR_CODE = re.compile(r"`+[^`]*`+|\\.|(?P<bar>\|)")
_DIGIT_NEXT = re.compile(r"\s*\d")
PieceKind = Literal["sentence", "item", "row", "code", "heading", "formula", "link"]

_TASK = re.compile(r"(?i)\b(exercises?|try (it|this|with)|reflect\w*|quiz|check your|your turn|practice|homework)\b")
_LINK_LINE = re.compile(r"[\s*_~]*!?\[[^\]\n]*\]\([^)\n]*\)[\s*_~.,;]*")
_MARKUP_LINE = re.compile(r"!\[|</?[A-Za-z!]")


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
    return not sentence.endswith(NO_STATEMENT_ENDS) and count_words(sentence) >= MIN_STATEMENT_WORDS


def count_words(text: str) -> int:
    """The number of words of a text. In scripts without spaces between words they are counted by their characters."""
    spaced = _UNSPACED.sub(" ", text)
    unspaced = len(_UNSPACED.findall(text))
    return len(words_of(spaced)) + -(-unspaced // CHARACTERS_OF_WORD)


def ends_sentence(text: str) -> bool:
    """Whether a text ends where a sentence ends."""
    return _SENTENCE_END.search(text) is not None


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
    for end in _SENTENCE_GAP.finditer(text):
        while span is not None and span.end() <= end.start():
            span = next(code, None)
        inside = span is not None and span.start() < end.start()
        # letters of scripts without capitals are neither lower nor upper, and may begin a sentence
        continues = end["first"] is not None and end["first"].islower()
        if not inside and not continues and not ends_abbreviated(text, end.start()):
            yield end.end()


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    piece = text[start:end]
    begin = start + len(piece) - len(piece.lstrip())
    end = start + len(piece.rstrip())
    return (begin, end) if begin < end else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a passage."""

    kind: PieceKind  # "link" is a line that is only a link or an image
    text: str  # without the signs at the beginnings of lines; lines of prose are joined by a space
    start: int  # position in the passage
    end: int
    block: Block  # the block that contains the piece
    lead: str = ""  # the line that introduces an item, row or listing; for a listing else the last sentence before it
    head: str = ""  # the header of a row's table
    heading: str = ""  # the nearest heading above, inside the passage
    task: bool = False  # part of an exercise for the reader, which states nothing

    @property
    def plain(self) -> str:
        """The text without markup."""
        return plain(self.text)

    @property
    def states(self) -> bool:
        """Whether the piece is prose that states something and is no part of an exercise."""
        return self.kind in ("sentence", "item") and not self.task and states(self.text)


@lru_cache(maxsize=CACHED_PASSAGES)
def read(passage: str) -> tuple[Piece, ...]:
    """The pieces of a passage, in order."""
    reader = _Reader()
    return tuple(piece for block in blocks_of(passage) for piece in reader.pieces(block))


def sentences_of(passage: str) -> list[str]:
    """The sentences of a passage that state something, in order; exercises are left out."""
    return [piece.text for piece in read(passage) if piece.states]


def cells_of(row: str) -> str:
    """A row of a table without its outer bars."""
    bare = row.strip().removeprefix("|")
    return (bare if bare.endswith(r"\|") else bare.removesuffix("|")).strip()


def split_cells(cells: str) -> list[str]:
    """The cells of a row without its outer bars. A bar in code or after a backslash is part of its cell."""
    bars = [match.start() for match in _BAR_OR_CODE.finditer(cells) if match["bar"]]
    bounds = zip([0, *(bar + 1 for bar in bars)], [*bars, len(cells)], strict=True)
    return [cells[start:end].replace(r"\|", "|").strip() for start, end in bounds]


@dataclass(slots=True)
class _Reader:
    """Reads block after block and keeps the context that the next block needs."""

    _heading: str = ""
    _task: bool = False
    _lead: str = ""  # the line that introduces what comes next
    _last: str = ""  # the last sentence that states something
    _in_list: bool = False

    def pieces(self, block: Block) -> list[Piece]:
        """The pieces of a block; blocks must come in order."""
        match block.kind:
            case "paragraph" | "item":
                return self._prose(block)
            case "table":
                return self._rows(block)
            case "code":
                return self._listing(block)
            case "heading":
                return self._section(block)
            case "formula":
                self._lead, self._in_list = "", False
                return self._whole(block, "formula")

    def _prose(self, block: Block) -> list[Piece]:
        item = block.kind == "item"
        if not item:
            self._lead = ""
        pieces = [self._piece(block, kind, *part, lead=self._lead if item else "") for kind, part in _parts(block)]
        statements = [piece.text for piece in pieces if piece.states]
        self._last = statements[-1] if statements else self._lead
        if not item:
            self._lead = _introduction(pieces) if block.text.endswith(":") else ""
        self._in_list = item
        return pieces

    def _rows(self, block: Block) -> list[Piece]:
        lead, self._lead, self._in_list = self._lead, "", False
        head = cells_of(block.lines[0].text) if block.headed else ""
        rows = block.lines[1:] if block.headed else block.lines
        return [self._piece(block, "row", cells_of(row.text), row.start, row.end, lead, head) for row in rows]

    def _listing(self, block: Block) -> list[Piece]:
        lead = self._last if self._in_list else self._lead or self._last
        self._lead, self._in_list = "", False
        return self._whole(block, "code", lead=lead)

    def _section(self, block: Block) -> list[Piece]:
        self._lead = self._last = ""
        self._in_list = False
        if block.opens_section:
            self._heading, self._task = block.text, _TASK.search(block.text) is not None
        return self._whole(block, "heading")

    def _whole(self, block: Block, kind: PieceKind, *, lead: str = "") -> list[Piece]:
        if not block.lines:
            return []
        return [self._piece(block, kind, block.text, block.lines[0].start, block.lines[-1].end, lead=lead)]

    def _piece(  # noqa: PLR0913  # all that differs between kinds
        self, block: Block, kind: PieceKind, text: str, start: int, end: int, lead: str = "", head: str = ""
    ) -> Piece:
        return Piece(
            kind=kind,
            text=text,
            start=start,
            end=end,
            block=block,
            lead=lead,
            head=head,
            heading=self._heading,
            task=self._task,
        )


def _introduction(paragraph: Sequence[Piece]) -> str:
    """The last sentence of a paragraph, with a bold label directly before it: `**The arm.** It has:`."""
    first = len(paragraph) - 1
    while first and paragraph[first - 1].text.endswith(("*", "_")):
        first -= 1
    return " ".join(piece.text for piece in paragraph[first:])


Part = tuple[str, int, int]  # a text, and where it begins and ends in the passage


def _parts(block: Block) -> Iterator[tuple[PieceKind, Part]]:
    """The sentences of a block of prose, and its lines that are only a link or an image."""
    sentence: PieceKind = "item" if block.kind == "item" else "sentence"
    for is_link, lines in groupby(_pointing(block.lines), key=itemgetter(0)):
        if is_link:
            yield from (("link", (line.text, line.start, line.end)) for _, line in lines)
        else:
            yield from ((sentence, part) for part in _sentences([line for _, line in lines]))


def _pointing(lines: Sequence[Line]) -> Iterator[tuple[bool, Line]]:
    """Each line, and whether it is only a link or an image. A link in the middle of a wrapped sentence is a part of
    it."""
    wrapped = False  # the sentence of the line before goes on
    for line in lines:
        is_link = not wrapped and _points(line)
        wrapped = not is_link and not ends_sentence(line.text) and not line.text.endswith(":")
        yield is_link, line


def _points(line: Line) -> bool:
    """Whether a line is only a link or begins with a tag or an image."""
    return _MARKUP_LINE.match(line.text) is not None or _LINK_LINE.fullmatch(line.text) is not None


def _sentences(lines: Sequence[Line]) -> Iterator[Part]:
    """The sentences of consecutive lines of prose, with their positions in the passage."""
    text = " ".join(line.text for line in lines)
    begins = list(accumulate((len(line.text) + 1 for line in lines), initial=0))[:-1]

    def place(at: int) -> int:
        number = bisect_right(begins, at) - 1
        return lines[number].start + at - begins[number]

    for start, end in sentence_spans(text):
        yield text[start:end], place(start), place(end - 1) + 1
