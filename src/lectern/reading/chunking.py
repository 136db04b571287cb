"""Cuts sections into drafts of chunks. A chunk is a part of one section, except that short neighbouring sections share
a chunk under their common heading. A heading stays with the text after it, and no section is dropped because it is
short.

The text of a chunk never leaves a code fence open. Otherwise a page or a model would read everything after it as code.

Cuts blocks into pieces that fit a chunk. A fence, table or formula stays whole up to twice the target. A larger one
is cut between lines; each part is opened and closed again, with the table's header repeated. Prose is cut between
sentences. A sentence is cut between words, and a word inside, only if it is too large for a chunk.

`ReadingRules` has the sizes. The versions change when the chunks of any file could change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate

from lectern.domain.chunks import TOKENS_PER_WORD
from lectern.reading.blocks import Block, Body
from lectern.reading.headings import Section

# Where prose may be cut. `text/pieces.py` finds sentences; other cuts here would give books other chunks.
_CUT = re.compile(
    r"[.!?…]['\"”’)\]*_`]*(?=\s)|[。！？｡؟۔।॥]['\"”’」』）]*"
    r"|(?:(?<=  )|(?<=\\))\n|\n(?=[ \t>]{0,40}(?:[-*+•▪–✓✔✅☐☑|]|\d{1,9}[.)])[ \t]|[ \t]{0,40}\n)"  # no wrapped line
)
MIN_CUT_DISTANCE = 25  # characters between two positions where a text may be cut
_VISIBLE_RUN = re.compile(r"\S+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_NO_CUT = re.compile(  # after an abbreviation, an initial or the number of an item
    r"(?:\b(?i:e\.g|i\.e|etc|cf|vs|fig|eq|no|dr|mr|mrs|ms|st|approx|ca)|\b[A-Z]|^\W*\d+)\.$"
)
_NESTED_FENCE = re.compile(  # in quotes and list items too; it opens or closes a listing
    r"^[ \t]*((?:>[ \t]*)*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,99}(?=[^`\n]*$)|~{3,99}(?!~))(.*)$", re.MULTILINE
)
MAX_OVERFILL = 1.15  # a chunk may exceed the target by this factor to avoid a tiny one
MIN_FILL = 0.25  # of the target; a smaller chunk joins its neighbour where it fits
MAX_HEADING_SHARE = 1 / 8  # of the characters of a chunk; shorter headings stay with any text, even a long listing

READER_VERSION = "6"
"""Part of every lesson's digest. Bump it whenever a change in this package could give any file other chunks, titles,
places or URLs than before: every lesson is then read again on the next run; texts that stayed keep their vectors."""

LEXICAL_VERSION = "2"
"""Part of every lesson's digest, like the book's language. Bump it whenever `index/lexical.py` could give any text
other terms than before. It is defined here because the reader makes the digest and cannot import the index."""

_ONLY_REFUSE = frozenset(
    {"max_file_bytes", "max_lines", "max_markup", "include_limits"}
)  # they do not change how a file is read


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRules:
    """Sizes and limits. If a size of chunks or front matter changes, every lesson is read again."""

    max_file_bytes: int = 5 * 1024 * 1024
    max_lines: int = 50_000  # markdown-it reads them in about a second; a lesson has a few hundred
    max_markup: int = 100_000  # tags and comments, also about a second
    max_front_matter_bytes: int = 64 * 1024
    target_tokens: int = 400
    short_tokens: int = 80  # sections below this may share a chunk with their neighbours
    max_chars: int = 4000  # a limit for scripts without spaces, which have few "words"
    min_chars: int = 10
    include_limits: tuple[str, ...] = ()  # a book below one of these folders includes no file from above it

    @property
    def fingerprint(self) -> str:
        """The version and all values that could change the chunks of a lesson."""
        sizes = {name: value for name, value in asdict(self).items() if name not in _ONLY_REFUSE}
        return f"{READER_VERSION}:{sorted(sizes.items())}"


DEFAULT_RULES = ReadingRules()


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
        for match in _VISIBLE_RUN.finditer(text, begin, stop):
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
    for match in _CUT.finditer(text):
        end = match.end()
        if end - last < MIN_CUT_DISTANCE:
            continue
        if match[0][0] == "." and _NO_CUT.search(text[max(0, match.start() - 12) : match.start() + 1]):
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


def open_fence(text: str) -> str | None:
    """The line that closes the code fence that a text leaves open; None if it leaves none open."""
    if "```" not in text and "~~~" not in text:
        return None
    marks = quote = ""
    for match in _NESTED_FENCE.finditer(text):
        if not marks:
            marks, quote = match[2], match[1]
        elif match[2].startswith(marks) and not match[3].strip():
            marks = ""
    return quote + marks if marks else None


def balanced(text: str) -> str:
    """The text, with a closing line if it leaves a code fence open."""
    closing = open_fence(text)
    return text if closing is None else f"{text}\n{closing}"


@dataclass(slots=True)
class Draft:
    """A chunk before it has an id. Lines are 0-based, in the body."""

    title: str | None
    trail: tuple[str, ...]
    anchor: str
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> float:
        """The size in tokens."""
        return sum(piece.size for piece in self.pieces)

    @property
    def first(self) -> int:
        """The first line."""
        return self.pieces[0].first

    @property
    def last(self) -> int:
        """The last line."""
        return self.pieces[-1].last

    def sections(self) -> tuple[tuple[int, str, str], ...]:
        """The positions, titles and anchors of the sections in the text; empty if there is at most one."""
        if sum(1 for piece in self.pieces if piece.opens) <= 1:
            return ()
        parts = self._parts()
        text = "".join(parts)
        trimmed = len(text) - len(text.lstrip())
        ends = list(accumulate(map(len, parts), initial=-trimmed))
        marks = zip(ends[1::2], self.pieces, strict=True)  # a piece begins where its gap ends
        return tuple((max(at, 0), *piece.opens) for at, piece in marks if piece.opens)

    def line_spans(self) -> list[tuple[int, int, int]]:
        """Where each of the body's lines begins and ends in the text, and its number. Lines that were added to open a
        listing or a table again are left out."""
        parts = self._parts()
        text = "".join(parts)
        at = len(text.lstrip()) - len(text)
        spans: list[tuple[int, int, int]] = []
        for piece, gap, words in zip(self.pieces, parts[::2], parts[1::2], strict=True):
            at += len(gap)
            number = piece.first - piece.head.count("\n")
            for line in words.split("\n"):
                if piece.first <= number <= piece.last:
                    spans.append((max(at, 0), max(at + len(line), 0), number))
                at += len(line) + 1
                number += 1
            at -= 1
        return spans

    def text(self) -> str:
        """The author's lines with all fences closed, unindented if the chunk begins inside a list."""
        return balanced("".join(self._parts()).strip())

    def _parts(self) -> list[str]:
        """Gaps and pieces in turn; the first gap is empty."""
        parts = ["", _outdented(self.pieces[0].full_text)]
        for piece in self.pieces[1:]:
            parts += [piece.gap, piece.full_text]
        return parts


def _outdented(text: str) -> str:
    shift = len(text) - len(text.lstrip(" \t"))
    if not shift:
        return text
    return "\n".join(line[min(shift, len(line) - len(line.lstrip(" \t"))) :] for line in text.split("\n"))


def drafts_of(body: Body, sections: list[Section], rules: ReadingRules) -> list[Draft]:
    """The drafts of a lesson in order, each at least `rules.min_chars` long, unless the whole lesson is shorter."""
    cutter = Cutter(rules)
    units: list[Draft] = []
    after = 0
    for section in sections:
        unit = Draft(section.title, section.trail, section.anchor)
        for block in section.blocks:
            unit.pieces += cutter.pieces(body, block, after)
            after = block.end
        if section.title and unit.pieces:
            unit.pieces[0] = replace(unit.pieces[0], opens=(section.title, section.anchor))
        units.append(unit)
    packed = [draft for unit in _grouped(_carried(units, rules), rules) for draft in _packed(unit, rules)]
    return _long_enough(packed, rules.min_chars)


def _carried(units: list[Draft], rules: ReadingRules) -> list[Draft]:
    """Join a heading without text to the section after it, which keeps its title and anchor. A last heading without
    text joins the section before it. Headings that are together too long for a chunk become a chunk themselves."""
    out: list[Draft] = []
    bare: Draft | None = None  # headings without text so far, with the title of the last one
    size, chars = 0.0, 0
    for unit in units:
        if not all(piece.heading for piece in unit.pieces):
            out.append(replace(unit, pieces=[*bare.pieces, *unit.pieces]) if bare else unit)
            bare = None
            continue
        more, length = unit.size, sum(len(piece.full_text) for piece in unit.pieces)
        if bare and (size + more > rules.target_tokens or chars + length > rules.max_chars):
            out.append(bare)
            bare = None
        if bare is None:
            bare, size, chars = replace(unit, pieces=[]), 0.0, 0
        bare.pieces += unit.pieces
        bare.title, bare.trail, bare.anchor = unit.title, unit.trail, unit.anchor
        size, chars = size + more, chars + length
    if bare and out:
        out[-1].pieces += bare.pieces
    elif bare:
        out.append(bare)
    return out


def _grouped(units: list[Draft], rules: ReadingRules) -> Iterator[Draft]:
    """Join short neighbouring sections up to the target size."""
    group: Draft | None = None
    for unit in units:
        short = unit.size < rules.short_tokens
        if group is not None and short and group.size + unit.size <= rules.target_tokens:
            group = _shared(group, unit)
            continue
        if group is not None:
            yield group
        group = unit if short else None
        if not short:
            yield unit
    if group is not None:
        yield group


def _shared(first: Draft, second: Draft) -> Draft:
    """Two neighbours as one draft with their common heading and the anchor of the first."""
    same = [a == b for a, b in zip(first.trail, second.trail, strict=False)]
    trail = first.trail[: max(1, same.index(False) if False in same else len(same))]
    titles = {first.trail: first.title, second.trail: second.title}
    return Draft(titles.get(trail) or trail[-1], trail, first.anchor, first.pieces + second.pieces)


def _packed(unit: Draft, rules: ReadingRules) -> list[Draft]:
    """The pieces of a section in as few drafts as the target allows, of about equal size."""
    drafts = _filled(unit, rules.target_tokens, rules)
    if len(drafts) > 1:
        even = _filled(unit, min(rules.target_tokens, MAX_OVERFILL * unit.size / len(drafts)), rules)
        drafts = even if len(even) == len(drafts) else drafts
    if len(drafts) > 1 and drafts[-1].size < MIN_FILL * rules.target_tokens:
        rest = drafts[-1]
        if drafts[-2].size + rest.size <= MAX_OVERFILL * rules.target_tokens:
            drafts = [*drafts[:-2], replace(drafts[-2], pieces=drafts[-2].pieces + rest.pieces)]
    return drafts


def _filled(unit: Draft, limit: float, rules: ReadingRules) -> list[Draft]:
    drafts = [replace(unit, pieces=[])]
    total = _DraftSize()
    for piece in unit.pieces:
        fits = total.size + piece.size <= limit and total.chars + len(piece.full_text) <= rules.max_chars
        if drafts[-1].pieces and not fits and not _belongs(piece, total, rules):
            drafts.append(replace(unit, pieces=[]))
            total = _DraftSize()
        drafts[-1].pieces.append(piece)
        total.add(piece)
    return drafts


@dataclass(slots=True)
class _DraftSize:
    """The size of a draft, updated with each piece: a new count for each piece would take quadratic time."""

    size: float = 0.0
    chars: int = 0
    bare: bool = True  # only headings so far

    def add(self, piece: Piece) -> None:
        self.size, self.chars = self.size + piece.size, self.chars + len(piece.full_text)
        self.bare = self.bare and piece.heading


def _belongs(piece: Piece, draft: _DraftSize, rules: ReadingRules) -> bool:
    """Whether a piece joins a draft although both together exceed the target: a heading is not separated from its text,
    nor a short introduction from its listing. Headings that are as long as a text are separated."""
    size, chars = draft.size + piece.size, draft.chars + len(piece.full_text)
    if draft.bare and piece.heading:
        return size <= 2 * rules.target_tokens and chars <= rules.max_chars
    if draft.bare:
        return draft.chars <= rules.max_chars * MAX_HEADING_SHARE or chars <= 2 * rules.max_chars
    small = draft.size < MIN_FILL * rules.target_tokens and size <= 2 * rules.target_tokens
    return small and piece.size > rules.target_tokens / 2 and chars <= 2 * rules.max_chars


def _long_enough(drafts: list[Draft], min_chars: int) -> list[Draft]:
    """Join drafts with fewer than `min_chars` characters to a neighbour, which keeps its title."""
    out: list[Draft] = []
    for draft in drafts:
        if out and len(out[-1].text()) < min_chars:
            out[-1] = replace(draft, pieces=out[-1].pieces + draft.pieces)
        elif out and len(draft.text()) < min_chars:
            out[-1].pieces += draft.pieces
        else:
            out.append(draft)
    return out
