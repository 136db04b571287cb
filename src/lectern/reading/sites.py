"""Reads the configuration of the site generator of a book: its kind, the folder, order and labels of its pages.
Nothing is executed, and outside the book's folder only configuration files are read.

Order and labels come from MkDocs' nav, mdBook's SUMMARY.md and Docusaurus' `_category_` files.

Makes the URL of a page from its file by the rules of each site generator, so that a citation opens the right page.
Docusaurus: plugin-content-docs `slug.ts`, `numberPrefix.ts`; MkDocs: `structure/files.py`; mdBook: renderer and the
`index` preprocessor; plain: the file itself.
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
from urllib.parse import quote

import yaml

from lectern.domain.books import Problem, Site
from lectern.reading.configs import doubt, json_settings, texts, toml_settings, yaml_settings
from lectern.reading.files import read_bytes
from lectern.reading.frontmatter import MAX_POSITION, FrontMatter
from lectern.reading.names import one_line
from lectern.reading.problems import Unreadable, warning

_SUMMARY_LINK = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?\[([^\]\n]{0,300})\]\([ \t]*<?([^)>\n]{0,500}?)>?[ \t]*\)", re.MULTILINE
)
MAX_DEPTH = 20
MAX_CONFIG_BYTES = 1024 * 1024
T = TypeVar("T")
MAX_PARENTS = 3  # folders above the book's folder that are searched for the site's configuration
_JS_PATH = re.compile(r"""\bpath:\s*['"]([^'"]{1,200})['"]""")
_JS_TITLE = re.compile(r"""^\s*title:\s*['"]([^'"]{1,200})['"]""", re.MULTILINE)
_DEFAULT_PAGES_FOLDERS = {
    "docusaurus": "docs",
    "mkdocs": "docs",
    "mdbook": "src",
    "plain": "",
}  # if the configuration names none
_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d+")
_PREFIX = re.compile(r"\d+\s*[-_.]+\s*(?P<rest>[^-_.\s].*)", re.DOTALL)
_SAFE = "/:@!$&'()*+,;=~-._"


@dataclass(slots=True)
class Navigation:
    """The order of the site's files, and labels of files and folders. Paths are POSIX paths from the book's folder."""

    order: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, label: str | None) -> None:
        """Add the next page."""
        self.order.setdefault(path, len(self.order))
        if label:
            self.labels.setdefault(path, label)


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
        navigation.labels.setdefault(shared, label)  # the title of a section labels the common folder of its pages
    return below


def _in_book(path: str, book: str, under: str) -> str | None:
    path = posixpath.normpath(path)
    if book:
        return path.removeprefix(f"{book}/") if path.startswith(f"{book}/") else None
    return f"{under}/{path}" if under else path


def summary_navigation(text: str, under: str) -> Navigation:
    """The navigation from the links of mdBook's SUMMARY.md."""
    navigation = Navigation()
    for label, target in _SUMMARY_LINK.findall(text):
        if target and "://" not in target:
            navigation.add(posixpath.normpath(f"{under}/{target}" if under else target), label.strip())
    return navigation


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The facts from the site's configuration files. Paths are POSIX paths from the book's folder."""

    kind: Site | None = None
    title: str | None = None
    pages_under: str | None = None  # the folder of the pages; "" is the book's folder; None: not configured
    directory_urls: bool = True  # MkDocs: `guide/` rather than `guide.html`
    order: dict[str, int] = field(default_factory=dict)  # file -> rank in the navigation
    labels: dict[str, str] = field(default_factory=dict)  # file or folder -> the site's label
    positions: dict[str, float] = field(default_factory=dict)  # folder -> its position
    problems: tuple[Problem, ...] = ()  # files that are ignored because they are broken


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConfigFile:
    """A configuration file and the folder of the book."""

    file: str
    root: Path  # the folder of the file: the book's folder, or one above it
    here: Path  # the book's folder

    @property
    def report_name(self) -> str:
        """The path of the file in the report."""
        return Path(os.path.relpath(self.root / self.file, self.here)).as_posix()


def site_facts(folder: Path, kind: Site | None, side_files: list[str]) -> SiteFacts:
    """The facts for a kind of site, or for the first kind whose configuration is in or above the folder."""
    here = Path(os.path.realpath(folder))
    roots = (here, *list(here.parents)[:MAX_PARENTS])
    facts = next(
        (config_facts for root in roots if (config_facts := _facts_at(root, here, kind))), SiteFacts(kind=kind)
    )
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
    """The path of a file from the site's pages folder."""
    under = _DEFAULT_PAGES_FOLDERS[site] if facts.pages_under is None else facts.pages_under
    return file.removeprefix(f"{under}/") if under else file


def _facts_at(root: Path, here: Path, kind: Site | None) -> SiteFacts | None:
    for name, files, read in _READERS:
        if kind not in (None, name):
            continue
        for file in files:
            config_file = _ConfigFile(file=file, root=root, here=here)
            if (text := _config(root, file)) is not None and (facts := read(text, config_file)) is not None:
                return facts
    if kind in (None, "mdbook") and root == here:  # a book without book.toml may have a SUMMARY.md
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
    """Whether a path from a configuration exists; a path that is too long does not."""
    try:
        return kind(path)
    except OSError:
        return False


def _pages_under(root: Path, pages: str, here: Path) -> str | None:
    """The pages folder as a path from the book's folder: "" if it is the book's folder or above, None if beside it."""
    base = Path(os.path.normpath(root / pages))
    if here.is_relative_to(base):
        return ""
    return base.relative_to(here).as_posix() if base.is_relative_to(here) else None


def _docusaurus(text: str, config_file: _ConfigFile) -> SiteFacts | None:
    title = match[1] if (match := _JS_TITLE.search(text)) else None
    for pages in ("docs", *_JS_PATH.findall(text)):
        under = _pages_under(config_file.root, pages, config_file.here)
        if under is not None and (under == "" or _there(config_file.here / under, Path.is_dir)):
            return SiteFacts(kind="docusaurus", title=title, pages_under=under)
    inside = config_file.here == config_file.root or config_file.here.relative_to(config_file.root).parts[0] in (
        "i18n",
        "versioned_docs",
    )
    return SiteFacts(kind="docusaurus", title=title, pages_under="") if inside else None


def _mkdocs(text: str, config_file: _ConfigFile) -> SiteFacts | None:
    config, problems = _settings(partial(yaml_settings, tags=True), text, config_file)
    pages = scalar(config.get("docs_dir")) or "docs"
    under = _pages_under(config_file.root, pages, config_file.here)
    if under is None:
        return None
    nav = Navigation()
    if "nav" in config:
        book = "" if under else config_file.here.relative_to(os.path.normpath(config_file.root / pages)).as_posix()
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


def _mdbook(text: str, config_file: _ConfigFile) -> SiteFacts | None:
    config, problems = _settings(toml_settings, text, config_file)
    book = config.get("book", {})
    if not isinstance(book, dict):
        book, problems = (
            {},
            (warning(config_file.report_name, None, "`book` is no table, so it is passed over; write [book]"),),
        )
    source, title = book.get("src"), book.get("title")
    under = _pages_under(config_file.root, source if isinstance(source, str) else "src", config_file.here)
    if under is None:
        return None
    summary = _config(config_file.here, f"{under}/SUMMARY.md" if under else "SUMMARY.md")
    nav = summary_navigation(summary, under) if summary is not None else Navigation()
    return SiteFacts(
        kind="mdbook",
        title=title if isinstance(title, str) else None,
        pages_under=under,
        order=nav.order,
        labels=nav.labels,
        problems=problems,
    )


def _settings(
    read: Callable[[str], dict[str, T]], text: str, config_file: _ConfigFile
) -> tuple[dict[str, T], tuple[Problem, ...]]:
    """The settings of a file, or empty settings and a problem if it is broken."""
    try:
        return read(text), ()
    except Unreadable as exc:
        return {}, (doubt(config_file.report_name, exc),)


_Reader = Callable[[str, _ConfigFile], SiteFacts | None]
_READERS: tuple[tuple[Site, tuple[str, ...], _Reader], ...] = (
    ("docusaurus", tuple(f"docusaurus.config.{end}" for end in ("js", "ts", "mjs", "cjs")), _docusaurus),
    ("mkdocs", ("mkdocs.yml", "mkdocs.yaml"), _mkdocs),
    ("mdbook", ("book.toml",), _mdbook),
)


def page_url(site: Site, base_url: str | None, path: str, front: FrontMatter, *, directory_urls: bool = True) -> str:
    """The URL of a page without an anchor; `path` is the file's path from the site's pages folder."""
    if site == "docusaurus":
        route = _docusaurus_route(path, front)
    elif site == "mkdocs":
        route = _mkdocs_route(path, directory_urls=directory_urls)
    elif site == "mdbook":
        route = _mdbook_route(path)
    else:
        route = f"/{path}"
    return f"{(base_url or '').rstrip('/')}{quote(route, safe=_SAFE)}"


def without_prefix(name: str) -> str:
    """A name without Docusaurus' number prefix: `01-intro` is `intro`, but `2024-05-01-news` and `1.2-api` stay."""
    if _DATE_OR_VERSION.match(name):
        return name
    match = _PREFIX.fullmatch(name)
    return match["rest"] if match else name


def _docusaurus_route(path: str, front: FrontMatter) -> str:
    if front.slug and front.slug.startswith("/"):
        return re.sub(r"/{2,}", "/", front.slug)
    folders, _, file = path.rpartition("/")
    name = file.rpartition(".")[0]
    steps = folders.split("/") if folders else []
    home = "".join(f"/{without_prefix(step)}" for step in steps) + "/"
    if not front.slug and name.lower() in ("index", "readme", steps[-1].lower() if steps else "index"):
        return home
    route = posixpath.normpath(posixpath.join(home, front.slug or front.id or without_prefix(name)))
    folder = front.slug and front.slug.rpartition("/")[2] in ("", ".", "..")  # a slug that names a folder
    return f"{route}/" if folder and route != "/" else route


def _mkdocs_route(path: str, *, directory_urls: bool) -> str:
    stem = path.rpartition(".")[0]
    folder, _, name = stem.rpartition("/")
    if name in ("index", "README"):
        home = f"/{folder}/" if folder else "/"
        return home if directory_urls else f"{home}index.html"
    return f"/{stem}/" if directory_urls else f"/{stem}.html"


def _mdbook_route(path: str) -> str:
    stem = path.rpartition(".")[0]
    folder, _, name = stem.rpartition("/")
    if path == "SUMMARY.md":
        return "/index.html"  # the table of contents; mdBook writes no page for it
    if name.lower() == "readme":
        name = "index"
    return f"/{folder}/{name}.html" if folder else f"/{name}.html"
