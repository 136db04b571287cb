"""The order, labels and places that a site's own table of contents gives its pages: mdBook's SUMMARY.md, MkDocs' nav,
Hugging Face's `_toctree.yml` and Docusaurus' `_category_` files.

SUMMARY.md and `_toctree.yml` are the book's structure: a part is a module, an entry of the first level a chapter, and
the entries below it are its lessons. The others say what comes before what.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

import yaml

from lectern.reading.configs import composed, json_settings, pairs, texts, yaml_settings
from lectern.reading.frontmatter import MAX_POSITION
from lectern.reading.names import begins_with_number, folder_number
from lectern.reading.problems import Unreadable

MAX_DEPTH = 20
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_SUMMARY_LINE = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?P<bullet>[-*+]|\d{1,9}[.)])[ \t]+)?"
    r"\[(?P<label>[^\n]{0,300}?)\]\([ \t]*<?(?P<target>[^)>\n]{0,500}?)>?[ \t]*\)"
    r"|^#{1,6}[ \t]+(?P<part>[^\n]{1,300})",
    re.MULTILINE,
)
TAB_WIDTH = 4


@dataclass(frozen=True, slots=True)
class NavigationPlace:
    """The place that a table of contents gives a page."""

    part: str  # the title of the part; "" if there are no parts
    chapter: int
    lesson: int  # 0: the page opens its chapter
    chapter_title: str  # "" for pages before the first chapter


@dataclass(slots=True)
class Navigation:
    """The order of the site's files, and labels of files and folders. Paths are POSIX paths from the book's folder."""

    order: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    places: dict[str, NavigationPlace] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)  # pages without a file

    def add(self, path: str, label: str | None, place: NavigationPlace | None = None) -> None:
        """Add the next page."""
        self.order.setdefault(path, len(self.order))
        if label:
            self.labels.setdefault(path, label)
        if place:
            self.places.setdefault(path, place)


def scalar(node: yaml.Node | None) -> str | None:
    """The text of a node; None unless it is a single text."""
    values = texts(node) if node is not None else None
    return values[0] if values and len(values) == 1 else None


def mkdocs_navigation(nav: yaml.Node, book: str, under: str) -> Navigation:
    """The navigation from MkDocs' nav: paths, `title: path` and `title: [...]`. `book` is the path from the site's
    pages folder to the book's folder, or `under` the path from the book's folder to the pages folder."""
    navigation = Navigation()
    _walk(nav, None, navigation, book, under, 0)
    return navigation


def literate_nav_file(config: dict[str, yaml.Node]) -> str | None:
    """The name of the files that list pages for the plugin literate-nav; None without the plugin."""
    plugins = config.get("plugins")
    entries = plugins.value if isinstance(plugins, yaml.SequenceNode) else [plugins]
    for entry in entries:
        if scalar(entry) == "literate-nav":
            return "SUMMARY.md"
        for name, settings, _ in pairs(entry):
            if name == "literate_nav":
                options = {option: scalar(value) for option, value, _ in pairs(settings)}
                file = options.get("nav_file") or "SUMMARY.md"
                return None if file.lower() in ("readme.md", "index.md") else file  # those are pages too
    return None


def _walk(node: yaml.Node, label: str | None, navigation: Navigation, book: str, under: str, depth: int) -> list[str]:
    if isinstance(node, yaml.ScalarNode):
        outside = "://" in node.value or node.value.startswith("/")
        path = None if outside else _in_book(node.value, book, under)
        if path is None:
            return []
        navigation.add(path, label)
        return [path]
    children: list[tuple[yaml.Node, str | None]] = []
    if isinstance(node, yaml.SequenceNode):
        children = [(item, None) for item in node.value]
    elif isinstance(node, yaml.MappingNode):
        children = [(value, scalar(key)) for key, value in node.value]
    below = [
        path
        for child, name in children
        if depth < MAX_DEPTH
        for path in _walk(child, name, navigation, book, under, depth + 1)
    ]
    if label and below and (shared := posixpath.commonpath([posixpath.dirname(path) for path in below])):
        navigation.labels[shared] = label  # the title of a section labels the common folder of its pages
    return below


def _in_book(path: str, book: str, under: str) -> str | None:
    path = posixpath.normpath(path)
    if book:
        return path.removeprefix(f"{book}/") if path.startswith(f"{book}/") else None
    return f"{under}/{path}" if under else path


@dataclass(slots=True)
class _Numbering:
    """Counts chapters and lessons as mdBook numbers them; pages without a bullet come before or after the numbered
    ones."""

    part: str = ""
    chapter: int = 0
    lesson: int = 0
    title: str = ""
    indent: int = 0  # of the chapters
    after: bool = False  # the pages after the last chapter

    def place(self, indent: int, label: str, *, numbered: bool) -> NavigationPlace:
        """The place of the next entry."""
        if not numbered:
            if self.chapter and not self.after:
                self.chapter, self.lesson, self.title, self.after = self.chapter + 1, 0, "", True
            self.lesson += 1
        elif not self.chapter or indent <= self.indent or self.after:
            self.chapter, self.lesson, self.title, self.after = self.chapter + 1, 0, label, False
            self.indent = indent
        else:
            self.lesson += 1
        return NavigationPlace(self.part, self.chapter, self.lesson, self.title)


def summary_navigation(text: str, under: str) -> Navigation:
    """The navigation from mdBook's SUMMARY.md. Its headings, except the title, are parts. A draft has a number, but no
    page."""
    navigation, numbering = Navigation(), _Numbering()
    titled = False
    for match in _SUMMARY_LINE.finditer(_COMMENT.sub("", text)):
        if match["part"] is not None:
            if titled or navigation.order:
                numbering.part = _title(match["part"])
            titled = True
            continue
        indent = len(match["indent"].expandtabs(TAB_WIDTH))
        label, target = _title(match["label"]), unquote(match["target"].partition("#")[0].strip())
        place = numbering.place(indent, label, numbered=match["bullet"] is not None)
        if target and "://" not in target:
            path = posixpath.normpath(f"{under}/{target}" if under else target)
            navigation.add(path, label, place)
    return navigation


def _title(text: str) -> str:
    return text.replace("`", "").strip().strip("#").strip()


def toctree_navigation(text: str, under: str, page_file: Callable[[str], str | None]) -> Navigation:
    """The navigation from Hugging Face's `_toctree.yml`. `page_file` gives the file of a page without its suffix.
    Raises Unreadable if the file is broken."""
    try:
        root = composed(text)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        raise Unreadable(
            "the file is not valid YAML, so it is passed over; mend it", mark.line + 1 if mark else None
        ) from None
    navigation = Navigation()
    entries = root.value if isinstance(root, yaml.SequenceNode) else []
    settings = [{name: value for name, value, _ in pairs(entry)} for entry in entries]
    titles = [scalar(values.get("title")) or "" for values in settings]
    for entry, values, title, chapter in zip(entries, settings, titles, chapter_numbers(titles), strict=True):
        sections = values.get("sections")
        pages = list(_toctree_pages(entry if sections is None else sections, 0))
        for lesson, (page, label) in enumerate(pages, 1):
            path = f"{under}/{page}" if under else page
            if file := page_file(path):
                navigation.add(file, label, NavigationPlace("", chapter, lesson if sections is not None else 0, title))
            else:
                navigation.missing.append(path)
    return navigation


def chapter_numbers(titles: list[str]) -> list[int]:
    """The number of each chapter. Titles such as `Unit 2` reserve theirs first, those that begin with it before others
    (`Bonus Unit 2`). Another chapter is numbered after the one before it where that number is free, else after all."""
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for at_start in (True, False):
        for at, title in enumerate(titles):
            number = folder_number(title)
            if number is not None and number not in taken and begins_with_number(title) == at_start:
                numbers[at] = number
                taken.add(number)
    last = -1 if numbers else 0  # a preface before chapter 1 is chapter 0
    highest = max(taken, default=0)
    for at in range(len(titles)):
        if at not in numbers:
            numbers[at] = last + 1 if last + 1 not in taken else highest + 1
            taken.add(numbers[at])
            highest = max(highest, numbers[at])
        last = numbers[at]
    return [numbers[at] for at in range(len(titles))]


def _toctree_pages(node: yaml.Node, depth: int) -> Iterator[tuple[str, str | None]]:
    if isinstance(node, yaml.SequenceNode) and depth < MAX_DEPTH:
        for item in node.value:
            yield from _toctree_pages(item, depth + 1)
    settings = {name: value for name, value, _ in pairs(node)}
    title = scalar(settings.get("title"))
    if page := scalar(settings.get("local")):
        yield posixpath.normpath(page), title
    for _, variant, _ in pairs(settings.get("local_fw")):
        if page := scalar(variant):
            yield posixpath.normpath(page), title
    if "sections" in settings and depth < MAX_DEPTH:
        yield from _toctree_pages(settings["sections"], depth + 1)


def category(path: str, text: str) -> tuple[str | None, float | None]:
    """The label and position of a folder from its Docusaurus `_category_` file. Raises Unreadable if it is broken."""
    if path.endswith(".json"):
        data = json_settings(text)
        label, position = data.get("label"), data.get("position")
    else:
        settings = {name: scalar(value) for name, value in yaml_settings(text).items()}
        label, position = settings.get("label"), settings.get("position")
    try:
        where = None if position is None else float(position)
    except (ValueError, TypeError, OverflowError):
        where = MAX_POSITION
    if where is not None and not abs(where) < MAX_POSITION:
        raise Unreadable("its position is no number that a folder can have, so the file is passed over; mend it")
    return (label if isinstance(label, str) and label.strip() else None), where
