"""What a lesson says first: its opening paragraph, the first sentence of each of its sections, and the passage that
speaks of something. All of it is word for word from the book; only the targets of links are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from lectern.domain.evidence import Hit
from lectern.text.blocks import Block
from lectern.text.markers import has_marker
from lectern.text.pieces import Piece, read
from lectern.text.plain import without_targets

MIN_OPENING_WORDS = 6  # of a sentence that opens a lesson
FIRST_PARAGRAPHS = 4  # that may say what a book is about
MAX_SENTENCE, MAX_PARAGRAPH = 280, 700  # characters that are quoted
_SECTION = re.compile(r"^#{2} ")
_REFERENCE = re.compile(r"\[\^?[\w-]+\]:.*")  # the definition of a link or a footnote


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Words of a passage."""

    text: str
    hit: Hit
    heading: str = ""  # the section that they are from
    is_item: bool = False  # of a list


def opening_sentence(hits: Sequence[Hit]) -> Excerpt | None:
    """The first sentence of a lesson that states something, with a short one before it."""
    for hit, pieces in _paragraphs(hits):
        return _excerpt(_first_statement(pieces), hit, MAX_SENTENCE)
    return None


def opening_paragraph(hits: Sequence[Hit], prefers: re.Pattern[str] | None = None) -> Excerpt | None:
    """The first paragraph of a lesson that states something; of the first few, the one that has preferred words."""
    paragraphs = list(islice(_paragraphs(hits), FIRST_PARAGRAPHS))
    preferred = [
        (hit, pieces) for hit, pieces in paragraphs if prefers and any(prefers.search(piece.text) for piece in pieces)
    ]
    for hit, pieces in preferred or paragraphs:
        return _excerpt(pieces, hit, MAX_PARAGRAPH)
    return None


def section_openings(hits: Sequence[Hit]) -> Iterator[Excerpt]:
    """The first sentence of each section of a lesson, in order, with the section's heading."""
    known: set[str] = set()
    for section, group in groupby(_in_sections(hits), key=lambda paragraph: paragraph[0]):
        name = section.replace("`", "")  # the trail of a chunk has headings without markup
        if name and name not in known:
            known.add(name)
            _, hit, pieces = next(group)
            yield _excerpt(_first_statement(pieces), hit, MAX_SENTENCE, section)


def passages_about(hits: Iterable[Hit], heading: re.Pattern[str], words: re.Pattern[str]) -> list[Excerpt]:
    """The paragraphs and items below a heading that speaks of something; if there are none, the first paragraph with
    words that do. A line that introduces a list counts: "Written by … with contributions from:"."""
    inside: list[Excerpt] = []
    below: list[Excerpt] = []
    for hit, pieces in _paragraphs(hits, kinds=("paragraph", "item"), all_prose=True):
        is_item = pieces[0].block.kind == "item"
        if heading.search(pieces[0].heading or hit.chunk.section_title or ""):
            below.append(_excerpt(pieces, hit, MAX_PARAGRAPH, is_item=is_item))
        elif not is_item and any(words.search(piece.text) for piece in pieces):
            inside.append(_excerpt(pieces, hit, MAX_PARAGRAPH))
    return below or inside[:1]


def _paragraphs(
    hits: Iterable[Hit], *, kinds: Sequence[str] = ("paragraph",), all_prose: bool = False
) -> Iterator[tuple[Hit, list[Piece]]]:
    """The paragraphs of passages by their sentences; those that state something, or all of them."""
    for hit in hits:
        for _, group in groupby(read(hit.chunk.text), key=lambda piece: piece.block.start):
            pieces = [piece for piece in group if piece.kind in ("sentence", "item") and not piece.task]
            if not pieces or pieces[0].block.kind not in kinds or _is_remark(pieces[0].block, hit.chunk.text):
                continue
            if any(has_marker(piece.text) or _REFERENCE.match(piece.text) for piece in pieces):
                continue  # it would look like a citation of ours
            if all_prose or any(_opens(piece) for piece in pieces):
                yield hit, pieces


def _in_sections(hits: Iterable[Hit]) -> Iterator[tuple[str, Hit, list[Piece]]]:
    """The paragraphs of a lesson, each with the section of the second level that it is in."""
    for hit in hits:
        trail = hit.chunk.trail
        section = trail[1] if len(trail) > 1 else ""
        headings = [
            (piece.start, piece.text)
            for piece in read(hit.chunk.text)
            if piece.kind == "heading" and _SECTION.match(hit.chunk.text[piece.block.start :])
        ]
        for _, pieces in _paragraphs([hit]):
            above = [text for start, text in headings if start < pieces[0].start]
            yield above[-1] if above else section if not hit.chunk.sections else "", hit, pieces


def _first_statement(pieces: Sequence[Piece]) -> list[Piece]:
    """The sentences of a paragraph up to the first one that says enough to open a lesson."""
    last = next((place for place, piece in enumerate(pieces) if _opens(piece)), 0)
    return list(pieces[: last + 1])


def _opens(piece: Piece) -> bool:
    return piece.states and len(piece.text.split()) >= MIN_OPENING_WORDS


def _is_remark(block: Block, passage: str) -> bool:
    """Whether a paragraph is quoted or boxed: what somebody said, or a note to the side."""
    return passage[block.start :].lstrip().startswith(">") or passage[: block.start].rstrip().endswith(":::")


def _excerpt(pieces: Sequence[Piece], hit: Hit, limit: int, heading: str = "", *, is_item: bool = False) -> Excerpt:
    """As many sentences as the limit allows; a single one that is too long is cut at a word."""
    text = ""
    for piece in pieces:
        longer = f"{text} {without_targets(piece.text)}".strip()
        if text and len(longer) > limit:
            break
        text = longer
    if len(text) > limit:
        text = f"{text[:limit].rpartition(' ')[0]} …"
    return Excerpt(text=text, hit=hit, heading=heading, is_item=is_item)
