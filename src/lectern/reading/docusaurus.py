"""Reads Docusaurus' JavaScript as far as it can be read without running it: the folders of the docs plugins, which of
their files are pages, and the pages and categories of the sidebars in their order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from lectern.domain.books import natural
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.routes import without_prefix
from lectern.reading.tags import TagScanner

_COMMENTS = re.compile(  # or a string, in which a pattern such as **/*.md is no comment
    r"(?P<string>'[^'\\\n]{0,300}'|\"[^\"\\\n]{0,300}\")|/\*.*?(?:\*/|\Z)|(?:(?<=[\s,;{}()\[\]])|^)//[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_PRESET_DOCS = re.compile(r"(?<![\w.])['\"]?docs['\"]?\s{0,20}:\s{0,20}\{")
_NO_DOCS = re.compile(r"(?<![\w.])['\"]?docs['\"]?\s{0,20}:\s{0,20}false\b")
_PLUGIN_DOCS = re.compile(r"(?:['\"]|plugin-)content-docs['\"]\s{0,20},\s{0,20}\{")
_VALUE = r"{name}\s{{0,20}}:\s{{0,20}}(?:[\w.]{{1,40}}\((?:[\w.]{{1,40}},\s{{0,20}})?)?['\"`]([^'\"`\n]{{1,200}})['\"`]"
_PATH, _ROUTE, _SIDEBAR = (
    re.compile(rf"(?<![\w.])['\"]?{_VALUE.format(name=name)}")
    for name in ("path['\"]?", "routeBasePath", "sidebarPath")
)
_OTHER_CONTENT = re.compile(
    r"(?:(?<![\w.])['\"]?(?:blog|pages)['\"]?\s{0,20}:|(?:['\"]|plugin-)content-(?:blog|pages)['\"]\s{0,20},)\s{0,20}\{"
)
_PATTERNS = {
    name: re.compile(rf"(?<![\w.])['\"]?{name}['\"]?\s{{0,20}}:\s{{0,20}}\[([^\]]{{0,4000}})\]")
    for name in ("include", "exclude")
}
_TEXT = re.compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"|`([^`\n]{1,200})`")
_GLOB_SIGN = re.compile(r"\*\*/|\*\*|[*?{},]")
MAX_GLOB_STARS = 8  # more would be slow to match
_DOCS_SETTINGS = re.compile(r"\b(?:path|routeBasePath|sidebarPath|editUrl|versions|include|exclude)['\"]?\s{0,20}:")
_TITLE = re.compile(r"""^\s*title:\s*['"]([^'"]{1,200})['"]""", re.MULTILINE)
_SIDEBAR_FILE = re.compile(r"(?:\./)?(sidebars?[\w.-]{0,60}\.(?:js|ts|json|cjs|mjs))")
_SIDEBAR_TOKEN = re.compile(
    r"(?P<bracket>[\[\]{}])|(?P<word>(?<![\w$.])[A-Za-z_$][\w$]{0,60})(?=\s{0,20}:)"
    r"|(?:'(?P<single>[^'\\\n]{0,300})'|\"(?P<double>[^\"\\\n]{0,300})\")(?P<keyed>\s{0,20}:)?|(?P<comma>,)"
)
_NO_PAGES = frozenset({"keywords", "tags", "className"})  # lists with other texts
DEFAULT_SIDEBARS = tuple(f"sidebars.{end}" for end in ("js", "ts", "json", "cjs", "mjs"))
_LAST = 1e9  # after every position


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsPlugin:
    """One docs plugin: a folder of pages, its route and its sidebars."""

    path: str = "docs"
    route: str = "docs"
    sidebar_file: str | None = None  # beside the configuration; None: the usual names
    include: tuple[str, ...] = ()  # patterns of files that are pages; empty: every Markdown file
    exclude: tuple[str, ...] = ()
    guessed: bool = False  # some path of the configuration


@dataclass(frozen=True, slots=True)
class SidebarItem:
    """A page by its id, or a folder whose pages are listed by themselves."""

    name: str
    folder: bool = False


@dataclass(frozen=True, slots=True)
class Sidebar:
    """The items of a sidebars file in order, and its categories by label, inner ones first."""

    items: tuple[SidebarItem, ...] = ()
    categories: tuple[tuple[str, tuple[SidebarItem, ...]], ...] = ()


def site_title(config: str) -> str | None:
    """The title of the site."""
    match = _TITLE.search(config)
    return match[1] if match else None


def without_comments(text: str) -> str:
    """JavaScript without its comments."""
    return _COMMENTS.sub(lambda match: match["string"] or " ", text)


def docs_plugins(config: str) -> list[DocsPlugin]:
    """The docs plugins that a configuration names, the preset's first; the preset's defaults if it names none."""
    text = without_comments(config)
    scanner = TagScanner(text)
    presets = [
        block for match in _PRESET_DOCS.finditer(text) if _DOCS_SETTINGS.search(block := _braces(scanner, match.end()))
    ]
    named = [_plugin(_braces(scanner, match.end())) for match in _PLUGIN_DOCS.finditer(text)]
    plugins = [_plugin(block) for block in presets[:1]]
    default = DocsPlugin()
    if not plugins and not _NO_DOCS.search(text) and default.path not in {plugin.path for plugin in named}:
        plugins.append(default)
    plugins += named
    return list({plugin.path: plugin for plugin in reversed(plugins)}.values())[::-1]


def other_folders(config: str) -> list[DocsPlugin]:
    """Every other path in a configuration, for plugins that are written in a way that is not understood here. The book
    may be in one of them, but it is no blog."""
    text = without_comments(config)
    scanner = TagScanner(text)
    for match in _OTHER_CONTENT.finditer(text):
        text = text.replace(_braces(scanner, match.end()) or match[0], " ")
    return [DocsPlugin(path=path.strip("/"), guessed=True) for path in _PATH.findall(text)]


def _braces(scanner: TagScanner, at: int) -> str:
    end = scanner.balanced(at)
    return scanner.text[at:end] if end >= 0 else ""


def _plugin(block: str) -> DocsPlugin:
    path, route, sidebar = _PATH.search(block), _ROUTE.search(block), _SIDEBAR.search(block)
    name = _SIDEBAR_FILE.fullmatch(sidebar[1]) if sidebar else None
    return DocsPlugin(
        path=path[1].strip("/").removeprefix("./") if path else "docs",
        route=route[1].strip("/") if route else "docs",
        sidebar_file=name[1] if name else None,
        include=_patterns(block, "include"),
        exclude=_patterns(block, "exclude"),
    )


def _patterns(block: str, name: str) -> tuple[str, ...]:
    match = _PATTERNS[name].search(block)
    return tuple("".join(text) for text in _TEXT.findall(match[1])) if match else ()


def fits(page: str, pattern: str) -> bool:
    """Whether a path fits a glob pattern of Docusaurus: `**/*.{md,mdx}`, `api/**`, `*.md`."""
    return _glob(pattern.removeprefix("./")).fullmatch(page) is not None


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    if pattern.count("*") > MAX_GLOB_STARS or pattern.count("{") != pattern.count("}"):
        return re.compile(re.escape(pattern))
    signs = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}
    out, at, depth = "", 0, 0
    for match in _GLOB_SIGN.finditer(pattern):
        sign = match[0]
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return re.compile(re.escape(pattern))
        out += re.escape(pattern[at : match.start()]) + ("," if sign == "," and not depth else signs[sign])
        at = match.end()
    return re.compile(out + re.escape(pattern[at:]))


@dataclass(slots=True)
class _Brackets:
    """An object or a list of a sidebars file that is not closed yet."""

    key: str | None  # what is before its colon
    label: str | None = None
    items: list[SidebarItem] = field(default_factory=list)


def read_sidebar(text: str) -> Sidebar:
    """The pages, folders and categories of a sidebars file. A text that is no page's id does no harm: no file has it. A
    category has a `label`, or is a list with a name in a sidebar (`Guides: ['a', 'b']`)."""
    path = [_Brackets(None)]
    items: list[SidebarItem] = []
    categories: list[tuple[str, tuple[SidebarItem, ...]]] = []
    key: str | None = None
    for match in _SIDEBAR_TOKEN.finditer(without_comments(text)):
        name, bracket = match["single"] or match["double"] or "", match["bracket"]
        if match["word"] or match["keyed"]:
            key = match["word"] or name
        elif bracket in ("[", "{"):
            named = bracket == "[" and key != "items" and len(path) > 2  # noqa: PLR2004  # in a sidebar
            path.append(_Brackets(key, key if named else None))
            key = None
        elif bracket and len(path) > 1:
            closed = path.pop()
            path[-1].items += closed.items
            if closed.label and closed.items:
                categories.append((closed.label, tuple(closed.items)))
            key = None
        elif match["comma"]:
            key = None
        elif key == "label":
            path[-1].label = name
        elif name and len(path) > 1 and path[-1].key not in _NO_PAGES and (item := _sidebar_item(name, key)):
            items.append(item)
            path[-1].items.append(item)
    return Sidebar(tuple(items), tuple(categories))


def _sidebar_item(name: str, key: str | None) -> SidebarItem | None:
    if key == "dirName":
        return SidebarItem(name.strip("/").removeprefix("./").removeprefix("."), folder=True)
    return SidebarItem(name) if key in (None, "id", "items") else None


def category_labels(sidebar: Sidebar, files: Mapping[str, FrontMatter]) -> dict[str, str]:
    """The labels of folders: a category labels the common folder of its pages, and outer categories come before inner
    ones. Paths are from the plugin's folder."""
    by_id = {page_id(file, front): file for file, front in files.items()}
    labels: dict[str, str] = {}
    for label, items in sidebar.categories:
        folders = [
            item.name if item.folder else by_id[item.name].rpartition("/")[0]
            for item in items
            if item.folder or item.name in by_id
        ]
        if folders and (shared := posixpath.commonpath(folders)):
            labels[shared] = label
    return labels


def pages_without_file(sidebar: Sidebar, files: Mapping[str, FrontMatter]) -> list[str]:
    """The ids in a sidebars file that no page has, unless most texts in it are something else."""
    ids = {page_id(file, front) for file, front in files.items()}
    names = list(dict.fromkeys(item.name for item in sidebar.items if not item.folder))
    missing = [name for name in names if name not in ids]
    return missing if len(missing) * 2 < len(names) else []


def page_order(
    files: list[str], fronts: Mapping[str, FrontMatter], positions: Mapping[str, float], items: tuple[SidebarItem, ...]
) -> list[str]:
    """Pages of one docs plugin in the order of its sidebars; those that are not in them come last. Paths are from the
    plugin's folder, and so are the folders of `positions`."""
    places = dict(positions)
    for file in files:
        folder, _, name = file.rpartition("/")
        position = fronts[file].sidebar_position
        if folder and position is not None and _is_index(name, folder):
            places.setdefault(folder, position)
    listed = sorted(files, key=lambda file: tuple(_steps(file, fronts[file], places)))
    by_id = {page_id(file, fronts[file]): file for file in reversed(listed)}
    out: dict[str, None] = {}
    for item in items:
        if item.folder:
            prefix = f"{item.name}/" if item.name else ""
            out |= dict.fromkeys(file for file in listed if file.startswith(prefix))
        elif item.name in by_id:
            out[by_id[item.name]] = None
    return list(out | dict.fromkeys(listed))


def page_id(file: str, front: FrontMatter) -> str:
    """The id of a page in sidebars: its path without number prefixes, or its own id in its folder."""
    *folders, name = file.split("/")
    return "/".join([*map(without_prefix, folders), front.id or without_prefix(name.rpartition(".")[0])])


def _steps(file: str, front: FrontMatter, positions: Mapping[str, float]) -> Iterator[tuple[float, tuple[object, ...]]]:
    """The sort key of a page, folder by folder: positions first, then number prefixes, then names."""
    *folders, name = file.split("/")
    for depth, folder in enumerate(folders, 1):
        yield positions.get("/".join(folders[:depth]), _prefix(folder)), natural(folder)
    if folders and _is_index(name, folders[-1]):
        yield -_LAST, natural(name)
    else:
        position = front.sidebar_position
        yield _prefix(name) if position is None else position, natural(name)


def _is_index(name: str, folder: str) -> bool:
    return name.rpartition(".")[0].lower() in ("index", "readme", folder.rpartition("/")[2].lower())


def _prefix(name: str) -> float:
    return _LAST if without_prefix(name) == name else float(name[: len(name) - len(name.lstrip("0123456789"))])
