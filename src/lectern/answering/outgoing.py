"""What leaves of a model's draft. The Markdown of the draft stays as it is. Taken out, and counted, are markers that we
never issued, links and images that the passages do not have, active HTML tags, control characters, and whatever exceeds
the cap. Text in code stays as it is, because nothing in it is a link.

The text is filtered as it comes, in linear time. Only the beginning of something that may have to go is held back: a
marker, a link, a tag, an address, or the first sign of a fence."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile

from markdown_it import MarkdownIt

from lectern.domain.replies import Removals
from lectern.text.markers import cited_numbers, is_interval

MAX_ANSWER_CHARACTERS = 40_000  # of one answer; models write a tenth of it
MAX_LINK_TEXT, MAX_TARGET, MAX_TAG, MAX_CODE_SPAN = 300, 600, 600, 400  # characters that are looked through
MAX_FENCE_LINE = 200
MAX_MEDIA_TYPE = 30  # characters before the slash
MAX_BEGUN_ADDRESS = 40  # characters in which an address shows that it is one

_SCHEMES = (
    "https://", "http://", "ftp://", "wss://", "ws://", "file://", "javascript:", "vbscript:", "data:", "mailto:",
    "www.",
)  # fmt: skip
_ADDRESS = re.compile(
    r"(?i)(?<![a-z0-9])(?:(?:https?|ftp|wss?|file)://|(?:javascript|vbscript|mailto):(?=\S)|data:(?=\w{1,30}/)|www\.(?=\w))"
    rf"(?P<rest>[^\s<>\"`\]]{{0,{MAX_TARGET}}})"
)
_BEGUN_ADDRESS = re.compile(
    r"(?i)(?<![a-z0-9])(?:"
    + "|".join(sorted({re.escape(name[:end]) for name in _SCHEMES for end in range(1, len(name) + 1)}, key=len)[::-1])
    + rf"|data:\w{{1,{MAX_MEDIA_TYPE}}})\Z"
)
_SPECIAL = re.compile(r"(?<![ \t])[ \t]+\[|\\[\\`]?|[`\[!<\n]|" + _ADDRESS.pattern.removeprefix("(?i)"), re.IGNORECASE)
_MARKER = re.compile(r"\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\]")
_BEGUN_MARKER = re.compile(r"\[[\d,;\s]{0,40}\Z")
_BLOCK_SIGNS = r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*[ \t>]*"
_FENCE = re.compile(rf"{_BLOCK_SIGNS}(?P<fence>`{{3,}}(?=[^`\n]*\n)|~{{3,}})[^\n]*\n")
_BEGUN_FENCE = re.compile(rf"{_BLOCK_SIGNS}(?:`{{3,}}[^`\n]*|`{{0,2}}|~{{3,}}[^\n]*|~{{0,2}})\Z")
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:(?!:)[^\s<>]*|[^\s<>@]{1,64}@[^\s<>]{1,255})>")
_TAG_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
# A tag ends at punctuation before white space, unless it is quoted: `x <y, and` is prose.
_ATTRIBUTES = r"(?:[\s/](?:\"[^\"]*+\"|'[^']*+'|[^<>\"'.,;!?]|[.,;!?](?!\s))*+"
_TAG = re.compile(rf"</?[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTES})?>")
_BEGUN_TAG = re.compile(rf"<(?:[^\s<>]*|/?[A-Za-z][A-Za-z0-9-]*{_ATTRIBUTES}(?:\"[^\"]*|'[^']*)?)?)\Z")
_ACTIVE_TAGS = frozenset(
    "base embed form frame frameset iframe link math meta object script style svg template".split()
)
_ACTIVE_ATTRIBUTE = re.compile(
    r"(?i)[\s/\"'](?:on[a-z]+|src|srcset|href|xlink:href|action|formaction|style|background|poster|data|ping)\s*="
)
_TARGET = re.compile(r"\s*(?:<(?P<angle>[^<>\n]*)>|(?P<plain>\S*))")
_TRAILING_SIGNS = ".,;:!?)*_'"
_HALVES = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_ANY_TAG = re.compile(r"</?(?P<name>[A-Za-z][A-Za-z0-9-]*)[^>]*>?")

_parser = MarkdownIt("commonmark", {"html": False}).enable("table")
_html_parser = MarkdownIt("commonmark").enable("table")

Allowed = Callable[[str], bool]  # whether a passage has this address
Step = tuple[str, int] | None  # text to send and the position after it; None: more of the draft must come first
Shown = Callable[[int], int | None]  # the number that a reader sees for a marker; None if we never issued it


@dataclass(slots=True)
class DraftFilter:
    """Filters one draft as it comes."""

    shown: Shown
    allowed: Allowed
    removals: Removals = field(default_factory=Removals)
    _buffer: str = ""
    _sent: int = 0  # characters at the beginning of the buffer that are dealt with
    _fence: str = ""  # the fence that must close the open listing
    _line_begun: bool = False  # something other than white space of the current line has been sent
    _length: int = 0
    _half: str = ""  # the first half of a character, or of a line break, whose second half is still to come

    @property
    def is_full(self) -> bool:
        """Whether the cap is reached: nothing more will be sent."""
        return self._length >= MAX_ANSWER_CHARACTERS

    def feed(self, text: str) -> str:
        """Add text of the draft; returns what may be sent now."""
        self._buffer += self._characters(text)
        return self._capped(self._take(final=False))

    def finish(self) -> str:
        """End the draft; returns the rest of what may be sent."""
        half, self._half = self._half, ""
        self._buffer += "\n" * (half == "\r")
        self._count(characters=half not in ("", "\r"))
        return self._capped(self._take(final=True))

    def _characters(self, text: str) -> str:
        """The text without control characters and lone surrogates, with one sign for every kind of line break."""
        text = self._half + text
        self._half = ""
        if text and (text[-1] == "\r" or "\ud800" <= text[-1] <= "\udbff"):
            text, self._half = text[:-1], text[-1]
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        # an endpoint may send the two halves of a character as two escapes
        text = _HALVES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
        clean, count = _CONTROL.subn("", text)
        self._count(characters=count)
        return clean

    def _capped(self, text: str) -> str:
        space = max(0, MAX_ANSWER_CHARACTERS - self._length)
        if len(text) > space:
            self._count(characters=len(text) - space)
            text = text[:space]
        self._length += len(text)
        return text

    def _take(self, *, final: bool) -> str:
        """What can be decided now; the rest stays in the buffer."""
        out: list[str] = []
        place = self._sent
        while place < len(self._buffer):
            step = self._in_listing(place, final=final) if self._fence else self._in_text(place, final=final)
            if step is None:
                break
            text, place = step
            if text:
                out.append(text)
                last_line = text.rpartition("\n")[2]
                self._line_begun = bool(last_line.strip()) or (self._line_begun and "\n" not in text)
        self._sent = min(place, 1)  # the character before what comes next says whether a word begins there
        self._buffer = self._buffer[place - self._sent :]
        return "".join(out)

    def _in_listing(self, place: int, *, final: bool) -> Step:
        end = self._buffer.find("\n", place)
        line = self._buffer[place:] if end < 0 else self._buffer[place : end + 1]
        bare = line.strip(" \t>\n")
        closes = not self._line_begun and not bare.strip(self._fence[0])
        if end < 0 and closes and not final:
            return None  # it may be the closing fence
        if closes and len(bare) >= len(self._fence):
            self._fence = ""
        return line, place + len(line)

    def _in_text(self, place: int, *, final: bool) -> Step:
        """What comes next outside of listings."""
        if not self._line_begun:
            if fence := _FENCE.match(self._buffer, place, place + MAX_FENCE_LINE):
                self._fence = fence["fence"]
                return fence[0], fence.end()
            if not final and len(self._buffer) - place < MAX_FENCE_LINE and _BEGUN_FENCE.match(self._buffer, place):
                return None
        special = _SPECIAL.search(self._buffer, place)
        if special is None:
            return self._plain_end(place, final=final)
        if special.start() > place:
            return self._buffer[place : special.start()], special.start()
        return self._special(special, final=final)

    def _special(self, special: re.Match[str], *, final: bool) -> Step:
        place = special.start()
        match special[0].lstrip(" \t")[0]:
            case "\n":
                step: Step = ("\n", place + 1)
            case "\\":  # before a backtick it says that no code begins there
                waits = special.end() == len(self._buffer) == place + 1 and not final
                step = None if waits else (special[0], special.end())
            case "`":
                step = self._code_span(place, final=final)
            case "[":
                step = self._after_gap(place, special.end() - 1, final=final)
            case "!":
                step = self._image(place, final=final)
            case "<":
                step = self._angle(place, final=final)
            case _:
                step = self._address(special, final=final)
        return step

    def _plain_end(self, place: int, *, final: bool) -> Step:
        """The rest of the buffer, without white space and beginnings of addresses at its end."""
        end = len(self._buffer)
        if not final:
            begun = _BEGUN_ADDRESS.search(self._buffer, max(place, end - MAX_BEGUN_ADDRESS))
            end = begun.start() if begun else end
            end = place + len(self._buffer[place:end].rstrip(" \t"))
        return (self._buffer[place:end], end) if end > place else None

    def _code_span(self, place: int, *, final: bool) -> Step:
        window = place + MAX_CODE_SPAN
        ticks = "".join(takewhile(lambda sign: sign == "`", self._buffer[place:window]))
        line_end = self._buffer.find("\n", place, window)
        limit = line_end if line_end >= 0 else min(window, len(self._buffer))
        closing = re.compile(rf"(?<!`){ticks}(?!`)").search(self._buffer, place + len(ticks), limit)
        complete = line_end >= 0 or final or len(self._buffer) >= window
        if closing and (closing.end() < len(self._buffer) or complete):
            return self._buffer[place : closing.end()], closing.end()
        return (ticks, place + len(ticks)) if complete else None

    def _image(self, place: int, *, final: bool) -> Step:
        if place + 1 == len(self._buffer):
            return ("!", place + 1) if final else None
        if self._buffer[place + 1] != "[":
            return "!", place + 1
        return self._bracket(place, place + 1, final=final)

    def _after_gap(self, gap: int, place: int, *, final: bool) -> Step:
        """What begins with the bracket at `place`; a marker that is removed takes the white space before it along."""
        step = self._bracket(place, place, final=final)
        if step is None:
            return None
        text, end = step
        return (text if not text and end > place + 1 else self._buffer[gap:place] + text), end

    def _bracket(self, begin: int, place: int, *, final: bool) -> Step:  # noqa: PLR0911  # one for each kind
        """A marker, a link, an image, a definition of a link, or a bracket."""
        literal = self._buffer[begin : place + 1], place + 1
        if begin == place and not final and _BEGUN_MARKER.match(self._buffer, place):
            return None
        end = _closing(self._buffer, place, "[", "]", MAX_LINK_TEXT)
        if end is None:
            return literal if final or len(self._buffer) - place > MAX_LINK_TEXT else None
        if end < 0:
            return literal
        follower = self._buffer[end + 1 : end + 2]
        if not follower and not final:
            return None
        marker = _MARKER.fullmatch(self._buffer, place, end + 1)
        if marker and begin == place and follower != "(":
            return self._marker(marker[0]), end + 1
        if follower == "(":
            return self._link(begin, place, end, final=final) or (literal if final else None)
        if follower == ":" and not self._line_begun and begin == place:
            return self._definition(place, end, final=final)
        return literal

    def _marker(self, marker: str) -> str:
        numbers = cited_numbers(marker)
        if is_interval(numbers):
            return marker
        shown = [self.shown(number) for number in numbers]
        self._count(invented_citations=sum(number is None for number in shown))
        return "".join(f"[{number}]" for number in dict.fromkeys(shown) if number is not None)

    def _link(self, begin: int, place: int, end: int, *, final: bool) -> Step:
        closing = _closing(self._buffer, end + 1, "(", ")", MAX_TARGET)
        if closing is None and not final and len(self._buffer) - end <= MAX_TARGET:
            return None
        if closing is None or closing < 0:
            return self._buffer[begin : place + 1], place + 1
        target = _TARGET.match(self._buffer, end + 2, closing)
        address = (target["angle"] or target["plain"] or "") if target else ""
        if self.allowed(address):
            return self._buffer[begin : closing + 1], closing + 1
        self._count(links=1)
        if begin == place and _MARKER.fullmatch(self._buffer, place, end + 1):  # a citation that a model made a link
            return self._marker(self._buffer[place : end + 1]), closing + 1
        inner = DraftFilter(shown=self.shown, allowed=self.allowed, _line_begun=True)
        text = inner.feed(self._buffer[place + 1 : end]) + inner.finish()
        self._count(links=inner.removals.links, invented_citations=inner.removals.invented_citations)
        return text, closing + 1

    def _definition(self, place: int, end: int, *, final: bool) -> Step:
        window = end + MAX_TARGET
        line_end = self._buffer.find("\n", end, window)
        if line_end < 0 and not final and len(self._buffer) < window:
            return None
        line_end = min(window, len(self._buffer)) if line_end < 0 else line_end
        target = _TARGET.match(self._buffer, end + 2, line_end)
        address = (target["angle"] or target["plain"] or "") if target else ""
        if self.allowed(address) or not address:
            return self._buffer[place : place + 1], place + 1
        self._count(links=1)
        return "", line_end

    def _angle(self, place: int, *, final: bool) -> Step:
        """A link in angle brackets, a tag, or a bracket."""
        window = place + MAX_TAG
        may_grow = not final and len(self._buffer) < window
        if (link := _AUTOLINK.match(self._buffer, place, window)) is not None:
            if self.allowed(link[0][1:-1]):
                return link[0], link.end()
            self._count(links=1)
            return "", link.end()
        name = _TAG_NAME.match(self._buffer, place)
        if name is not None and name[1].lower() in _ACTIVE_TAGS:
            return self._active_tag(place, may_grow=may_grow)
        tag = _TAG.match(self._buffer, place, window)
        if tag is None:
            return None if may_grow and _BEGUN_TAG.match(self._buffer, place) else ("<", place + 1)
        if not _ACTIVE_ATTRIBUTE.search(tag[0]):
            return "<", place + 1
        self._count(links=1)
        return "", tag.end()

    def _active_tag(self, place: int, *, may_grow: bool) -> Step:
        end = self._buffer.find(">", place, place + MAX_TAG)
        if end < 0 and may_grow:
            return None
        self._count(links=1)
        # a tag that never closes is text; without its sign no browser can complete it
        return "", end + 1 if end >= 0 else place + 1

    def _address(self, found: re.Match[str], *, final: bool) -> Step:
        if found.end() == len(self._buffer) and not final and len(found["rest"]) < MAX_TARGET:
            return None
        address = found[0].rstrip(_TRAILING_SIGNS)
        end = found.start() + len(address)
        if self.allowed(address):
            return address, end
        self._count(links=1)
        return "", end

    def _count(self, **more: int) -> None:
        changes = {name: getattr(self.removals, name) + count for name, count in more.items() if count}
        if changes:
            self.removals = replace(self.removals, **changes)


def _closing(text: str, place: int, opening: str, closing: str, limit: int) -> int | None:
    """Where the bracket at `place` closes: -1 if it does not before a blank line or the limit, None if the text ends
    before that is known."""
    depth = 0
    end = min(len(text), place + limit)
    escaped = False
    for at in range(place, end):
        sign = text[at]
        if escaped:
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == opening:
            depth += 1
        elif sign == closing:
            depth -= 1
            if depth == 0:
                return at
        elif sign == "\n" and text[at + 1 : at + 2] == "\n":
            return -1
    return None if end == len(text) else -1


def addresses_in(passage: str) -> set[str]:
    """The addresses that a passage has: targets of its links and images, and addresses in its text."""
    targets = {
        target["angle"] or target["plain"] or ""
        for link in re.finditer(r"\]\(", passage)
        if (end := _closing(passage, link.end() - 1, "(", ")", MAX_TARGET) or 0) > 0
        and (target := _TARGET.match(passage, link.end(), end))
    }
    targets |= {link[0][1:-1] for link in _AUTOLINK.finditer(passage)}
    return targets | {address[0].rstrip(_TRAILING_SIGNS) for address in _ADDRESS.finditer(passage)}


def is_allowed_by(passages: Iterable[str]) -> Allowed:
    """Allows the addresses that these passages have."""
    addresses = {_comparable(address) for passage in passages for address in addresses_in(passage)}
    return lambda address: _comparable(address) in addresses


def _comparable(address: str) -> str:
    """The address as a page would write it: `ü` and `%C3%BC` are the same."""
    return _parser.normalizeLink(address).rstrip("/") or address


def foreign_links(text: str, allowed: Allowed) -> Collection[str]:
    """The addresses in a text that a Markdown page would open or load, and that are not allowed."""
    tokens = [child for token in _parser.parse(text) for child in (token, *(token.children or ()))]
    addresses = {str(token.attrGet("href") or token.attrGet("src") or "") for token in tokens} - {""}
    return {address for address in addresses if not allowed(address)}


def active_html(text: str) -> Collection[str]:
    """The tags in a text that a page with HTML would run or load from elsewhere."""
    tokens = [child for token in _html_parser.parse(text) for child in (token, *(token.children or ()))]
    blocks = [token.content for token in tokens if token.type in ("html_block", "html_inline")]
    return {tag[0] for block in blocks for tag in _ANY_TAG.finditer(block) if _is_active(tag)}


def _is_active(tag: re.Match[str]) -> bool:
    return tag["name"].lower() in _ACTIVE_TAGS or _ACTIVE_ATTRIBUTE.search(tag[0]) is not None
