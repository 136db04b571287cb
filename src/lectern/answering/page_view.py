"""What a Markdown page makes of a text: which links it opens, which HTML it runs, and whether it is still in a listing.
Markdown's own parser says so, with and without HTML, because a reader's page may be of either kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

MAX_VIEWED = 10  # characters that are parsed of a text while it comes, for each that it has,
SPARE_VIEWED = 50_000  # and besides: short texts may be looked at often
TRIMMED_AFTER = 2_000  # characters more than were left the last time
Allowed = Callable[[str], bool]  # whether a passage has this address

ACTIVE_TAGS = frozenset("base embed form frame frameset iframe link math meta object script style svg template".split())
ACTIVE_ATTRIBUTE = re.compile(
    r"(?i)[\s/\"'](?:on[a-z]+|src|srcset|href|xlink:href|action|formaction|style|background|poster|data|ping)\s*="
)
_ANY_TAG = re.compile(r"</?(?P<name>[A-Za-z][A-Za-z0-9-]*)[^>]*>?")

_parser = MarkdownIt("commonmark", {"html": False}).enable("table")
_html_parser = MarkdownIt("commonmark").enable("table")


def normalized(address: str) -> str:
    """The address as a page would write it: `ü` and `%C3%BC` are the same."""
    return _parser.normalizeLink(address)


def foreign_links(text: str, allowed: Allowed) -> Collection[str]:
    """The addresses in a text that a page would open or load, and that are not allowed."""
    tokens = [child for token in _parser.parse(text) for child in (token, *(token.children or ()))]
    addresses = {str(token.attrGet("href") or token.attrGet("src") or "") for token in tokens} - {""}
    return {address for address in addresses if not allowed(address)}


def active_html(text: str) -> Collection[str]:
    """The tags in a text that a page with HTML would run or load from elsewhere."""
    tokens = [child for token in _html_parser.parse(text) for child in (token, *(token.children or ()))]
    blocks = [token.content for token in tokens if token.type in ("html_block", "html_inline")]
    return {tag for block in blocks for tag in active_tags(block)}


def active_tags(text: str) -> list[str]:
    """The tags that would be active if all of a text were HTML."""
    return [
        tag[0]
        for tag in _ANY_TAG.finditer(text)
        if tag["name"].lower() in ACTIVE_TAGS or ACTIVE_ATTRIBUTE.search(tag[0])
    ]


def listing_at_end(text: str) -> int | None:
    """The number of the line that began the listing in which a text of whole lines ends; None if it ends in none, or
    if that depends on the page."""
    lines = {_open_listing(parser, text) for parser in (_parser, _html_parser)}
    return lines.pop() if len(lines) == 1 else None


def _open_listing(parser: MarkdownIt, text: str) -> int | None:
    tokens: list[Token] = []
    parser.block.parse(text, parser, {}, tokens)
    fences = [token for token in tokens if token.type == "fence" and token.map and token.map[1] == text.count("\n")]
    if not fences or fences[-1].map is None:
        return None
    first, end = fences[-1].map
    content = fences[-1].content
    count = content.count("\n") + bool(content and not content.endswith("\n"))
    return first if count == end - first - 1 else None  # a closing fence is no line of the content


def _last_block(text: str) -> int:
    """Where the last block of a text begins, for a page of either kind. What comes later changes no block before it."""
    lines = []
    for parser in (_parser, _html_parser):
        tokens: list[Token] = []
        parser.block.parse(text, parser, {}, tokens)
        lines.append(max((token.map[0] for token in tokens if token.map and token.level == 0), default=0))
    return sum(len(line) + 1 for line in text.split("\n")[: min(lines)])


@dataclass(slots=True)
class PageView:
    """A text that comes piece by piece, as a page sees it. Only its last block is kept, and what is parsed is at most a
    multiple of the text: a text that needs more plays tricks, and nothing in it counts as code any more."""

    is_blind: bool = False  # nothing counts as code
    _parts: list[str] = field(default_factory=list)
    _length: int = 0
    _viewed: int = 0
    _trimmed: int = 0  # characters that were left when the text was trimmed

    def add(self, text: str) -> None:
        """More of the text."""
        self._parts.append(text)
        self._length += len(text)

    def listing_after(self, line: str) -> Literal["begun", "open"] | None:
        """Whether the text is in a listing after this line, which is to come next, and whether the line begins it."""
        text = self._with(line)
        first = listing_at_end(text) if text is not None else None
        if text is None or first is None:
            return None
        return "begun" if first == text.count("\n") - 1 else "open"

    def is_indented_code(self, indent: str) -> bool:
        """Whether a line that comes next, with this white space before it, is code for a page of either kind."""
        text = self._with(f"{indent}x\n")
        if text is None:
            return False
        for parser in (_parser, _html_parser):
            tokens: list[Token] = []
            parser.block.parse(text, parser, {}, tokens)
            last = next((token for token in reversed(tokens) if token.map), None)
            if last is None or last.type != "code_block" or last.map is None or last.map[1] < text.count("\n"):
                return False
        return True

    def is_code(self, span: str, allowed: Allowed) -> bool:
        """Whether what is to come next is code for a page, so that nothing in it is active or leads elsewhere."""
        text = self._with(span)
        return text is not None and not active_html(text) and not foreign_links(text, allowed)

    def _with(self, more: str) -> str | None:
        if self.is_blind:
            return None
        text = "".join(self._parts)
        if len(text) >= 2 * self._trimmed + TRIMMED_AFTER:
            self._viewed += len(text)
            text = text[_last_block(text) :]
            self._trimmed = len(text)
        self._parts = [text]
        self._viewed += len(text)
        self.is_blind = self._viewed > MAX_VIEWED * self._length + SPARE_VIEWED
        return None if self.is_blind else text + more
