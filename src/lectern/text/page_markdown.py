"""Markdown as the page reads it: what is a listing, a formula, a link or a citation in an answer. Everything that asks
whether a bracket is a citation asks this parser.

Raw HTML is off, so tags in a text are shown as text. The time is linear in the length of the text: a paragraph with
more signs than prose has is not parsed for emphasis and links, and nesting is limited."""

from __future__ import annotations

import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

MAX_NESTING = 20  # lists and quotes deeper than this are shown as text
MAX_SIGNS = 400  # signs of inline Markdown in one paragraph; a text with more is shown as it is
MAX_FORMULA_LENGTH = 20_000  # characters between the signs of a formula
MAX_COLUMNS = 100  # a line with more cells is no table
MAX_SOURCES = 9_999  # that a marker can name
FORMULAS = ("math_inline", "math_inline_double", "math_block", "math_block_label")
CITATION = re.compile(r"\[(\d{1,4})\](?!\()")
NESTED = re.compile(r"\[\s*(?:\[[\d\s,;.–-]{0,100}+\][\s,;]*+){1,50}+\]")  # a matrix: `[[1, 2], [3, 4]]`
_WORD_END = re.compile(r"[A-Za-z\u00c0-\u052f][0-9_]{0,3}\Z")  # of scripts with spaces between words
_SIGNS = re.compile(r"[\[\]*_`$~<!&\\]")
_FORMULA_ENDS = {"$$": "$$", "\\[": "\\]"}
_INLINE_FORMULA = re.compile(r"\\\((.{1,2000}?)\\\)", re.DOTALL)
_TASK = re.compile(r"\[([ xX])\][ \t]+")


def page_parser(renderer: type[RendererHTML] = RendererHTML) -> MarkdownIt:
    """The parser. In the environment of a text, `sources` is how many sources it may cite, `known_sources` how many
    were cited before it, and `numbers` what its numbers stand for."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}, renderer_cls=renderer)
    parser.enable(["table", "strikethrough"])
    # `$HOME` and `$PATH` in one sentence are no formula
    dollarmath_plugin(parser, allow_space=False, allow_digits=False, double_inline=True)
    parser.inline.ruler.at("math_inline", _dollar_formula(parser))
    parser.block.ruler.at("math_block", _formula)
    parser.inline.ruler.before("escape", "bracket_formula", _inline_formula)
    parser.inline.ruler.before("link", "citation", _citation)
    parser.block.ruler.at("table", _bounded_table(parser), {"alt": ["paragraph", "reference"]})
    parser.core.ruler.at("inline", _bounded_inline)
    return parser


def is_glued(text: str, place: int) -> bool:
    """Whether a bracket follows a word without a space, as an index does: `array[0]`."""
    return _WORD_END.search(text[max(0, place - 4) : place]) is not None


def _bounded_table(parser: MarkdownIt) -> Callable[[StateBlock, int, int, bool], bool]:
    """The rule for tables, which a line of a hundred thousand cells cannot make slow."""
    table = next(rule.fn for rule in parser.block.ruler.__rules__ if rule.name == "table")

    def rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
        line = state.src[state.bMarks[start] : state.eMarks[start]]
        return line.count("|") <= MAX_COLUMNS and table(state, start, end, silent)

    return rule


def _dollar_formula(parser: MarkdownIt) -> Callable[[StateInline, bool], bool]:
    """The rule for `$x$`, which does not end inside code, where `$PATH` may be."""
    formula = next(rule.fn for rule in parser.inline.ruler.__rules__ if rule.name == "math_inline")

    def rule(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
        if not state.src.startswith("$", state.pos):
            return False
        end = state.src.find("$", state.pos + 2)
        return state.src.find("`", state.pos, max(end, state.pos)) < 0 and formula(state, silent)

    return rule


def _formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    r"""A formula between `$$` and `$$`, or between `\[` and `\]`, on lines of its own. Escaped brackets in a sentence,
    such as `\[sic\]`, are text."""
    opening = state.bMarks[start] + state.tShift[start]
    signs = state.src[opening : opening + 2]
    if signs not in _FORMULA_ENDS or state.is_code_block(start):
        return False
    closing = _formula_end(state, signs, opening + 2)
    if not 0 <= closing - opening <= MAX_FORMULA_LENGTH:
        return False
    line = start
    while line < end and closing > state.eMarks[line]:
        line += 1
        if line < end and state.sCount[line] < state.blkIndent and not state.isEmpty(line):
            return False
    if line >= end or state.src[closing : state.eMarks[line]].strip():
        return False  # it ends outside of the list item or quote in which it begins, or has text beside it
    if not silent:
        token = state.push("math_block", "math", 0)
        text = state.getLines(start, line + 1, state.sCount[start], keepLastLF=False).strip()
        token.block, token.content, token.map = True, text[2:-2], [start, line + 1]
    state.line = line + 1
    return True


def _formula_end(state: StateBlock, signs: str, begin: int) -> int:
    """The position after the signs that close a formula; -1 if there are none. The last one found is stored, so that
    many openings before one end cost one search."""
    ends: dict[str, int] = state.env.setdefault("formula_ends", {})
    if ends.get(signs, 0) < begin:
        place = state.src.find(_FORMULA_ENDS[signs], begin)
        ends[signs] = place if place >= 0 else len(state.src)
    return ends[signs] + 2 if ends[signs] < len(state.src) else -1


def _inline_formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    r"""A formula between `\(` and `\)`."""
    match = _INLINE_FORMULA.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    if not silent:
        state.push("math_inline", "math", 0).content = match[1]
    state.pos = match.end()
    return True


def _bounded_inline(state: StateCore) -> None:
    """Parse the inline Markdown of each block, but leave a block as text that has more signs than prose has."""
    for number, token in enumerate(state.tokens):
        if token.type != "inline":
            continue
        token.children = token.children if token.children is not None else []
        opens_item = number > 1 and state.tokens[number - 2].type == "list_item_open"
        if opens_item and (task := _TASK.match(token.content)):
            token.children.append(Token("task", "", 0, content="open" if task[1] == " " else "done"))
            token.content = token.content[task.end() :]
        if len(_SIGNS.findall(token.content)) > MAX_SIGNS:
            token.children.append(Token("text", "", 0, content=token.content))
        else:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _citation(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """`[2]`, if there is a second source. A matrix cites nothing, and neither does the index of a word. Sources are
    numbered by first mention, so a number behind a word that is neither known nor the next is an index: `array[7]`."""
    if nested := NESTED.match(state.src, state.pos, state.posMax):
        return _as_text(state, nested.end(), silent=silent)
    match = CITATION.match(state.src, state.pos)
    if match is None or match.end() > state.posMax or state.linkLevel:
        return False
    numbers = state.env.get("numbers")  # what the numbers in the text stand for
    number = numbers[int(match[1])] if numbers else int(match[1])
    known: dict[str, int] = state.env.setdefault("known", {"sources": state.env.get("known_sources", 0)})
    follows_index = state.env.get("index_end") == (id(state), state.pos)
    if follows_index or (is_glued(state.src, state.pos) and not 0 < number <= known["sources"] + 1):
        state.env["index_end"] = (id(state), match.end())  # `grid[0][1]`
        return _as_text(state, match.end(), silent=silent)
    if not 1 <= number <= state.env.get("sources", 0):
        return False
    if not silent:
        known["sources"] = max(known["sources"], number)
        state.push("citation", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _as_text(state: StateInline, end: int, *, silent: bool) -> bool:
    if not silent:
        state.pending += state.src[state.pos : end]
    state.pos = end
    return True
