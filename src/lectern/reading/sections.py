"""Splits a lesson into sections. A section is the text under one heading, with its anchor and its trail: the headings
from the lesson's title down to it.

Anchors follow the rules of each site generator, so that a citation opens at its section.
Docusaurus: github-slugger on the heading's text (its page title, the first-level heading, has no anchor); MkDocs:
Python-Markdown's toc extension; mdBook 0.5: `id_from_content`, `unique_id`; plain: GitHub's, by github-slugger.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from lectern.domain.books import Site
from lectern.reading.blocks import MAX_LOOK, Block, Body
from lectern.reading.headings import explicit_id, heading_text, plain

_MKDOCS_DROPPED = re.compile(r"[^\w\s-]")
_MKDOCS_GAPS = re.compile(r"[-\s]+")
_MKDOCS_COUNT = re.compile(r"(.*)_([0-9]{1,500})")  # more digits are no count; Python refuses numbers over 4,300 digits
_SLUG_CATEGORIES = ("L", "M", "Nd", "Nl", "Pc")  # letters, marks, digits, letter numbers, underscores
MAX_ANCHOR = 500  # characters; a longer anchor is left out of URLs, and the page opens without it


def anchors(site: Site, headings: Iterable[tuple[int, str]]) -> list[str]:
    """The anchor of each heading (level, Markdown) of a page, in order; "" if the site gives it none."""
    listed = [(level, *explicit_id(heading)) for level, heading in headings]
    if site == "mkdocs":
        return _mkdocs(listed)
    if site == "mdbook":
        return _mdbook(listed)
    return _github(listed, titled=site == "docusaurus")


def github_slug(text: str) -> str:
    """The slug by github-slugger 2: lower case, only letters, marks, digits, `_` and `-`, hyphens for spaces."""
    characters = [
        char for char in text.lower() if char in " -" or unicodedata.category(char).startswith(_SLUG_CATEGORIES)
    ]
    return "".join(characters).replace(" ", "-")


def _github(listed: list[tuple[int, str, str | None]], *, titled: bool) -> list[str]:
    counts: dict[str, int] = {}
    out: list[str] = []
    for level, heading, explicit in listed:
        if explicit is not None:
            out.append(explicit)  # never counted as a repeat
            continue
        slug = base = github_slug(plain(heading))
        while slug in counts:
            counts[base] += 1
            slug = f"{base}-{counts[base]}"
        counts[slug] = 0
        out.append("" if titled and level == 1 else slug)
    return out


def _mkdocs(listed: list[tuple[int, str, str | None]]) -> list[str]:
    slugs = {explicit for _, _, explicit in listed if explicit is not None}
    next_free: dict[str, int] = {}
    out: list[str] = []
    for _, heading, explicit in listed:
        if explicit is not None:
            out.append(explicit)
            continue
        ascii_only = unicodedata.normalize("NFKD", plain(heading, images=False)).encode("ascii", "ignore").decode()
        slug = _MKDOCS_GAPS.sub("-", _MKDOCS_DROPPED.sub("", ascii_only).strip().lower())
        while slug in slugs or not slug:
            count = _MKDOCS_COUNT.fullmatch(slug)
            base, number = (count[1], int(count[2]) + 1) if count else (slug, 1)
            # MkDocs counts up one by one; for ten thousand repeats that would be slow.
            number = max(number, next_free.get(base, 0))
            next_free[base] = number
            slug = f"{base}_{number}"
        slugs.add(slug)
        out.append(slug)
    return out


def _mdbook(listed: list[tuple[int, str, str | None]]) -> list[str]:
    slugs: set[str] = set()
    counts: dict[str, int] = {}
    out: list[str] = []
    for _, heading, explicit in listed:
        if explicit is not None:
            out.append(explicit)  # never counted as a repeat
            continue
        text = plain(heading, images=False).strip().lower()
        characters = (char for char in text if char.isalnum() or char in "_-" or char.isspace())
        base = "".join("-" if char.isspace() else char for char in characters)
        slug = base
        while slug in slugs:
            counts[base] = counts.get(base, 0) + 1
            slug = f"{base}-{counts[base]}"
        slugs.add(slug)
        out.append(slug)
    return out


@dataclass(slots=True)
class Section:
    """A heading and the blocks up to the next one. Text before the first heading is a section without a title."""

    title: str | None
    trail: tuple[str, ...]
    anchor: str
    blocks: list[Block] = field(default_factory=list)


def sections_of(body: Body, lesson_title: str, site: Site) -> list[Section]:
    """The sections of a lesson in order, without empty ones."""
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
