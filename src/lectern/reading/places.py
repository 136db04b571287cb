"""Finds the place of each lesson: module, chapter, lesson. All files are placed together, because a number that a name
does not give comes from the order of its neighbours. No file is dropped for its place: if two files have the same one,
both stay, and the path of the later one is added to its place.

The folders of a file are the levels of the book. Wrapper folders around the book are skipped; the first level below
them are the modules, the second the chapters, and deeper folders belong to their chapter.

A site whose table of contents is the book's structure (SUMMARY.md, `_toctree.yml`) gives the places itself: its parts
are the modules, its entries the chapters, and the entries below them the lessons.

The titles of modules and chapters are the site's labels, else the titles of their overview pages, else their names
without numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count

from lectern.domain.books import MAIN_MODULE, LessonPlace, Problem, Site, natural
from lectern.reading.docusaurus import Sidebar, category_labels, page_order
from lectern.reading.frontmatter import FrontMatter, whole_number
from lectern.reading.manifest import Declared
from lectern.reading.names import (
    dotted_number,
    folder_number,
    leading_number,
    lesson_number,
    one_line,
    slugged,
    without_number,
    worded_numbers,
)
from lectern.reading.navigation import NavigationPlace
from lectern.reading.problems import warning
from lectern.reading.sites import SiteFacts

WRAPPERS = frozenset({"docs", "src", "content"})
_OVERVIEWS = frozenset({"readme", "index", "_index"})
_NO_POSITION = 1e9  # sorts after all positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The location of a file in the book. Folders are POSIX paths from the book's folder."""

    file: str
    module: str  # slug
    module_folder: str  # for the module `main`, the innermost wrapper folder
    chapter_folder: str | None  # None: the file is directly in its module's folder
    below: str  # folders between the chapter's folder and the file, "" for none
    name: str  # file name without extension

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return self.file.rpartition("/")[0]

    @property
    def overview(self) -> bool:
        """Whether the file is the overview of its folder: README, index, or (in Docusaurus) with the folder's name."""
        name, folder_name = self.name.lower(), self.folder.rpartition("/")[2].lower()
        return name in _OVERVIEWS or (bool(folder_name) and name == folder_name)

    @property
    def overview_of_book(self) -> bool:
        """Whether the file is the overview of the whole book."""
        return self.overview and self.module == MAIN_MODULE and self.folder == self.module_folder


def site_order(fronts: Mapping[str, FrontMatter], facts: SiteFacts, site: Site) -> dict[str, int]:
    """The rank of each file in the site's navigation; a folder in it stands for its files. Without a navigation,
    Docusaurus orders pages by positions, numbers and names; for others it is empty, and paths decide."""
    if site == "docusaurus":
        order: list[str] = []
        for under, inside in plugin_pages(fronts, facts):
            prefix = f"{under}/" if under else ""
            positions = {folder.removeprefix(prefix): at for folder, at in facts.positions.items()}
            pages = page_order(list(inside), inside, positions, facts.sidebars.get(under, Sidebar()).items)
            order += [f"{prefix}{page}" for page in pages]
        return {file: rank for rank, file in enumerate(dict.fromkeys(order))}
    ranks = {file: facts.order[path] for file in fronts if (path := _ranked_path(file, facts.order)) is not None}
    listed = sorted(ranks, key=lambda file: (ranks[file], natural(file)))
    return {file: rank for rank, file in enumerate(listed)}


def plugin_pages(fronts: Mapping[str, FrontMatter], facts: SiteFacts) -> Iterator[tuple[str, dict[str, FrontMatter]]]:
    """Docusaurus' folders of pages, and the files of each by their paths in it."""
    for under in (facts.pages_under or "", *facts.more_pages):
        prefix = f"{under}/" if under else ""
        yield under, {file.removeprefix(prefix): front for file, front in fronts.items() if file.startswith(prefix)}


def sidebar_labels(fronts: Mapping[str, FrontMatter], facts: SiteFacts) -> dict[str, str]:
    """The labels that the categories of Docusaurus' sidebars give folders."""
    return {
        f"{under}/{folder}" if under else folder: words
        for under, inside in plugin_pages(fronts, facts)
        for folder, label in category_labels(facts.sidebars.get(under, Sidebar()), inside).items()
        if (words := one_line(label))
    }


def _ranked_path(file: str, ranks: Mapping[str, int]) -> str | None:
    """The file itself, or the innermost of its folders that the navigation names; None for none."""
    path = file
    while path and path not in ranks:
        path = path.rpartition("/")[0]
    return path or None


def spots_of(files: list[str], declared: Declared, pages_under: str = "") -> Iterator[Spot]:
    """The location of every file. `pages_under` is the site's folder of pages, which wraps the book."""
    modules = {module.folder: module.slug for module in declared.modules}
    wrapped = _wrapping(files, modules)
    for file in files:
        steps = file.split("/")
        depth = min(wrapped.get(steps[0], 0), len(steps) - 1)
        if pages_under and file.startswith(f"{pages_under}/"):
            depth = max(depth, pages_under.count("/") + 1)
        module, module_depth = _declared_module(steps, depth, modules)
        if module is None:
            inside = steps[depth:-1]
            module, module_depth = (slugged(inside[0]), depth + 1) if inside else (MAIN_MODULE, depth)
        chapter = steps[module_depth:-1][:1]
        yield Spot(
            file=file,
            module=module,
            module_folder="/".join(steps[:module_depth]),
            chapter_folder="/".join([*steps[:module_depth], *chapter]) if chapter else None,
            below="/".join(steps[module_depth + 1 : -1]),
            name=steps[-1].rpartition(".")[0],
        )


def _declared_module(steps: list[str], depth: int, modules: dict[str, str]) -> tuple[str | None, int]:
    """The slug and depth of a module that the manifest names by its folder. The folder counts from the book's folder or
    from the innermost wrapper folder."""
    for start in dict.fromkeys((0, depth)):
        for end in range(len(steps) - 1, start, -1):
            if (slug := modules.get("/".join(steps[start:end]))) is not None:
                return slug, end
    return None, 0


def _wrapping(files: list[str], modules: dict[str, str]) -> dict[str, int]:
    """The number of wrapper folders to skip, by top folder. Wrappers are docs, src, content, and one folder that
    contains the whole book, unless it is a module by the manifest or by its number."""
    skipped: dict[str, int] = {}
    for top in {file.split("/")[0] for file in files if "/" in file}:
        if top in modules:
            continue
        inside = [file.split("/", 1)[1] for file in files if file.startswith(f"{top}/")]
        lone = len(inside) == len(files)
        if top.lower() in WRAPPERS:
            skipped[top] = 1 + (_lone_top(inside, modules) if lone else 0)
        elif lone and folder_number(top) is None:
            skipped[top] = 1 + (1 if _only_top(inside).lower() in WRAPPERS else 0)
    return skipped


def _only_top(files: list[str]) -> str:
    """The top folder that all these files are in, or ""."""
    tops = {file.split("/")[0] if "/" in file else "" for file in files}
    return tops.pop() if len(tops) == 1 else ""


def _lone_top(files: list[str], modules: dict[str, str]) -> int:
    top = _only_top(files)
    return 1 if top and top not in modules and folder_number(top) is None else 0


@dataclass(frozen=True, slots=True)
class Placement:
    """The places of all files, by file, and the problems."""

    spots: dict[str, Spot]
    places: dict[str, LessonPlace]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class _Page:
    """A file with its location, front matter and module."""

    spot: Spot
    front: FrontMatter
    module: str


def place_all(book_id: str, fronts: dict[str, FrontMatter], declared: Declared, facts: SiteFacts) -> Placement:
    """Find the places of all files; `fronts` has the front matter of each, in path order."""
    spots = {
        spot.file: _listed_spot(spot, facts.places.get(spot.file), declared)
        for spot in spots_of(list(fronts), declared, facts.pages_under or "")
    }
    modules = {spot.module for spot in spots.values()} | {module.slug for module in declared.modules}
    pages = [_Page(spot, fronts[file], _module_of(spot, fronts[file], modules)) for file, spot in spots.items()]
    folders = _chapter_folders(pages, facts)
    chapters = {page.spot.file: _chapter_of(page, folders, facts) for page in pages}
    lessons = _lesson_numbers(pages, chapters, facts)
    problems: list[Problem] = []
    places: dict[str, LessonPlace] = {}
    first: dict[tuple[str, int, int], str] = {}
    for page in pages:
        file = page.spot.file
        key = (page.module, chapters[file], lessons[file])
        owner = first.setdefault(key, file)
        double = None if owner == file else file
        places[file] = LessonPlace(book_id=book_id, module=key[0], chapter=key[1], lesson=key[2], doubled_by=double)
        problems += _doubts(page, key, declared)
        if double:
            problems.append(_doubled(file, owner, key))
    return Placement(spots, places, problems)


def _listed_spot(spot: Spot, place: NavigationPlace | None, declared: Declared) -> Spot:
    """A spot whose module is the part of the table of contents, unless the manifest names the modules."""
    if place is None or declared.modules:
        return spot
    return replace(spot, module=slugged(place.part) if place.part else MAIN_MODULE)


def _module_of(spot: Spot, front: FrontMatter, modules: set[str]) -> str:
    """The module of the folder, unless the front matter names another module of the book."""
    slug = slugged(front.module) if front.module else ""
    return slug if slug in modules else spot.module


def _chapter_folders(pages: list[_Page], facts: SiteFacts) -> dict[str, int]:
    """The number of each chapter folder: from its name, else the site's position, else the next after the others."""
    inside: dict[str, set[str]] = defaultdict(set)
    reserved: dict[str, set[int]] = defaultdict(set)
    positions = dict(facts.positions)
    for page in pages:
        spot = page.spot
        if spot.chapter_folder is None:
            reserved[spot.module_folder] |= {_chapter_in_name(spot)} - {0}
            continue
        inside[spot.module_folder].add(spot.chapter_folder)
        if spot.folder == spot.chapter_folder and spot.overview and page.front.sidebar_position is not None:
            positions.setdefault(spot.chapter_folder, page.front.sidebar_position)
    ranks = _folder_ranks(facts)
    numbers: dict[str, int] = {}
    for module, names in inside.items():
        folders = sorted(names, key=natural)
        explicit = _folder_numbers(module, folders)
        numbers |= _numbered(explicit, positions, ranks, reserved[module])
    return numbers


def _folder_numbers(module: str, folders: list[str]) -> dict[str, int | None]:
    """The numbers in the names of a module's chapter folders. `1.1-x` and `1.2-y` are chapters of their own: 1 and 2 in
    module 1; elsewhere they are counted in order if they would have the same number."""
    explicit = {folder: folder_number(folder.rpartition("/")[2]) for folder in folders}
    dotted = {folder: parts for folder in folders if (parts := dotted_number(folder.rpartition("/")[2]))}
    module_number = folder_number(module.rpartition("/")[2])
    if dotted and all(first == module_number for first, _ in dotted.values()):
        return explicit | {folder: second for folder, (_, second) in dotted.items()}
    repeated = len({first for first, _ in dotted.values()}) < len(dotted)
    return explicit | dict.fromkeys(dotted if repeated else ())


def _folder_ranks(facts: SiteFacts) -> dict[str, int]:
    """The rank of each folder, which is that of its first file."""
    ranks: dict[str, int] = {}
    for file, rank in facts.order.items():
        folder = file.rpartition("/")[0]
        while folder:
            ranks[folder] = min(rank, ranks.get(folder, rank))
            folder = folder.rpartition("/")[0]
    return ranks


def _numbered(
    explicit: dict[str, int | None], positions: dict[str, float], ranks: dict[str, int], reserved: set[int]
) -> dict[str, int]:
    """Number the items: explicit numbers first, then positions that are free, then the next numbers in the site's
    order. If a position is no number that an item can have (0, 1.5), the items with positions are counted in the site's
    order instead, from 1."""
    numbers = {item: number for item, number in explicit.items() if number is not None}
    in_use = reserved | set(numbers.values())
    waiting = [item for item in explicit if item not in numbers]
    waiting.sort(key=lambda item: (ranks.get(item, len(ranks)), positions.get(item, _NO_POSITION)))  # stable: by path
    placed = [item for item in waiting if item in positions]
    countable = all(positions[item] >= 1 and positions[item].is_integer() for item in placed)
    free = (number for number in count(1) if number not in in_use)
    for item in placed:
        number = int(positions[item]) if countable else next(free)
        if number not in in_use:
            numbers[item] = number
            in_use.add(number)
    last = max(in_use, default=0)
    rest = [item for item in waiting if item not in numbers]
    return numbers | {item: last + offset for offset, item in enumerate(rest, 1)}


def _chapter_of(page: _Page, folders: dict[str, int], facts: SiteFacts) -> int:
    if page.front.chapter is not None:
        return page.front.chapter
    if place := facts.places.get(page.spot.file):
        return place.chapter
    if page.spot.chapter_folder is not None:
        return folders[page.spot.chapter_folder]
    return _chapter_in_name(page.spot)


def _chapter_in_name(spot: Spot) -> int:
    """The chapter in the name of a file directly in a module: 26 for `chapter-26-x.md`; for `2.3-x.md` 2, or 3 in
    module 2; 0 if it names none."""
    if dotted := dotted_number(spot.name):
        return dotted[1] if _opens_chapter(spot) else dotted[0]
    return worded_numbers(spot.name).get("chapter", 0) if leading_number(spot.name) is None else 0


def _opens_chapter(spot: Spot) -> bool:
    """Whether a file such as `2.3-x.md` is a whole chapter, because its module has the first number."""
    dotted = dotted_number(spot.name)
    return dotted is not None and dotted[0] == folder_number(spot.module_folder.rpartition("/")[2])


def _lesson_numbers(pages: list[_Page], chapters: dict[str, int], facts: SiteFacts) -> dict[str, int]:
    groups: dict[tuple[str, int], list[_Page]] = defaultdict(list)
    for page in pages:
        groups[page.module, chapters[page.spot.file]].append(page)
    numbers: dict[str, int] = {}
    for (_, chapter), group in groups.items():
        explicit = {page.spot.file: _explicit_lesson(page, chapter, facts) for page in group}
        positions = {page.spot.file: at for page in group if (at := page.front.sidebar_position) is not None}
        numbers |= _numbered(explicit, positions, facts.order, set())
    return numbers


def _explicit_lesson(page: _Page, chapter: int, facts: SiteFacts) -> int | None:
    """The lesson number from front matter, table of contents or name; 0 for an overview and for a chapter that is one
    file."""
    spot = page.spot
    if page.front.lesson is not None:
        return page.front.lesson
    if place := facts.places.get(spot.file):
        return place.lesson
    if spot.overview:
        return lesson_number(spot.below.rpartition("/")[2], chapter) if spot.below else 0
    chapter_file = _opens_chapter(spot) or set(worded_numbers(spot.name)) == {"chapter"}
    if spot.chapter_folder is None and chapter_file and _chapter_in_name(spot):
        return 0
    return lesson_number(spot.name, chapter or None)


def _doubts(page: _Page, key: tuple[str, int, int], declared: Declared) -> Iterator[Problem]:
    """Warnings about numbers that the author should check. A value such as "Chapter 1: Nodes" that agrees with the path
    is accepted, and so is 1.3 for the third lesson."""
    file = page.spot.file
    for word, number, limit in (("chapter", key[1], declared.max_chapter), ("lesson", key[2], declared.max_lesson)):
        claim, line = page.front.claims.get(word, ("", 0))
        if claim and number not in _numbers_in(claim):
            message = f"{word!r} is {claim!r}, not a whole number, so {number} is taken from the path; write a number"
            yield warning(file, line, message)
        if limit is not None and number > limit:
            message = (
                f"{word} {number} is above limits.max_{word} = {limit} in lectern.toml; renumber or raise the limit"
            )
            yield warning(file, None, message)


def _numbers_in(text: str) -> set[int | None]:
    return {whole_number(part) for part in "".join(c if c.isdecimal() else " " for c in text).split()}


def _doubled(file: str, owner: str, key: tuple[str, int, int]) -> Problem:
    return warning(
        file,
        None,
        f"this file and {owner!r} both stand at module {key[0]!r}, chapter {key[1]}, lesson {key[2]}; both are kept, "
        "but give one another number (front matter 'lesson') so that each can be found by its place",
    )


@dataclass(frozen=True, slots=True)
class Titles:
    """The titles of the book, of pages and chapters by file, and of modules by slug."""

    book: str
    page: dict[str, str]
    module: dict[str, str]
    chapter: dict[str, str]


def page_titles(
    placement: Placement,
    fronts: dict[str, FrontMatter],
    headings: dict[str, str | None],
    facts: SiteFacts,
    book_id: str,
) -> dict[str, str]:
    """The title of each page: from its front matter, its first-level heading, the site's label or the file's name (for
    an overview the name of the folder or of the book)."""
    titles: dict[str, str] = {}
    for file, spot in placement.spots.items():
        front = fronts[file]
        name = (spot.folder.rpartition("/")[2] or book_id) if spot.overview else spot.name
        label = front.sidebar_label or facts.labels.get(file) or (facts.title if spot.overview_of_book else None)
        titles[file] = front.title or headings[file] or label or without_number(name) or name
    return titles


def titles_for(
    declared: Declared, facts: SiteFacts, placement: Placement, pages: dict[str, str], book_id: str
) -> Titles:
    """All titles; `pages` are the titles of the pages."""
    overviews = {spot.folder: pages[file] for file, spot in placement.spots.items() if spot.overview}

    @cache  # every file in the folder needs it
    def of_folder(folder: str) -> str:
        return facts.labels.get(folder) or overviews.get(folder) or without_number(folder.rpartition("/")[2])

    home = next((spot.module_folder for spot in placement.spots.values() if spot.module == MAIN_MODULE), None)
    front_page = overviews.get(home) if home is not None else None
    book = declared.title or facts.title or front_page or without_number(book_id)
    modules = {module.slug: module.title or of_folder(module.folder) for module in declared.modules}
    for spot in placement.spots.values():
        listed = facts.places.get(spot.file)
        if spot.module == MAIN_MODULE:
            modules.setdefault(MAIN_MODULE, book if listed or facts.title else front_page or book)
        elif listed and listed.part and not declared.modules:
            modules.setdefault(spot.module, one_line(listed.part) or spot.module)
        else:
            modules.setdefault(spot.module, of_folder(spot.module_folder))
    heads = {
        (place.module, place.chapter): pages[file]
        for file, place in placement.places.items()
        if place.lesson == 0 and place.doubled_by is None
    }

    def of_chapter(file: str, spot: Spot) -> str:
        place = placement.places[file]
        if place.chapter == 0:
            return modules[place.module]
        if listed := facts.places.get(file):
            return one_line(listed.chapter_title) or heads.get((place.module, place.chapter)) or pages[file]
        title = of_folder(spot.chapter_folder) if spot.chapter_folder else heads.get((place.module, place.chapter))
        return title or f"Chapter {place.chapter}"

    chapters = {file: of_chapter(file, spot) for file, spot in placement.spots.items()}
    return Titles(book, pages, modules, chapters)
