"""Surveys the whole folder of a book without cutting lessons into chunks. Each file is read once. Places, titles and
URLs are found for all files together, because they depend on neighbouring files. Each lesson gets a digest that
changes when its chunks could change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path

from lectern.domain.books import LessonPlace, LessonSource, Manifest, ModuleInfo, Problem, Site, Survey
from lectern.domain.errors import BookNotFound
from lectern.reading.chunking import DEFAULT_RULES, LEXICAL_VERSION, ReadingRules
from lectern.reading.files import (
    find_files,
    hidden_characters,
    imported_files,
    importer_of,
    lesson_text,
    partial,
    read_bytes,
)
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.headings import first_heading
from lectern.reading.manifest import MANIFEST, Declared, infer_book_id, read_manifest
from lectern.reading.names import slugged
from lectern.reading.places import Placement, Titles, page_titles, place_all, titles_for
from lectern.reading.problems import Unreadable, internal_error, warning
from lectern.reading.sites import SiteFacts, page_path, page_url, site_facts

_LESSON_FIELDS = attrgetter(*(field.name for field in fields(LessonSource) if field.name not in ("place", "digest")))
_PLACE_FIELDS = attrgetter(*(field.name for field in fields(LessonPlace)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The facts from one file, before its place in the book is known."""

    file: str
    hash: str
    front: FrontMatter
    heading: str | None
    imports: tuple[str, ...]


def survey(folder: Path, *, book_id: str | None = None, rules: ReadingRules = DEFAULT_RULES) -> Survey:
    """Survey a book, without its chunks. Raises BookNotFound if there is no Markdown file, and BadManifest."""
    if not folder.is_dir():
        raise BookNotFound(f"there is no folder {str(folder)!r}; name the folder that holds the book's Markdown files")
    declared = read_manifest(folder)
    book_files = find_files(folder, declared.exclude)
    if not book_files.files and not book_files.unusable:
        raise BookNotFound(f"{str(folder)!r} holds no .md or .mdx file that is not excluded; name the book's folder")
    problems = list(book_files.problems)
    resolved: dict[str, str] = {}
    pages = [page for file in book_files.files if (page := _survey_file(folder, file, rules, problems, resolved))]
    fronts = {page.file: page.front for page in pages}
    facts = site_facts(folder, declared.site, book_files.side_files)
    site = declared.site or facts.kind or _guessed_site(fronts)
    identity = slugged(book_id) if book_id else declared.book_id or infer_book_id(folder)
    placement = place_all(identity, fronts, declared, facts)
    page_title_by_file = page_titles(placement, fronts, {page.file: page.heading for page in pages}, facts)
    titles = titles_for(declared, facts, placement, page_title_by_file, identity)
    manifest = _manifest(identity, site, declared, placement, titles, facts.order)
    urls = _urls(pages, manifest, facts)
    reading = (site, rules.fingerprint, manifest.language, LEXICAL_VERSION)
    lessons = tuple(_lesson(page, manifest, placement, titles, urls[page.file], reading) for page in pages)
    problems += [*facts.problems, *placement.problems, *_unused_modules(declared, placement)]
    return Survey(
        manifest=manifest,
        lessons=lessons,
        problems=tuple(problems),
        files_discovered=len(book_files.files) + book_files.unusable,
    )


def _survey_file(
    folder: Path, file: str, rules: ReadingRules, problems: list[Problem], resolved: dict[str, str]
) -> Page | None:
    """Read one file; if that fails, return None and add an error to the problems."""
    try:
        page, doubts = _page(folder, file, rules, resolved)
    except Unreadable as exc:
        problems.append(exc.problem(file))
        return None
    except Exception as exc:  # noqa: BLE001  # one file never stops the others, whatever is in it
        problems.append(internal_error(file, exc))
        return None
    problems += doubts
    return page


def _page(folder: Path, file: str, rules: ReadingRules, resolved: dict[str, str]) -> tuple[Page, list[Problem]]:
    raw = read_bytes(folder, file, rules.max_file_bytes, resolved)
    lesson = lesson_text(file, raw, rules)
    doubts = list(lesson.problems)
    if hidden := hidden_characters(lesson.text):
        doubts.append(warning(file, hidden[0], hidden[1]))
    page = Page(
        file=file,
        hash=hashlib.sha256(raw).hexdigest(),
        front=lesson.front,
        heading=first_heading(lesson.body),
        imports=imported_files(file, lesson.body),
    )
    return page, doubts


def _guessed_site(fronts: dict[str, FrontMatter]) -> Site:
    """The site without configuration: Docusaurus if front matter has its sidebar keys, else plain files."""
    tell = any(front.sidebar_position is not None or front.sidebar_label for front in fronts.values())
    return "docusaurus" if tell else "plain"


def _manifest(  # all that a manifest is made of
    book_id: str, site: Site, declared: Declared, placement: Placement, titles: Titles, order: Mapping[str, int]
) -> Manifest:
    """The manifest with the author's declarations, and with the other modules of the folders in the site's order."""
    modules = {module.slug: replace(module, title=titles.module[module.slug]) for module in declared.modules}
    for file in sorted(placement.spots, key=lambda file: order.get(file, len(order))):
        spot = placement.spots[file]
        inferred = ModuleInfo(slug=spot.module, folder=spot.module_folder, title=titles.module[spot.module])
        modules.setdefault(spot.module, inferred)
    return Manifest(
        book_id=book_id,
        title=titles.book,
        base_url=declared.base_url,
        site=site,
        exclude=declared.exclude,
        language=declared.language,
        modules=tuple(modules.values()),
        defaults=declared.defaults,
        reader_tier=declared.reader_tier,
        max_chapter=declared.max_chapter,
        max_lesson=declared.max_lesson,
    )


def _urls(pages: list[Page], manifest: Manifest, facts: SiteFacts) -> dict[str, str]:
    urls = {
        page.file: page_url(
            manifest.site,
            manifest.base_url,
            page_path(facts, manifest.site, page.file),
            page.front,
            directory_urls=facts.directory_urls,
        )
        for page in pages
    }
    if manifest.site == "docusaurus":
        imports = {page.file: page.imports for page in pages if page.imports}
        for file in [page.file for page in pages if partial(page.file)]:
            if (shown_on := importer_of(file, imports)) is not None:
                urls[file] = urls[shown_on]
    return urls


def _lesson(
    page: Page, manifest: Manifest, placement: Placement, titles: Titles, url: str, reading: tuple[str, ...]
) -> LessonSource:
    """A lesson with the digest of everything that its chunks depend on; `reading` is the part that is equal for all
    files."""
    place = placement.places[page.file]
    source = LessonSource(
        source_file=page.file,
        source_file_hash=page.hash,
        place=place,
        page_title=titles.page[page.file],
        module_title=titles.module[place.module],
        chapter_title=titles.chapter[page.file],
        lesson_title=titles.page[page.file],
        url=url,
        hardware_tier=page.front.hardware_tier or manifest.defaults.hardware_tier,
        proficiency_level=page.front.proficiency_level or manifest.defaults.proficiency_level,
        layer=page.front.layer or manifest.defaults.layer,
        digest="",
    )
    reaching = (*_LESSON_FIELDS(source), *_PLACE_FIELDS(place), *reading)
    return replace(source, digest=hashlib.sha256(json.dumps(reaching).encode()).hexdigest())


def _unused_modules(declared: Declared, placement: Placement) -> list[Problem]:
    slugs = {place.module for place in placement.places.values()}
    return [
        warning(MANIFEST, None, f"module {module.slug!r}: no lesson lies in folder {module.folder!r}; mend its folder")
        for module in declared.modules
        if module.slug not in slugs
    ]
