"""Citations are minted by us and checked by us: a number we never handed out is removed and counted, and in a
finished reply `[n]` is the n-th source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lectern.domain.evidence import Dossier, Hit
from lectern.domain.replies import Citation

PASSAGE_LENGTH = 500

_CODE = r"(?P<code>`+[^`\n]*`+)"  # `ranges[0]` cites nothing
_MARKER = r"\[(?P<numbers>\d{1,4}(?:\s*,\s*\d{1,4})*)\](?!\()"  # nor does the text of a link
_CODE_OR_MARKER = re.compile(f"{_CODE}|{_MARKER}")


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
        if marker.group("code") is not None:
            return marker.group()
        kept = []
        for number in (int(part) for part in marker.group("numbers").split(",")):
            if dossier.passage(number) is None:
                invented += 1
                continue
            order.setdefault(number, len(order) + 1)
            quotes.setdefault(number, _before(draft, marker.start()))
            kept.append(f"[{order[number]}]")
        return "".join(kept)

    text = _tidy(_CODE_OR_MARKER.sub(renumber, draft))
    citations = []
    for number, position in order.items():
        hit = dossier.passage(number)
        assert hit is not None  # only issued numbers are in `order`
        citations.append(_citation(position, hit, quotes[number]))
    return Cited(text=text, citations=tuple(citations), invented=invented)


def _citation(number: int, hit: Hit, sentence: str) -> Citation:
    """The chunk behind a number, opened at the section that the sentence is from."""
    chunk, section = hit.chunk, hit.chunk.section_at(_where(hit.chunk.text, sentence))
    return Citation(
        number=number,
        hit=hit,
        passage=excerpt(chunk.text, sentence),
        section=section.title if section else chunk.section_title or chunk.lesson_title,
        url=section.url if section else chunk.url,
    )


def _tidy(text: str) -> str:
    """No gap where a marker was taken out."""
    return re.sub(r" +([.,;:!?])", r"\1", re.sub(r"(?<=\S) {2,}(?=\S)", " ", text)).strip()


def _before(draft: str, end: int) -> str:
    """The sentence that a marker closes."""
    ends = [marker.end() for marker in _markers(draft[:end])]
    return draft[ends[-1] if ends else 0 : end].strip()


def has_marker(text: str) -> bool:
    """Whether a text of the book's own would be read as a citation."""
    return bool(_markers(text))


def _markers(text: str) -> list[re.Match[str]]:
    return [found for found in _CODE_OR_MARKER.finditer(text) if found.group("code") is None]


def _where(text: str, sentence: str) -> int:
    """Where a sentence begins, however its lines are broken; the beginning where it is not found."""
    words = sentence.split()
    found = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
    return found.start() if found else 0


def excerpt(text: str, sentence: str) -> str:
    """At most 500 characters of a passage around a sentence, cut at words."""
    if len(text) <= PASSAGE_LENGTH:
        return text
    found = _where(text, sentence)
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
