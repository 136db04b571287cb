"""Answers as HTML: whole, or block by block while they are written."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.rendering.markdown import (
    Context,
    claim_mark,
    markdown_parser,
    outside_link,
    render_tokens,
    without_claim_characters,
)
from lectern.rendering.notes import install_notes

MAX_CITED = 100  # numbers that can be markers while the sources are not known yet
RENDER_STEP = 24  # characters that an open block grows by before it is rendered again
RENDER_SHARE = 8  # a block longer than 8 steps is rendered again when the new text is an eighth of it
_LISTING_START = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*(?:`{3,}|~{3,})")
_FENCE_START = re.compile(r" {0,3}(`{3,}|~{3,})[^\n]*\n")
_PARAGRAPH = re.compile(r"(?:[^\s\-+*\d]|\*\*[^\s*]|\d+[^\d.)])")  # what cannot become an item of a list
_PARAGRAPH_AFTER_BLOCK = re.compile(rf"\n[ \t]*\n{_PARAGRAPH.pattern}")


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """The position of a claim in an answer."""

    number: int
    start: int
    end: int


def answer_html(text: str, *, sources: int, claims: Sequence[ClaimSpan] = ()) -> str:
    """An answer as HTML, with its citations and the ends of its claims."""
    marked, listings = _with_claims(text, claims)
    return _render(marked, Context(sources=sources, listing_claims=listings, link=outside_link))


def text_html(text: str) -> str:
    """A text of a book as HTML, without citations."""
    return _render(without_claim_characters(text), Context(link=outside_link))


def _render(text: str, context: Context) -> str:
    parser = _parser()
    return render_tokens(parser, parser.parse(text, {"context": context, "sources": context.sources}), context)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = markdown_parser()
    install_notes(parser)
    return parser


def _with_claims(text: str, claims: Sequence[ClaimSpan]) -> tuple[str, dict[int, int]]:
    """The text with a mark at the end of each claim, and the claims that are listings by the line of their fence."""
    text = without_claim_characters(text)
    listings: dict[int, int] = {}
    pieces: list[str] = []
    place = line = counted = 0
    for claim in sorted(claims, key=lambda claim: claim.end):
        if not 0 <= claim.start < claim.end <= len(text):
            continue
        if _LISTING_START.match(text, claim.start):
            line += text.count("\n", counted, max(claim.start, counted))
            counted = max(claim.start, counted)
            listings[line] = claim.number
            continue
        end = _mark_place(text, claim.end)
        pieces += [text[place:end], claim_mark(claim.number)]
        place = end
    return "".join([*pieces, text[place:]]), listings


def _mark_place(text: str, end: int) -> int:
    """Where the mark of a claim goes that ends at `end`: inside the last cell of a table's row, before a line's end."""
    while end and text[end - 1].isspace():
        end -= 1
    row = text.rfind("\n", 0, end) + 1
    line = text[row:end]
    if line.lstrip().startswith("|") and line.endswith("|"):
        line = line[:-1].rstrip()
    return row + len(line)


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """A top-level block of an answer that is being written: a paragraph, a list, a table, a listing."""

    index: int
    html: str
    count: int  # of the blocks so far; blocks that were there after them are no more


@dataclass(slots=True)
class _Part:
    """A block's text, where it begins in the answer, and its claims by their numbers."""

    start: int
    text: str
    claims: dict[int, ClaimSpan] = field(default_factory=dict)


@dataclass(slots=True)
class GrowingAnswer:
    """Renders an answer while it is written. A block is final when the next one has begun. Only the last block is
    rendered again, and only when it has grown by a part of its length, so the work is linear in the length of the
    answer."""

    _closed: list[_Part] = field(default_factory=list)
    _open: str = ""  # the text from the last block on
    _start: int = 0  # of that text in the answer
    _rendered: int = 0  # how much of it was rendered
    _first_lines: list[int] = field(default_factory=list)  # of the blocks in the rendered text
    _trusts_ends: bool = True  # whether the open block is rendered at the first sign of its end

    def add(self, text: str) -> list[AnswerBlock]:
        """The blocks that changed by this text, as far as it is time to render them."""
        self._open += text
        grown = len(self._open) - self._rendered
        if grown >= max(RENDER_STEP, len(self._open) // RENDER_SHARE):
            return self._render_open()
        if self._trusts_ends and self._seems_ended():
            self._trusts_ends = False  # until a block is closed; else a misleading text would be slow
            return self._render_open()
        return []

    def rest(self) -> list[AnswerBlock]:
        """The blocks with text that was not rendered yet."""
        return self._render_open() if len(self._open) > self._rendered else []

    def judge(self, *claims: ClaimSpan) -> list[AnswerBlock]:
        """The blocks with these claims, which now show where the claims end, and those with text that was not rendered
        yet. Nothing is written after the first claim."""
        blocks = self.rest()
        if not claims:
            return blocks
        self._close(len(self._first_lines))
        marked = {index for claim in claims if (index := self._mark(claim)) is not None}
        return [block for block in blocks if block.index not in marked] + [
            self._marked_block(index) for index in sorted(marked)
        ]

    def catch_up(self, text: str, claims: Sequence[ClaimSpan]) -> list[AnswerBlock]:
        """All blocks of a text that is known already, with these claims, each rendered only as it is now."""
        self._open += text
        return self.judge(*claims)

    def _mark(self, claim: ClaimSpan) -> int | None:
        """Keep a claim. The index of its block, None if nothing changes in it."""
        index = bisect_right(self._closed, claim.start, key=lambda part: part.start) - 1
        if index < 0:
            return None
        part = self._closed[index]
        end = min(claim.end - part.start, len(part.text))  # a listing with the markers below it is two blocks
        span = ClaimSpan(claim.number, claim.start - part.start, end)
        if part.claims.get(claim.number) == span:
            return None
        part.claims[claim.number] = span
        return index

    def _marked_block(self, index: int) -> AnswerBlock:
        part = self._closed[index]
        html = answer_html(part.text, sources=MAX_CITED, claims=list(part.claims.values()))
        return AnswerBlock(index, html, len(self._closed))

    def _seems_ended(self) -> bool:
        """Whether the new text looks as if another block followed the open one."""
        seen = len(self._open[: self._rendered].rstrip())
        last_line = max(self._open.rfind("\n", 0, seen), 0)
        fence = _FENCE_START.match(self._open)
        end = _PARAGRAPH_AFTER_BLOCK if fence is None else _fence_end(fence[1])
        return end.search(self._open, last_line) is not None

    def _render_open(self) -> list[AnswerBlock]:
        parser, context = _parser(), Context(sources=MAX_CITED, link=outside_link)
        env = {"context": context, "sources": MAX_CITED, "known_sources": MAX_CITED}  # the blocks before are not read
        groups = _top_level(parser.parse(without_claim_characters(self._open), env))
        first, count = len(self._closed), len(self._closed) + len(groups)
        blocks = [
            AnswerBlock(first + number, render_tokens(parser, group, context), count)
            for number, group in enumerate(groups)
        ]
        self._rendered = len(self._open)
        self._first_lines = [(group[0].map or [0])[0] if number else 0 for number, group in enumerate(groups)]
        self._close(len(groups) - (1 if self._last_has_begun() else 2))
        return blocks

    def _last_has_begun(self) -> bool:
        """Whether the last block will stay a block of its own. A line that is being written may turn into something
        else: `* **` is a rule, then the beginning of an item."""
        lines = self._open.split("\n")
        line = self._first_lines[-1] if self._first_lines else 0
        after_blank = line > 0 and not lines[line - 1].strip()
        return line + 1 < len(lines) or (after_blank and _PARAGRAPH.match(lines[line]) is not None)

    def _close(self, count: int) -> None:
        """Close the first `count` blocks of the rendered text."""
        if count < 1:
            return
        lines = self._open.split("\n")
        for line, next_line in pairwise([*self._first_lines, len(lines)][: count + 1]):
            part = "\n".join(lines[line:next_line]) + ("\n" if next_line < len(lines) else "")
            self._closed.append(_Part(self._start, part))
            self._start += len(part)
            self._open = self._open[len(part) :]
        left = self._first_lines[count:]
        self._first_lines = [line - left[0] for line in left]
        self._rendered, self._trusts_ends = len(self._open), True


@lru_cache(maxsize=8)
def _fence_end(fence: str) -> re.Pattern[str]:
    """The end of a listing and the beginning of what follows it."""
    return re.compile(
        rf"\n {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*\n"
        rf"(?:(?:[ \t]*\n)+{_PARAGRAPH.pattern}|(?:[ \t]*\n)*[ \t]*[^\s][^\n]*\n)"
    )


def _top_level(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each top-level block."""
    groups: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            groups.append([])
        groups[-1].append(token)
        depth += token.nesting
    return groups
