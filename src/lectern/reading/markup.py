"""Removes markup that readers of a page do not see: comments, JSX and HTML tags, MDX imports and exports. The text
between tags stays, code is not changed, and each line keeps its number, so that a chunk can name its lines.

The text that a component shows from its attributes stays (`tags.py`).

Signs for the page's looks are removed too: attribute lists (`{: .note }`), the borders of `///` boxes, the kinds of
callouts (`> [!tip]`). Entities become the characters that they stand for. In plain books, Obsidian's `[[links]]` keep
their words, and its `%% comments %%` and `^block-ids` are removed.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from lectern.reading.tags import Tag, TagScanner, is_number, visible_spans

Span = tuple[int, int]

_TAGS = (
    r"(?P<escape>(?:\\[\\`<{$])++)|(?P<ticks>`+)|(?P<comment><!--)|(?P<mdx>\{/\*)|(?P<tag><(?=[A-Za-z/>!?]))"
    r"|(?P<math>^[ \t>]*(?:\$\$|\\\[[ \t]*$))|(?P<esm>^(?:import|export)\b)"
)
_SIGNS = (
    r"|(?P<entity>&(?=[A-Za-z#]))|(?P<attributes>\{(?=[:.#\w \t]|/[a-z]))|(?P<box>^[ \t]*/{3,9}(?!/))"
    r"|(?P<string>\{[ \t]*(?=['\"`]))|(?P<icon>:(?=(?:material|fontawesome|octicons|simple)-))"
    r"|(?P<callout>^[ \t]{0,20}>[ \t>]{0,20}\[![A-Za-z])|(?P<wiki>\[\[(?=[^\[\]\s]))|(?P<percent>%%)"
    r"|(?P<block>(?:^|(?<=[ \t\]]))\^(?=[A-Za-z0-9-]{1,60}[ \t]*$))"
)
_NEXT_TAG = re.compile(_TAGS, re.MULTILINE)
_NEXT = re.compile(_TAGS + _SIGNS, re.MULTILINE)
MAX_SIGNS = 50_000  # signs besides tags that are looked at in one text; no lesson has a hundredth of it
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_SHOWN_TAG = re.compile(r"&lt;(/?[A-Za-z][^&\n`<>]{0,80}?)&gt;")
_MARKUP_SIGNS = frozenset("*_[]|`#\\~")  # decoded, they would be Markdown
_ATTRIBUTE = r"(?:[.#][\w:-]{1,80}|[\w:-]{1,40}=(?:\"[^\"\n]{0,120}\"|'[^'\n]{0,120}'|[^\s\"'{}]{1,80}))"
_ATTRIBUTES = re.compile(rf"\{{(?P<colon>:?)[ \t]{{0,9}}{_ATTRIBUTE}(?:[ \t]{{1,9}}{_ATTRIBUTE}){{0,9}}[ \t]{{0,9}}\}}")
_CONDITION = re.compile(r"\{(?:[#:](?:if|else if)[ \t][^{}\n]{0,200}|:else|/if)\}")
_BOX = re.compile(
    r"[ \t]*/{3,9}(?:[ \t]+[A-Za-z][\w-]{0,30}(?:[ \t]*\|[ \t]*(?P<title>[^\n]{0,200}))?)?[ \t]*$", re.MULTILINE
)
_CALLOUT = re.compile(r"\[![A-Za-z][\w-]{0,30}(?:\|[^\]\n]{0,60})?\][-+]?[ \t]*(?P<title>[^\n]{0,300})")
_WIKI = re.compile(r"\[\[(?P<page>[^\[\]\n|]{1,300})(?:\|(?P<words>[^\[\]\n]{1,300}))?\]\](?!\()")
_NO_WIKI = frozenset({"open-in-colab"})  # a button
_ICON = re.compile(r":[a-z]{4,11}-[a-z0-9-]{1,80}:")
_STRING = re.compile(r"\{[ \t]*(?:'([^'\\\n]*+(?:\\.[^'\\\n]*+)*+)'|\"([^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+)\")[ \t]*\}")
_ESCAPE = re.compile(r"\\(.)")
_BLOCK_SIGN = re.compile(r"#{1,6}[ \t]|[-+>][ \t]|\d{1,9}[.)][ \t]")  # begins a heading, an item or a quote
_BLANK = re.compile(r"\n[ \t]*(?:\n|$)")
_TICKS = re.compile(r"`+")
_VISIBLE_CHARACTER = re.compile(r"\S")
_LINE = re.compile(r"[^\n]+")
_PRE_END = "</pre>"
_HEADING_BELOW = re.compile(r"\n[ \t]*\n {0,3}#{1,6}[ \t]")  # a heading after $$ shows that the $$ is no formula
_EXPORT = re.compile(r"export\s+(?:default|const|let|var|function|class|async|type|interface|enum)\b|export\s*[{*]")
_IMPORT = re.compile(r"import\s*(?:(?:type\s+)?[\w$*{][\w$*{},\s]*\bfrom\s*)?$")
_HEADING_ID = re.compile(r"\{/\*[ \t]*#[^\s*{}]{1,200}[ \t]*\*/\}[ \t]*$", re.MULTILINE)
_ATX_OPENING = re.compile(r" {0,3}#{1,6}[ \t]")
MAX_MATH = 20_000  # characters between $$ and $$
MAX_IMPORT = 2000


@dataclass(slots=True)
class Cleaned:
    """A text without invisible markup, with the same number of lines."""

    text: str
    original: str
    removals: list[Span]  # spans of the original text
    tags: dict[int, Tag]  # the tags among them, by their position
    maths: list[Span]  # formulas in the original text
    raw: list[Span]  # <pre> and texts of components in the original text: no heading or list begins inside
    components: bool  # the text has JSX or ESM, so it is MDX


class Removal(NamedTuple):
    """A span that is removed, and what comes in its place."""

    start: int
    end: int
    joint: str = ""  # between two words that would otherwise be joined
    text: str = ""  # in any case; for a span of one line


def clean(text: str, code: list[Span], *, wiki: bool = False, signs: bool = True, mdx: bool = False) -> Cleaned:
    """Remove invisible markup from a text. `code` are the character spans of code blocks, in order. With `wiki`,
    Obsidian's markup counts too, with `mdx` strings in braces; without `signs`, what is only there for the page's looks
    stays."""
    scan = _Scan(text, code, wiki=wiki, signs=signs, mdx=mdx)
    scan.run()
    return Cleaned(
        text=_without(text, scan.removals),
        original=text,
        removals=[span[:2] for span in scan.removals],
        tags=scan.found,
        maths=scan.maths,
        raw=scan.raw,
        components=scan.components,
    )


def _without(text: str, removals: list[Removal]) -> str:
    out: list[str] = []
    at = 0
    for start, end, joint, words in removals:
        out += (text[at:start], words)
        lines = text.count("\n", start, end)
        if lines:
            out.append("\n" * lines)
        elif joint and start and not text[start - 1].isspace() and end < len(text) and not text[end].isspace():
            out.append(joint)
        at = end
    out.append(text[at:])
    return "".join(out)


def _shown(words: str, *, wiki: bool = False) -> str:
    """A text of one line as readers see it, such as the title of a callout."""
    return clean(words, [], wiki=wiki).text


def _string_text(string: str) -> str:
    """The text of a JavaScript string as readers see it."""
    return _shown(_ESCAPE.sub(lambda match: " " if match[1] in "nrt" else match[1], string))


class _Scan:
    """One pass over a text from left to right; `removals` are the spans to remove."""

    def __init__(self, text: str, code: list[Span], *, wiki: bool, signs: bool, mdx: bool) -> None:
        self.text, self.code, self.wiki, self.mdx = text, code, wiki, mdx
        self.code_starts = [start for start, _ in code]
        self.removals: list[Removal] = []
        self.maths: list[Span] = []
        self.raw: list[Span] = []
        self.tags = TagScanner(text)
        self.found: dict[int, Tag] = {}
        self.ticks_until = -1  # end of the paragraph that `ticks` describes
        self.ticks: dict[int, list[int]] = {}
        self.ahead: dict[str, int] = {}  # the next position of each closer; past the end if there is none
        self.heading_ahead = 0, 0  # the next heading
        self.word_ahead = -1, 0  # a removed span's end, and where the first word after it begins
        self.line_ahead = 0, 0  # a position, and where its line begins
        self.components = False
        self.signs = 0 if signs else MAX_SIGNS
        self.tag_steps: dict[str, Callable[[int, int], int]] = {
            "ticks": self._after_ticks,
            "comment": self._after_comment,
            "mdx": self._after_mdx_comment,
            "math": self._after_math,
            "esm": self._after_esm,
            "tag": self._after_tag,
        }
        self.sign_steps: dict[str, Callable[[int, int], int]] = {
            "entity": self._after_entity,
            "attributes": self._after_attributes,
            "box": self._after_box,
            "string": self._after_string,
            "icon": self._after_icon,
            "callout": self._after_callout,
            "wiki": self._after_wiki,
            "percent": self._after_percent,
            "block": self._after_block_id,
        }

    def run(self) -> None:
        at = 0
        while match := (_NEXT if self.signs < MAX_SIGNS else _NEXT_TAG).search(self.text, at):
            inside = self._code_around(match.start())
            at = inside if inside is not None else self._step(match)

    def _code_around(self, at: int) -> int | None:
        number = bisect_left(self.code_starts, at + 1) - 1
        return self.code[number][1] if number >= 0 and at < self.code[number][1] else None

    def _step(self, match: re.Match[str]) -> int:
        kind = match.lastgroup or ""
        if kind in self.sign_steps:
            self.signs += 1
            return self.sign_steps[kind](match.start(), match.end())
        return self.tag_steps[kind](match.start(), match.end()) if kind in self.tag_steps else match.end()

    def _after_comment(self, start: int, end: int) -> int:
        return self._drop(start, self._find("-->", end), end)

    def _after_mdx_comment(self, start: int, end: int) -> int:
        heading_id = _HEADING_ID.match(self.text, start)  # ## Nodes {/* #nodes */}
        return heading_id.end() if heading_id else self._drop(start, self._find("*/}", end), end)

    def _find(self, closer: str, at: int) -> int:
        """The end of the next `closer`, or -1. Its position is cached, so that many openings before one closer cost one
        search."""
        position = self.ahead.get(closer, -1)
        if position < at:
            position = self.text.find(closer, at)
            self.ahead[closer] = position = len(self.text) if position < 0 else position
        return position + len(closer) if position < len(self.text) else -1

    def _heading_within(self, start: int, end: int) -> bool:
        if self.heading_ahead[0] < start:
            match = _HEADING_BELOW.search(self.text, start)
            self.heading_ahead = match.span() if match else (len(self.text), len(self.text) + 1)
        return self.heading_ahead[1] <= end

    def _drop(self, start: int, end: int, otherwise: int, joint: str = " ") -> int:
        if end < 0:
            return otherwise
        self.removals.append(Removal(start, end, joint))
        return end

    def _after_ticks(self, start: int, end: int) -> int:
        """The end of a code span: after the next run of as many backticks in the same paragraph, as in Markdown."""
        if start >= self.ticks_until:
            blank = _BLANK.search(self.text, start)
            self.ticks_until = blank.start() if blank else len(self.text)
            self.ticks = {}
            for run in _TICKS.finditer(self.text, start, self.ticks_until):
                self.ticks.setdefault(run.end() - run.start(), []).append(run.start())
        length = end - start
        closers = self.ticks.get(length, [])
        number = bisect_left(closers, end)
        return closers[number] + length if number < len(closers) else end

    def _after_math(self, start: int, end: int) -> int:
        closer = "$$" if self.text.startswith("$$", end - 2) else "\\]"
        close = self._find(closer, end)
        if close < 0 or close - end > MAX_MATH or self._heading_within(end, close):
            return end
        line_end = self.text.find("\n", close)
        line_end = len(self.text) if line_end < 0 else line_end
        self.maths.append((start, line_end))
        return close

    def _after_esm(self, start: int, end: int) -> int:
        """Remove an MDX import or export at the beginning of a block. Prose that begins with the word stays."""
        line_before = self.text[self.text.rfind("\n", 0, max(start - 1, 0)) + 1 : max(start - 1, 0)]
        if line_before.strip() and not self._follows_removed(start):
            return end
        stop = self._import_end(start) if self.text.startswith("import", start) else self._export_end(start)
        if stop < 0:
            return end
        self.components = True
        self.removals.append(Removal(start, stop))
        return stop

    def _follows_removed(self, start: int) -> bool:
        if not self.removals:
            return False
        end = self.removals[-1][1]
        if self.word_ahead[0] != end:
            word = _VISIBLE_CHARACTER.search(self.text, end)
            self.word_ahead = end, word.start() if word else len(self.text)
        return self.word_ahead[1] >= start

    def _import_end(self, start: int) -> int:
        ahead = self.text[start : start + MAX_IMPORT]
        quotes = [where for where in (ahead.find("'"), ahead.find('"')) if where >= 0]
        if not quotes or not _IMPORT.match(ahead[: min(quotes)]):
            return -1
        opening = min(quotes)
        closing = ahead.find(ahead[opening], opening + 1)
        line_end = ahead.find("\n", opening)
        line_end = len(ahead) if line_end < 0 else line_end
        if closing < 0 or closing > line_end or ahead[closing + 1 : line_end].strip(" \t;"):
            return -1
        return start + line_end

    def _export_end(self, start: int) -> int:
        if not _EXPORT.match(self.text, start):
            return -1
        blank = _BLANK.search(self.text, start)
        line_end = blank.start() if blank else len(self.text)
        balanced = self.tags.statement_end(start, line_end)
        return balanced if balanced >= 0 else line_end

    def _after_tag(self, start: int, end: int) -> int:
        tag = self.tags.at(start)
        if tag is None:
            return end
        self.components = self.components or tag.component
        if tag.name in ("script", "style") and not tag.closing and not tag.alone:
            close = self._find(f"</{tag.name}>", tag.end)
            if close >= 0:
                return self._drop(start, close, end)
        if tag.name == "pre" and not tag.closing:
            close = self._find(_PRE_END, tag.end)
            nested = bool(self.raw) and self.raw[-1][1] > start
            if not nested and 0 <= close <= tag.end + MAX_MATH:
                self.raw.append((start, close - len(_PRE_END)))
        self._drop_tag(start, tag)
        return tag.end

    def _drop_tag(self, start: int, tag: Tag) -> None:
        self.found[start] = tag
        visible = visible_spans(self.text, start, tag.end) if tag.component and not tag.closing else []
        if visible and self._begins_line(start):
            self.raw.append((start, tag.end))
        numbered = {first for first, last in visible if is_number(self.text, first, last)}
        name = self.text[start + 1 : start + 1 + len(tag.name)] if numbered else ""  # <Listing number="4-5">
        at = start
        for first, last in visible:
            self.removals.append(Removal(at, first, " ", f"{name} " if first in numbered else ""))
            at = self._show_attribute(first, last)
        if tag.inline and self._would_begin_block(start, tag.end):
            self.removals.append(Removal(at, tag.end - 1))
            self.removals.append(Removal(tag.end - 1, tag.end, "", "\\"))
        else:
            self.removals.append(Removal(at, tag.end, "" if tag.inline else " "))

    def _would_begin_block(self, start: int, end: int) -> bool:
        """Whether the text after a tag would begin a heading, an item or a quote without the tag before it."""
        first = _BLOCK_SIGN.match(self.text, end) is not None
        return first and (self._begins_line(start) or "\n" in self.text[start:end])

    def _show_attribute(self, start: int, end: int) -> int:
        """Keep the text of an attribute, without its own tags, entities and escapes; returns its end."""
        for line in _LINE.finditer(self.text, start, end):
            words = line[0]
            if "<" in words or "&" in words or "\\" in words:
                self.removals.append(Removal(*line.span(), "", _string_text(words)))
        return end

    def _replace(self, start: int, end: int, text: str) -> int:
        self.removals.append(Removal(start, end, "", text))
        return end

    def _after_entity(self, start: int, end: int) -> int:
        """Write the character of an entity. A tag that is shown becomes code; what would be markup is escaped."""
        if shown := _SHOWN_TAG.match(self.text, start):
            return self._replace(start, shown.end(), f"`<{html.unescape(shown[1])}>`")
        match = _ENTITY.match(self.text, start)
        if match is None:
            return end
        character = html.unescape(match[0])
        if character == match[0] or (character == ">" and self._begins_line(start)):
            return end
        if character == "<" and self.text[match.end() : match.end() + 1].strip(" \t\n0123456789=-&"):
            return self._replace(start, match.end(), "\\<")  # it would begin a tag
        if character == "&" and _ENTITY.match(f"&{self.text[match.end() : match.end() + 40]}"):
            return end
        invisible = not character.isprintable() and not character.isspace()
        escaped = f"\\{character}" if character in _MARKUP_SIGNS else character
        return self._replace(start, match.end(), "" if invisible else escaped)

    def _after_attributes(self, start: int, end: int) -> int:
        """Remove a list of attributes: after a colon, alone on its line, or after what it belongs to. Those of headings
        hold their anchors and stay. A condition of Hugging Face's pages is removed too; both branches stay."""
        if condition := _CONDITION.match(self.text, start):
            return self._drop(start, condition.end(), end)
        match = _ATTRIBUTES.match(self.text, start)
        if match is None or self._in_heading(start):
            return end
        before = self.text[start - 1 : start]
        belongs = before in (")", "]", "*", "_", "`", "~", ":") or self.text.endswith("::: ", 0, start)
        alone = self._begins_line(start) and not self.text[match.end() : match.end() + 1].strip()
        return self._drop(start, match.end(), end, "") if match["colon"] or belongs or alone else end

    def _after_box(self, start: int, end: int) -> int:
        """Remove the border of a box of pymdownx; its title stays."""
        match = _BOX.match(self.text, start)
        if match is None:
            return end
        title = _shown((match["title"] or "").strip(), wiki=self.wiki)
        return self._replace(start, match.end(), f"**{title}**" if title else "")

    def _after_callout(self, start: int, end: int) -> int:
        """Remove the kind of a callout; its title stays."""
        begin = self.text.rindex("[!", start, end)
        match = _CALLOUT.match(self.text, begin)
        if match is None:
            return end
        title = _shown(match["title"].strip(), wiki=self.wiki)
        return self._replace(begin, match.end(), f"**{title}**" if title else "")

    def _after_string(self, start: int, end: int) -> int:
        """Keep the text of a string in braces, which is how JSX writes spaces and signs."""
        match = _STRING.match(self.text, start) if self.mdx else None
        if match is None:
            return end
        return self._replace(start, match.end(), _string_text(match[1] or match[2] or ""))

    def _after_icon(self, start: int, end: int) -> int:
        match = _ICON.match(self.text, start)
        return self._drop(start, match.end(), end, "") if match else end

    def _after_wiki(self, start: int, end: int) -> int:
        """Keep the words of a link to a note: its own, or the note and the heading."""
        before = self.text[max(start - 1, 0) : start]
        match = _WIKI.match(self.text, start) if self.wiki and not before.isalnum() else None
        anchor = before.strip() and self._in_heading(start)
        if match is None or anchor:
            return end
        page = match["page"].strip().lstrip("#^")
        words = match["words"] or page.rpartition("/")[2].replace("#^", "#").replace("#", " > ")
        return self._replace(start, match.end(), "" if page in _NO_WIKI else words)

    def _after_percent(self, start: int, end: int) -> int:
        return self._drop(start, self._find("%%", end), end) if self.wiki else end

    def _after_block_id(self, start: int, end: int) -> int:
        if not self.wiki:
            return end
        line_end = self.text.find("\n", start)
        return self._drop(start, len(self.text) if line_end < 0 else line_end, end, "")

    def _in_heading(self, at: int) -> bool:
        """Whether a position is on the line of a heading. Positions must grow, so that no line is searched twice."""
        newline = self.text.rfind("\n", self.line_ahead[0], at)
        self.line_ahead = at, newline + 1 if newline >= 0 else self.line_ahead[1]
        return _ATX_OPENING.match(self.text, self.line_ahead[1]) is not None

    def _begins_line(self, at: int) -> bool:
        """Whether only white space comes before a position on its line."""
        while at and self.text[at - 1] != "\n" and self.text[at - 1].isspace():
            at -= 1
        return at == 0 or self.text[at - 1] == "\n"
