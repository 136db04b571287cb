"""Sections: the text under one heading, with its trail, the headings from the lesson's title down, and its anchor."""

from __future__ import annotations

from dataclasses import dataclass, field

from lectern.domain.books import Site
from lectern.reading.anchors import anchors
from lectern.reading.blocks import MAX_LOOK, Block, Body
from lectern.reading.headings import heading_text

MAX_ANCHOR = 500  # characters; a longer one would be repeated in the URL of every chunk, and the page opens without it


@dataclass(slots=True)
class Section:
    """One heading and the blocks down to the next. The text before any heading is a section without a title."""

    title: str | None
    trail: tuple[str, ...]
    anchor: str
    blocks: list[Block] = field(default_factory=list)


def sections_of(body: Body, lesson_title: str, site: Site) -> list[Section]:
    """A lesson's sections in order."""
    headings = [block for block in body.blocks if block.kind == "heading"]
    marks = iter(anchors(site, [(block.level, block.title[:MAX_LOOK]) for block in headings]))
    sections = [Section(None, (lesson_title,), "")]
    above: list[tuple[int, str]] = []
    for block in body.blocks:
        anchor = next(marks) if block.kind == "heading" else ""
        anchor = anchor if len(anchor) <= MAX_ANCHOR else ""
        title = heading_text(block.title) if block.kind == "heading" and block.level else ""
        if title:
            above = [(level, words) for level, words in above if level < block.level] + [(block.level, title)]
            sections.append(Section(title, _trail(lesson_title, above), anchor))
        sections[-1].blocks.append(block)
    return [section for section in sections if section.blocks]


def _trail(lesson_title: str, above: list[tuple[int, str]]) -> tuple[str, ...]:
    trail = [lesson_title]
    for _, words in above:
        if words != trail[-1]:
            trail.append(words)
    return tuple(trail)
