"""JSX and HTML tags. `<Tabs>`, `<img src="a>b"/>` and `<Quiz items={[{q: "2 > 1"}]} />` are tags; `<topic>` in a
command, `vector<int>` and `a <b` are words and stay."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"</?([A-Za-z][\w.:-]*)|</?(?=>)|<[!?](?=[A-Za-z])")
_CLOSERS = re.compile(r"</([A-Za-z][\w.:-]*)\s*>")
_STOPS = re.compile(r"[<>{\"'=]|\n[ \t]*\n")
_BRACES = re.compile(r"[{}()\[\]'\"`]|//|/\*")
_STRING_END = {  # possessive: no memory for ways back, however long the string
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
_SPARE = 200_000  # look-ahead that any file may spend, besides twice its length


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag in a text."""

    name: str
    end: int
    closing: bool
    alone: bool  # ends in />
    inline: bool  # taken out, it leaves no gap between words: H<sub>2</sub>O
    component: bool  # a JSX component


class TagScanner:
    """Finds where tags end. What it looks at in vain is paid from a budget; without one only simple tags are seen."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.budget = 2 * len(text) + _SPARE
        self._closers: frozenset[str] | None = None

    @property
    def closers(self) -> frozenset[str]:
        """Names that are closed somewhere: those are tags even where they look like a placeholder."""
        if self._closers is None:
            self._closers = frozenset(_CLOSERS.findall(self.text))
        return self._closers

    def at(self, start: int) -> Tag | None:
        """The tag that begins at `start`, or None where `<` is just a character."""
        match = _NAME.match(self.text, start)
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
        """Where the tag ends whose name ends at `at`, or -1; and whether it has attributes with values."""
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
        """After the brace that closes the one before `at`; strings count first, and if that fails, braces alone."""
        end = self._close(at, strings=True)
        return end if end >= 0 else self._close(at, strings=False)

    def _close(self, at: int, *, strings: bool) -> int:
        depth, begin = 1, at
        while self.budget > 0 and (match := _BRACES.search(self.text, at)):
            at = match.end()
            what = match[0]
            if what == "{":
                depth += 1
            elif what == "}":
                depth -= 1
                if not depth:
                    return at
            elif strings:
                at = self._after_string(what, at)
            if at - begin > self.budget:
                break
        self.budget -= at - begin
        return -1

    def _after_string(self, opening: str, at: int) -> int:
        """After the string or comment that `opening` begins; right here where it never ends, which is paid for."""
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
        """Where a JavaScript statement ends: at the block's end, or later where its brackets are still open."""
        depth, at = 0, start
        while self.budget > 0:
            limit = block_end if depth <= 0 else len(self.text)  # with no bracket open, what follows is of no concern
            match = _BRACES.search(self.text, at, limit)
            if match is None and depth <= 0:
                return block_end
            if match is None:
                break
            at = match.end()
            what = match[0]
            if what in "{([":
                depth += 1
            elif what in "})]":
                depth -= 1
                if depth <= 0 and at >= block_end:
                    line_end = self.text.find("\n", at)
                    return len(self.text) if line_end < 0 else line_end
            else:
                at = self._after_string(what, at)
        self.budget -= at - start
        return block_end if depth <= 0 else -1
