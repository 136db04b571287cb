"""A model's draft on its way to the reader: filtered as it comes, and otherwise as the model wrote it. A draft that
begins with the sign `NOT_COVERED` says that the passages do not answer; none of it is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lectern.answering.confidential import Confidential, ConfidentialFilter
from lectern.answering.instructions import NOT_COVERED
from lectern.answering.outgoing import Allowed, DraftFilter, active_html, foreign_links, is_allowed_by
from lectern.domain.evidence import Hit
from lectern.domain.replies import Removals
from lectern.text.words import words_of

_OPENING_SIGNS = " \t\n*_`\"'[#>"
_MAX_OPENING = len(NOT_COVERED) + 12  # characters in which the sign must have begun


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
    _text: str = ""
    _unblocked: str = ""  # the text before words of the instructions and secrets are removed
    _filter: DraftFilter = field(init=False)
    _words: ConfidentialFilter = field(init=False)
    _open_words: tuple[int, frozenset[str]] = (-1, frozenset())  # of so many passages, and of the question
    _allowed: tuple[int, Allowed | None] = (-1, None)  # by so many passages

    def __post_init__(self) -> None:
        self._filter = DraftFilter(shown=self._shown, allowed=self._is_allowed)
        self._words = ConfidentialFilter(confidential=self.confidential, is_open=self._is_open)

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
            piece = self._opening = self._opening + piece
            bare = piece.lstrip(_OPENING_SIGNS)
            self.is_not_covered = bare.startswith(NOT_COVERED)
            if self.is_not_covered or (NOT_COVERED.startswith(bare) and len(piece) < _MAX_OPENING):
                return ""
            self._opening = None
        return self._sent(self._words.feed(self._kept(self._filter.feed(piece))))

    def finish(self) -> str:
        """End the draft; returns the rest of what may be sent."""
        if self.is_not_covered:
            return ""
        rest = self._filter.feed(self._opening) if self._opening else ""
        self._opening = None
        rest = self._kept(rest + self._filter.finish())
        return self._sent(self._words.feed(rest) + self._words.finish())

    def finished_text(self, cited: Sequence[Hit]) -> tuple[str, Removals]:
        """The text that was sent, held to the rules for a finished reply: no secret and no sequence of words of the
        instructions is left, and links are those of the cited passages. Nearly always it is the text as it was sent."""
        # the stream has the beginning of a sequence: it was sent before it was known to be one
        text, runs = self.confidential.without_runs(self._unblocked)
        words = ConfidentialFilter(confidential=self.confidential, is_open=self._is_open)
        text = words.feed(text) + words.finish() if runs else self._text
        text, secrets = self.confidential.without_secrets(text)
        removals = replace(self.removals, blocked=self.removals.blocked + secrets)
        allowed = is_allowed_by(hit.chunk.text for hit in cited)
        if foreign := foreign_links(text, allowed):
            text = _without_links(text, allowed)
            removals = replace(removals, links=removals.links + len(foreign))
        for tag in active_html(text):
            text = text.replace(tag, "")
            removals = replace(removals, links=removals.links + 1)
        return text.strip(), removals

    def _kept(self, text: str) -> str:
        self._unblocked += text
        return text

    def _sent(self, text: str) -> str:
        text = text if self._text else text.lstrip()
        self._text += text
        return text

    def _shown(self, number: int) -> int | None:
        if self.passage(number) is None:
            return None
        return self.numbers.setdefault(number, len(self.numbers) + 1)

    def _is_allowed(self, address: str) -> bool:
        hits = self.passages()
        count, allowed = self._allowed
        if allowed is None or count != len(hits):
            allowed = is_allowed_by(hit.chunk.text for hit in hits)
            self._allowed = (len(hits), allowed)
        return allowed(address)

    def _is_open(self, word: str) -> bool:
        """Whether the reader or a passage uses a word."""
        hits = self.passages()
        count, words = self._open_words
        if count != len(hits):
            texts = (self.question, *(" ".join((*hit.chunk.trail, hit.chunk.text)) for hit in hits))
            words = frozenset(word.lower() for text in texts for word in words_of(text))
            self._open_words = (len(hits), words)
        return word in words


def _without_links(text: str, allowed: Allowed) -> str:
    """The text without links that are not allowed. If Markdown still finds one, such as in what only looks like code,
    its address is taken out everywhere."""
    strict = DraftFilter(shown=lambda number: number, allowed=allowed)
    text = strict.feed(text) + strict.finish()
    for address in foreign_links(text, allowed):
        text = re.sub(re.escape(address), "", text)
    for address in foreign_links(text, allowed):  # a page may write an address in another way than the text does
        text = text.replace("](", "] (").replace("]:", "] :")
        text = text.replace(f"<{address}>", "")
    return text
