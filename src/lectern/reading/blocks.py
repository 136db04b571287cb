"""Reads the body of a lesson as a list of blocks with their line numbers. markdown-it finds the structure in a modified
copy with the same lines; the text itself is always taken from the original. Inline Markdown is not parsed here."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.reading.markup import Cleaned, Span, clean
from lectern.reading.rims import without_rims

Kind = Literal["heading", "text", "fence", "code", "table", "math"]

_HINTS = re.compile(
    r"<|\{[/:.#\w \t'\"]|^(?:import|export)\b|^[ \t>]*\$\$|\\\[|&[A-Za-z#]|^[ \t]*///|\[[!\[]|%%|\^[A-Za-z0-9]"
    r"|:(?:material|fontawesome|octicons|simple)-",
    re.MULTILINE,
)
_INDENTING = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]*[^\s!?]|===[!+]?[ \t]+\"|: {3}")
_INDENTING_SIGNS = ("!!!", "???", "===", ":   ")
_QUOTE_MARKS = re.compile(r"[ \t>]*")
_ID = re.compile(r"\{:?[ \t]*(?:/\*[ \t]*)?#([^\s{}*]+)[^{}]*\}|\[\[([\w-]+)\]\]")
MAX_ID = 200  # characters of a heading's id and the signs around it
MAX_LOOK = 4000  # characters of a line that are parsed for structure; a line with 100,000 columns is no table
MAX_MARKS = 99  # backticks of a fence; a longer run is decoration
MAX_NESTING = 20  # lists and quotes deeper than this are read as text


def explicit_id(heading: str) -> tuple[str, str | None]:
    """A heading without its explicit id, and the id: `Nodes {#n}`, `Nodes {: #n }`, `Nodes {/* #n */}`, `Nodes [[n]]`.
    Links to notes were replaced by their words before."""
    bare = heading.rstrip()
    start = bare.rfind("{") if bare.endswith("}") else bare.rfind("[[") if bare.endswith("]]") else -1
    match = _ID.fullmatch(bare, start) if start >= 0 and len(bare) - start < MAX_ID else None
    if match is None or (match[2] and not bare[:start].strip("# \t")):
        return heading, None
    return bare[:start].rstrip(), match[1] or match[2]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the body: its kind and its lines [start, end)."""

    kind: Kind
    start: int
    end: int
    level: int = 0  # of a heading that opens a section; 0 for a heading inside a list or quote
    title: str = ""  # the Markdown of a heading
    fence: str = ""  # the marks of a fence, such as ```
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Body:
    """The visible lines of a lesson, blank where markup was removed, and the blocks that they form."""

    lines: list[str]
    blocks: list[Block]


def _parser(*, indented_code: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table")
    return parser.disable(["reference", "html_block", *([] if indented_code else ["code"])])


_MARKDOWN, _MDX = _parser(indented_code=True), _parser(indented_code=False)


def read_body(text: str, *, mdx: bool, wiki: bool = False) -> Body:
    """Read the blocks of a body. With `mdx`, indented lines are not code; a file with components is always read as
    MDX. With `wiki`, it is a note of Obsidian's. The anchors of headings are in their titles, not in their lines."""
    body = _read(text, mdx=mdx, wiki=wiki)
    for block in body.blocks:
        if block.kind == "heading" and block.end == block.start + 1:
            body.lines[block.start] = explicit_id(body.lines[block.start])[0]
    return body


def _read(text: str, *, mdx: bool, wiki: bool) -> Body:
    if not _HINTS.search(text):
        return _parsed(text.split("\n"), [], mdx=mdx)
    cleaned, mdx = cleaned_text(text, mdx=mdx, wiki=wiki)
    lines = ["" if not line.strip() else line for line in cleaned.text.split("\n")]
    line_of = LineFinder(text).line
    kinds: tuple[tuple[Kind, list[Span]], ...] = (("math", cleaned.maths), ("code", cleaned.raw))
    apart = [Block(kind, line_of(start), line_of(end - 1) + 1) for kind, spans in kinds for start, end in spans]
    return _parsed(lines, apart, mdx=mdx)


def _parsed(lines: list[str], apart: list[Block], *, mdx: bool) -> Body:
    """The body of these lines; `apart` are blocks that markdown-it must not parse."""
    shadow = _shadow(lines, mdx=mdx)
    parsed = list(shadow)
    for block in apart:
        parsed[block.start : block.end] = [""] * (block.end - block.start)
    tokens = _tokens(parsed, mdx=mdx)
    code = [token.map for token in tokens if token.type in ("fence", "code_block") and token.map]
    spans = sorted([(start, end) for start, end in code] + [(block.start, block.end) for block in apart])
    visible = without_rims(shadow, spans)
    return Body(visible, _blocks(visible, tokens, apart))


def cleaned_text(text: str, *, mdx: bool, wiki: bool = False, signs: bool = True) -> tuple[Cleaned, bool]:
    """Clean a text without changing its code, and say whether it is MDX. A removed span that contains code (a
    commented-out example) can change what is code after it, so spaces replace it and the text is parsed again."""
    current = text
    for _ in range(4):
        lines = current.split("\n")
        code = _code_spans(_tokens(_shadow(lines, mdx=mdx), mdx=mdx), lines)
        cleaned = clean(current, code, wiki=wiki, signs=signs, mdx=mdx)
        mixed = [span for span in cleaned.removals if _meets(span, code)]
        if cleaned.components and not mdx:
            mdx = True
        elif not mixed:
            break
        current = _blanked(current, mixed)
    return cleaned, mdx


def _meets(span: Span, code: list[Span]) -> bool:
    number = bisect_right(code, (span[1], 0)) - 1
    return number >= 0 and code[number][0] < span[1] and span[0] < code[number][1]


def _blanked(text: str, spans: list[Span]) -> str:
    """The text with the characters of the spans replaced by spaces; line breaks stay."""
    out, at = [], 0
    for start, end in spans:
        out += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
        at = end
    return "".join([*out, text[at:]])


def _code_spans(tokens: list[Token], lines: list[str]) -> list[Span]:
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    return [
        (starts[token.map[0]], starts[min(token.map[1], len(lines))])
        for token in tokens
        if token.type in ("fence", "code_block") and token.map
    ]


class LineFinder:
    """Finds the 0-based line of a position in a text."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    def line(self, at: int) -> int:
        """The line of a position."""
        return bisect_right(self.starts, at) - 1


def _shadow(lines: list[str], *, mdx: bool) -> list[str]:
    """The lines that are parsed and shown. The content of an admonition (`!!! note`), a tab or a definition (`:   …`)
    is unindented, because it would be read as code."""
    if mdx or not any(sign in line for line in lines for sign in _INDENTING_SIGNS):
        return list(lines)
    shadow: list[str] = []
    indents: list[int] = []
    for line in lines:
        bare = line.lstrip(" ")
        if bare:
            while indents and len(line) - len(bare) < indents[-1] + 4:
                indents.pop()
            if _INDENTING.match(bare):
                shadow.append(line[4 * len(indents) :])
                indents.append(len(line) - len(bare))
                continue
        shadow.append(line[4 * len(indents) :])
    return shadow


def _tokens(shadow: list[str], *, mdx: bool) -> list[Token]:
    parser = _MDX if mdx else _MARKDOWN
    tokens: list[Token] = []
    parser.block.parse("\n".join([line[:MAX_LOOK] for line in shadow]), parser, {}, tokens)
    return tokens


def _blocks(lines: list[str], tokens: list[Token], apart: list[Block]) -> list[Block]:
    """The blocks in order. Each line that is not blank is in exactly one of them."""
    leaves = sorted([*_leaves(lines, tokens), *apart], key=lambda block: block.start)
    blocks: list[Block] = []
    at = 0
    for block in leaves:
        start, end = max(block.start, at), block.end
        while end > start and not lines[end - 1].strip():
            end -= 1
        while start < end and not lines[start].strip():
            start += 1
        if start >= end:
            continue
        blocks += _text_between(lines, at, start)
        blocks.append(block if (start, end) == (block.start, block.end) else replace(block, start=start, end=end))
        at = end
    return [*blocks, *_text_between(lines, at, len(lines))]


def _text_between(lines: list[str], start: int, end: int) -> Iterator[Block]:
    """Text blocks for lines that no token covers, such as link definitions and deeply nested lines."""
    begin: int | None = None
    for at in range(start, end + 1):
        filled = at < end and bool(lines[at].strip())
        if filled and begin is None:
            begin = at
        elif not filled and begin is not None:
            yield Block("text", begin, at)
            begin = None


def _leaves(lines: list[str], tokens: list[Token]) -> Iterator[Block]:
    for number, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map
        if token.type == "heading_open":
            level = int(token.tag[1]) if token.level == 0 else 0
            yield Block("heading", start, end, level=level, title=tokens[number + 1].content)
        elif token.type in ("paragraph_open", "hr") or (token.type == "fence" and len(token.markup) > MAX_MARKS):
            yield Block("text", start, end)
        elif token.type == "fence":
            closed = end - start > 1 and _closes(lines[min(end, len(lines)) - 1], token.markup)
            yield Block("fence", start, end, fence=token.markup, closed=closed)
        elif token.type == "code_block":
            yield Block("code", start, end)
        elif token.type == "table_open":
            yield Block("table", start, end)


def _closes(line: str, marks: str) -> bool:
    bare = _QUOTE_MARKS.sub("", line, count=1).rstrip()
    return len(bare) >= len(marks) and not bare.strip(marks[0])
