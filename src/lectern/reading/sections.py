"""Sections: the text under one heading, with its trail, the headings from the lesson's title down, and its anchor.

Heading anchors, by each site generator's own rules, so that a citation opens at its section.
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
_MKDOCS_COUNT = re.compile(r"(.*)_([0-9]{1,500})")  # more digits are no count, and 4,300 no number to Python
_KEPT = ("L", "M", "Nd", "Nl", "Pc")  # letters, marks, digits, letter numbers, underscores
MAX_ANCHOR = 500  # characters; a longer one would be repeated in the URL of every chunk, and the page opens without it


def anchors(site: Site, headings: Iterable[tuple[int, str]]) -> list[str]:
    """An anchor for each heading (level, text as written) of a page, in order; "" where the site gives none."""
    listed = [(level, *explicit_id(written)) for level, written in headings]
    if site == "mkdocs":
        return _mkdocs(listed)
    if site == "mdbook":
        return _mdbook(listed)
    return _github(listed, titled=site == "docusaurus")


def github_slug(text: str) -> str:
    """github-slugger 2: lower case; all but letters, marks, digits, `_`, `-` and spaces off; spaces to hyphens."""
    kept = [char for char in text.lower() if char in " -" or unicodedata.category(char).startswith(_KEPT)]
    return "".join(kept).replace(" ", "-")


def _github(listed: list[tuple[int, str, str | None]], *, titled: bool) -> list[str]:
    seen: dict[str, int] = {}
    out: list[str] = []
    for level, written, explicit in listed:
        if explicit is not None:
            out.append(explicit)  # never counted as a repeat
            continue
        slug = base = github_slug(plain(written))
        while slug in seen:
            seen[base] += 1
            slug = f"{base}-{seen[base]}"
        seen[slug] = 0
        out.append("" if titled and level == 1 else slug)
    return out


def _mkdocs(listed: list[tuple[int, str, str | None]]) -> list[str]:
    used = {explicit for _, _, explicit in listed if explicit is not None}
    next_free: dict[str, int] = {}
    out: list[str] = []
    for _, written, explicit in listed:
        if explicit is not None:
            out.append(explicit)
            continue
        ascii_only = unicodedata.normalize("NFKD", plain(written, images=False)).encode("ascii", "ignore").decode()
        slug = _MKDOCS_GAPS.sub("-", _MKDOCS_DROPPED.sub("", ascii_only).strip().lower())
        while slug in used or not slug:
            count = _MKDOCS_COUNT.fullmatch(slug)
            base, number = (count[1], int(count[2]) + 1) if count else (slug, 1)
            number = max(
                number, next_free.get(base, 0)
            )  # the rule counts up one by one; ten thousand repeats would crawl
            next_free[base] = number
            slug = f"{base}_{number}"
        used.add(slug)
        out.append(slug)
    return out


def _mdbook(listed: list[tuple[int, str, str | None]]) -> list[str]:
    used: set[str] = set()
    counts: dict[str, int] = {}
    out: list[str] = []
    for _, written, explicit in listed:
        if explicit is not None:
            out.append(explicit)  # never counted as a repeat
            continue
        text = plain(written, images=False).strip().lower()
        kept = (char for char in text if char.isalnum() or char in "_-" or char.isspace())
        base = "".join("-" if char.isspace() else char for char in kept)
        slug = base
        while slug in used:
            counts[base] = counts.get(base, 0) + 1
            slug = f"{base}-{counts[base]}"
        used.add(slug)
        out.append(slug)
    return out


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
