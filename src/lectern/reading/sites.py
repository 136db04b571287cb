"""The site a book is built with, found from its own files: which generator, where its pages lie, in what order and
under which labels. Nothing here is executed, and nothing but configuration is read outside the book's folder.

Order and labels that a site's own files give: MkDocs' nav, mdBook's SUMMARY.md, Docusaurus' `_category_` files.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import yaml

from lectern.domain.books import Problem, Site
from lectern.reading.configs import doubt, json_settings, texts, toml_settings, yaml_settings
from lectern.reading.files import read_bytes
from lectern.reading.frontmatter import MAX_POSITION
from lectern.reading.names import one_line
from lectern.reading.problems import Unreadable, warning

_SUMMARY_LINK = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?\[([^\]\n]{0,300})\]\([ \t]*<?([^)>\n]{0,500}?)>?[ \t]*\)", re.MULTILINE
)
MAX_DEPTH = 20
MAX_CONFIG_BYTES = 1024 * 1024
T = TypeVar("T")
PARENTS = 3  # folders above the book's that may hold its site's configuration
_JS_PATH = re.compile(r"""\bpath:\s*['"]([^'"]{1,200})['"]""")
_JS_TITLE = re.compile(r"""^\s*title:\s*['"]([^'"]{1,200})['"]""", re.MULTILINE)
_USUAL = {"docusaurus": "docs", "mkdocs": "docs", "mdbook": "src", "plain": ""}  # where pages lie when nothing says so


@dataclass(slots=True)
class Navigation:
    """Files in the order of the site, and labels of files and folders. Paths are POSIX, from the book's folder."""

    order: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, label: str | None) -> None:
        """Note a page that comes next."""
        self.order.setdefault(path, len(self.order))
        if label:
            self.labels.setdefault(path, label)


def scalar(node: yaml.Node | None) -> str | None:
    """A node's single text."""
    written = texts(node) if node is not None else None
    return written[0] if written and len(written) == 1 else None


def mkdocs_navigation(nav: yaml.Node, book: str, under: str) -> Navigation:
    """MkDocs' nav: paths, `title: path` and `title: [...]`. `book` is the book's folder seen from the site's pages, or
    `under` the pages' folder seen from the book."""
    found = Navigation()
    _walk(nav, None, found, book, under, 0)
    return found


def _walk(node: yaml.Node, label: str | None, found: Navigation, book: str, under: str, depth: int) -> list[str]:
    if isinstance(node, yaml.ScalarNode):
        outside = "://" in node.value or node.value.startswith("/")
        path = None if outside else _in_book(node.value, book, under)
        if path is None:
            return []
        found.add(path, label)
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
        for path in _walk(child, name, found, book, under, depth + 1)
    ]
    if label and below and (shared := posixpath.commonpath([posixpath.dirname(path) for path in below])):
        found.labels.setdefault(shared, label)  # a section's title labels the folder that its pages share
    return below


def _in_book(path: str, book: str, under: str) -> str | None:
    path = posixpath.normpath(path)
    if book:
        return path.removeprefix(f"{book}/") if path.startswith(f"{book}/") else None
    return f"{under}/{path}" if under else path


def summary_navigation(text: str, under: str) -> Navigation:
    """The links of mdBook's SUMMARY.md, in order."""
    found = Navigation()
    for label, target in _SUMMARY_LINK.findall(text):
        if target and "://" not in target:
            found.add(posixpath.normpath(f"{under}/{target}" if under else target), label.strip())
    return found


def category(path: str, text: str) -> tuple[str | None, float | None]:
    """A Docusaurus `_category_` file: its folder's label and position. Raises Unreadable where it is broken."""
    if path.endswith(".json"):
        data = json_settings(text)
        label, position = data.get("label"), data.get("position")
    else:
        found = {name: scalar(value) for name, value in yaml_settings(text).items()}
        label, position = found.get("label"), found.get("position")
    try:
        where = None if position is None else float(position)
    except (ValueError, TypeError, OverflowError):
        where = MAX_POSITION
    if where is not None and not abs(where) < MAX_POSITION:
        raise Unreadable("its position is no number that a folder can have, so the file is passed over; mend it")
    return (label if isinstance(label, str) and label.strip() else None), where


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """What the site's own files say. Paths are POSIX, from the book's folder."""

    kind: Site | None = None
    title: str | None = None
    pages_under: str | None = None  # the folder that pages are taken from; "" is the book's own; None: nothing says
    directory_urls: bool = True  # MkDocs: `guide/` rather than `guide.html`
    order: dict[str, int] = field(default_factory=dict)  # file -> rank in the navigation
    labels: dict[str, str] = field(default_factory=dict)  # file or folder -> the site's label
    positions: dict[str, float] = field(default_factory=dict)  # folder -> its position
    problems: tuple[Problem, ...] = ()  # files that are passed over, because they are broken


@dataclass(frozen=True, slots=True, kw_only=True)
class _At:
    """A configuration file, and the book it may be of."""

    file: str
    root: Path  # the folder it lies in: the book's, or one above
    here: Path  # the book's

    @property
    def shown(self) -> str:
        """How the report names it."""
        return Path(os.path.relpath(self.root / self.file, self.here)).as_posix()


def site_facts(folder: Path, kind: Site | None, side_files: list[str]) -> SiteFacts:
    """Facts for the given kind of site, or for the first kind whose configuration is found in or above the folder."""
    here = Path(os.path.realpath(folder))
    roots = (here, *list(here.parents)[:PARENTS])
    facts = next((found for root in roots if (found := _facts_at(root, here, kind))), SiteFacts(kind=kind))
    labels, positions, problems = dict(facts.labels), dict(facts.positions), list(facts.problems)
    title = one_line(facts.title or "") or None
    for path in side_files:
        try:
            label, position = category(path, _text(here, path))
        except Unreadable as exc:
            problems.append(doubt(path, exc))
            continue
        parent = path.rpartition("/")[0]
        if label:
            labels[parent] = label
        if position is not None:
            positions[parent] = position
    fit = {path: words for path, label in labels.items() if (words := one_line(label))}
    return replace(facts, title=title, labels=fit, positions=positions, problems=tuple(problems))


def page_path(facts: SiteFacts, site: Site, file: str) -> str:
    """A file's path from where its site takes the pages."""
    under = _USUAL[site] if facts.pages_under is None else facts.pages_under
    return file.removeprefix(f"{under}/") if under else file


def _facts_at(root: Path, here: Path, kind: Site | None) -> SiteFacts | None:
    for name, files, read in _READERS:
        if kind not in (None, name):
            continue
        for file in files:
            at = _At(file=file, root=root, here=here)
            if (text := _config(root, file)) is not None and (facts := read(text, at)) is not None:
                return facts
    if kind in (None, "mdbook") and root == here:  # a book without book.toml still has its SUMMARY.md
        for under in ("", "src"):
            if (summary := _config(root, f"{under}/SUMMARY.md" if under else "SUMMARY.md")) is not None:
                nav = summary_navigation(summary, under)
                return SiteFacts(kind="mdbook", pages_under=under, order=nav.order, labels=nav.labels)
    return None


def _config(root: Path, file: str) -> str | None:
    if not _there(root / file, Path.is_file):
        return None
    try:
        return _text(root, file)
    except Unreadable:
        return None


def _text(root: Path, file: str) -> str:
    return read_bytes(root, file, MAX_CONFIG_BYTES).decode("utf-8-sig", "replace")


def _there(path: Path, kind: Callable[[Path], bool]) -> bool:
    """Whether a path that a configuration names is there; one too long for any disk is not."""
    try:
        return kind(path)
    except OSError:
        return False


def _pages_under(root: Path, pages: str, here: Path) -> str | None:
    """Where the site's pages lie seen from the book: "" at or above it, a path below it, None beside it."""
    base = Path(os.path.normpath(root / pages))
    if here.is_relative_to(base):
        return ""
    return base.relative_to(here).as_posix() if base.is_relative_to(here) else None


def _docusaurus(text: str, at: _At) -> SiteFacts | None:
    title = match[1] if (match := _JS_TITLE.search(text)) else None
    for pages in ("docs", *_JS_PATH.findall(text)):
        under = _pages_under(at.root, pages, at.here)
        if under is not None and (under == "" or _there(at.here / under, Path.is_dir)):
            return SiteFacts(kind="docusaurus", title=title, pages_under=under)
    inside = at.here == at.root or at.here.relative_to(at.root).parts[0] in ("i18n", "versioned_docs")
    return SiteFacts(kind="docusaurus", title=title, pages_under="") if inside else None


def _mkdocs(text: str, at: _At) -> SiteFacts | None:
    config, problems = _settings(partial(yaml_settings, tags=True), text, at)
    pages = scalar(config.get("docs_dir")) or "docs"
    under = _pages_under(at.root, pages, at.here)
    if under is None:
        return None
    nav = Navigation()
    if "nav" in config:
        book = "" if under else at.here.relative_to(os.path.normpath(at.root / pages)).as_posix()
        nav = mkdocs_navigation(config["nav"], book.removeprefix("."), under)
    return SiteFacts(
        kind="mkdocs",
        title=scalar(config.get("site_name")),
        pages_under=under,
        directory_urls=(scalar(config.get("use_directory_urls")) or "true").lower() not in ("false", "no", "off"),
        order=nav.order,
        labels=nav.labels,
        problems=problems,
    )


def _mdbook(text: str, at: _At) -> SiteFacts | None:
    config, problems = _settings(toml_settings, text, at)
    book = config.get("book", {})
    if not isinstance(book, dict):
        book, problems = {}, (warning(at.shown, None, "`book` is no table, so it is passed over; write [book]"),)
    source, title = book.get("src"), book.get("title")
    under = _pages_under(at.root, source if isinstance(source, str) else "src", at.here)
    if under is None:
        return None
    summary = _config(at.here, f"{under}/SUMMARY.md" if under else "SUMMARY.md")
    nav = summary_navigation(summary, under) if summary is not None else Navigation()
    return SiteFacts(
        kind="mdbook",
        title=title if isinstance(title, str) else None,
        pages_under=under,
        order=nav.order,
        labels=nav.labels,
        problems=problems,
    )


def _settings(read: Callable[[str], dict[str, T]], text: str, at: _At) -> tuple[dict[str, T], tuple[Problem, ...]]:
    """What a file says, or nothing and why."""
    try:
        return read(text), ()
    except Unreadable as exc:
        return {}, (doubt(at.shown, exc),)


_Reader = Callable[[str, _At], SiteFacts | None]
_READERS: tuple[tuple[Site, tuple[str, ...], _Reader], ...] = (
    ("docusaurus", tuple(f"docusaurus.config.{end}" for end in ("js", "ts", "mjs", "cjs")), _docusaurus),
    ("mkdocs", ("mkdocs.yml", "mkdocs.yaml"), _mkdocs),
    ("mdbook", ("book.toml",), _mdbook),
)
