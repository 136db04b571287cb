"""Elements that Markdown has no signs for: boxes, tabs, folded parts, keys, HTML tables.

Before a lesson is parsed, each of their beginnings and ends becomes a mark: a line of its own for blocks, a few
characters inside a paragraph for the rest. Here the marks become tokens of markdown-it. A mark without its counterpart
is dropped or closed where its parent ends, so the HTML is always well formed, whatever the author wrote.

A block has the line numbers of the source, because every line of the marked text knows the line it came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from lectern.reading.blocks import explicit_id

# Noncharacters of Unicode: no text has a use for them, so none is lost when they are replaced.
INLINE_MARK, BLOCK_MARK = "\ufdd0", "\ufdd1"
_RESERVED = re.compile("[\ufdd0-\ufdef]")
_INLINE_MARK = re.compile(f"<{INLINE_MARK}([0-9]+)>")
_LEFT_OVER = re.compile(f"(?:&lt;|<)?{INLINE_MARK}[0-9]*(?:&gt;|>)?|{BLOCK_MARK}[0-9]*")
_CALLOUT = re.compile(r"\[!([A-Za-z]{1,20})\][+-]?[ \t]*([^\n]*)(?:\n|$)")
_ATTRIBUTE_LIST = re.compile(r"(?<=[)\]*_`])\{:?[ \t]*[.#:][^{}\n]{0,200}\}")  # [Start](a.md){ .button }
_MARGIN = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?:>[ \t]*)*)*")
MAX_MARGIN = 200  # characters before the text of a line that can be quote and list signs
MAX_DEPTH = 60  # open elements; browsers and sanitisers are slow on deeper trees
_TIGHT = frozenset("summary td th li dt dd figcaption h1 h2 h3 h4 h5 h6".split())  # one paragraph inside needs no <p>
_TOKEN_TYPES = {"table": "table", "a": "link"}  # elements that the renderer writes in its own way


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """What a mark stands for: the beginning or the end of an element, or a whole one. `name` pairs the two."""

    name: str
    tag: str = ""
    ends: bool = False
    whole: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    title: str | None = None  # Markdown that is shown first
    text: str | None = None  # of a whole element
    lines: int = 1  # of a whole element in the source


class MarkedText:
    """Markdown with marks, written line by line. Each line knows its line in the source."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self.elements: list[Element] = []

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    def add_line(self, line: str, number: int) -> None:
        """Write a line of the source."""
        self.lines.append(line)
        self.numbers.append(number)

    def add_block(self, element: Element, margin: str, number: int, first_margin: str | None = None) -> None:
        """Write the mark of a block on a line of its own. Blank lines end the paragraphs around it. `first_margin` is
        the sign of a list item that begins with this block."""
        blank = margin.rstrip()
        begin = margin if first_margin is None else first_margin
        for line in (blank if begin == margin else None, f"{begin}{BLOCK_MARK}{self._number(element)}", blank):
            if line is not None:
                self.add_line(line, number)

    def inline_mark(self, element: Element) -> str:
        """The characters that stand for an element inside a paragraph."""
        return f"<{INLINE_MARK}{self._number(element)}>"

    def _number(self, element: Element) -> int:
        self.elements.append(element)
        return len(self.elements) - 1


def without_mark_characters(text: str) -> str:
    """The text without the characters that marks consist of, of the same length."""
    return _RESERVED.sub("\N{REPLACEMENT CHARACTER}", text)


def without_marks(html: str) -> str:
    """The HTML without marks in places that are not parsed, such as very long paragraphs."""
    return _LEFT_OVER.sub("", html) if INLINE_MARK in html or BLOCK_MARK in html else html


def margin_of(line: str) -> tuple[str, int]:
    """What a new line must begin with to be in the same quote and list item as this line, and where its text
    begins."""
    match = _MARGIN.match(line, 0, MAX_MARGIN)
    before = match[0] if match else ""
    return "".join(char if char in "> \t" else " " for char in before), len(before)


def install(parser: MarkdownIt) -> None:
    """Let a parser read marks, callouts, explicit ids of headings, and line numbers."""
    alternatives = ["paragraph", "reference", "blockquote", "list", "table", "footnote_def"]
    parser.block.ruler.before("table", "mark", _block_mark, {"alt": alternatives})
    parser.inline.ruler.before("autolink", "mark", _inline_mark)
    parser.core.ruler.before("inline", "elements", _elements)
    parser.core.ruler.after("inline", "inline_elements", _inline_elements)


def _block_mark(state: StateBlock, start: int, _end: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    place = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith(BLOCK_MARK, place):
        return False
    if not silent:
        token = state.push("mark", "", 0)
        token.content = state.src[place + 1 : state.eMarks[start]]
        token.map = [start, start + 1]
        state.line = start + 1
    return True


def _inline_mark(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    match = _INLINE_MARK.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("mark", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _elements(state: StateCore) -> None:
    """The blocks with elements for marks, source lines, callouts and headings with their anchors."""
    anchors: Mapping[int, str] = state.env.get("anchors", {})
    _set_source_lines(state.tokens, state.env.get("numbers", ()), state.env.get("filled", ()))
    tokens = list(_balanced(state.tokens, state.env.get("elements", ()), block=True))
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            _name_heading(token, tokens[number + 1], anchors)
        elif token.type == "inline" and state.env.get("attribute_lists"):
            token.content = _ATTRIBUTE_LIST.sub("", token.content)
    _tighten(tokens)
    state.tokens = _with_callouts(tokens)


def _set_source_lines(tokens: Iterable[Token], numbers: Sequence[int], filled: Sequence[int]) -> None:
    """Give blocks the lines of the source, without blank lines at their ends."""
    last = len(numbers) - 1
    for token in tokens:
        if token.map and numbers:
            first = min(token.map[0], last)
            end = max(filled[min(max(token.map[1] - 1, first), last)], first)
            token.map = [numbers[first], numbers[end] + 1]


def _name_heading(heading: Token, words: Token, anchors: Mapping[int, str]) -> None:
    words.content = explicit_id(words.content)[0]
    anchor = anchors.get(heading.map[0]) if heading.map else None
    if anchor:
        heading.attrSet("id", anchor)


def _inline_elements(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = list(_balanced(token.children, state.env.get("elements", ()), block=False))


def _balanced(tokens: Iterable[Token], elements: Sequence[Element], *, block: bool) -> Iterator[Token]:
    """The tokens with elements in place of marks. Elements end where their parent ends at the latest."""
    path: list[tuple[str, Token] | None] = []  # open elements; None is an element of Markdown
    for token in tokens:
        if token.type == "mark":
            element = elements[int(token.content)]
            if element.ends:
                yield from _ended(path, element.name, token)
            else:
                yield from _begun(path, element, token, block=block)
            continue
        if token.nesting < 0:
            while path and (entry := path.pop()) is not None:
                yield _closing(entry[1])
        elif token.nesting > 0:
            path.append(None)
        yield token
    for entry in reversed(path):
        if entry is not None:
            yield _closing(entry[1])


def _ended(path: list[tuple[str, Token] | None], name: str, mark: Token) -> Iterator[Token]:
    for depth, entry in enumerate(reversed(path), 1):
        if entry is None:
            return  # it began outside of this list item or quote, or never
        if entry[0] == name:
            if entry[1].map and mark.map:
                entry[1].map = [entry[1].map[0], mark.map[1]]
            for closed in reversed(path[-depth:]):
                if closed is not None:
                    yield _closing(closed[1])
            del path[-depth:]
            return


def _begun(path: list[tuple[str, Token] | None], element: Element, mark: Token, *, block: bool) -> Iterator[Token]:
    if element.whole:
        yield from _whole(element, mark, block=block)
        return
    if len(path) >= MAX_DEPTH:
        return  # its text is shown without it
    kind = _TOKEN_TYPES.get(element.tag, "element")
    token = Token(f"{kind}_open", element.tag, 1, attrs=dict(element.attributes), block=block, map=mark.map)
    path.append((element.name, token))
    yield token
    if element.title is not None:
        is_details = element.tag == "details"
        attributes: dict[str, str | int | float] = {} if is_details else {"class": "admonition-title"}
        yield from _paragraph(element.title, mark.map, "summary" if is_details else "p", attributes)


def _whole(element: Element, mark: Token, *, block: bool) -> Iterator[Token]:
    if element.tag == "img":
        description = Token("text", "", 0, content=element.attributes.get("alt", ""))
        yield Token("image", "img", 0, attrs=dict(element.attributes), children=[description])
    elif element.text is not None:
        first = mark.map[0] if mark.map else 0
        lines = [first, first + element.lines]
        if element.tag == "pre":
            yield Token("code_block", "code", 0, content=element.text, map=lines, block=True)
            return
        content = Token("text", "", 0, content=element.text)
        yield Token("paragraph_open", "p", 1, map=lines, block=True)
        yield Token("plain", "", 0, children=[content], content=element.text)
        yield Token("paragraph_close", "p", -1, block=True)
    else:
        yield Token(element.tag, element.tag, 0, block=block, map=mark.map if block else None)


def _paragraph(
    text: str, lines: list[int] | None, tag: str, attributes: dict[str, str | int | float]
) -> Iterator[Token]:
    yield Token("title_open", tag, 1, attrs=attributes, block=True, map=None)
    yield Token("inline", "", 0, content=text, children=[], map=lines, block=True)
    yield Token("title_close", tag, -1, block=True)


def _closing(opened: Token) -> Token:
    return Token(opened.type.replace("_open", "_close"), opened.tag, -1, block=opened.block)


def _tighten(tokens: list[Token]) -> None:
    """Hide the paragraph that is all of a cell or a summary."""
    for number in range(len(tokens) - 4):
        opening, paragraph, _, closing, after = tokens[number : number + 5]
        alone = paragraph.type == "paragraph_open" and closing.type == "paragraph_close"
        if alone and opening.type == "element_open" and opening.tag in _TIGHT and after.type == "element_close":
            paragraph.hidden = closing.hidden = True


def _with_callouts(tokens: list[Token]) -> list[Token]:
    """GitHub's callouts as boxes: a quote that begins with `[!NOTE]`."""
    out: list[Token] = []
    boxes: list[bool] = []  # for each open quote, whether it is a box
    for number, token in enumerate(tokens):
        if token.type == "blockquote_open":
            inside = tokens[number + 2] if number + 2 < len(tokens) else None
            match = _CALLOUT.match(inside.content) if inside and inside.type == "inline" else None
            boxes.append(match is not None)
            if match and inside:
                kind = match[1].lower()
                box = Token("element_open", "aside", 1, attrs={"class": f"admonition {kind}"}, block=True)
                box.map = token.map
                title = match[2].strip() or kind.capitalize()
                out += [box, *_paragraph(title, None, "p", {"class": "admonition-title"})]
                inside.content = inside.content[match.end() :]
                continue
        elif token.type == "blockquote_close" and boxes and boxes.pop():
            token = Token("element_close", "aside", -1, block=True)  # noqa: PLW2901  # the end of the box
        out.append(token)
    return out


def parse(parser: MarkdownIt, marked: MarkedText, env: dict[str, Any]) -> list[Token]:
    """The tokens of a marked text; their lines are those of the source."""
    filled: list[int] = []  # for each line, the last one up to it that has text
    for number, line in enumerate(marked.lines):
        has_text = bool(line.strip()) and BLOCK_MARK not in line
        filled.append(number if has_text or not filled else filled[-1])
    given = {"elements": marked.elements, "numbers": marked.numbers, "filled": filled}
    return parser.parse(marked.text, {**env, **given})
