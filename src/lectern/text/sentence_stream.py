"""Cuts a streamed draft into sentences. A sentence with its markers is complete when more text follows it; only
complete sentences are judged and shown. A listing counts as one sentence, and so does a line of a list or table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lectern.text.markers import MARKER
from lectern.text.pieces import CLOSERS, STOPS, UNSPACED_STOPS, ends_abbreviated
from lectern.text.plain import OPENING_FENCE

_MARKERS = rf"(?:\s*{MARKER})*"
_NEXT_SENTENCE = (
    r"(?:[^\s\[|]|\[[^\d\s])"  # text that follows a sentence: no marker, no beginning of one, no table cell
)
_COMPLETE_END = re.compile(
    rf"[{STOPS}]+{CLOSERS}{_MARKERS}(?=\s+{_NEXT_SENTENCE})|[{UNSPACED_STOPS}]{_MARKERS}(?={_NEXT_SENTENCE})"
    rf"|{_MARKERS}(?=\n)"
)
_NUMBERING = re.compile(r"^\s*(?:[-*+]\s+)?\d{1,3}[.)]$")


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence, list line or listing, and the white space before it."""

    lead: str
    text: str


class SentenceStream:
    """Collects text in pieces of any size and returns complete sentences."""

    def __init__(self) -> None:
        self._buffer = ""

    def feed(self, text: str) -> list[DraftSentence]:
        """Add text and return the sentences that are complete now."""
        self._buffer += text.replace("\r\n", "\n")
        sentences: list[DraftSentence] = []
        while (sentence := self._next()) is not None:
            sentences.append(sentence)
        return sentences

    def flush(self) -> list[DraftSentence]:
        """Return the rest of the text as sentences, complete or not."""
        sentences = self.feed("\n\n")
        rest, self._buffer = self._buffer, ""
        return [*sentences, *([_sentence(rest)] if rest.strip() else [])]

    def _next(self) -> DraftSentence | None:
        body = self._buffer.lstrip()
        begin = len(self._buffer) - len(body)
        if not body:
            return None
        end = self._fence_end(body) if OPENING_FENCE.match(body) else self._sentence_end(body)
        if end is None:
            return None
        sentence = _sentence(self._buffer[: begin + end])
        self._buffer = self._buffer[begin + end :]
        return sentence

    @staticmethod
    def _fence_end(body: str) -> int | None:
        fence = OPENING_FENCE.match(body)
        assert fence is not None  # the caller has matched it
        closing = re.compile(rf"\n[ \t]*{re.escape(fence[1])}[`~]*[ \t]*(?=\n)").search(body, fence.end())
        rest = body[closing.end() :].lstrip() if closing else ""
        if closing is None or not rest or (rest.startswith("[") and "\n" not in rest):
            return None  # the listing is open, or a citation of it may follow
        below = re.compile(rf"\s*{_MARKERS}(?=\n)").match(body, closing.end())
        return below.end() if below else closing.end()

    @staticmethod
    def _sentence_end(body: str) -> int | None:
        for end in _COMPLETE_END.finditer(body):
            head = body[: end.end()]
            inside_code = body[: end.start()].count("`") % 2 and "\n" not in body[: end.start()]
            if inside_code or not head.strip() or _NUMBERING.match(head) or ends_abbreviated(body, end.start() + 1):
                continue
            return end.end()
        return None


def _sentence(text: str) -> DraftSentence:
    bare = text.lstrip()
    return DraftSentence(text[: len(text) - len(bare)], bare.rstrip())
