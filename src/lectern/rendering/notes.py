"""Footnotes of an answer or a quoted passage. Their marks are letters, because the numbers are those of sources. Each
is read without the rest of the text, which may not be written yet; the text of a note stays where it is written."""

from __future__ import annotations

import re
from html import escape

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_LABEL = r"\[\^([^\]\[\s^]{1,40})\]"
_REFERENCE = re.compile(_LABEL)
_NOTE = re.compile(rf"{_LABEL}:[ \t]*(?=\S)")
LETTERS = 26


def install_notes(parser: MarkdownIt) -> None:
    """Let a parser read footnotes."""
    parser.block.ruler.before("reference", "note", _note, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "note_mark", _note_mark)
    parser.add_render_rule("note_mark", lambda _self, tokens, idx, _options, _env: _mark_html(tokens[idx].content))


def _note(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """The text of a note: a paragraph that begins with its mark."""
    match = _note_at(state, start)
    if match is None or state.is_code_block(start):
        return False
    if silent:
        return True
    line = start + 1
    while line < end and not state.isEmpty(line) and _note_at(state, line) is None:
        line += 1
    words = state.src[match.end() : state.eMarks[start]]
    more = state.getLines(start + 1, line, state.blkIndent, keepLastLF=False)
    opening = state.push("paragraph_open", "p", 1)
    opening.attrs, opening.map = {"class": "note-text"}, [start, line]
    text = state.push("inline", "", 0)
    text.content, text.map, text.children = f"[^{match[1]}] {words}\n{more}".strip(), [start, line], []
    state.push("paragraph_close", "p", -1)
    state.line = line
    return True


def _note_at(state: StateBlock, line: int) -> re.Match[str] | None:
    return _NOTE.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])


def _note_mark(state: StateInline, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    match = _REFERENCE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("note_mark", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _mark_html(label: str) -> str:
    number = int(label) if label.isdecimal() and label.isascii() else 0
    sign = chr(ord("a") + number - 1) if 1 <= number <= LETTERS else label
    return f'<sup class="note-mark">{escape(sign)}</sup>'
