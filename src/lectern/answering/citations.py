"""Citations are minted by us and checked by us: a number we never handed out is removed and counted, and in a
finished reply `[n]` is the n-th source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lectern.domain.evidence import Dossier
from lectern.domain.replies import Citation

PASSAGE_LENGTH = 500

_MARKER = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A draft whose markers have been checked and renumbered."""

    text: str
    citations: tuple[Citation, ...]
    invented: int


def cite(draft: str, dossier: Dossier) -> Cited:
    """Keep what was issued, renumber by first mention, count the rest."""
    order: dict[int, int] = {}
    quotes: dict[int, str] = {}
    invented = 0

    def renumber(marker: re.Match[str]) -> str:
        nonlocal invented
        kept = []
        for number in (int(part) for part in marker.group(1).split(",")):
            if dossier.passage(number) is None:
                invented += 1
                continue
            order.setdefault(number, len(order) + 1)
            quotes.setdefault(number, _before(draft, marker.start()))
            kept.append(f"[{order[number]}]")
        return "".join(kept)

    text = _tidy(_MARKER.sub(renumber, draft))
    citations = []
    for number, position in order.items():
        hit = dossier.passage(number)
        assert hit is not None  # only issued numbers are in `order`
        passage = excerpt(hit.chunk.text, quotes[number])
        citations.append(Citation(number=position, hit=hit, passage=passage))
    return Cited(text=text, citations=tuple(citations), invented=invented)


def _tidy(text: str) -> str:
    """No gap where a marker was taken out."""
    return re.sub(r" +([.,;:!?])", r"\1", re.sub(r"(?<=\S) {2,}(?=\S)", " ", text)).strip()


def _before(draft: str, end: int) -> str:
    """The sentence that a marker closes."""
    return _MARKER.split(draft[:end])[-1].strip()


def excerpt(text: str, sentence: str) -> str:
    """At most 500 characters of a passage around a sentence, cut at words."""
    if len(text) <= PASSAGE_LENGTH:
        return text
    found = text.find(sentence) if sentence else -1
    found = max(found, 0)
    room = PASSAGE_LENGTH - 2  # for the two ellipses
    start = max(0, min(found - max(0, (room - len(sentence)) // 2), len(text) - room))
    end = min(len(text), start + room)
    if start > 0:
        cut = re.search(r"\s", text[start:end])
        start += cut.end() if cut else 0
    if end < len(text):
        cut_at = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = cut_at if cut_at > start else end
    return f"{'…' if start > 0 else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"
