"""Finds JSX and HTML tags, and the texts in them that a reader sees.

`<Tabs>`, `<img src="a>b"/>` and `<Quiz items={[{q: "2 > 1"}]} />` are tags; `<topic>` in a command, `vector<int>` and
`a <b` are text. All look-ahead is limited by one budget, so a file with many openings that never close takes linear
time.

Text in attributes: a quiz has its questions there, a tab its label, a card its title. Names, classes, links and styles
are no text.
"""

from __future__ import annotations

import re
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
    "style sx class className css id key ref src srcSet sizes href to url d viewBox transform points width height "
    "value groupId queryString lang language mdxType components".split()
)
_HIDDEN_ENDINGS = ("class", "classes", "classname", "classnames", "style", "styles", "href", "src", "url")
_PLACE_ATTRIBUTES = frozenset("number file-name filename fileName".split())  # of a listing or a figure
_NUMBER = re.compile(r"[A-Z]?\d{1,4}(?:[-.:]\d{1,4}){0,3}")
_ADDRESS = re.compile(r"(?:[a-z]{2,10}://|\.{0,2}/)\S*$")
_VISIBLE_ATTRIBUTES = frozenset(
    "title label caption summary question answer explanation description heading header subtitle text alt option hint "
    "term definition content message prompt".split()
)


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
                at = self.balanced(at)
            elif char != "=":
                at = self.text.find(char, at) + 1 or -1
            if at < 0:
                at = len(self.text)
                break
        self.budget -= at - begin + 16
        return -1, False

    def balanced(self, at: int) -> int:
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
        elif (not inside and attribute in _PLACE_ATTRIBUTES) or _is_visible(
            token[0][1:-1], attribute, key, in_list=bool(inside) and inside[-1] == "["
        ):
            spans.append((token.start() + 1, token.end() - 1))
    return spans


def is_number(text: str, start: int, end: int) -> bool:
    """Whether a visible span is the number of a component: `4-5` in `<Listing number="4-5">`."""
    return text.endswith("number=", 0, start - 1) and _NUMBER.fullmatch(text, start, end) is not None


def _is_visible(words: str, attribute: str, key: str, *, in_list: bool) -> bool:
    if (
        attribute in _HIDDEN_ATTRIBUTES
        or key in _HIDDEN_ATTRIBUTES
        or attribute.lower().endswith(_HIDDEN_ENDINGS)
        or key.lower().endswith(_HIDDEN_ENDINGS)
        or (attribute[:2] == "on" and attribute[2:3].isupper())
        or _ADDRESS.match(words)
    ):
        return False
    if not _TWO_LETTERS.search(words):
        return in_list and bool(words.strip())
    return key in _VISIBLE_ATTRIBUTES or in_list or len(words.split()) > 1
