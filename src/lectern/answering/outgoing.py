"""What leaves of a model's draft. The Markdown of the draft stays as it is. Taken out, and counted, are markers that we
never issued, links and images that the passages do not have, active HTML tags, control characters, and whatever exceeds
the cap. Text in code stays as it is, because nothing in it is a link.

The text is filtered as it comes, in linear time. Only the beginning of something that may have to go is held back: a
marker, a link, a tag, an address, or the first sign of a fence. Whether something is code is asked of Markdown's own
parser, within a limit (`page_view.py`), so that the stream is as strict as the reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Literal

from lectern.answering.page_view import (
    ACTIVE_ATTRIBUTE,
    ACTIVE_TAGS,
    Allowed,
    PageView,
    active_tags,
    normalized,
)
from lectern.domain.replies import Removals
from lectern.text.markers import (
    DRAFT_MARKER,
    MAX_REMARK,
    VALUE_CONTEXT,
    cited_numbers,
    is_double,
    is_plain,
    precedes_values,
)
from lectern.text.page_markdown import NESTED, is_glued

MAX_ANSWER_CHARACTERS = 40_000  # of one answer; models write a tenth of it
MAX_DRAFT_CHARACTERS = 2 * MAX_ANSWER_CHARACTERS  # that are read for it, with what is taken out
MAX_LINK_TEXT, MAX_TARGET, MAX_TAG, MAX_CODE_SPAN = 90, 600, 600, 96  # characters that are looked through
MAX_BARE_TAG = 90  # characters of a tag without a value
MAX_GAP = 20  # blanks before a marker that are removed with it
MAX_FENCE_LINE = 200
MAX_MEDIA_TYPE = 30  # characters before the slash
MAX_LENTICULAR = MAX_REMARK + 40  # characters of a marker in `【】`
MAX_BEGUN_ADDRESS = 40  # characters in which an address shows that it is one

_SCHEMES = (
    "https://", "http://", "ftp://", "wss://", "ws://", "file://", "javascript:", "vbscript:", "data:", "mailto:",
    "www.",
)  # fmt: skip
_ADDRESS = re.compile(
    r"(?i)(?<![a-z0-9])(?:(?:https?|ftp|wss?|file)://|(?:javascript|vbscript|mailto):(?=\S)|data:(?=\w{1,30}/)|www\.(?=\w))"
    rf"(?P<rest>[^\s<>\"`\[\]]{{0,{MAX_TARGET}}})"
)
_BEGUN_ADDRESS = re.compile(
    r"(?i)(?<![a-z0-9])(?:"
    + "|".join(sorted({re.escape(name[:end]) for name in _SCHEMES for end in range(1, len(name) + 1)}, key=len)[::-1])
    + rf"|data:\w{{1,{MAX_MEDIA_TYPE}}})\Z"
)
_SPECIAL = re.compile(
    rf"(?<![ \t])[ \t]{{1,{MAX_GAP}}}[\[【]|\\[\\`(\[\]]?|[`\[【\]!<\n$]|" + _ADDRESS.pattern.removeprefix("(?i)"),
    re.IGNORECASE,
)
_MARKER = re.compile(DRAFT_MARKER)
_NEW_MARKERS = re.compile(r"[ \t]*(?:\[\d+\])+")
_INDEX = re.compile(r"(?:\[\d{1,4}\](?!\()){1,8}")
_BEGUN_INDEX = re.compile(r"(?:\[(?:\d{1,4}\]?)?)?\Z")
_BEGUN_MARKER = re.compile(r"\[[\d,;\s–-]{0,40}\Z")
_BLOCK_SIGNS = r"(?:[ \t>]|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))*+"
_ONLY_SIGNS = re.compile(_BLOCK_SIGNS)
_LISTING_FENCE = re.compile(rf"(?P<signs>{_BLOCK_SIGNS})(?P<fence>`{{3,}}+(?![^\n]*`)|~{{3,}}+)")
_BEGUN_FENCE = re.compile(
    rf"{_BLOCK_SIGNS}(?:(?:[-*+]|\d{{1,9}}[.)]?)|`{{3,}}[^`\n]*|`{{0,2}}|~{{3,}}[^\n]*|~{{0,2}})\Z"
)
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:(?!:)[^\s<>]*|[^\s<>@]{1,64}@[^\s<>]{1,255})>")
_TAG_NAME = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
# A tag ends at punctuation before white space, unless it is quoted: `x <y, and` is prose.
_ATTRIBUTES = r"(?:[\s/](?:\"[^\"]*+\"|'[^']*+'|[^<>\"'.,;!?]|[.,;!?](?!\s))*+"
_TAG = re.compile(rf"</?[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTES})?>")
_BEGUN_TAG = re.compile(rf"<(?:[^\s<>]*|/?[A-Za-z][A-Za-z0-9-]*{_ATTRIBUTES}(?:\"[^\"]*|'[^']*)?)?)\Z")
_TARGET = re.compile(r"[ \t\n]*(?:<(?P<angle>[^<>\n]*)>|(?P<plain>[^ \t\n]*))")
_DEFINITION = re.compile(r"[ \t]*(?:\n[ \t>]*)?(?:<(?P<angle>[^<>\n]*)>(?=\s|\Z)|(?P<plain>\S+))")
_BEGUN_DEFINITION = re.compile(
    r"[ \t]*(?:\n[ \t>]*)?(?:(?:<[^<>\n]*>|[^\s<]\S*)(?:[ \t]+(?:\w+[,.;!?]?)?)?|<[^<>\n]*)?\Z"
)
_WORD_AFTER = re.compile(r"[ \t]+\w+(?=[,.;!?]?(?:\s|\Z))")  # after an address there may be a title, but no sentence
_LEADS_ELSEWHERE = re.compile(r"[/:\\&%]|\.(?=.)")  # what an address has, and a word has not
# The address of a link in brackets, and a title after white space, as Markdown's own parser reads them: other white
# space than this is part of an address, and whatever follows an escape.
_SPACE = r"[ \t\n]"
_ANGLE = r"<(?:\\.|[^<>\n\\])*+"
_BARE_ADDRESS = r"(?!<)(?:\\[^ ]|[^ \t\n\\]|\\(?= |\Z))*"
_TITLES = (r"\"(?:\\[\s\S]|[^\"\\])*+", r"'(?:\\[\s\S]|[^'\\])*+", r"\((?:\\[\s\S]|[^()\\])*+")  # begun ones
_TITLE = "|".join(begun + end for begun, end in zip(_TITLES, ('"', "'", r"\)"), strict=True))
_LINK_END = re.compile(rf"\({_SPACE}*(?:{_ANGLE}>|{_BARE_ADDRESS})(?:{_SPACE}+(?:{_TITLE})?{_SPACE}*)?\)")
_BEGUN_LINK_END = re.compile(
    rf"\({_SPACE}*(?:{_ANGLE}\\?\Z"
    rf"|(?:{_ANGLE}>|{_BARE_ADDRESS})(?:{_SPACE}+(?:(?:{_TITLE}){_SPACE}*|(?:{'|'.join(_TITLES)})\\?)?)?\Z)"
)
_JOINT = re.compile(r"[<`!\\]\S|\][(:]|[\w/:]{2}")  # what must not come together where something was taken out
_TRAILING_SIGNS = ".,;:!?)*_'"
_FORMULAS = {
    "$": re.compile(r"(?<!\d)\$(?![\s$])(?:[^$`\\\n]|\\[^\n])*?(?<!\s)\$(?![\d$])"),
    "$$": re.compile(r"\$\$(?:[^$`\\\n]|\\[^\n])+?\$\$"),
    "\\(": re.compile(r"\\\((?:[^`\\\n]|\\[^\n)])+?\\\)"),
}
_FORMULA_BLOCKS = {"$$": "$$", "\\[": "\\]"}  # on lines of their own
_PARAGRAPH_END = re.compile(r"\n(?=[ \t]*(?:\n|[-*+#>|=`~<\[:_]|\d{1,9}[.)]))")
_INDENTED = re.compile(r"(?P<indent>(?: {4}| {0,3}\t)[ \t]*)\S")
_HALVES = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")
_LINE_BREAK = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

Step = tuple[str, int] | None  # text to send and the position after it; None: more of the draft must come first
IsGiven = Callable[[int], bool]  # whether the model was given a passage with this number
ReaderNumber = Callable[[int], int]  # the number that a reader sees for this passage


@dataclass(slots=True)
class DraftFilter:
    """Filters one draft as it comes."""

    is_given: IsGiven
    reader_number: ReaderNumber
    allowed: Allowed
    skips_white_space: bool = False  # before the first word
    removals: Removals = field(default_factory=Removals)
    _buffer: str = ""
    _sent: int = 0  # characters at the beginning of the buffer that are dealt with
    _fence: str = ""  # the fence that must close the open listing
    _indent: str = ""  # what each line of the open listing begins with: quote signs, and white space in list items
    _has_listings: bool = True  # until one is so odd that nobody can tell where it ends
    _page: PageView = field(default_factory=PageView)
    _line_begun: bool = False  # something other than white space of the current line has been sent
    _line: str = ""  # the last characters of the current line that were sent
    _length: int = 0
    _received: int = 0
    _formula: str = ""  # the sign that ends the open formula
    _in_code_line: bool = False
    _breaks_definition: bool = False  # the bracket that closes next ends a label, which was sent
    _has_gap: bool = False  # something was taken out or changed at the end of what was sent
    _half: str = ""  # the first half of a character, or of a line break, whose second half is still to come

    @property
    def is_full(self) -> bool:
        """Whether the cap is reached: nothing more will be sent."""
        return self._length >= MAX_ANSWER_CHARACTERS or self._received >= MAX_DRAFT_CHARACTERS

    def feed(self, text: str) -> str:
        """Add text of the draft; returns what may be sent now."""
        space = MAX_DRAFT_CHARACTERS - self._received
        self._count(characters=max(0, len(text) - space))
        text = text[:space]
        self._received += len(text)
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
        text = _LINE_BREAK.sub("\n", text)
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
            if self.skips_white_space and self._buffer[place].isspace():
                place += 1
                continue
            step = self._in_listing(place, final=final) if self._fence else self._in_text(place, final=final)
            if step is None:
                break
            text, end = step
            source = self._buffer[place:end]
            is_marker = "](" not in source and _NEW_MARKERS.fullmatch(text) is not None
            is_changed = text != source and not is_marker
            place = end
            if text:
                if (self._has_gap or is_changed) and _JOINT.fullmatch(self._line[-1:] + text[:1]):
                    text = f" {text}"
                out.append(text)
                self._page.add(text)
                self.skips_white_space = False
                last_line = text.rpartition("\n")[2]
                self._line_begun = bool(last_line.strip()) or (self._line_begun and "\n" not in text)
                self._line = (last_line if "\n" in text else self._line + text)[-VALUE_CONTEXT:]
            self._has_gap = is_changed or (self._has_gap and not text)
        self._sent = min(place, 1)  # the character before what comes next says whether a word begins there
        self._buffer = self._buffer[place - self._sent :]
        return "".join(out)

    def _in_listing(self, place: int, *, final: bool) -> Step:
        end = self._buffer.find("\n", place)
        line = self._buffer[place:] if end < 0 else self._buffer[place : end + 1]
        if self._line_begun or self._continues(line):
            return line, place + len(line)
        if end < 0 and not final and len(line) < MAX_FENCE_LINE:
            return None
        match self._page.listing_after(line if end >= 0 else f"{line}\n"):
            case "begun":
                self._note_fence(line)
            case None:
                closes, self._fence = self._closes(line), ""
                if not closes:  # the list item or the quote has ended, and the listing with it
                    return "", place
        return line, place + len(line)

    def _continues(self, line: str) -> bool:
        """Whether a line, or the beginning of one, belongs to the open listing for certain."""
        if line.endswith("\n") and line.strip() == self._indent.strip():
            return True
        rest = line.removeprefix(self._indent)
        return line.startswith(self._indent) and bool(rest.strip().strip(self._fence[0]))

    def _closes(self, line: str) -> bool:
        """Whether a line looks like the end of the open listing."""
        bare = line.strip(" \t>\n")  # of a listing in a quote
        return len(bare) >= len(self._fence) and not bare.strip(self._fence[0])

    def _begin_listing(self, place: int, *, final: bool) -> Step | Literal["text"]:
        """A fence that begins a listing, if there is one at the beginning of a line."""
        line_end = self._buffer.find("\n", place, place + MAX_FENCE_LINE)
        if line_end < 0 and not final and _BEGUN_FENCE.match(self._buffer, place):
            if len(self._buffer) - place < MAX_FENCE_LINE:
                return None
            self._has_listings = False
        fence = _LISTING_FENCE.match(self._buffer, place, line_end) if line_end >= 0 else None
        if fence is None:
            return "text"
        line = self._buffer[place : line_end + 1]
        if self._page.listing_after(line) != "begun":
            return fence[0], fence.end()
        self._note_fence(line)
        return line, line_end + 1

    def _note_fence(self, line: str) -> None:
        if fence := _LISTING_FENCE.match(line):
            self._fence = fence["fence"]
            self._indent = re.sub(r"[^ \t>]", " ", fence["signs"])

    def _in_text(self, place: int, *, final: bool) -> Step:
        """What comes next outside of listings."""
        if not self._line_begun and self._has_listings:
            step = self._begin_listing(place, final=final)
            if step != "text":
                return step
        if self._in_code_line or (not self._line_begun and self._begins_code_line(place)):
            line_end = self._buffer.find("\n", place)
            self._in_code_line = line_end < 0
            end = len(self._buffer) if line_end < 0 else line_end
            return self._buffer[place:end] or "\n", max(end, place + 1)
        special = _SPECIAL.search(self._buffer, place)
        if special is None:
            return self._plain_end(place, final=final)
        if special.start() > place:
            return self._buffer[place : special.start()], special.start()
        return self._special(special, final=final)

    def _begins_code_line(self, place: int) -> bool:
        """Whether a line of indented code begins here."""
        indented = _INDENTED.match(self._buffer, place) if self._has_listings and not self._line else None
        return indented is not None and self._page.is_indented_code(indented["indent"])

    def _special(self, special: re.Match[str], *, final: bool) -> Step:
        place = special.start()
        match special[0].lstrip(" \t")[0]:
            case "\n":
                self._formula = self._formula if self._line.strip() else ""
                step: Step = ("\n", place + 1)
            case "\\" | "$":  # before a backtick it says that no code begins there
                waits = special.end() == len(self._buffer) == place + 1 and not final
                step = None if waits else self._formula_sign(special, final=final)
            case "]":  # the end of no link that was looked through; a page may see one
                step = self._closing_bracket(place, final=final)
            case "`":
                step = self._code_span(place, final=final)
            case "[" | "【":
                step = self._after_gap(place, special.end() - 1, final=final)
            case "!":
                step = self._image(place, final=final)
            case "<":
                step = self._angle(place, final=final)
            case _:
                step = self._address(special, final=final)
        return step

    def _formula_sign(self, special: re.Match[str], *, final: bool) -> Step:
        """An escape, or a sign of a formula, in which nothing is a marker. A formula in a sentence is sent whole, if
        nothing in it is active for a page without formulas."""
        place = special.start()
        sign = "$$" if self._buffer.startswith("$$", place) else special[0]
        literal = sign, place + len(sign)
        if sign == self._formula:
            self._formula = ""
            return literal
        if sign in _FORMULA_BLOCKS and _ONLY_SIGNS.fullmatch(f"{self._line} "):
            self._formula = _FORMULA_BLOCKS[sign]
            return literal
        pattern = _FORMULAS.get(sign)
        if pattern is None or self._formula:
            return literal
        window = place + MAX_CODE_SPAN
        formula = pattern.match(self._buffer, place, window)
        line_end = self._buffer.find("\n", place, window)
        is_complete = final or line_end >= 0 or len(self._buffer) >= window
        if not is_complete and (formula is None or formula.end() == len(self._buffer)):
            return None
        if formula is None or not _is_passive(formula[0]):
            return literal
        return formula[0], formula.end()

    def _closing_bracket(self, place: int, *, final: bool) -> Step:
        """The end of a label that was sent, or of no link that was looked through; a page may see one."""
        follower = self._buffer[place + 1 : place + 2]
        if not follower and not final:
            return None
        if follower != ":" or not self._breaks_definition:
            return "] " if follower == "(" else "]", place + 1
        step = self._definition(place, final=final)
        if isinstance(step, tuple):
            return "]", step[1]
        return step and ("] " if step == "note" else "]", place + 1)

    def _plain_end(self, place: int, *, final: bool) -> Step:
        """The rest of the buffer, without white space and beginnings of addresses at its end."""
        end = len(self._buffer)
        if not final:
            begun = _BEGUN_ADDRESS.search(self._buffer, max(place, end - MAX_BEGUN_ADDRESS))
            end = begun.start() if begun else end
            gap_start = max(place, end - MAX_GAP - 1)
            bare_end = gap_start + len(self._buffer[gap_start:end].rstrip(" \t"))
            end = bare_end if end - bare_end <= MAX_GAP else end
        return (self._buffer[place:end], end) if end > place else None

    def _code_span(self, place: int, *, final: bool) -> Step:
        window = place + MAX_CODE_SPAN
        ticks = "".join(takewhile(lambda sign: sign == "`", self._buffer[place:window]))
        paragraph_end = _PARAGRAPH_END.search(self._buffer, place, window + 1)
        limit = paragraph_end.start() if paragraph_end else min(window, len(self._buffer))
        closing = re.compile(rf"(?<!`){ticks}(?!`)").search(self._buffer, place + len(ticks), limit)
        complete = paragraph_end is not None or final or len(self._buffer) >= window
        if closing and (closing.end() < len(self._buffer) or complete):
            span = self._buffer[place : closing.end()]
            if _is_passive(span) or self._page.is_code(span, self.allowed):
                return span, closing.end()
            return ticks, place + len(ticks)
        return (ticks, place + len(ticks)) if complete else None

    def _image(self, place: int, *, final: bool) -> Step:
        if place + 1 == len(self._buffer):
            return ("!", place + 1) if final else None
        if self._buffer[place + 1] != "[":
            return "!", place + 1
        return self._bracket(place, place + 1, final=final)

    def _after_gap(self, gap: int, place: int, *, final: bool) -> Step:
        """What begins with the bracket at `place`; a marker that is removed takes the white space before it along."""
        is_square = self._buffer[place] == "["
        step = self._bracket(place, place, final=final) if is_square else self._lenticular(place, final=final)
        if step is None:
            return None
        text, end = step
        return (text if not text and end > place + 1 else self._buffer[gap:place] + text), end

    def _bracket(self, begin: int, place: int, *, final: bool) -> Step:  # noqa: PLR0911  # one for each kind
        """A marker, a link, an image, a definition of a link, or a bracket."""
        literal = self._buffer[begin : place + 1], place + 1
        if begin == place and not final and _BEGUN_MARKER.match(self._buffer, place):
            return None
        self._breaks_definition = begin == place and _ONLY_SIGNS.fullmatch(f"{self._line} ") is not None
        end = _closing(self._buffer, place, "[", "]", MAX_LINK_TEXT)
        if end is None:
            return literal if final or len(self._buffer) - place > MAX_LINK_TEXT else None
        if end < 0:
            return literal
        follower = self._buffer[end + 1 : end + 2]
        if not follower and not final:
            return None
        if follower == "(":
            return self._link(begin, place, end, final=final) or (literal if final else None)
        gap = ""
        if follower == ":" and self._breaks_definition:
            step = self._definition(end, final=final)
            if not isinstance(step, str):
                return step
            gap = " " if step == "note" else ""
        return literal if begin != place or self._formula else self._numbers(place, end, gap, final=final)

    def _numbers(self, place: int, end: int, gap: str, *, final: bool) -> Step:
        """A matrix, an index or a marker in these brackets, with what must follow a marker; else the bracket."""
        if nested := NESTED.match(self._buffer, place, end + 1):
            marker = self._marker(place, end + 1) if is_double(nested[0]) else None
            return nested[0] if marker is None else marker, nested.end()
        if self._is_index(place, end):
            return self._index(place, final=final)
        marker = self._marker(place, end + 1)
        return ("[", place + 1) if marker is None else (f"{marker}{gap}", end + 1)

    def _is_index(self, place: int, end: int) -> bool:
        """Whether this bracket is glued to a word and has a number that was never given: `array[0]`."""
        number = self._buffer[place + 1 : end]
        return self._is_behind_word(place) and number.isdecimal() and not self.is_given(int(number))

    def _is_behind_word(self, place: int) -> bool:
        has_gap = self._buffer[max(0, place - 1) : place].isspace()
        return not has_gap and is_glued(self._line, len(self._line))

    def _index(self, place: int, *, final: bool) -> Step:
        """The index of a word, with all of its numbers: `grid[0][1]`."""
        index = _INDEX.match(self._buffer, place)
        if index is None:
            return "[", place + 1
        if not final and _BEGUN_INDEX.match(self._buffer, index.end()):
            return None
        return index[0], index.end()

    def _lenticular(self, place: int, *, final: bool) -> Step:
        """A marker in `【】`, as some models write them, or such a bracket."""
        window = place + MAX_LENTICULAR
        end = self._buffer.find("】", place, window)
        is_open = len(self._buffer) < window and "\n" not in self._buffer[place:]
        if not final and (is_open if end < 0 else end + 1 == len(self._buffer)):
            return None
        marker = self._marker(place, end + 1) if end >= 0 else None
        if marker is None:
            return "【", place + 1
        begins_link = marker and self._buffer[end + 1 : end + 2] in ("(", ":")
        return f"{marker} " if begins_link else marker, end + 1

    def _marker(self, begin: int, end: int) -> str | None:
        """What a reader gets for the marker at this place; None if it is none. Several numbers may also be an interval
        or an array, so they are a marker only if each of them was given."""
        marker = _MARKER.fullmatch(self._buffer, begin, end)
        numbers = cited_numbers(marker[0]) if marker else []
        given = [number for number in numbers if self.is_given(number)]
        if marker is None or not numbers or (is_plain(marker[0]) and 0 in numbers):
            return None
        may_be_values = is_double(marker[0]) or len(numbers) > 1
        if is_plain(marker[0]) and may_be_values and (given != numbers or precedes_values(self._line)):
            return None
        if is_double(marker[0]) and self._is_behind_word(begin):
            return None
        self._count(invented_citations=len(numbers) - len(given))
        return "".join(f"[{number}]" for number in dict.fromkeys(map(self.reader_number, given)))

    def _link(self, begin: int, place: int, end: int, *, final: bool) -> Step:
        window = end + 1 + MAX_TARGET
        closing = _closing(self._buffer, end + 1, "(", ")", MAX_TARGET)
        if self._is_no_link(end + 1, closing):
            return self._buffer[begin : place + 1] + self._label(place, end) + "](", end + 2
        if closing is None and not final and len(self._buffer) < window:
            return None
        if closing is None or closing < 0:
            return self._buffer[begin : place + 1], place + 1
        target = _TARGET.match(self._buffer, end + 2, closing)
        address = (target["angle"] or target["plain"] or "") if target else ""
        is_allowed = self.allowed(address)
        self._count(links=not is_allowed)
        if begin == place and (marker := self._marker(place, end + 1)) is not None:
            return marker, closing + 1  # a citation that a model made a link
        text = self._label(place, end)
        if is_allowed:
            text = self._buffer[begin : place + 1] + text + self._buffer[end : closing + 1]
        return text, closing + 1

    def _is_no_link(self, place: int, closing: int | None) -> bool:
        """Whether the round brackets that begin here are no link for certain, whatever comes: `f[x](which is y)`."""
        if closing is not None and closing >= 0:
            return _LINK_END.fullmatch(self._buffer, place, closing + 1) is None
        window = place + MAX_TARGET
        blank_line = self._buffer.find("\n\n", place, window)
        return _BEGUN_LINK_END.match(self._buffer, place, blank_line if blank_line >= 0 else window) is None

    def _label(self, place: int, end: int) -> str:
        """What may be sent of the text between two brackets."""
        inner = DraftFilter(
            is_given=self.is_given,
            reader_number=self.reader_number,
            allowed=self.allowed,
            _line_begun=True,
            _line=f"{self._line}[",
            _page=PageView(is_blind=True),
        )
        text = inner.feed(self._buffer[place + 1 : end]) + inner.finish()
        self._count(links=inner.removals.links, invented_citations=inner.removals.invented_citations)
        return text

    def _definition(self, end: int, *, final: bool) -> Step | Literal["text", "note"]:
        """The definition of a link after its label, which ends here. Its address may be on the next line. A note is
        what a page would take for a definition, and would not show."""
        window = end + MAX_TARGET
        may_grow = not final and len(self._buffer) < window
        target = _DEFINITION.match(self._buffer, end + 2, window)
        if may_grow and _BEGUN_DEFINITION.match(self._buffer, end + 2):
            return None
        if target is None or _WORD_AFTER.match(self._buffer, target.end(), window):
            return "text"
        address = target["angle"] or target["plain"] or ""
        if self._is_footnote(end) or not _LEADS_ELSEWHERE.search(address):
            return "note"
        line_end = self._buffer.find("\n", target.end(), window)
        if line_end < 0 and may_grow:
            return None
        if self.allowed(address):
            return "text"
        self._count(links=1)
        return "", min(window, len(self._buffer)) if line_end < 0 else line_end

    def _is_footnote(self, end: int) -> bool:
        """Whether the label that ends here is one of a footnote: `[^1]`."""
        opening = self._buffer.rfind("[", 0, end)
        return self._buffer.startswith("[^", opening) if opening >= 0 else self._line.lstrip(" \t>").startswith("[^")

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
        if name is not None and name[1].lower() in ACTIVE_TAGS:
            return self._active_tag(place, may_grow=may_grow)
        return self._tag(place, may_grow=may_grow, is_named=name is not None)

    def _tag(self, place: int, *, may_grow: bool, is_named: bool) -> Step:
        window = place + MAX_TAG
        if (tag := _TAG.match(self._buffer, place, window)) is not None:
            is_active = ACTIVE_ATTRIBUTE.search(tag[0]) is not None
            self._count(links=is_active)
            return ("", tag.end()) if is_active else ("<", place + 1)
        is_begun = _BEGUN_TAG.match(self._buffer, place, window) is not None
        is_bare = "=" not in self._buffer[place : place + MAX_BARE_TAG]
        if is_begun and may_grow and not (is_bare and len(self._buffer) - place >= MAX_BARE_TAG):
            return None
        # a page has no limit for a tag; with a space it is none
        is_long = is_begun and is_named and len(self._buffer) - place >= (MAX_BARE_TAG if is_bare else MAX_TAG)
        return "< " if is_long else "<", place + 1

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


def _is_passive(span: str) -> bool:
    """Whether nothing in a text is a link or a tag, even if it is not code."""
    return "](" not in span and not _ADDRESS.search(span) and not _AUTOLINK.search(span) and not active_tags(span)


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


def is_allowed_by(passages: Iterable[str], sources: Iterable[str] = ()) -> Allowed:
    """Allows the addresses that these passages have, and those of the passages themselves."""
    addresses = {_comparable(address) for passage in passages for address in addresses_in(passage)}
    addresses |= {_comparable(source) for source in sources if source}
    return lambda address: _comparable(address) in addresses


def _comparable(address: str) -> str:
    """The address as a page would write it: `ü` and `%C3%BC` are the same."""
    return normalized(address).rstrip("/") or address
