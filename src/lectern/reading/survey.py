"""Surveys the whole folder of a book without cutting lessons into chunks. Each file is read once. Places, titles and
URLs are found for all files together, because they depend on neighbouring files. Each lesson gets a digest that
changes when its chunks could change."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from pathlib import Path

from lectern.domain.books import (
    MAIN_MODULE,
    Inclusion,
    LessonPlace,
    LessonSource,
    Manifest,
    ModuleInfo,
    Problem,
    Site,
    Survey,
)
from lectern.domain.errors import BookNotFound
from lectern.reading.chunking import DEFAULT_RULES, LEXICAL_VERSION, ReadingRules
from lectern.reading.directives import Syntax
from lectern.reading.files import BookFiles, find_files, hidden_characters, lesson_text, read_bytes
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.headings import title_heading
from lectern.reading.includes import Includer, note_name, repository_of
from lectern.reading.manifest import MANIFEST, Declared, infer_book_id, read_manifest
from lectern.reading.names import slugged
from lectern.reading.places import (
    Placement,
    Spot,
    Titles,
    page_titles,
    place_all,
    sidebar_labels,
    site_order,
    titles_for,
)
from lectern.reading.problems import Unreadable, internal_error, warning
from lectern.reading.published import Contents, drafts, missing_in_sidebars, published_files
from lectern.reading.routes import page_url
from lectern.reading.sites import SiteFacts, page_path, site_facts

MAX_SAMPLES, SAMPLE_CHARACTERS = 48, 3000  # lessons that tell the language of a book, and what is read of each
_PLAIN_SYNTAXES: tuple[Syntax, ...] = ("docusaurus", "wiki")  # where no configuration names a site
_LESSON_FIELDS = attrgetter(
    *(field.name for field in fields(LessonSource) if field.name not in ("place", "digest", "inclusion"))
)
_PLACE_FIELDS = attrgetter(*(field.name for field in fields(LessonPlace)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The facts from one file, before its place in the book is known."""

    file: str
    hash: str
    front: FrontMatter
    heading: str | None
    inclusion: Inclusion | None
    includes: int  # directives that were followed
    includes_failed: int
    generated: int  # parts that are made when the site is built
    wiki: bool  # it may have Obsidian's links
    sample: str  # the beginning of its body


def survey(folder: Path, *, book_id: str | None = None, rules: ReadingRules = DEFAULT_RULES) -> Survey:
    """Survey a book, without its chunks. Raises BookNotFound if there is no Markdown file, and BadManifest."""
    if not folder.is_dir():
        raise BookNotFound(f"there is no folder {str(folder)!r}; name the folder that holds the book's Markdown files")
    declared = read_manifest(folder)
    book_files = find_files(folder, declared.exclude)
    facts = site_facts(folder, declared.site, book_files)
    vault = facts.kind in (None, "plain") and (folder / ".obsidian").is_dir()
    contents = published_files(book_files, facts, declared.site or facts.kind, vault=vault)
    if not contents.files and not book_files.unusable:
        raise _nothing_to_read(folder, contents)
    problems = [*book_files.problems, *contents.problems]
    wiki = (declared.site or facts.kind) in (None, "plain") and not facts.toctree
    pages = _pages(folder, contents.files, _includer(folder, facts, rules, book_files), problems, wiki=wiki)
    every_front = {page.file: page.front for page in pages}
    unpublished = drafts(every_front)
    published = set(unpublished.files)
    pages = [page for page in pages if page.file in published]
    fronts = {page.file: page.front for page in pages}
    site = declared.site or facts.kind or _guessed_site(fronts)
    identity = slugged(book_id) if book_id else declared.book_id or infer_book_id(folder)
    if site == "docusaurus":
        facts = replace(facts, labels=sidebar_labels(fronts, facts) | facts.labels)
        problems += missing_in_sidebars(every_front, facts)
    facts = replace(facts, order=site_order(fronts, facts, site))
    placement = place_all(identity, fronts, declared, facts)
    headings = {page.file: page.heading for page in pages}
    page_title_by_file = page_titles(placement, fronts, headings, facts, identity)
    titles = titles_for(declared, facts, placement, page_title_by_file, identity)
    manifest = _manifest(identity, site, declared, placement, titles, facts)
    urls = _urls(pages, manifest, facts)
    reading = (site, rules.fingerprint, manifest.language, LEXICAL_VERSION)
    lessons = tuple(_lesson(page, manifest, placement, titles, urls[page.file], reading) for page in pages)
    problems += [*unpublished.problems, *_generated(pages, facts), *facts.problems, *placement.problems]
    problems += _unused_modules(declared, placement)
    return Survey(
        manifest=manifest,
        lessons=lessons,
        problems=tuple(problems),
        files_discovered=len(contents.files) - len(unpublished.left_out) + book_files.unusable,
        files_left_out=(*contents.left_out, *unpublished.left_out),
        includes=sum(page.includes for page in pages),
        includes_failed=sum(page.includes_failed for page in pages),
        declared_language=declared.language,
        samples=tuple(page.sample for page in pages[:: max(1, len(pages) // MAX_SAMPLES)]),
    )


def _nothing_to_read(folder: Path, contents: Contents) -> BookNotFound:
    """The error for a folder without Markdown; texts in other formats are named, because they may be the book."""
    others = f" ({contents.problems[-1].message.partition(';')[0]})" if contents.problems else ""
    message = f"{str(folder)!r} holds no .md or .mdx file that is not excluded{others}; name the book's folder"
    return BookNotFound(message)


def includer_of(folder: Path, rules: ReadingRules = DEFAULT_RULES) -> Includer:
    """What expands the pages of a book, without a survey of them. Raises LecternError where its configuration is
    broken."""
    declared = read_manifest(folder)
    book_files = find_files(folder, declared.exclude)
    return _includer(folder, site_facts(folder, declared.site, book_files), rules, book_files)


def _includer(folder: Path, facts: SiteFacts, rules: ReadingRules, book_files: BookFiles) -> Includer:
    """What finds the files that pages include."""
    root = repository_of(folder, folder / facts.site_folder, map(Path, rules.include_limits))
    inclusion = Inclusion(
        syntaxes=facts.syntaxes or (_PLAIN_SYNTAXES if facts.config is None else ()),
        root=Path(os.path.relpath(root, os.path.realpath(folder))).as_posix(),
        bases=facts.include_bases,
        site_folder=facts.site_folder,
    )
    notes = ((note_name(file).rpartition("/")[2], file) for file in book_files.files)
    return Includer(folder, inclusion, rules, notes)


def _pages(folder: Path, files: list[str], includer: Includer, problems: list[Problem], *, wiki: bool) -> list[Page]:
    """Read all files; one that cannot be read becomes an error among the problems."""
    pages: list[Page] = []
    resolved: dict[str, str] = {}
    for file in files:
        try:
            page, doubts = _page(folder, file, includer, resolved, wiki=wiki)
        except Unreadable as exc:
            problems.append(exc.problem(file))
        except Exception as exc:  # noqa: BLE001  # one file never stops the others, whatever is in it
            problems.append(internal_error(file, exc))
        else:
            pages.append(page)
            problems += doubts
    return pages


def _page(
    folder: Path, file: str, includer: Includer, resolved: dict[str, str], *, wiki: bool
) -> tuple[Page, list[Problem]]:
    raw = read_bytes(folder, file, includer.rules.max_file_bytes, resolved)
    lesson = lesson_text(file, raw, includer.rules)
    doubts = list(lesson.problems)
    expanded = includer.expand(file, lesson.body, lesson.body_line)
    hidden = hidden_characters(lesson.text)
    if expanded:
        doubts += expanded.problems
        if not hidden and (inside := hidden_characters(expanded.text)):
            hidden = expanded.lines[inside[0] - 1].at + lesson.body_line + 1, inside[1]
    if hidden:
        doubts.append(warning(file, *hidden))
    page = Page(
        file=file,
        hash=hashlib.sha256(raw).hexdigest(),
        front=lesson.front,
        heading=title_heading(expanded.text if expanded else lesson.body, wiki=wiki),
        inclusion=expanded.inclusion if expanded else None,
        includes=expanded.resolved if expanded else 0,
        includes_failed=expanded.failed if expanded else 0,
        generated=expanded.generated if expanded else 0,
        wiki=wiki,
        sample=lesson.body[:SAMPLE_CHARACTERS],
    )
    return page, doubts


def _guessed_site(fronts: dict[str, FrontMatter]) -> Site:
    """The site without configuration: Docusaurus if front matter has its sidebar keys, else plain files."""
    tell = any(front.sidebar_position is not None or front.sidebar_label for front in fronts.values())
    return "docusaurus" if tell else "plain"


def _manifest(  # all that a manifest is made of
    book_id: str, site: Site, declared: Declared, placement: Placement, titles: Titles, facts: SiteFacts
) -> Manifest:
    """The manifest with the author's declarations, and with the other modules of the folders in the site's order."""
    order = facts.order
    modules = {module.slug: replace(module, title=titles.module[module.slug]) for module in declared.modules}
    for file in sorted(placement.spots, key=lambda file: _reading_rank(placement.spots[file], order)):
        spot = placement.spots[file]
        inferred = ModuleInfo(slug=spot.module, folder=spot.module_folder, title=titles.module[spot.module])
        modules.setdefault(spot.module, inferred)
    return Manifest(
        book_id=book_id,
        title=titles.book,
        base_url=declared.base_url or facts.base_url,
        site=site,
        exclude=declared.exclude,
        language=declared.language or "en",
        description=declared.description or facts.description,
        modules=tuple(modules.values()),
        module_aliases=declared.module_aliases,
        defaults=declared.defaults,
        reader_tier=declared.reader_tier,
        max_chapter=declared.max_chapter,
        max_lesson=declared.max_lesson,
    )


def _reading_rank(spot: Spot, order: Mapping[str, int]) -> tuple[int, bool]:
    """Where a file's module comes: by the site's order; without one, pages above every module come first."""
    return order.get(spot.file, len(order)), not order and spot.module != MAIN_MODULE


def _urls(pages: list[Page], manifest: Manifest, facts: SiteFacts) -> dict[str, str]:
    urls: dict[str, str] = {}
    for page in pages:
        path, route = page_path(facts, manifest.site, page.file)
        base = _route_base(manifest.base_url, facts.main_route, route) if route else manifest.base_url
        urls[page.file] = page_url(manifest.site, base, path, page.front, directory_urls=facts.directory_urls)
    return urls


def _route_base(base_url: str | None, main_route: str, route: str) -> str:
    """The base of pages that are not below the main route, to which `base_url` leads."""
    site = (base_url or "").rstrip("/")
    return f"{site.removesuffix(f'/{main_route}') if main_route else site}/{route}"


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
        wiki=page.wiki and manifest.site == "plain",
    )
    shown = page.inclusion.digest if page.inclusion else ""
    reaching = (*_LESSON_FIELDS(source), *_PLACE_FIELDS(place), *reading, shown)
    digest = hashlib.sha256(json.dumps(reaching).encode()).hexdigest()
    return replace(source, digest=digest, inclusion=page.inclusion)


def _generated(pages: list[Page], facts: SiteFacts) -> list[Problem]:
    """A warning about what is made when the site is built; it names the pages."""
    files = [page.file for page in pages if page.generated]
    if not files:
        return []
    count = sum(page.generated for page in pages)
    what = "made when the site is built (documentation of code, templates) and not read"
    message = f"{count} {'part is' if count == 1 else 'parts are'} {what}; write what readers ask for as text"
    return [warning(facts.config or ".", None, f"{message}: {', '.join(files)}")]


def _unused_modules(declared: Declared, placement: Placement) -> list[Problem]:
    slugs = {place.module for place in placement.places.values()}
    unused = [
        f"module {module.slug!r}: no lesson lies in folder {module.folder!r}; mend its folder"
        for module in declared.modules
        if module.slug not in slugs
    ]
    aliases = [
        f"module_aliases: {alias!r} means {slug!r}, and there is no such module; name one of {', '.join(sorted(slugs))}"
        for alias, slug in declared.module_aliases
        if slug not in slugs
    ]
    return [warning(MANIFEST, None, message) for message in (*unused, *aliases)]
