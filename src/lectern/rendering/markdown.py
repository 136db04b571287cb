"""Renders Markdown as HTML: how each element that the page's parser (`text/page_markdown.py`) finds is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from lectern.rendering.code import listing_html
from lectern.rendering.maths import formula_html
from lectern.rendering.sanitise import sanitised
from lectern.text.page_markdown import FORMULAS, page_parser

CLAIM_SIGN = "\U00010a7f"  # a punctuation mark of an ancient script: Markdown's rules on emphasis hold beside it
CLAIM_BASE = 0xF0000  # private characters that count claims
_CLAIM = re.compile(f"{CLAIM_SIGN}([{chr(CLAIM_BASE)}-{chr(0xFFFFD)}]){CLAIM_SIGN}")
_RESERVED = re.compile(f"[{CLAIM_SIGN}{chr(CLAIM_BASE)}-{chr(0xFFFFD)}]")

LinkTarget = Mapping[str, str]  # attributes of a link


def without_claim_characters(text: str) -> str:
    """The text without the characters that stand for claims, of the same length."""
    return _RESERVED.sub("\N{REPLACEMENT CHARACTER}", text)


def claim_mark(number: int) -> str:
    """The characters that stand for the end of a claim until the text is rendered."""
    return f"{CLAIM_SIGN}{chr(CLAIM_BASE + number)}{CLAIM_SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the elements of one text depend on. The defaults suit an answer."""

    sources: int = 0  # how many sources may be cited
    listing_claims: Mapping[int, int] = field(default_factory=dict)  # line of a fence -> number of its claim
    first_line: int = 1  # of the text in its file
    lines: bool = False  # whether blocks carry their lines
    link: Callable[[str], LinkTarget | None] = lambda _target: None  # attributes of a link; None shows its text alone
    image: Callable[[str], str | None] = lambda _target: None  # the book's own file; None shows the description alone


def outside_link(target: str) -> LinkTarget | None:
    """The attributes of a link to another site."""
    return (
        {"href": target, "target": "_blank"} if target.lower().startswith(("http://", "https://", "mailto:")) else None
    )


def markdown_parser() -> MarkdownIt:
    """The parser that answers and lessons share."""
    parser = page_parser(HtmlRenderer)
    renderer = cast("HtmlRenderer", parser.renderer)
    for name in FORMULAS:  # the plugins bring rules of their own, which show LaTeX
        renderer.rules[name] = getattr(renderer, name)
    return parser


def render_tokens(parser: MarkdownIt, tokens: Sequence[Token], context: Context) -> str:
    """The sanitised HTML of parsed blocks."""
    return sanitised(str(parser.renderer.render(tokens, parser.options, {"context": context})))


def context_of(env: EnvType) -> Context:
    """What the elements of the text that is rendered depend on."""
    context = env.get("context")
    return context if isinstance(context, Context) else Context()


class HtmlRenderer(RendererHTML):
    """Writes each element as the page expects it."""

    def text(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """Text, with the ends of claims."""
        return _CLAIM.sub(_claim_span, escape(tokens[idx].content, quote=False))

    def citation(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """The number of a source."""
        number = tokens[idx].content
        return f'<a class="cite" data-source="{number}" href="#source-{number}">{number}</a>'

    def code_inline(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """Code in a sentence."""
        return f"<code>{escape(_unmarked(tokens[idx].content))}</code>"

    def fence(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: EnvType) -> str:
        """A listing."""
        token, context = tokens[idx], context_of(env)
        claim = context.listing_claims.get(token.map[0]) if token.map else None
        attributes = "" if claim is None else f' data-claim="{claim}"'
        return listing_html(_unmarked(token.content), token.info, attributes + self._lines(token, context))

    def code_block(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: EnvType) -> str:
        """An indented listing."""
        return listing_html(_unmarked(tokens[idx].content), "", self._lines(tokens[idx], context_of(env)))

    def math_inline(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """A formula in a sentence."""
        return formula_html(_unmarked(tokens[idx].content), block=False)

    def math_block(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """A formula of its own."""
        return formula_html(_unmarked(tokens[idx].content), block=True)

    math_inline_double = math_block_label = math_block

    def task(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """The box of a task."""
        return f'<span class="task {tokens[idx].content}"></span> '

    def table_open(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: EnvType) -> str:
        """A table in a box that scrolls."""
        return f'<div class="table" tabindex="0"{self._lines(tokens[idx], context_of(env))}><table>'

    def table_close(self, _tokens: Sequence[Token], _idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """The end of a table and of its box."""
        return "</table></div>\n"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """An image of the book, or the description of any other."""
        token = tokens[idx]
        description = _unmarked(self.renderInlineAsText(token.children, options, env))
        source = str(token.attrs.get("src", ""))
        if (file := context_of(env).image(source)) is not None:
            return f'<img data-file="{escape(file)}" alt="{escape(description)}">'
        if (link := outside_link(source)) is not None:
            return f'<a class="remote-image"{_attributes(link)}>{escape(description or source)}</a>'
        return escape(description)

    def link_open(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: EnvType) -> str:
        """A link, where it may lead somewhere."""
        target = context_of(env).link(str(tokens[idx].attrs.get("href", "")))
        return "<span>" if target is None else f"<a{_attributes(target)}>"

    def link_close(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, env: EnvType) -> str:
        """The end of a link."""
        depth = 1
        for token in reversed(tokens[:idx]):
            depth += {"link_close": 1, "link_open": -1}.get(token.type, 0)
            if not depth:
                return "</span>" if context_of(env).link(str(token.attrs.get("href", ""))) is None else "</a>"
        return ""

    def renderToken(  # noqa: N802  # markdown-it's name
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """Any other element, with its lines where they are wanted."""
        token, context = tokens[idx], context_of(env)
        if context.lines and token.block and token.nesting >= 0 and token.map and not token.hidden:
            token.attrSet("data-lines", _line_range(token, context))
        style = token.attrs.pop("style", None)  # a column's alignment
        if isinstance(style, str) and style.startswith("text-align:"):
            token.attrSet("class", f"align-{style.removeprefix('text-align:').strip()}")
        return super().renderToken(tokens, idx, options, env)

    def _lines(self, token: Token, context: Context) -> str:
        return f' data-lines="{_line_range(token, context)}"' if context.lines and token.map else ""


def _line_range(token: Token, context: Context) -> str:
    first, end = token.map or (0, 1)
    return f"{context.first_line + first}-{context.first_line + max(end, first + 1) - 1}"


def _attributes(attributes: Mapping[str, Any]) -> str:
    return "".join(f' {name}="{escape(str(value))}"' for name, value in attributes.items())


def _claim_span(match: re.Match[str]) -> str:
    return f'<span class="claim" data-claim="{ord(match[1]) - CLAIM_BASE}"></span>'


def _unmarked(text: str) -> str:
    return _CLAIM.sub("", text)
