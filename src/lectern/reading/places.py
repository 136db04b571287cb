"""Where each lesson stands: module, chapter, lesson. Worked out for the whole folder at once, because a number that a
name does not give comes from the order of its neighbours. No file is dropped for its place: two with the same one keep
both, the later told apart by its path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lectern.domain.books import LessonPlace, Problem, natural
from lectern.reading import values
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.manifest import Declared
from lectern.reading.numbers import folder_number, leading_number, lesson_number, worded_numbers
from lectern.reading.problems import warning
from lectern.reading.sites import SiteFacts
from lectern.reading.slugs import slugged
from lectern.reading.spots import Spot, spots_of

_NO_POSITION = 1e9  # after every position


@dataclass(frozen=True, slots=True)
class Placed:
    """The outcome for the whole folder, by file."""

    spots: dict[str, Spot]
    places: dict[str, LessonPlace]
    problems: list[Problem]


@dataclass(frozen=True, slots=True)
class _Page:
    """A file on its way to its place."""

    spot: Spot
    front: FrontMatter
    module: str


def place_all(book_id: str, fronts: dict[str, FrontMatter], declared: Declared, facts: SiteFacts) -> Placed:
    """Places for every file; `fronts` has the front matter of each, in path order."""
    spots = {spot.file: spot for spot in spots_of(list(fronts), declared)}
    known = {spot.module for spot in spots.values()} | {module.slug for module in declared.modules}
    pages = [_Page(spot, fronts[file], _module_of(spot, fronts[file], known)) for file, spot in spots.items()]
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
    return Placed(spots, places, problems)


def _module_of(spot: Spot, front: FrontMatter, known: set[str]) -> str:
    """The folder decides; front matter may name another module that the book has."""
    said = slugged(front.module) if front.module else ""
    return said if said in known else spot.module


def _chapter_folders(pages: list[_Page], facts: SiteFacts) -> dict[str, int]:
    """A number for each chapter folder: its name's, else the site's position, else the next after its neighbours."""
    inside: dict[str, set[str]] = defaultdict(set)
    taken: dict[str, set[int]] = defaultdict(set)
    positions = dict(facts.positions)
    for page in pages:
        spot = page.spot
        if spot.chapter_folder is None:
            taken[spot.module_folder] |= {_chapter_in_name(spot)} - {0}
            continue
        inside[spot.module_folder].add(spot.chapter_folder)
        if spot.folder == spot.chapter_folder and spot.overview and page.front.sidebar_position is not None:
            positions.setdefault(spot.chapter_folder, page.front.sidebar_position)
    ranks = _folder_ranks(facts)
    numbers: dict[str, int] = {}
    for module, found in inside.items():
        folders = sorted(found, key=natural)
        named = {folder: folder_number(folder.rpartition("/")[2]) for folder in folders}
        numbers |= _numbered(named, positions, ranks, taken[module])
    return numbers


def _folder_ranks(facts: SiteFacts) -> dict[str, int]:
    """A folder stands where the first of its files does."""
    ranks: dict[str, int] = {}
    for file, rank in facts.order.items():
        folder = file.rpartition("/")[0]
        while folder:
            ranks[folder] = min(rank, ranks.get(folder, rank))
            folder = folder.rpartition("/")[0]
    return ranks


def _numbered(
    named: dict[str, int | None], positions: dict[str, float], ranks: dict[str, int], taken: set[int]
) -> dict[str, int]:
    """Numbers for items in path order: named ones first, then free positions, then onwards in the site's order."""
    numbers = {item: number for item, number in named.items() if number is not None}
    used = taken | set(numbers.values())
    waiting: list[str] = []
    for item in named:
        position = positions.get(item, 0.0)
        if item in numbers:
            continue
        if position >= 1 and position.is_integer() and int(position) not in used:
            numbers[item] = int(position)
            used.add(numbers[item])
        else:
            waiting.append(item)
    waiting.sort(key=lambda item: (ranks.get(item, len(ranks)), positions.get(item, _NO_POSITION)))  # stable: by path
    last = max(used, default=0)
    return numbers | {item: last + offset for offset, item in enumerate(waiting, 1)}


def _chapter_of(page: _Page, folders: dict[str, int]) -> int:
    if page.front.chapter is not None:
        return page.front.chapter
    if page.spot.chapter_folder is not None:
        return folders[page.spot.chapter_folder]
    return _chapter_in_name(page.spot)


def _chapter_in_name(spot: Spot) -> int:
    """`chapter-26-x.md` straight in a module is chapter 26; 0 for a file that names none."""
    return worded_numbers(spot.name).get("chapter", 0) if leading_number(spot.name) is None else 0


def _lesson_numbers(pages: list[_Page], chapters: dict[str, int], facts: SiteFacts) -> dict[str, int]:
    groups: dict[tuple[str, int], list[_Page]] = defaultdict(list)
    for page in pages:
        groups[page.module, chapters[page.spot.file]].append(page)
    numbers: dict[str, int] = {}
    for (_, chapter), group in groups.items():
        named = {page.spot.file: _named_lesson(page, chapter) for page in group}
        positions = {page.spot.file: at for page in group if (at := page.front.sidebar_position) is not None}
        numbers |= _numbered(named, positions, facts.order, set())
    return numbers


def _named_lesson(page: _Page, chapter: int) -> int | None:
    """What front matter or the name says; 0 for an overview and for a chapter that is one file."""
    spot = page.spot
    if page.front.lesson is not None:
        return page.front.lesson
    if spot.overview:
        return lesson_number(spot.below.rpartition("/")[2], chapter) if spot.below else 0
    if spot.chapter_folder is None and _chapter_in_name(spot) and set(worded_numbers(spot.name)) == {"chapter"}:
        return 0
    return lesson_number(spot.name, chapter or None)


def _doubts(page: _Page, key: tuple[str, int, int], declared: Declared) -> Iterator[Problem]:
    """Numbers that the author should look at. A sentence such as "Chapter 1: Nodes" that agrees with the path is fine,
    and so is 1.3 for the third lesson."""
    file = page.spot.file
    for word, number, limit in (("chapter", key[1], declared.max_chapter), ("lesson", key[2], declared.max_lesson)):
        written, line = page.front.claims.get(word, ("", 0))
        if written and number not in _numbers_in(written):
            message = f"{word!r} is {written!r}, not a whole number, so {number} is taken from the path; write a number"
            yield warning(file, line, message)
        if limit is not None and number > limit:
            message = (
                f"{word} {number} is above limits.max_{word} = {limit} in lectern.toml; renumber or raise the limit"
            )
            yield warning(file, None, message)


def _numbers_in(text: str) -> set[int | None]:
    return {values.whole_number(part) for part in "".join(c if c.isdecimal() else " " for c in text).split()}


def _doubled(file: str, owner: str, key: tuple[str, int, int]) -> Problem:
    return warning(
        file,
        None,
        f"this file and {owner!r} both stand at module {key[0]!r}, chapter {key[1]}, lesson {key[2]}; both are kept, "
        "but give one another number (front matter 'lesson') so that each can be found by its place",
    )
