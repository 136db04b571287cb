"""Finds the place of each lesson: module, chapter, lesson. All files are placed together, because a number that a name
does not give comes from the order of its neighbours. No file is dropped for its place: if two files have the same one,
both stay, and the path of the later one is added to its place.

The folders of a file are the levels of the book. Wrapper folders around the book are skipped; the first level below
them are the modules, the second the chapters, and deeper folders belong to their chapter.

The titles of the book, its modules, chapters and lessons come from the overview page first, then from the site's
label, then from the name without its number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from lectern.domain.books import MAIN_MODULE, LessonPlace, Problem, natural
from lectern.reading.frontmatter import FrontMatter, whole_number
from lectern.reading.manifest import Declared
from lectern.reading.names import folder_number, leading_number, lesson_number, slugged, without_number, worded_numbers
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


def spots_of(files: list[str], declared: Declared) -> Iterator[Spot]:
    """The location of every file."""
    modules = {module.folder: module.slug for module in declared.modules}
    wrapped = _wrapping(files, modules)
    for file in files:
        steps = file.split("/")
        depth = min(wrapped.get(steps[0], 0), len(steps) - 1)
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
    spots = {spot.file: spot for spot in spots_of(list(fronts), declared)}
    modules = {spot.module for spot in spots.values()} | {module.slug for module in declared.modules}
    pages = [_Page(spot, fronts[file], _module_of(spot, fronts[file], modules)) for file, spot in spots.items()]
    folders = _chapter_folders(pages, facts)
    chapters = {page.spot.file: _chapter_of(page, folders) for page in pages}
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
        explicit = {folder: folder_number(folder.rpartition("/")[2]) for folder in folders}
        numbers |= _numbered(explicit, positions, ranks, reserved[module])
    return numbers


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
    order."""
    numbers = {item: number for item, number in explicit.items() if number is not None}
    in_use = reserved | set(numbers.values())
    waiting: list[str] = []
    for item in explicit:
        position = positions.get(item, 0.0)
        if item in numbers:
            continue
        if position >= 1 and position.is_integer() and int(position) not in in_use:
            numbers[item] = int(position)
            in_use.add(numbers[item])
        else:
            waiting.append(item)
    waiting.sort(key=lambda item: (ranks.get(item, len(ranks)), positions.get(item, _NO_POSITION)))  # stable: by path
    last = max(in_use, default=0)
    return numbers | {item: last + offset for offset, item in enumerate(waiting, 1)}


def _chapter_of(page: _Page, folders: dict[str, int]) -> int:
    if page.front.chapter is not None:
        return page.front.chapter
    if page.spot.chapter_folder is not None:
        return folders[page.spot.chapter_folder]
    return _chapter_in_name(page.spot)


def _chapter_in_name(spot: Spot) -> int:
    """The chapter in a file's name: `chapter-26-x.md` directly in a module is chapter 26; 0 if it names none."""
    return worded_numbers(spot.name).get("chapter", 0) if leading_number(spot.name) is None else 0


def _lesson_numbers(pages: list[_Page], chapters: dict[str, int], facts: SiteFacts) -> dict[str, int]:
    groups: dict[tuple[str, int], list[_Page]] = defaultdict(list)
    for page in pages:
        groups[page.module, chapters[page.spot.file]].append(page)
    numbers: dict[str, int] = {}
    for (_, chapter), group in groups.items():
        explicit = {page.spot.file: _explicit_lesson(page, chapter) for page in group}
        positions = {page.spot.file: at for page in group if (at := page.front.sidebar_position) is not None}
        numbers |= _numbered(explicit, positions, facts.order, set())
    return numbers


def _explicit_lesson(page: _Page, chapter: int) -> int | None:
    """The lesson number from front matter or name; 0 for an overview and for a chapter that is one file."""
    spot = page.spot
    if page.front.lesson is not None:
        return page.front.lesson
    if spot.overview:
        return lesson_number(spot.below.rpartition("/")[2], chapter) if spot.below else 0
    if spot.chapter_folder is None and _chapter_in_name(spot) and set(worded_numbers(spot.name)) == {"chapter"}:
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
    placement: Placement, fronts: dict[str, FrontMatter], headings: dict[str, str | None], facts: SiteFacts
) -> dict[str, str]:
    """The title of each page: from its front matter, first heading, the site's label or the file's name (for an
    overview the folder's name)."""
    titles: dict[str, str] = {}
    for file, spot in placement.spots.items():
        front = fronts[file]
        name = spot.folder.rpartition("/")[2] if spot.overview and spot.folder else spot.name
        label = front.sidebar_label or facts.labels.get(file)
        titles[file] = front.title or headings[file] or label or without_number(name) or name
    return titles


def titles_for(
    declared: Declared, facts: SiteFacts, placement: Placement, pages: dict[str, str], book_id: str
) -> Titles:
    """All titles; `pages` are the titles of the pages."""
    overviews = {spot.folder: pages[file] for file, spot in placement.spots.items() if spot.overview}

    @cache  # every file in the folder needs it
    def of_folder(folder: str) -> str:
        return overviews.get(folder) or facts.labels.get(folder) or without_number(folder.rpartition("/")[2])

    home = next((spot.module_folder for spot in placement.spots.values() if spot.module == MAIN_MODULE), None)
    front_page = overviews.get(home) if home is not None else None
    book = declared.title or facts.title or front_page or without_number(book_id)
    modules = {module.slug: module.title or of_folder(module.folder) for module in declared.modules}
    for spot in placement.spots.values():
        if spot.module == MAIN_MODULE:
            modules.setdefault(MAIN_MODULE, front_page or book)
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
        title = of_folder(spot.chapter_folder) if spot.chapter_folder else heads.get((place.module, place.chapter))
        return title or f"Chapter {place.chapter}"

    chapters = {file: of_chapter(file, spot) for file, spot in placement.spots.items()}
    return Titles(book, pages, modules, chapters)
