"""Which Markdown files of a folder are the book. A site's configuration says where its pages are, SUMMARY.md and
`_toctree.yml` list them, `exclude_docs` leaves some out, and front matter marks drafts. A file that is not published is
no lesson, and the report names it: nothing is left out silently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from lectern.domain.books import Problem, Site
from lectern.reading.docusaurus import Sidebar, fits, pages_without_file
from lectern.reading.files import SUFFIXES, BookFiles, excluded, partial
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.places import plugin_pages
from lectern.reading.problems import warning
from lectern.reading.sites import SUMMARY, SiteFacts

_TODO = "TODO"
_TEMPLATE_FOLDERS = frozenset({"template", "templates", "_templates"})


@dataclass(slots=True)
class Contents:
    """The files that are read as lessons, and those that are not."""

    files: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def leave_out(self, files: list[str], report_file: str, why: str, mend: str) -> None:
        """Leave files out, and name all of them in the report."""
        self.left_out += files
        count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
        self.name(files, report_file, f"{count} left out, {why}; {mend}")

    def name_missing(self, pages: list[str], facts: SiteFacts) -> None:
        """Name pages that the site lists without a file."""
        count = "1 page is" if len(pages) == 1 else f"{len(pages)} pages are"
        mend = "write the file or remove the entry"
        self.name(pages, facts.config or ".", f"{count} listed in the navigation, but not in the folder; {mend}")

    def name(self, files: list[str], report_file: str, message: str) -> None:
        """Add a message about files to the report, with all their names."""
        if files:
            self.problems.append(warning(report_file, None, f"{message}: {', '.join(files)}"))


def published_files(book_files: BookFiles, facts: SiteFacts, site: Site | None, *, vault: bool) -> Contents:
    """The files that the site publishes, as far as its configuration says. `vault` is an Obsidian vault."""
    contents = Contents()
    folders = [facts.pages_under or "", *facts.more_pages]
    inside = [file for file in book_files.files if _within(file, folders)]
    if not inside:
        folders, inside = [""], list(book_files.files)
    outside = [file for file in book_files.files if not _within(file, folders)]
    contents.leave_out(
        outside,
        facts.config or ".",
        f"because the book's pages are in {', '.join(map(repr, filter(None, folders)))}",
        'to read them too, set `site = "plain"` in lectern.toml',
    )
    reasons = _reasons(inside, facts, site, vault=vault)
    by_reason: dict[str, list[str]] = defaultdict(list)
    for file in inside:
        if _is_contents(file, facts, site):
            continue
        if file in reasons:
            by_reason[reasons[file]].append(file)
        else:
            contents.files.append(file)
    for reason, files in by_reason.items():
        why, report_file, mend = _REPORTS[reason]
        contents.leave_out(files, report_file or facts.config or ".", why, mend)
    _report_unread(contents, [file for file in book_files.unread if _within(file, folders)])
    known = set(book_files.files)
    listed = [path for path in facts.order if path.lower().endswith(SUFFIXES) and path not in known]
    contents.name_missing([*facts.missing, *listed], facts)
    return contents


def missing_in_sidebars(fronts: Mapping[str, FrontMatter], facts: SiteFacts) -> list[Problem]:
    """What the report says about pages that Docusaurus' sidebars list without a file."""
    contents = Contents()
    for under, inside in plugin_pages(fronts, facts):
        contents.name_missing(pages_without_file(facts.sidebars.get(under, Sidebar()), inside), facts)
    return contents.problems


def _within(file: str, folders: Iterable[str]) -> bool:
    return any(not folder or file.startswith(f"{folder}/") for folder in folders)


_REPORTS = {  # why, in which file's line (None: the configuration's), how to mend it
    "unlisted": ("because the table of contents does not list them", None, "list what belongs to the book"),
    "excluded": ("because the site's configuration excludes them", None, "change it to publish them"),
    "partial": (
        "because their names begin with an underscore, so that they are only shown where other pages import them",
        None,
        "rename what should be a page",
    ),
    "readme": ("because the index file of the same folder is published instead", None, "keep one of the two"),
    "todo": ("because it is a list of tasks", ".", "rename it if it is a lesson"),
    "template": ("because they are templates of notes", ".", "move what is a lesson to another folder"),
}


def _reasons(files: list[str], facts: SiteFacts, site: Site | None, *, vault: bool) -> dict[str, str]:
    """The reason why a file is left out, by file."""
    reasons: dict[str, str] = {}
    listed = facts.listed if facts.listed and any(file in facts.listed for file in files) else None
    known = set(files)
    for file in files:
        folder, _, name = file.rpartition("/")
        page = _page_path(file, facts)
        if listed is not None and file not in listed:
            reasons[file] = "unlisted"
        elif site == "mkdocs" and _mkdocs_excludes(page, facts.exclude):
            reasons[file] = "excluded"
        elif site == "mkdocs" and name == "README.md" and f"{folder}/index.md".lstrip("/") in known:
            reasons[file] = "readme"
        elif site == "docusaurus" and partial(page):
            reasons[file] = "partial"
        elif site == "docusaurus" and _docusaurus_excludes(file, facts):
            reasons[file] = "excluded"
        elif name.rpartition(".")[0] == _TODO and (listed is None):
            reasons[file] = "todo"
        elif vault and file.split("/")[0].lower() in _TEMPLATE_FOLDERS and "/" in file:
            reasons[file] = "template"
    return reasons


def _is_contents(file: str, facts: SiteFacts, site: Site | None) -> bool:
    """Whether a file is a table of contents, which is read as such and is no page."""
    if site == "mkdocs":
        return file.rpartition("/")[2] == facts.contents_file
    return site == "mdbook" and _page_path(file, facts) == SUMMARY


def _page_path(file: str, facts: SiteFacts) -> str:
    folder = next(
        (folder for folder in (*facts.more_pages, facts.pages_under) if folder and _within(file, [folder])), ""
    )
    return file.removeprefix(f"{folder}/") if folder else file


def _docusaurus_excludes(file: str, facts: SiteFacts) -> bool:
    """Whether the docs plugin of a file's folder leaves it out, or does not include it."""
    page = _page_path(file, facts)
    plugin = facts.plugins.get(file.removesuffix(page).rstrip("/"))
    if plugin is None:
        return False
    included = not plugin.include or any(fits(page, pattern) for pattern in plugin.include)
    return not included or any(fits(page, pattern) for pattern in plugin.exclude)


def _mkdocs_excludes(page: str, patterns: tuple[str, ...]) -> bool:
    """Whether MkDocs leaves a page out: by patterns as in .gitignore, of which the last that fits counts."""
    out = excluded_by("/templates/", page)
    for pattern in patterns:
        negated = pattern.startswith("!")
        if excluded_by(pattern.removeprefix("!"), page):
            out = not negated
    return out


def excluded_by(pattern: str, page: str) -> bool:
    """Whether a line of .gitignore excludes a path: without a slash inside it fits at any depth, with one from the
    top, and a slash at the end fits folders only."""
    steps = page.split("/")
    bare = pattern.rstrip("/")
    if bare.count("/") == bare.startswith("/"):  # one step
        name = bare.removeprefix("/")
        anchored = bare.startswith("/")
        folders_only = pattern.endswith("/")
        candidates = (steps[:-1] if folders_only else steps)[: 1 if anchored else None]
        return any(fnmatchcase(step, name) for step in candidates)
    return excluded(page, bare.removeprefix("/"))


def drafts(fronts: Mapping[str, FrontMatter]) -> Contents:
    """The files whose front matter says that they are not published."""
    contents = Contents()
    for file, front in fronts.items():
        if front.hidden is None:
            contents.files.append(file)
            continue
        contents.left_out.append(file)
        message = f"this page is left out, because its front matter says '{front.hidden}: true'; remove it to publish"
        contents.problems.append(warning(file, None, message))
    return contents


def _report_unread(contents: Contents, files: list[str]) -> None:
    """Name the texts in formats that are not read, format by format."""
    by_suffix: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_suffix[f".{file.rpartition('.')[2].lower()}"].append(file)
    for suffix, names in sorted(by_suffix.items(), key=lambda item: len(item[1])):
        contents.leave_out(names, names[0], f"because {suffix} is not read", "convert them to Markdown")
