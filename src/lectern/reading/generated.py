"""Finds the parts of a page that are made when its site is built, and that nobody can read without building it: the
documentation of code (`::: package.name` of mkdocstrings) and templates (`{{ version }}`, `{% for … %}`). They are no
text. The report counts them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lectern.reading.directives import Directive, fences, inside

_CODE_DOCUMENTATION = re.compile(
    r"^(?P<indent>[ ]{0,12}):::[ ]{1,9}(?P<name>[A-Za-z_][\w.-]{0,200})[ \t]{0,20}$", re.MULTILINE
)
_LINE = re.compile(r"\n(?P<indent>[ \t]*)(?P<words>[^\n]*)")
_TEMPLATE = re.compile(
    r"\{\{-?[ \t]{0,9}(?P<value>[A-Za-z_][^{}\n]{0,200}?)-?\}\}"
    r"|\{%-?[ \t]{0,9}(?P<tag>[a-z]{1,20})\b[^\n]{0,300}?%\}"
)
_VARIABLE = re.compile(r"(?<![^\s(*_>|])\{\{[ \t]{0,9}\w[\w-]{0,80}[ \t]{0,9}\}\}(?=[\s.,;:)!?*_|]|$)")
_PREPROCESSED = re.compile(
    r"\{\{[ \t]{0,9}#[\w-]{1,30}(?:[ \t]{1,9}(?P<file>[^\s{}]{0,200}\.\w{1,9})?[^{}\n]{0,300})?\}\}"
)
_BLOCKS = frozenset({"for", "macro", "set"})  # what is inside them is no text without its values
OPTIONS_INDENT = 4


def code_documentation(text: str) -> Iterator[Directive]:
    """The places where mkdocstrings shows the documentation of code, with their options, which are indented below."""
    if ":::" not in text:
        return
    code = fences(text)
    for match in _CODE_DOCUMENTATION.finditer(text):
        if inside(code, match.start()):
            continue
        end = match.end()
        for line in _LINE.finditer(text, match.end()):
            if line["words"] and len(line["indent"]) < len(match["indent"]) + OPTIONS_INDENT:
                break
            end = line.end() if line["words"] else end
        start = match.start() + len(match["indent"])
        yield Directive(start=start, end=end, syntax="code_documentation", name=match["name"])


def templates(text: str) -> Iterator[Directive]:
    """The templates of mkdocs-macros, outside code. A loop is one of them as a whole."""
    if "{{" not in text and "{%" not in text:
        return
    open_block: re.Match[str] | None = None
    depth = 0
    raw = False
    for match in _outside_code(_TEMPLATE, text):
        tag = match["tag"] or ""
        if raw or tag in ("raw", "endraw"):
            if tag in ("raw", "endraw"):
                raw = tag == "raw"
                yield Directive(start=match.start(), end=match.end(), syntax="templates")
            continue
        if tag in _BLOCKS and not (tag == "set" and "=" in match[0]):
            open_block = open_block or match
            depth += 1
        elif tag.removeprefix("end") in _BLOCKS and tag.startswith("end") and open_block:
            depth -= 1
            if not depth:
                yield Directive(start=open_block.start(), end=match.end(), syntax="templates", name=open_block[0])
                open_block = None
        elif open_block is None:
            yield Directive(start=match.start(), end=match.end(), syntax="templates", name=match[0])


def variables(text: str) -> Iterator[Directive]:
    """The names that hooks of MkDocs and preprocessors of mdBook replace, such as `{{ tool-version }}`, outside code.
    Glued to other signs they are examples. Of the directives of preprocessors, `{{#tabs }}` only marks the text below
    it, and `{{#literate main.go}}` stands for what is made of a file."""
    if "{{" in text:
        for match in _outside_code(_PREPROCESSED, text):
            yield Directive(start=match.start(), end=match.end(), syntax="variables", name=match["file"] or "")
        for match in _outside_code(_VARIABLE, text):
            yield Directive(start=match.start(), end=match.end(), syntax="variables", name=match[0])


def _outside_code(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    code = fences(text)
    position = ticks = 0  # backticks on the line before the position
    for match in pattern.finditer(text):
        between = text[position : match.start()]
        newline = between.rfind("\n")
        ticks = between.count("`", newline + 1) + (ticks if newline < 0 else 0)
        position = match.start()
        if ticks % 2 == 0 and not inside(code, match.start()):
            yield match
