"""Removes markup that readers of a page do not see: comments, JSX and HTML tags, MDX imports and exports. The text
between tags stays, code is not changed, and each line keeps its number, so that a chunk can name its lines.

All look-ahead is limited by one budget, so a file with many openings that never close takes linear time.

JSX and HTML tags: `<Tabs>`, `<img src="a>b"/>` and `<Quiz items={[{q: "2 > 1"}]} />` are tags; `<topic>` in a
command, `vector<int>` and `a <b` are text and stay.

Text in attributes: a quiz has its questions there, a tab its label, a card its title. The tag is removed, but the
text that its component shows stays. Names, classes, links and styles are no text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

_TAG_NAME = re.compile(r"</?([A-Za-z][\w.:-]*)|</?(?=>)|<[!?](?=[A-Za-z])")
_CLOSERS = re.compile(r"</([A-Za-z][\w.:-]*)\s*>")
_STOPS = re.compile(r"[<>{\"'=]|\n[ \t]*\n")
_BRACES = re.compile(r"[{}()\[\]'\"`]|//|/\*")
_STRING_END = {  # possessive quantifiers: no memory for backtracking in a long string
    '"': re.compile(r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'),
    "'": re.compile(r"[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"),
    "`": re.compile(r"[^`\\]*+(?:\\.[^`\\]*+)*+`", re.DOTALL),
}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark q rp rt ruby s samp small span strike "
    "strong sub sup time tt u var wbr".split()
)
_HTML = _INLINE | frozenset(
    "address area article aside audio base blockquote body br button canvas caption center col colgroup datalist dd "
    "details dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head "
    "header hgroup hr html iframe img input label legend li link main map menu meta meter nav noscript object ol "
    "optgroup option output p param picture pre progress script search section select slot source style summary svg "
    "table tbody td template textarea tfoot th thead title tr track ul video path g rect circle line polyline polygon "
    "ellipse text tspan defs use math mi mo mn mrow mfrac msup msub".split()
)
_SPARE_BUDGET = 200_000  # characters of look-ahead for each file, besides twice its length
_TOKEN = re.compile(
    r"(?P<key>[A-Za-z_$][\w$-]*)\s*(?P<sign>[=:])|(?P<open>[\[{(])|(?P<close>[\]})])"
    r"|(?P<text>\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|`[^`\\]*+(?:\\.[^`\\]*+)*+`)",
    re.DOTALL,
)
_TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
_HIDDEN_ATTRIBUTES = frozenset(
    "style sx class className css id key ref src srcSet sizes href to url path d viewBox transform points width height "
    "value groupId queryString lang language mdxType components".split()
)
_VISIBLE_ATTRIBUTES = frozenset(
    "title label caption summary question answer explanation description heading header subtitle text alt option hint "
    "term definition content message prompt".split()
)
Span = tuple[int, int]

_NEXT = re.compile(
    r"(?P<escape>(?:\\[\\`<{$])++)|(?P<ticks>`+)|(?P<comment><!--)|(?P<mdx>\{/\*)|(?P<tag><(?=[A-Za-z/>!?]))"
    r"|(?P<math>^[ \t>]*(?:\$\$|\\\[[ \t]*$))|(?P<esm>^(?:import|export)\b)",
    re.MULTILINE,
)
_BLANK = re.compile(r"\n[ \t]*(?:\n|$)")
_TICKS = re.compile(r"`+")
_VISIBLE_CHARACTER = re.compile(r"\S")
_PRE_END = "</pre>"
_HEADING_BELOW = re.compile(r"\n[ \t]*\n {0,3}#{1,6}[ \t]")  # a heading after $$ shows that the $$ is no formula
_EXPORT = re.compile(r"export\s+(?:default|const|let|var|function|class|async|type|interface|enum)\b|export\s*[{*]")
_IMPORT = re.compile(r"import\s*(?:(?:type\s+)?[\w$*{][\w$*{},\s]*\bfrom\s*)?$")
_HEADING_ID = re.compile(r"\{/\*[ \t]*#[^\s*{}]{1,200}[ \t]*\*/\}[ \t]*$", re.MULTILINE)
MAX_MATH = 20_000  # characters between $$ and $$
MAX_IMPORT = 2000


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag in a text."""

    name: str
    end: int
    closing: bool
    alone: bool  # ends in />
    inline: bool  # no space replaces it: H<sub>2</sub>O
    component: bool  # a JSX component


class TagScanner:
    """Finds the ends of tags. Characters that are searched in vain are taken from a budget; when it is used up, no
    further tags are found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.budget = 2 * len(text) + _SPARE_BUDGET
        self._closers: frozenset[str] | None = None

    @property
    def closers(self) -> frozenset[str]:
        """Names with a closing tag in the text; these are tags even if they look like a placeholder."""
        if self._closers is None:
            self._closers = frozenset(_CLOSERS.findall(self.text))
        return self._closers

    def at(self, start: int) -> Tag | None:
        """The tag that begins at `start`, or None if `<` is only a character."""
        match = _TAG_NAME.match(self.text, start)
        if match is None:
            return None
        name = match[1] or ""
        after = self.text[match.end() : match.end() + 1]
        if (name and after not in (" ", "\t", "\n", "/", ">")) or name.endswith(":"):
            return None  # an address, an e-mail, a comparison
        end, marked = self._end(match.end())
        if end < 0:
            return None
        closing, alone = self.text.startswith("</", start), self.text.startswith("/>", end - 2)
        if not self._is_tag(name, start, marked=marked or alone):
            return None
        component = name[:1].isupper() or "." in name or not name
        return Tag(name.lower(), end, closing, alone, name.lower() in _INLINE, component)

    def _is_tag(self, name: str, start: int, *, marked: bool) -> bool:
        if not name or name.lower() in _HTML or marked or name in self.closers:
            return True
        glued = start > 0 and (self.text[start - 1].isalnum() or self.text[start - 1] == "_")
        return name[0].isupper() and not glued and len(name) > 1

    def _end(self, at: int) -> tuple[int, bool]:
        """The end of the tag whose name ends at `at`, or -1; and whether it has attributes with values."""
        marked, begin = False, at
        while self.budget > 0 and (stop := _STOPS.search(self.text, at)):
            at = stop.end()
            char = stop[0][0]
            if char == ">":
                return at, marked
            if char in "<\n":
                break
            marked = True
            if char == "{":
                at = self._balanced(at)
            elif char != "=":
                at = self.text.find(char, at) + 1 or -1
            if at < 0:
                at = len(self.text)
                break
        self.budget -= at - begin + 16
        return -1, False

    def _balanced(self, at: int) -> int:
        """The position after the brace that closes the one before `at`. Strings are skipped first; if that fails, only
        braces count."""
        end = self._close(at, strings=True)
        return end if end >= 0 else self._close(at, strings=False)

    def _close(self, at: int, *, strings: bool) -> int:
        depth, begin = 1, at
        while self.budget > 0 and (match := _BRACES.search(self.text, at)):
            at = match.end()
            sign = match[0]
            if sign == "{":
                depth += 1
            elif sign == "}":
                depth -= 1
                if not depth:
                    return at
            elif strings:
                at = self._after_string(sign, at)
            if at - begin > self.budget:
                break
        self.budget -= at - begin
        return -1

    def _after_string(self, opening: str, at: int) -> int:
        """The position after the string or comment that `opening` begins. If it never ends, `at`, and the search is
        taken from the budget."""
        if opening in _STRING_END:
            match = _STRING_END[opening].match(self.text, at)
            end = match.end() if match else -1
        elif opening == "/*":
            closed = self.text.find("*/", at)
            end = closed + 2 if closed >= 0 else -1
        else:
            return at
        if end < 0:
            limit = self.text.find("\n", at) if opening in "\"'" else -1
            self.budget -= (len(self.text) if limit < 0 else limit) - at
            return at
        return end

    def statement_end(self, start: int, block_end: int) -> int:
        """The end of a JavaScript statement: the end of the block, or later if its brackets are still open; -1 if they
        are never closed."""
        depth, at = 0, start
        while self.budget > 0:
            limit = block_end if depth <= 0 else len(self.text)  # the rest matters only while a bracket is open
            match = _BRACES.search(self.text, at, limit)
            if match is None and depth <= 0:
                return block_end
            if match is None:
                break
            at = match.end()
            sign = match[0]
            if sign in "{([":
                depth += 1
            elif sign in "})]":
                depth -= 1
                if depth <= 0 and at >= block_end:
                    line_end = self.text.find("\n", at)
                    return len(self.text) if line_end < 0 else line_end
            else:
                at = self._after_string(sign, at)
        self.budget -= at - start
        return block_end if depth <= 0 else -1


def visible_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The spans of texts in a component's tag that a reader sees, without their quotes."""
    spans: list[tuple[int, int]] = []
    inside: list[str] = []  # open brackets, innermost last
    attribute = key = ""
    for token in _TOKEN.finditer(text, start, end):
        kind = token.lastgroup
        if kind == "sign":
            key = token["key"]
            if not inside and token["sign"] == "=":
                attribute = key
        elif kind == "open":
            inside.append(token[0])
        elif kind == "close":
            if inside:
                inside.pop()
            key = ""
        elif _is_visible(token[0][1:-1], attribute, key, in_list=bool(inside) and inside[-1] == "["):
            spans.append((token.start() + 1, token.end() - 1))
    return spans


def _is_visible(words: str, attribute: str, key: str, *, in_list: bool) -> bool:
    if (
        attribute in _HIDDEN_ATTRIBUTES
        or key in _HIDDEN_ATTRIBUTES
        or (attribute[:2] == "on" and attribute[2:3].isupper())
    ):
        return False
    if not _TWO_LETTERS.search(words):
        return in_list and bool(words.strip())
    return key in _VISIBLE_ATTRIBUTES or in_list or len(words.split()) > 1


@dataclass(slots=True)
class Cleaned:
    """A text without invisible markup, with the same number of lines."""

    text: str
    removals: list[Span]  # spans of the original text
    maths: list[Span]  # formulas in the original text
    raw: list[Span]  # <pre> and texts of components in the original text: no heading or list begins inside
    components: bool  # the text has JSX or ESM, so it is MDX


def clean(text: str, code: list[Span]) -> Cleaned:
    """Remove invisible markup from a text. `code` are the character spans of code blocks, in order."""
    scan = _Scan(text, code)
    scan.run()
    return Cleaned(
        _without(text, scan.removals), [span[:2] for span in scan.removals], scan.maths, scan.raw, scan.components
    )


def _without(text: str, removals: list[tuple[int, int, str]]) -> str:
    out: list[str] = []
    at = 0
    for start, end, joint in removals:
        out.append(text[at:start])
        lines = text.count("\n", start, end)
        if lines:
            out.append("\n" * lines)
        elif joint and start and not text[start - 1].isspace() and end < len(text) and not text[end].isspace():
            out.append(joint)
        at = end
    out.append(text[at:])
    return "".join(out)


class _Scan:
    """One pass over a text from left to right; `removals` are the spans to remove."""

    def __init__(self, text: str, code: list[Span]) -> None:
        self.text, self.code = text, code
        self.code_starts = [start for start, _ in code]
        self.removals: list[tuple[int, int, str]] = []
        self.maths: list[Span] = []
        self.raw: list[Span] = []
        self.tags = TagScanner(text)
        self.ticks_until = -1  # end of the paragraph that `ticks` describes
        self.ticks: dict[int, list[int]] = {}
        self.ahead: dict[str, int] = {}  # the next position of each closer; past the end if there is none
        self.heading_ahead = 0, 0  # the next heading
        self.word_ahead = -1, 0  # a removed span's end, and where the first word after it begins
        self.components = False

    def run(self) -> None:
        at = 0
        while match := _NEXT.search(self.text, at):
            inside = self._code_around(match.start())
            at = inside if inside is not None else self._step(match)

    def _code_around(self, at: int) -> int | None:
        number = bisect_left(self.code_starts, at + 1) - 1
        return self.code[number][1] if number >= 0 and at < self.code[number][1] else None

    def _step(self, match: re.Match[str]) -> int:
        step = {
            "ticks": self._after_ticks,
            "comment": self._after_comment,
            "mdx": self._after_mdx_comment,
            "math": self._after_math,
            "esm": self._after_esm,
            "tag": self._after_tag,
        }.get(match.lastgroup or "")
        return step(match.start(), match.end()) if step else match.end()

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
        self.removals.append((start, end, joint))
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
        self.removals.append((start, stop, ""))
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
        visible = visible_spans(self.text, start, tag.end) if tag.component and not tag.closing else []
        if visible and self._begins_line(start):
            self.raw.append((start, tag.end))
        at = start
        for first, last in visible:
            self.removals.append((at, first, " "))
            at = last
        self.removals.append((at, tag.end, "" if tag.inline else " "))

    def _begins_line(self, at: int) -> bool:
        """Whether only white space comes before a position on its line."""
        while at and self.text[at - 1] != "\n" and self.text[at - 1].isspace():
            at -= 1
        return at == 0 or self.text[at - 1] == "\n"
