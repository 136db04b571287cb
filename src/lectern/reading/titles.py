"""Titles for people: of the book, its modules, chapters and lessons. The overview's own title comes first, then the
site's label, then the name without its number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lectern.domain.books import MAIN_MODULE
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.manifest import Declared
from lectern.reading.numbers import without_number
from lectern.reading.places import Placed
from lectern.reading.sites import SiteFacts
from lectern.reading.spots import Spot


@dataclass(frozen=True, slots=True)
class Titles:
    """Pages and chapters by file, modules by slug."""

    book: str
    page: dict[str, str]
    module: dict[str, str]
    chapter: dict[str, str]


def page_titles(
    placed: Placed, fronts: dict[str, FrontMatter], headings: dict[str, str | None], facts: SiteFacts
) -> dict[str, str]:
    """Page titles: front matter, first heading, the site's label, the file's name (an overview: its folder's)."""
    titles: dict[str, str] = {}
    for file, spot in placed.spots.items():
        front = fronts[file]
        name = spot.folder.rpartition("/")[2] if spot.overview and spot.folder else spot.name
        label = front.sidebar_label or facts.labels.get(file)
        titles[file] = front.title or headings[file] or label or without_number(name) or name
    return titles


def titles_for(declared: Declared, facts: SiteFacts, placed: Placed, pages: dict[str, str], book_id: str) -> Titles:
    """All titles, from those of the pages."""
    overviews = {spot.folder: pages[file] for file, spot in placed.spots.items() if spot.overview}

    @cache  # asked for by every file in it
    def of_folder(folder: str) -> str:
        return overviews.get(folder) or facts.labels.get(folder) or without_number(folder.rpartition("/")[2])

    home = next((spot.module_folder for spot in placed.spots.values() if spot.module == MAIN_MODULE), None)
    front_page = overviews.get(home) if home is not None else None
    book = declared.title or facts.title or front_page or without_number(book_id)
    modules = {module.slug: module.title or of_folder(module.folder) for module in declared.modules}
    for spot in placed.spots.values():
        if spot.module == MAIN_MODULE:
            modules.setdefault(MAIN_MODULE, front_page or book)
        else:
            modules.setdefault(spot.module, of_folder(spot.module_folder))
    heads = {
        (place.module, place.chapter): pages[file]
        for file, place in placed.places.items()
        if place.lesson == 0 and place.doubled_by is None
    }

    def of_chapter(file: str, spot: Spot) -> str:
        place = placed.places[file]
        if place.chapter == 0:
            return modules[place.module]
        named = of_folder(spot.chapter_folder) if spot.chapter_folder else heads.get((place.module, place.chapter))
        return named or f"Chapter {place.chapter}"

    chapters = {file: of_chapter(file, spot) for file, spot in placed.spots.items()}
    return Titles(book, pages, modules, chapters)
