"""The parser and the renderer for lessons: those for answers, with elements of sites, footnotes, definition lists,
diagrams and line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from lectern.domain.books import Site
from lectern.rendering import elements
from lectern.rendering.code import language_of
from lectern.rendering.diagrams import diagram_html
from lectern.rendering.markdown import HtmlRenderer, context_of, markdown_parser

_DIAGRAM_LANGUAGES = frozenset({"mermaid", "plantuml", "dot", "graphviz"})
_WITH_DEFINITIONS = frozenset({"mkdocs", "mdbook"})


@lru_cache(maxsize=16)
def lesson_parser(site: Site, *, mdx: bool) -> MarkdownIt:
    """The parser for lessons of a site. In MDX, indented lines are no code."""
    parser = markdown_parser()
    parser.renderer = LessonRenderer(parser)
    footnote_plugin(parser, inline=False, move_to_end=False)
    if site in _WITH_DEFINITIONS:
        deflist_plugin(parser)
    if mdx:
        parser.disable("code")
    elements.install(parser)
    parser.core.ruler.after("inline_elements", "footnotes", _move_footnotes)
    parser.add_render_rule("footnote_ref", LessonRenderer.footnote_ref)  # the plugin has an id on its link
    return parser


class LessonRenderer(HtmlRenderer):
    """Writes the elements that only lessons have."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A listing, or a diagram as text."""
        language = language_of(tokens[idx].info)
        if language in _DIAGRAM_LANGUAGES:
            return diagram_html(language, tokens[idx].content, self._lines(tokens[idx], context_of(env)))
        return super().fence(tokens, idx, options, env)

    def math_block(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """A formula of its own, with its lines."""
        formula = super().math_block(tokens, idx, _options, _env)
        return f"<div{self._lines(tokens[idx], context_of(_env))}>{formula}</div>\n"

    def plain(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Text without any Markdown."""
        return self.renderInline(tokens[idx].children or [], options, env)

    def footnote_ref(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        """The number of a footnote."""
        number, repeat = tokens[idx].meta["id"] + 1, tokens[idx].meta.get("subId", 0)
        name = f"fnref{number}" + (f"-{repeat}" if repeat else "")
        return f'<sup class="footnote-ref" id="{name}"><a href="#fn{number}">{number}</a></sup>'


def _move_footnotes(state: StateCore) -> None:
    """Move footnotes to the end of the lesson, those that nothing refers to as well."""
    references = state.env.get("footnotes")
    if not references:
        return
    kept, notes = _without_footnotes(state.tokens)
    numbers = {note["label"]: number for number, note in references["list"].items()}
    ordered = sorted(notes, key=lambda note: numbers.get(note[0], len(numbers)))
    if not ordered:
        return
    kept += [_block("section_open", "section", 1, {"class": "footnotes"}), _block("ol_open", "ol", 1)]
    for place, (label, lines, content) in enumerate(ordered):
        number = numbers.pop(label, None)  # the second note of a label has no number of its own
        item = _block("item_open", "li", 1, {"id": f"fn{number + 1}"} if number is not None else {})
        item.map = lines
        if number is None and place:
            item.attrs["value"] = place + 1
        kept += [item, *content, _block("item_close", "li", -1)]
    state.tokens = [*kept, _block("ol_close", "ol", -1), _block("section_close", "section", -1)]


def _without_footnotes(tokens: Sequence[Token]) -> tuple[list[Token], list[tuple[str, list[int] | None, list[Token]]]]:
    """The tokens outside footnotes; and of each footnote the label, the lines and the tokens."""
    kept: list[Token] = []
    notes: list[tuple[str, list[int] | None, list[Token]]] = []
    path: list[list[Token]] = [kept]
    for token in tokens:
        if token.type == "footnote_reference_open":
            content: list[Token] = []
            notes.append((token.meta["label"], token.map, content))
            path.append(content)
        elif token.type == "footnote_reference_close":
            path.pop()
        else:
            path[-1].append(token)
    return kept, notes


def _block(kind: str, tag: str, nesting: int, attributes: dict[str, str | int | float] | None = None) -> Token:
    assert nesting in (-1, 1)
    return Token(kind, tag, 1 if nesting > 0 else -1, attrs=attributes or {}, block=True)
