"""Reads the configuration of the site generator of a book: its kind, the folder, order and labels of its pages, which
files it publishes, and which directives its pages may have. Nothing is executed, and outside the book's folder only
configuration files are read.

The configuration lies in the book's folder, in one above it, in one beside those (`website/` for `docs/`), or in one
below it: whoever names a repository means the book in it. If there are several, nobody can know which is meant, and the
error lists them. A book in several languages is several books.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import yaml

from lectern.domain.books import Problem, Site
from lectern.domain.errors import BookNotFound
from lectern.reading.addresses import docusaurus_address, mdbook_address, mkdocs_address
from lectern.reading.configs import doubt, pairs, texts, toml_settings, yaml_settings
from lectern.reading.directives import Syntax
from lectern.reading.docusaurus import (
    DEFAULT_SIDEBARS,
    DocsPlugin,
    Sidebar,
    docs_plugins,
    other_folders,
    read_sidebar,
    site_title,
)
from lectern.reading.files import BookFiles, read_bytes
from lectern.reading.names import MAX_DESCRIPTION, one_line
from lectern.reading.navigation import (
    Navigation,
    NavigationPlace,
    category,
    literate_nav_file,
    mkdocs_navigation,
    scalar,
    summary_navigation,
    toctree_navigation,
)
from lectern.reading.problems import Unreadable, warning
from lectern.reading.translations import translations

MAX_CONFIG_BYTES = 1024 * 1024
MAX_PARENTS = 3  # folders above the book's folder that are searched for the site's configuration
MAX_CHILDREN = 3  # folders below it
MAX_SIBLINGS = 200  # folders beside it
MAX_LISTED_BOOKS = 30
SUMMARY = "SUMMARY.md"
_OTHER_EDITIONS = ("i18n", "versioned_docs")
TOCTREE = "_toctree.yml"
_JS_TAGLINE = re.compile(r"""^\s*tagline:\s*(?:'([^'\n]{1,500})'|"([^"\n]{1,500})")""", re.MULTILINE)
_DEFAULT_PAGES_FOLDERS = {
    "docusaurus": "docs",
    "mkdocs": "docs",
    "mdbook": "src",
    "plain": "",
}  # if the configuration names none
_SAMPLE_FOLDERS = frozenset(
    "example examples sample samples test tests __tests__ __fixtures__ fixtures template templates vendor "
    "third_party node_modules".split()
)
_PROJECT_FILES = frozenset(
    "readme contributing changelog license licence code_of_conduct security support authors maintainers governance "
    "todo agents notice releasing release history".split()
)  # Markdown that a repository has beside its book
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """The facts from the site's configuration files. Paths are POSIX paths from the book's folder."""

    kind: Site | None = None
    title: str | None = None
    description: str | None = None
    base_url: str | None = None  # of the book's folder, where the configuration names it in plain text
    config: str | None = None  # the configuration file, or the file that lists the pages
    site_folder: str = "."  # the folder of the configuration
    pages_under: str | None = None  # the folder of the pages; "" is the book's folder; None: not configured
    more_pages: dict[str, str] = field(default_factory=dict)  # further folders of pages -> their routes
    main_route: str = "docs"  # Docusaurus: the route of `pages_under`
    listed: frozenset[str] | None = None  # the pages, where the site publishes only those that it lists
    exclude: tuple[str, ...] = ()  # patterns, as in .gitignore, of files in the pages folder that are not published
    plugins: dict[str, DocsPlugin] = field(default_factory=dict)  # Docusaurus: by folder of pages
    contents_file: str | None = None  # MkDocs: the name of files that list pages and are none themselves
    missing: tuple[str, ...] = ()  # pages that are listed, but have no file
    directory_urls: bool = True  # MkDocs: `guide/` rather than `guide.html`
    order: dict[str, int] = field(default_factory=dict)  # file or folder -> rank in the navigation
    places: dict[str, NavigationPlace] = field(default_factory=dict)  # file -> its place in the table of contents
    sidebars: dict[str, Sidebar] = field(default_factory=dict)  # by folder of pages
    labels: dict[str, str] = field(default_factory=dict)  # file or folder -> the site's label
    positions: dict[str, float] = field(default_factory=dict)  # folder -> its position
    toctree: bool = False  # a `_toctree.yml` lists the pages
    syntaxes: tuple[Syntax, ...] = ()  # of the directives that its pages may have
    include_bases: tuple[str, ...] = ()  # folders that paths in directives begin at
    problems: tuple[Problem, ...] = ()  # files that are ignored because they are broken


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConfigFile:
    """A configuration file and the folder of the book."""

    file: str
    root: Path  # the folder of the file: the book's folder, or one above or below it
    here: Path  # the book's folder

    @property
    def report_name(self) -> str:
        """The path of the file in the report."""
        return self.from_book(self.file)

    def from_book(self, path: str) -> str:
        """A path from the folder of the file, as a path from the book's folder."""
        return Path(os.path.relpath(self.root / path, self.here)).as_posix()


def site_facts(folder: Path, kind: Site | None, book_files: BookFiles) -> SiteFacts:
    """The facts for a kind of site, or for the first kind whose configuration is in, above or below the folder. Raises
    BookNotFound if there are several below it."""
    here = Path(os.path.realpath(folder))
    roots = (here, *list(here.parents)[:MAX_PARENTS])
    configured = next((facts for root in roots if (facts := _facts_at(root, here, kind))), None)
    facts = (
        configured
        or _listing_facts(here, here, kind, book_files.files)
        or next((facts for root in roots[1:-1] if (facts := _facts_beside(root, here, kind))), None)
        or _facts_below(here, kind, book_files)
        or SiteFacts(kind=kind)
    )
    labels, positions, problems = dict(facts.labels), dict(facts.positions), list(facts.problems)
    title = one_line(facts.title or "") or None
    description = one_line(facts.description or "", MAX_DESCRIPTION) or None
    for path in book_files.side_files:
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
    return replace(
        facts, title=title, description=description, labels=fit, positions=positions, problems=tuple(problems)
    )


def page_path(facts: SiteFacts, site: Site, file: str) -> tuple[str, str]:
    """The path of a file from its folder of pages, and the route of that folder if it is not the main one."""
    for folder, route in facts.more_pages.items():
        if file.startswith(f"{folder}/"):
            return file.removeprefix(f"{folder}/"), route
    under = _DEFAULT_PAGES_FOLDERS[site] if facts.pages_under is None else facts.pages_under
    return (file.removeprefix(f"{under}/") if under else file), ""


def _facts_at(root: Path, here: Path, kind: Site | None) -> SiteFacts | None:
    """The facts from a configuration file in a folder."""
    for name, config_names, read in _READERS:
        if kind not in (None, name):
            continue
        for file in config_names:
            config_file = _ConfigFile(file=file, root=root, here=here)
            if (text := _config(root, file)) is not None and (facts := read(text, config_file)) is not None:
                return replace(facts, config=config_file.report_name, site_folder=config_file.from_book("."))
    return None


def _facts_beside(parent: Path, here: Path, kind: Site | None) -> SiteFacts | None:
    """The facts of a site in another folder of `parent` whose pages are in the book's folder or above it."""
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in islice(entries, MAX_SIBLINGS) if entry.is_dir())
    except OSError:
        return None
    for name in names:
        root = parent / name
        if here.is_relative_to(root) or name.startswith(".") or name in _SAMPLE_FOLDERS:
            continue
        if (facts := _facts_at(root, here, kind)) and facts.pages_under == "":
            return facts
    return None


def _listing_facts(root: Path, here: Path, kind: Site | None, files: list[str]) -> SiteFacts | None:
    """The facts from a file that lists the pages of a book without a configuration."""
    if kind in (None, "mdbook"):
        for source in ("", "src"):
            config_file = _ConfigFile(file=posixpath.join(source, SUMMARY), root=root, here=here)
            if (summary := _config(root, config_file.file)) is not None:
                return _without_config(_summary_facts(summary, config_file, config_file.from_book(source)), files)
    if kind in (None, "plain") and (text := _config(root, TOCTREE)) is not None:
        return _toctree_facts(text, _ConfigFile(file=TOCTREE, root=root, here=here), files)
    return None


def _facts_below(here: Path, kind: Site | None, book_files: BookFiles) -> SiteFacts | None:
    """The facts of the one site below the folder. If most lessons are outside of it, it is only a part of the book."""
    folders = {path.rpartition("/")[0] for path in book_files.config_files}
    sites: dict[str, SiteFacts] = {}
    for folder in sorted(folders):
        steps = folder.split("/")
        if len(steps) > MAX_CHILDREN or _SAMPLE_FOLDERS.intersection(steps):
            continue
        facts = _facts_at(here / folder, here, kind)
        if facts is None and posixpath.join(folder, TOCTREE) in book_files.config_files:
            facts = _listing_facts(here / folder, here, kind, book_files.files)
        if facts and facts.pages_under and any(file.startswith(f"{facts.pages_under}/") for file in book_files.files):
            sites.setdefault(facts.pages_under, facts)
    pages_folders = tuple(f"{folder}/" for facts in sites.values() for folder in (facts.pages_under, *facts.more_pages))
    inside = [file for file in book_files.files if file.startswith(pages_folders)]
    site_folders = (*pages_folders, *(f"{facts.site_folder}/" for facts in sites.values()))
    others = [file for file in book_files.files if not _beside_a_book(file)]
    outside = [file for file in others if not file.startswith(site_folders)]
    if not sites or len(outside) >= len(inside):
        languages = translations(others) if kind is None else []
        if languages:
            raise _several_books(here, languages)
        return None
    if len(sites) > 1:
        raise _several_books(here, [*sites])
    return next(iter(sites.values()))


def _several_books(here: Path, folders: list[str]) -> BookNotFound:
    names = ", ".join(folders[:MAX_LISTED_BOOKS])
    more = f" and {len(folders) - MAX_LISTED_BOOKS} more" if len(folders) > MAX_LISTED_BOOKS else ""
    return BookNotFound(f"{str(here)!r} holds {len(folders)} books: {names}{more}; name the folder of one of them")


def _beside_a_book(file: str) -> bool:
    """Whether a file is one that a repository has beside its book: a README, a licence, a test."""
    *folders, name = file.lower().split("/")
    stem = name.rpartition(".")[0].replace("-", "_")
    return (
        bool(_SAMPLE_FOLDERS.intersection(folders)) or stem.partition(".")[0].rstrip("_v0123456789") in _PROJECT_FILES
    )


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
    except (OSError, ValueError):
        return False


def _pages_under(root: Path, pages: str, here: Path) -> str | None:
    """The pages folder as a path from the book's folder: "" if it is the book's folder or above, None if beside it."""
    base = Path(os.path.normpath(root / pages))
    if here.is_relative_to(base):
        return ""
    return base.relative_to(here).as_posix() if base.is_relative_to(here) else None


def _below_pages(root: Path, pages: str, here: Path) -> str:
    """The path from the pages folder to the book's folder, if that is inside; else empty."""
    base = Path(os.path.normpath(root / pages))
    return here.relative_to(base).as_posix() if here.is_relative_to(base) else ""


def _docusaurus(text: str, config_file: _ConfigFile) -> SiteFacts | None:
    tagline = _JS_TAGLINE.search(text)
    facts = SiteFacts(
        kind="docusaurus",
        title=site_title(text),
        description=(tagline[1] or tagline[2]) if tagline else None,
        syntaxes=("docusaurus",),
    )
    named = docs_plugins(text)
    for plugin in named[:1]:
        _refuse_pages_elsewhere(plugin.path, config_file)
    plugins = [
        (plugin, under)
        for plugin in [*named, *other_folders(text)]
        if (under := _pages_under(config_file.root, plugin.path, config_file.here)) is not None
        and (under == "" or _there(config_file.here / under, Path.is_dir))
    ]
    here, root = config_file.here, config_file.root
    if not plugins:
        versions = here != root and here.is_relative_to(root) and here.relative_to(root).parts[0] in _OTHER_EDITIONS
        return replace(facts, pages_under="") if here == root or versions else None
    main, under = next(((plugin, folder) for plugin, folder in plugins if folder == ""), plugins[0])
    plugins = [(plugin, folder) for plugin, folder in plugins if plugin is main or not plugin.guessed]
    if under == "":  # the book is a folder of one plugin
        plugins = [(main, "")]
    return replace(
        facts,
        pages_under=under,
        base_url=None if main.guessed else docusaurus_address(text, main.route, _below_pages(root, main.path, here)),
        main_route=main.route,
        more_pages={folder: plugin.route for plugin, folder in plugins if folder and plugin is not main},
        sidebars={folder: _sidebar(plugin, config_file) for plugin, folder in plugins},
        plugins={folder: plugin for plugin, folder in plugins if _whole(plugin, config_file)},
    )


def _refuse_pages_elsewhere(path: str, config_file: _ConfigFile) -> None:
    """Raise BookNotFound if the pages of the site in the book's folder are outside of that folder: what is left in it,
    such as a blog, is not the book."""
    here, pages = config_file.here, Path(os.path.normpath(config_file.root / path))
    outside = not pages.is_relative_to(here) and not here.is_relative_to(pages)
    if config_file.root == here and outside and _there(pages, Path.is_dir):
        raise BookNotFound(f"the pages of the site in {str(here)!r} are in {str(pages)!r}; name that folder")


def _whole(plugin: DocsPlugin, config_file: _ConfigFile) -> bool:
    """Whether the book has the whole folder of a plugin, rather than a part of it."""
    base = Path(os.path.normpath(config_file.root / plugin.path))
    return config_file.here == base or not config_file.here.is_relative_to(base)


def _sidebar(plugin: DocsPlugin, config_file: _ConfigFile) -> Sidebar:
    """A plugin's sidebars, unless the book is only a part of the plugin's folder."""
    if not _whole(plugin, config_file):
        return Sidebar()
    names = (plugin.sidebar_file,) if plugin.sidebar_file else DEFAULT_SIDEBARS
    text = next((text for name in names if (text := _config(config_file.root, name)) is not None), "")
    return read_sidebar(text)


def _mkdocs(text: str, config_file: _ConfigFile) -> SiteFacts | None:
    config, problems = _settings(partial(yaml_settings, tags=True), text, config_file)
    pages = scalar(config.get("docs_dir")) or "docs"
    _refuse_pages_elsewhere(pages, config_file)
    under = _pages_under(config_file.root, pages, config_file.here)
    if under is None:
        return None
    nav, contents_file = Navigation(), literate_nav_file(config)
    if "nav" in config:
        book = "" if under else config_file.here.relative_to(os.path.normpath(config_file.root / pages)).as_posix()
        nav = mkdocs_navigation(config["nav"], book.removeprefix("."), under)
    elif contents_file and (text_of_nav := _config(config_file.here, posixpath.join(under, contents_file))) is not None:
        nav = summary_navigation(text_of_nav, under)
    syntaxes, bases = _mkdocs_includes(text, config, config_file, pages)
    return SiteFacts(
        kind="mkdocs",
        title=scalar(config.get("site_name")),
        description=scalar(config.get("site_description")),
        base_url=mkdocs_address(config.get("site_url"), _below_pages(config_file.root, pages, config_file.here)),
        pages_under=under,
        exclude=(*_lines(config.get("exclude_docs")), *_lines(config.get("draft_docs"))),
        directory_urls=(scalar(config.get("use_directory_urls")) or "true").lower() not in ("false", "no", "off"),
        order=nav.order,
        labels=nav.labels,
        contents_file=contents_file,
        syntaxes=syntaxes,
        include_bases=bases,
        problems=problems,
    )


def _lines(node: yaml.Node | None) -> tuple[str, ...]:
    """The lines of a text, which are patterns."""
    if not isinstance(node, yaml.ScalarNode):
        return ()
    return tuple(line.strip() for line in node.value.split("\n") if line.strip() and not line.lstrip().startswith("#"))


def _mkdocs_includes(
    text: str, config: dict[str, yaml.Node], config_file: _ConfigFile, pages: str
) -> tuple[tuple[Syntax, ...], tuple[str, ...]]:
    """The directives that the site's extensions understand, and the folders that their paths begin at. A configuration
    that inherits another may have all extensions."""
    inherits = "inherit" in config
    syntaxes: list[Syntax] = []
    if inherits or "snippets" in text:
        syntaxes.append("snippets")
    if inherits or "mdx_include" in text or "markdown_include" in text:
        syntaxes += ["mdx_include", "variants"]
    syntaxes.append("code_documentation")
    if inherits or "macros" in text:
        syntaxes.append("templates")
    elif "hooks" in config:
        syntaxes.append("variables")
    folders = [*_base_paths(config.get("markdown_extensions"), 0), ".", pages]
    return tuple(syntaxes), tuple(dict.fromkeys(config_file.from_book(base) for base in folders))


def _base_paths(node: yaml.Node | None, depth: int) -> list[str]:
    """The values of `base_path` in the settings of extensions."""
    if depth > MAX_CHILDREN + 1:
        return []
    if isinstance(node, yaml.SequenceNode):
        return [path for item in node.value for path in _base_paths(item, depth + 1)]
    out: list[str] = []
    for name, value, _ in pairs(node):
        out += (texts(value) or []) if name == "base_path" else _base_paths(value, depth + 1)
    return [path for path in out if path.isprintable() and not path.startswith("/")]


def _mdbook(text: str, config_file: _ConfigFile) -> SiteFacts | None:
    config, problems = _settings(toml_settings, text, config_file)
    book = config.get("book", {})
    if not isinstance(book, dict):
        book, problems = (
            {},
            (warning(config_file.report_name, None, "`book` is no table, so it is passed over; write [book]"),),
        )
    source, title, description = book.get("src"), book.get("title"), book.get("description")
    source = source if isinstance(source, str) else "src"
    _refuse_pages_elsewhere(source, config_file)
    under = _pages_under(config_file.root, source, config_file.here)
    if under is None:
        return None
    summary = _config(config_file.here, posixpath.join(under, SUMMARY))
    facts = SiteFacts(kind="mdbook", pages_under=under, syntaxes=("mdbook",))
    if summary is not None:
        facts = _summary_facts(summary, config_file, under)
    if config.get("preprocessor"):
        facts = replace(facts, syntaxes=(*facts.syntaxes, "variables"))
    return replace(
        facts,
        title=title if isinstance(title, str) else None,
        description=description if isinstance(description, str) else None,
        base_url=mdbook_address(config.get("output"), _below_pages(config_file.root, source, config_file.here)),
        problems=problems,
    )


def _summary_facts(summary: str, config_file: _ConfigFile, under: str) -> SiteFacts:
    under = under.removeprefix(".").strip("/")
    nav = summary_navigation(summary, under)
    return SiteFacts(
        kind="mdbook",
        config=posixpath.join(under, SUMMARY),
        site_folder=config_file.from_book("."),
        pages_under=under,
        listed=frozenset(nav.order),
        order=nav.order,
        places=nav.places,
        labels=nav.labels,
        syntaxes=("mdbook",),
    )


def _without_config(facts: SiteFacts, files: Iterable[str]) -> SiteFacts:
    """The facts of a SUMMARY.md without a book.toml. If it lists less than half of the files, it may be anything."""
    below = [file for file in files if file.startswith(f"{facts.pages_under}/" if facts.pages_under else "")]
    listed = sum(file in facts.order for file in below)
    return facts if listed * 2 >= len(below) - 1 and listed else replace(facts, listed=None, places={})


def _toctree_facts(text: str, config_file: _ConfigFile, files: Iterable[str]) -> SiteFacts | None:
    """The facts of a Hugging Face course or manual. Its pages are named without their suffix."""
    under = config_file.from_book(".").removeprefix(".")
    by_name = {file.rpartition(".")[0]: file for file in files}
    facts = SiteFacts(
        kind="plain", config=config_file.report_name, site_folder=under or ".", pages_under=under, toctree=True
    )
    try:
        nav = toctree_navigation(text, under, by_name.get)
    except Unreadable as exc:
        return replace(facts, problems=(doubt(config_file.report_name, exc),))
    return replace(
        facts,
        listed=frozenset(nav.order),
        order=nav.order,
        places=nav.places,
        labels=nav.labels,
        missing=tuple(nav.missing),
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
