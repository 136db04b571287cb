"""A draft as it comes, cut into sentences. A sentence is complete when something else follows it, its markers included;
only complete ones are judged and shown. A listing is one piece, a line of a list or table another."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lectern.text.markers import MARKER
from lectern.text.sentences import ends_abbreviated

_FENCE = re.compile(r"(`{3,}|~{3,})")
_MARKERS = rf"(?:\s*{MARKER})*"
_ON = r"(?:[^\s\[|]|\[[^\d\s])"  # something else begins: no marker, nor what may yet be one, nor a table's next cell
_END = re.compile(rf"[.!?…]+[\"'”’)*_`]*{_MARKERS}(?=\s+{_ON})|[。！？۔]{_MARKERS}(?={_ON})|{_MARKERS}(?=\n)")
_NUMBERING = re.compile(r"^\s*(?:[-*+]\s+)?\d{1,3}[.)]$")


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence, list line or listing, and the white space before it."""

    lead: str
    text: str


class SentenceStream:
    """Takes text in pieces of any size and gives sentences."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> list[DraftSentence]:
        """What is complete now."""
        self._held += text.replace("\r\n", "\n")
        found: list[DraftSentence] = []
        while (sentence := self._next()) is not None:
            found.append(sentence)
        return found

    def flush(self) -> list[DraftSentence]:
        """What is left at the end, complete or not."""
        found = self.feed("\n\n")
        rest, self._held = self._held, ""
        return [*found, *([_sentence(rest)] if rest.strip() else [])]

    def _next(self) -> DraftSentence | None:
        body = self._held.lstrip()
        begin = len(self._held) - len(body)
        if not body:
            return None
        end = self._fence_end(body) if _FENCE.match(body) else self._sentence_end(body)
        if end is None:
            return None
        sentence = _sentence(self._held[: begin + end])
        self._held = self._held[begin + end :]
        return sentence

    @staticmethod
    def _fence_end(body: str) -> int | None:
        fence = _FENCE.match(body)
        assert fence is not None  # the caller looked
        closing = re.compile(rf"\n[ \t]*{re.escape(fence[1])}[`~]*[ \t]*(?=\n)").search(body, fence.end())
        rest = body[closing.end() :].lstrip() if closing else ""
        if closing is None or not rest or (rest.startswith("[") and "\n" not in rest):
            return None  # it is open, or what follows may be its citation
        below = re.compile(rf"\s*{_MARKERS}(?=\n)").match(body, closing.end())
        return below.end() if below else closing.end()

    @staticmethod
    def _sentence_end(body: str) -> int | None:
        for end in _END.finditer(body):
            head = body[: end.end()]
            inside_code = body[: end.start()].count("`") % 2 and "\n" not in body[: end.start()]
            if inside_code or not head.strip() or _NUMBERING.match(head) or ends_abbreviated(body, end.start() + 1):
                continue
            return end.end()
        return None


def _sentence(text: str) -> DraftSentence:
    bare = text.lstrip()
    return DraftSentence(text[: len(text) - len(bare)], bare.rstrip())
