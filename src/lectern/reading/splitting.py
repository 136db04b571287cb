"""Cuts blocks into pieces that fit a chunk. A fence, table or formula stays whole up to twice the target. A larger one
is cut between lines; each part is opened and closed again, with the table's header repeated. Prose is cut between
sentences. A sentence is cut between words, and a word inside, only if it is too large for a chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lectern.domain.chunks import TOKENS_PER_WORD
from lectern.reading.blocks import Block, Body
from lectern.reading.rules import ReadingRules

_SENTENCE_END = re.compile(r"[.!?…]['\"”’)\]*_`]*(?=\s)|[。！？｡؟۔।॥]['\"”’」』）]*|\n")
MIN_CUT_DISTANCE = 25  # characters between two positions where a text may be cut
_WORD = re.compile(r"\S+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_ABBREVIATION = re.compile(r"(?:\b(?i:e\.g|i\.e|etc|cf|vs|fig|eq|no|dr|mr|mrs|ms|st|approx|ca)|\b[A-Z]|^\W*\d+)\.$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Text that is not cut further. Lines are 0-based, in the body; `head` and `tail` are not the author's text."""

    text: str
    first: int
    last: int
    gap: str = "\n"  # the separator from a piece before it in the same chunk
    heading: bool = False
    opens: tuple[str, str] | None = None  # title and anchor of the section that begins with this piece
    head: str = ""
    tail: str = ""
    size: float = field(init=False)  # in tokens, with head and tail

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", weight(self.full_text))

    @property
    def full_text(self) -> str:
        """The text with head and tail."""
        return f"{self.head}{self.text}{self.tail}"


def weight(text: str) -> float:
    """The size of a text in tokens, from its words; in scripts without spaces two characters count as a word."""
    words = float(len(text.split()))
    if not text.isascii():
        words += len(_UNSPACED.findall(text)) / 2
    return words * TOKENS_PER_WORD


class Cutter:
    """Cuts blocks into pieces by one set of rules."""

    def __init__(self, rules: ReadingRules) -> None:
        self.target, self.chars = rules.target_tokens, rules.max_chars
        self._many_words = re.compile(rf"(?:\S+\s*){{1,{max(1, int(self.target / TOKENS_PER_WORD))}}}")

    def pieces(self, body: Body, block: Block, after: int) -> Iterator[Piece]:
        """The pieces of a block; `after` is the line where the block before it ended."""
        gap = "\n" if block.start <= after else "\n\n"
        text = "\n".join(body.lines[block.start : block.end])
        whole = block.kind in ("fence", "table", "math")
        room = 2 if whole else 1
        tail = "" if block.closed else "\n" + _closing(body.lines[block.start], block)
        if block.kind == "heading" or self._fits(text, room):
            yield from self._single(text, block, gap, tail)
        elif block.kind == "fence":
            yield from self._framed(body, block, gap, *_fence_frame(body, block, self.chars // 8))
        elif block.kind == "table":
            yield from self._framed(body, block, gap, _table_head(body, block, self.chars // 2), "")
        elif block.kind == "math":
            yield from self._framed(body, block, gap, *_math_frame(body, block))
        elif block.kind == "code":
            yield from self._framed(body, block, gap, "", "")
        else:
            yield from self._prose(text, block.start, gap)

    def _fits(self, text: str, room: float = 1) -> bool:
        return len(text) <= room * self.chars and weight(text) <= room * self.target

    def _single(self, text: str, block: Block, gap: str, tail: str) -> Iterator[Piece]:
        if block.kind == "heading" and len(text) > 2 * self.chars:
            yield from self._prose(text, block.start, gap)  # a heading as long as a chapter
        else:
            yield Piece(text, block.start, block.end - 1, gap, block.kind == "heading", tail=tail)

    def _framed(self, body: Body, block: Block, gap: str, head: str, tail: str) -> Iterator[Piece]:
        """The parts of a large block, cut between lines. The first part keeps the author's opening lines, the last part
        the closing line; the others get `head` and `tail`."""
        opening = head.count("\n")  # lines of the block that `head` repeats
        first, closed = block.start + opening, bool(tail) and block.closed
        last = block.end - (1 if closed else 0)
        parts = list(self._line_groups(body.lines, first, last)) or [("", first, first)]
        for number, (text, start, end) in enumerate(parts):
            begins, ends = number == 0, number == len(parts) - 1
            own_head = "\n".join(body.lines[block.start : first]) + "\n" if begins and opening else ""
            own_tail = "\n" + body.lines[last] if ends and closed else ""
            yield Piece(
                own_head + text + own_tail,
                block.start if begins and opening else start,
                last if own_tail else max(start, end - 1),
                gap if begins else "\n",
                head="" if begins else head,
                tail="" if own_tail or not tail else "\n" + tail,
            )

    def _line_groups(self, lines: list[str], first: int, last: int) -> Iterator[tuple[str, int, int]]:
        """Runs of lines that fit the target; a line that is too large is cut between words."""
        start, size, chars = first, 0.0, 0
        for at in range(first, last):
            line_weight, line_chars = weight(lines[at]), len(lines[at]) + 1
            if at > start and (size + line_weight > self.target or chars + line_chars > self.chars):
                yield "\n".join(lines[start:at]), start, at
                start, size, chars = at, 0.0, 0
            if line_weight > 2 * self.target or line_chars > 2 * self.chars:
                for begin, end in self._words(lines[at]):
                    yield lines[at][begin:end].strip(), at, at + 1
                start = at + 1
                continue
            size, chars = size + line_weight, chars + line_chars
        if start < last:
            yield "\n".join(lines[start:last]), start, last

    def _prose(self, text: str, line: int, gap: str) -> Iterator[Piece]:
        """Pieces of prose: sentences up to the target. The white space between two pieces becomes a line break or a
        space."""
        position = 0
        for start, end in self._prose_spans(text):
            sentences = text[start:end].strip()
            begin = text.index(sentences, start)
            line += text.count("\n", position, begin)
            position = begin
            yield Piece(sentences, line, line + sentences.count("\n"), gap)
            rest = text[end - 1 : end + 1]
            gap = "\n" if "\n" in rest else " "

    def _prose_spans(self, text: str) -> Iterator[tuple[int, int]]:
        begin, at, size = 0, 0, 0.0
        for end in _sentence_ends(text):
            more = weight(text[at:end])
            if at > begin and (size + more > self.target or end - begin > self.chars):
                yield begin, at
                begin, size = at, 0.0
            if more > 2 * self.target or end - at > 2 * self.chars:
                yield from ((at + first, at + last) for first, last in self._words(text[at:end]))
                begin, size = end, 0.0
            else:
                size += more
            at = end
        if text[begin:].strip():
            yield begin, len(text)

    def _words(self, text: str) -> Iterator[tuple[int, int]]:
        """Spans of words up to the target. A word that is too large for a chunk is cut as well."""
        if _UNSPACED.search(text):
            yield from self._weighed_words(text, 0, len(text))
            return
        for group in self._many_words.finditer(text):  # all words have the same weight, so a regex can count them
            if group.end() - group.start() <= self.chars:
                yield group.span()
            else:
                yield from self._weighed_words(text, group.start(), group.end())

    def _weighed_words(self, text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
        size = 0.0
        for match in _WORD.finditer(text, begin, stop):
            start, end = match.span()
            more = weight(match[0])
            if size and (size + more > self.target or end - begin > self.chars):
                yield begin, start
                begin, size = start, 0.0
            if more > 2 * self.target or end - start > 2 * self.chars:
                step = max(1, min(self.chars, int((end - start) * self.target / more)))
                yield from ((cut, min(cut + step, end)) for cut in range(start, end, step))
                begin, size = end, 0.0
            else:
                size += more
        if text[begin:stop].strip():
            yield begin, stop


def _sentence_ends(text: str) -> Iterator[int]:
    """The ends of sentences and lines, with the white space after them; the end of the text is last. An end close after
    another does not count, so that there is no cut after "No."."""
    last = 0
    for match in _SENTENCE_END.finditer(text):
        end = match.end()
        if end - last < MIN_CUT_DISTANCE:
            continue
        if match[0][0] == "." and _ABBREVIATION.search(text[max(0, match.start() - 12) : match.start() + 1]):
            last = end
            continue
        while end < len(text) and text[end].isspace():
            end += 1
        last = end
        yield end
    yield len(text)


def _fence_frame(body: Body, block: Block, limit: int) -> tuple[str, str]:
    """The opening and closing lines for a part of a fence: the author's line without a list marker, and without a title
    longer than `limit`."""
    opening = body.lines[block.start]
    before, marks, info = opening.partition(block.fence)
    return _margin(before) + marks + (info if len(info) <= limit else "") + "\n", _closing(opening, block)


def _closing(opening: str, block: Block) -> str:
    return _margin(opening.partition(block.fence)[0]) + block.fence


def _margin(before: str) -> str:
    """The indentation and quote marks before a fence, with spaces for a list marker."""
    return "".join(char if char in "> \t" else " " for char in before)


def _table_head(body: Body, block: Block, limit: int) -> str:
    head = "\n".join(body.lines[block.start : block.start + 2]) + "\n"
    return head if len(head) <= limit else ""


def _math_frame(body: Body, block: Block) -> tuple[str, str]:
    opening = body.lines[block.start].strip()
    if opening == "$$":
        return body.lines[block.start] + "\n", body.lines[block.start]
    if opening == "\\[":
        return body.lines[block.start] + "\n", body.lines[block.start].replace("\\[", "\\]")
    return "", ""
