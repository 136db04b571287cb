"""A model's draft on its way to the reader: filtered as it comes, and otherwise as the model wrote it. A draft that
begins with the sign `NOT_COVERED` says that the passages do not answer; none of it is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lectern.answering.confidential import Confidential, ConfidentialFilter
from lectern.answering.instructions import NOT_COVERED
from lectern.answering.outgoing import DraftFilter, is_allowed_by
from lectern.answering.page_view import Allowed, active_html, foreign_links
from lectern.domain.evidence import Hit
from lectern.domain.replies import Removals
from lectern.text.markers import note_marks

_OPENING_SIGNS = " \t\n*_`\"'[#>"
_CLOSING_SIGNS = " \t\n*_`\"'].!"
_MAX_OPENING = len(NOT_COVERED) + 30  # characters in which it must be plain whether the draft is the sign
_SIGN_FORMS = (NOT_COVERED.lower(), NOT_COVERED.lower().replace("_", "\\_"), NOT_COVERED.lower().replace("_", " "))
_WRAPPINGS = ("```markdown\n", "```md\n")  # a fence around the whole answer; it is no listing
_WRAPPING_END = re.compile(r"\s*`{0,3}\s*\Z")
_LONGER_WORD = re.compile(r"[\\_]*[^\W_]")  # `NOT_COVERED_YET`


@dataclass(slots=True)
class Draft:
    """Filters a draft, and numbers its markers in the order of their first mention."""

    passages: Callable[[], Sequence[Hit]]  # handed out so far; a model may ask for more while it writes
    passage: Callable[[int], Hit | None]
    confidential: Confidential
    question: str
    is_not_covered: bool = False
    numbers: dict[int, int] = field(default_factory=dict)  # the number of a passage → the number that a reader sees
    _opening: str | None = ""  # the beginning of the draft until it is known whether it is the sign
    _is_wrapped: bool = False
    _wrapping_end: str = ""  # the end of a wrapped draft so far, which may be its last fence
    _text: str = ""
    _unblocked: str = ""  # the text before words of the instructions and secrets are removed
    _filter: DraftFilter = field(init=False)
    _words: ConfidentialFilter = field(init=False)
    _public: tuple[int, str] = (-1, "")  # the texts of so many passages, and the question, in small letters
    _allowed: tuple[int, Allowed | None] = (-1, None)  # by so many passages

    def __post_init__(self) -> None:
        self._filter = DraftFilter(
            is_given=lambda number: self.passage(number) is not None,
            reader_number=self._reader_number,
            allowed=self._is_allowed,
            skips_white_space=True,
        )
        self._words = ConfidentialFilter(confidential=self.confidential, is_public=self._is_public)

    @property
    def text(self) -> str:
        """All text that was sent."""
        return self._text

    @property
    def is_full(self) -> bool:
        """Whether the cap is reached."""
        return self._filter.is_full

    @property
    def removals(self) -> Removals:
        """What was removed so far."""
        return replace(self._filter.removals, blocked=self._words.blocked)

    def feed(self, piece: str) -> str:
        """Add a piece of the draft; returns what may be sent now."""
        if self.is_not_covered:
            return ""
        if self._opening is not None:
            if not self._opening:  # however much white space comes first, it is not looked at again
                rest = piece.lstrip()
                self._filter.feed(piece[: len(piece) - len(rest)])
                piece = rest
            piece = self._opening = self._opening + piece
            is_sign = is_not_covered(piece, final=False)
            self.is_not_covered = is_sign is True
            if is_sign is not False or any(form.startswith(piece.lstrip()) for form in _WRAPPINGS):
                return ""
            piece, self._opening = self._unwrapped(piece), None
        return self._sent(self._words.feed(self._kept(self._filter.feed(self._without_wrapping_end(piece)))))

    def finish(self) -> str:
        """End the draft; returns the rest of what may be sent."""
        if self._opening:
            self.is_not_covered = is_not_covered(self._opening, final=True) is True
        if self.is_not_covered:
            return ""
        rest = self._filter.feed(self._opening) if self._opening else ""
        if self._wrapping_end.strip() != "```":
            rest += self._filter.feed(self._wrapping_end)
        self._opening, self._wrapping_end = None, ""
        rest = self._kept(rest + self._filter.finish())
        return self._sent(self._words.feed(rest) + self._words.finish())

    def finished_text(self, cited: Sequence[Hit]) -> tuple[str, Removals]:
        """The text that was sent, held to the rules for a finished reply: no secret and no sequence of words of the
        instructions is left, and links are those of the cited passages. Nearly always it is the text as it was sent."""
        # the stream has the beginning of a sequence: it was sent before it was known to be one
        text, runs = self.confidential.without_runs(self._unblocked)
        words = ConfidentialFilter(confidential=self.confidential, is_public=self._is_public)
        text = words.feed(text) + words.finish() if runs else self._text
        text, secrets = self.confidential.without_secrets(text, self._is_public)
        removals = replace(self.removals, blocked=self.removals.blocked + secrets)
        text = self._with_cited_notes(text)
        allowed = _allowed_by(cited)
        if foreign := foreign_links(text, allowed):
            text = self._without_links(text, allowed)
            removals = replace(removals, links=removals.links + len(foreign))
        for tag in active_html(text):
            text = text.replace(tag, "")
            removals = replace(removals, links=removals.links + 1)
        return text.strip(), removals

    def _unwrapped(self, opening: str) -> str:
        """The beginning of a draft without the fence around all of it."""
        bare = opening.lstrip()
        fence = next((form for form in _WRAPPINGS if bare.startswith(form)), "")
        self._is_wrapped = bool(fence)
        return bare.removeprefix(fence) if fence else opening

    def _without_wrapping_end(self, piece: str) -> str:
        """The next piece without what may be the last fence of a wrapped draft."""
        if not self._is_wrapped:
            return piece
        piece = self._wrapping_end + piece
        end = _WRAPPING_END.search(piece)
        self._wrapping_end = end[0] if end else ""
        return piece[: end.start()] if end else piece

    def _with_cited_notes(self, text: str) -> str:
        """The text with markers for `(Passage 1)`, for `[^1]` without a note, and for `word¹` in a draft without other
        markers. That no note follows is known only at the end."""
        marks = note_marks(text)
        defined = {mark.name for mark in marks if mark.is_definition}
        forms = ("named", "label") if self.numbers else ("named", "label", "raised")
        parts, end = [], 0
        for mark in marks:
            numbers = mark.numbers
            is_given = bool(numbers) and all(self.passage(number) is not None for number in numbers)
            if mark.form in forms and (mark.form == "named" or mark.name not in defined) and is_given:
                reader_numbers = dict.fromkeys(map(self._reader_number, numbers))
                parts += [text[end : mark.start], *(f"[{number}]" for number in reader_numbers)]
                end = mark.end
        return "".join([*parts, text[end:]])

    def _kept(self, text: str) -> str:
        self._unblocked += text
        return text

    def _sent(self, text: str) -> str:
        text = text if self._text else text.lstrip()
        self._text += text
        return text

    def _reader_number(self, number: int) -> int:
        return self.numbers.setdefault(number, len(self.numbers) + 1)

    def _is_allowed(self, address: str) -> bool:
        hits = self.passages()
        count, allowed = self._allowed
        if allowed is None or count != len(hits):
            allowed = _allowed_by(hits)
            self._allowed = (len(hits), allowed)
        return allowed(address)

    def _is_public(self, code: str) -> bool:
        """Whether the reader or a passage has a code, in small letters."""
        hits = self.passages()
        count, public = self._public
        if count != len(hits):
            texts = (self.question, *(" ".join((*hit.chunk.trail, hit.chunk.text)) for hit in hits))
            public = "\n".join(texts).lower()
            self._public = (len(hits), public)
        return code in public

    def _without_links(self, text: str, allowed: Allowed) -> str:
        """The text without links that are not allowed. If Markdown still finds one, such as in what only looks like
        code, its address is taken out everywhere."""
        numbers = set(self.numbers.values())
        strict = DraftFilter(is_given=numbers.__contains__, reader_number=lambda number: number, allowed=allowed)
        text = strict.feed(text) + strict.finish()
        for address in foreign_links(text, allowed):
            text = re.sub(re.escape(address), "", text)
        for address in foreign_links(text, allowed):  # a page may write an address in another way than the text does
            text = text.replace("](", "] (").replace("]:", "] :")
            text = text.replace(f"<{address}>", "")
        return text


def _allowed_by(hits: Sequence[Hit]) -> Allowed:
    """Allows the links of passages, and the addresses that a model was given with them."""
    return is_allowed_by((hit.chunk.text for hit in hits), (hit.chunk.url for hit in hits))


def is_not_covered(opening: str, *, final: bool) -> bool | None:
    """Whether a draft that begins like this is the sign `NOT_COVERED`, in any case; None if more of it must come first.
    With a space in place of the line it may be the beginning of a sentence, so it is the sign only if it is alone."""
    bare = opening.lstrip(_OPENING_SIGNS).lower()
    may_grow = not final and len(opening) < _MAX_OPENING
    form = next((form for form in _SIGN_FORMS if bare.startswith(form)), None)
    if form is None:
        return None if may_grow and any(form.startswith(bare) for form in _SIGN_FORMS) else False
    rest = bare[len(form) :]
    if " " in form:
        return False if rest.strip(_CLOSING_SIGNS) else None if may_grow else final
    if not rest.strip("\\_") and may_grow:
        return None
    return _LONGER_WORD.match(rest) is None
