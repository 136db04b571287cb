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
    without_reserved,
)

MAX_CITED = 100  # numbers that can be markers while the sources are not known yet
RENDER_STEP = 24  # characters that an open block grows by before it is rendered again, if no line ends
RENDER_SHARE = 20  # a block longer than 20 steps is rendered again when it has grown by this part of its length
_LISTING_START = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*(?:`{3,}|~{3,})")


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


def passage_html(text: str) -> str:
    """A quoted passage as HTML."""
    return _render(without_reserved(text), Context(link=outside_link))


def _render(text: str, context: Context) -> str:
    parser = _parser()
    return render_tokens(parser, parser.parse(text, {"context": context, "sources": context.sources}), context)


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return markdown_parser()


def _with_claims(text: str, claims: Sequence[ClaimSpan]) -> tuple[str, dict[int, int]]:
    """The text with a mark at the end of each claim, and the claims that are listings by the line of their fence."""
    text = without_reserved(text)
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
    """A block's text, where it begins in the answer, and its claims."""

    start: int
    text: str
    claims: list[ClaimSpan] = field(default_factory=list)


@dataclass(slots=True)
class GrowingAnswer:
    """Renders an answer while it is written. A block is final when the next one has begun; only the last block is
    rendered again, so the work is about linear in the length of the answer."""

    _closed: list[_Part] = field(default_factory=list)
    _open: str = ""  # the text from the last block on
    _start: int = 0  # of that text in the answer
    _rendered: int = 0  # how much of it was rendered

    def add(self, text: str) -> list[AnswerBlock]:
        """The blocks that changed by this text, as far as it is time to render them."""
        self._open += text
        grown = len(self._open) - self._rendered
        if grown < max(RENDER_STEP, len(self._open) // RENDER_SHARE) and "\n" not in text:
            return []
        return self._render_open()

    def rest(self) -> list[AnswerBlock]:
        """The blocks with text that was not rendered yet."""
        return self._render_open() if len(self._open) > self._rendered else []

    def judge(self, claim: ClaimSpan) -> list[AnswerBlock]:
        """The block with this claim, which now shows where the claim ends."""
        blocks = self.rest()
        if self._open:  # nothing is written after the first verdict
            self._closed.append(_Part(self._start, self._open))
            self._start, self._open, self._rendered = self._start + len(self._open), "", 0
        index = bisect_right(self._closed, claim.start, key=lambda part: part.start) - 1
        if index < 0:
            return blocks
        part = self._closed[index]
        end = min(claim.end - part.start, len(part.text))  # a listing with the markers below it is two blocks
        part.claims.append(ClaimSpan(claim.number, claim.start - part.start, end))
        html = answer_html(part.text, sources=MAX_CITED, claims=part.claims)
        return [*blocks, AnswerBlock(index, html, len(self._closed))]

    def _render_open(self) -> list[AnswerBlock]:
        parser, context = _parser(), Context(sources=MAX_CITED, link=outside_link)
        env = {"context": context, "sources": MAX_CITED, "known_sources": MAX_CITED}  # the blocks before are not read
        groups = _top_level(parser.parse(without_reserved(self._open), env))
        first, count = len(self._closed), len(self._closed) + len(groups)
        blocks = [
            AnswerBlock(first + number, render_tokens(parser, group, context), count)
            for number, group in enumerate(groups)
        ]
        self._close([(group[0].map or [0])[0] for group in groups])
        self._rendered = len(self._open)
        return blocks

    def _close(self, first_lines: Sequence[int]) -> None:
        """Close all blocks but the last one, if its first line has ended: a line that is being written may turn into
        something else (`* **` is a rule, then the beginning of an item)."""
        if len(first_lines) < 2 or "\n" not in self._open.split("\n", first_lines[-1])[-1]:  # noqa: PLR2004  # one block stays open
            return
        lines = self._open.split("\n")
        for line, next_line in pairwise([0, *first_lines[1:]]):
            part = "\n".join([*lines[line:next_line], ""])
            self._closed.append(_Part(self._start, part))
            self._start += len(part)
        self._open = "\n".join(lines[first_lines[-1] :])


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
