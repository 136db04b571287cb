"""Which site a book is built with, and what its own files say of order, labels and pages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lectern.domain.books import Survey
from lectern.domain.errors import BadManifest
from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, lessons_by_file, write

MKDOCS = """
site_name: The Manual
theme: material
nav:
  - Home: index.md
  - Getting started:
      - Second: start/zeta.md
      - start/alpha.md
  - External: https://example.org
markdown_extensions:
  - pymdownx.emoji:
      emoji_index: !!python/name:material.extensions.emoji.twemoji
"""
SUMMARY = """# Summary

[Preface](preface.md)

# Part one

- [Zeta](zeta.md)
    - [Inner](zeta/inner.md)
- [Alpha]( alpha.md )
- [Draft]()

[Outside](https://example.org/x.md)
"""


def numbers(book_survey: Survey) -> dict[str, int]:
    """Lesson numbers by file."""
    return {file: lesson.place.lesson for file, lesson in lessons_by_file(book_survey).items()}


@pytest.mark.parametrize(
    ("files", "book", "site"),
    [
        ({"docusaurus.config.js": "", "docs/a.md": BODY}, "docs", "docusaurus"),
        ({"docusaurus.config.ts": "", "docs/a.md": BODY}, ".", "docusaurus"),
        ({"docusaurus.config.js": "docs: { path: 'book' }", "book/a.md": BODY}, "book", "docusaurus"),
        ({"docusaurus.config.js": "", "docs/m/a.md": BODY}, "docs/m", "docusaurus"),
        ({"mkdocs.yml": "site_name: X", "docs/a.md": BODY}, "docs", "mkdocs"),
        ({"mkdocs.yml": "docs_dir: text", "text/a.md": BODY}, "text", "mkdocs"),
        ({"mkdocs.yml": MKDOCS, "docs/a.md": BODY}, ".", "mkdocs"),
        ({"book.toml": "[book]", "src/a.md": BODY}, "src", "mdbook"),
        ({"book.toml": "[book]\nsrc = 'text'", "text/a.md": BODY}, ".", "mdbook"),
        ({"src/SUMMARY.md": SUMMARY, "src/a.md": BODY}, ".", "mdbook"),
        ({"SUMMARY.md": SUMMARY, "a.md": BODY}, ".", "mdbook"),
        ({"a.md": f"---\nsidebar_position: 1\n---\n{BODY}"}, ".", "docusaurus"),
        ({"a.md": f"---\nsidebar_label: A\n---\n{BODY}"}, ".", "docusaurus"),
        ({"a.md": BODY}, ".", "plain"),
        ({"mkdocs.yml": "site_name: X", "examples/book/a.md": BODY}, "examples/book", "plain"),
        ({"book.toml": "[book]", "other/a.md": BODY}, "other", "plain"),
        ({"docusaurus.config.js": "", "examples/book/a.md": BODY}, "examples/book", "plain"),
        ({"mkdocs.yml": "site_name: X", "docs/1/2/3/4/a.md": BODY}, "docs/1/2/3/4", "plain"),
        ({"lectern.toml": "site = 'plain'", "mkdocs.yml": "site_name: X", "docs/a.md": BODY}, ".", "plain"),
    ],
)
def test_the_site_is_known_by_its_files(tmp_path: Path, files: dict[str, str], book: str, site: str) -> None:
    """Configuration in the folder or up to three above it, if the folder is among its pages; else keys; else plain."""
    write(tmp_path, files)

    assert survey(tmp_path / book).manifest.site == site


def test_mkdocs_gives_title_order_and_labels(tmp_path: Path) -> None:
    """The nav's order numbers lessons, its section title names their folder, and no tag of its is built."""
    files = {"mkdocs.yml": MKDOCS, "docs/index.md": BODY, "docs/start/alpha.md": BODY, "docs/start/zeta.md": BODY}
    book_survey = survey(write(tmp_path, {**files, "docs/start/more.md": BODY, "docs/b/x.md": BODY}))
    lessons = lessons_by_file(book_survey)

    assert book_survey.manifest.title == "The Manual"
    assert numbers(book_survey)["docs/start/zeta.md"] < numbers(book_survey)["docs/start/alpha.md"]
    assert numbers(book_survey)["docs/start/alpha.md"] < numbers(book_survey)["docs/start/more.md"]
    assert lessons["docs/start/zeta.md"].module_title == "Getting started"
    assert lessons["docs/start/zeta.md"].url == "/start/zeta/"


def test_mkdocs_without_directory_urls(tmp_path: Path) -> None:
    """Pages are then files."""
    files = {"mkdocs.yml": "use_directory_urls: false", "docs/a.md": BODY, "docs/b/index.md": BODY}

    urls = {file: lesson.url for file, lesson in lessons_by_file(survey(write(tmp_path, files))).items()}

    assert urls == {"docs/a.md": "/a.html", "docs/b/index.md": "/b/index.html"}


def test_mkdocs_navigation_seen_from_a_folder_of_its_pages(tmp_path: Path) -> None:
    """A book that is one folder of a site has that folder's part of the order."""
    write(tmp_path, {"mkdocs.yml": MKDOCS, "docs/start/alpha.md": BODY, "docs/start/zeta.md": BODY})

    assert numbers(survey(tmp_path / "docs" / "start")) == {"alpha.md": 2, "zeta.md": 1}


def test_mdbook_gives_title_and_order(tmp_path: Path) -> None:
    """SUMMARY.md gives the places: its parts are modules, its entries chapters and lessons. It is no lesson itself."""
    files = {"book.toml": '[book]\ntitle = "Rust"\n', "src/SUMMARY.md": SUMMARY, "src/alpha.md": BODY}
    book_survey = survey(write(tmp_path, {**files, "src/preface.md": BODY, "src/zeta.md": BODY}))
    lessons = lessons_by_file(book_survey)

    places = {
        file: (lesson.place.module, lesson.place.chapter, lesson.place.lesson) for file, lesson in lessons.items()
    }
    assert book_survey.manifest.title == "Rust"
    assert [module.title for module in book_survey.manifest.modules] == ["Rust", "Part one"]
    assert places == {
        "src/preface.md": ("main", 0, 1),
        "src/zeta.md": ("part-one", 1, 0),
        "src/alpha.md": ("part-one", 2, 0),
    }
    assert lessons["src/zeta.md"].url == "/zeta.html"


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("mkdocs.yml", "docs_dir: docs\nnav: [../secret.md, a.md]\nextra_css: [../secret.css]\nINHERIT: secret.yml\n"),
        ("book.toml", "[book]\nsrc = 'docs'\n"),
        ("docusaurus.config.js", "module.exports = { docs: { path: 'docs', sidebarPath: './secret.js' } }"),
    ],
    ids=["mkdocs", "mdbook", "docusaurus"],
)
def test_outside_the_book_only_the_sites_configuration_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, text: str
) -> None:
    """Whatever it names: pages, styles, sidebars and settings above the book's folder stay closed."""
    others = {f"secret.{end}": BODY for end in ("md", "css", "yml", "js")} | {"SUMMARY.md": SUMMARY, "lectern.toml": ""}
    write(tmp_path, {**others, config: text, "docs/a.md": BODY})
    opened: set[str] = set()
    open_file = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.add(os.path.realpath(path)) or open_file(path, *rest))
    survey(tmp_path / "docs")

    assert {Path(path).name for path in opened if Path(path).parent == tmp_path.resolve()} == {config}


@pytest.mark.parametrize(
    "files",
    [
        {"mkdocs.yml": "nav: [[[[", "docs/a.md": BODY},
        {"mkdocs.yml": "- just\n- a list", "docs/a.md": BODY},
        {"mkdocs.yml": b"\xff\xfe\x00", "docs/a.md": BODY},
        {"mkdocs.yml": "nav:\n" + "- - " * 30_000, "docs/a.md": BODY},
        {"book.toml": "[[[", "src/a.md": BODY},
        {"book.toml": "book = 3", "src/a.md": BODY},
        {"m/_category_.json": "[" * 50_000, "m/a.md": BODY},
        {"m/_category_.json": "[1]", "m/a.md": BODY},
        {"m/_category_.yml": "label: [a", "m/a.md": BODY},
        {"m/_category_.json": '{"label": 3, "position": "x"}', "m/a.md": BODY},
        {"m/_category_.json": f'{{"position": {"9" * 400}}}', "m/a.md": BODY},
        {"m/_category_.json": f'{{"position": {"9" * 5000}}}', "m/a.md": BODY},
        {"book.toml": f"[book]\nsrc = '{'s' * 300}'", "src/a.md": BODY},
        {"book.toml": '[book]\nsrc = "s\\u0000"', "src/a.md": BODY},
        {"docusaurus.config.js": f"path: '{'漢' * 200}'", "a/a.md": BODY},
        {"mkdocs.yml": "nav:\n  - ? [a, {b: c}]\n    : a.md", "docs/a.md": BODY},
    ],
)
def test_broken_configuration_never_stops_a_survey(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    """A site's own files help where they can be read; a book does not need them."""
    assert len(survey(write(tmp_path, files)).lessons) == 1


@pytest.mark.parametrize(
    ("files", "file", "line", "why"),
    [
        ({"mkdocs.yml": "site_name: X\nnav: [[[[", "docs/a.md": BODY}, "mkdocs.yml", 2, "not valid YAML"),
        ({"mkdocs.yml": "- just\n- a list", "docs/a.md": BODY}, "mkdocs.yml", None, "no settings"),
        ({"mkdocs.yml": b"\xff\xfe\x00", "docs/a.md": BODY}, "mkdocs.yml", None, "not valid YAML"),
        ({"mkdocs.yml": "nav:\n" + "- - " * 30_000, "docs/a.md": BODY}, "mkdocs.yml", 2, "nested deeper"),
        ({"book.toml": "[book]\n[[[", "src/a.md": BODY}, "book.toml", 2, "not valid TOML"),
        ({"book.toml": "book = 3", "src/a.md": BODY}, "book.toml", None, "no table"),
        ({"m/_category_.json": '{\n"label"', "m/a.md": BODY}, "m/_category_.json", 2, "not valid JSON"),
        ({"m/_category_.json": "[" * 50_000, "m/a.md": BODY}, "m/_category_.json", None, "not valid JSON"),
        ({"m/_category_.json": "[1]", "m/a.md": BODY}, "m/_category_.json", None, "no settings"),
        ({"m/_category_.yml": "label: [a", "m/a.md": BODY}, "m/_category_.yml", 1, "not valid YAML"),
        ({"m/_category_.json": '{"position": "x"}', "m/a.md": BODY}, "m/_category_.json", None, "position"),
        ({"m/_category_.json": f'{{"position": {"9" * 400}}}', "m/a.md": BODY}, "m/_category_.json", None, "position"),
    ],
)
def test_broken_configuration_is_named_in_the_report(
    tmp_path: Path, files: dict[str, str | bytes], file: str, line: int | None, why: str
) -> None:
    """Whoever broke mkdocs.yml hears of it, and does not wonder where the order of the chapters went."""
    book_survey = survey(write(tmp_path, files))

    [problem] = book_survey.problems
    assert (problem.file, problem.severity) == (file, "warning")
    assert line is None or problem.line == line
    assert why in problem.message
    assert len(book_survey.lessons) == 1


def test_a_broken_configuration_above_the_book_is_named_from_there(tmp_path: Path) -> None:
    """The report says where the file lies seen from the book; one that is not the book's is not its business."""
    write(tmp_path, {"mkdocs.yml": "nav: [[[[", "docs/a.md": BODY, "notes/a.md": BODY})

    assert [problem.file for problem in survey(tmp_path / "docs").problems] == ["../mkdocs.yml"]
    assert survey(tmp_path / "notes").problems == ()


def test_good_configuration_gives_no_warning(tmp_path: Path) -> None:
    """Tags, empty files and settings of other tools are nothing to complain about."""
    pages = ("index", "start/zeta", "start/alpha", "a", "m/a")
    files = {"mkdocs.yml": MKDOCS, "docs/m/_category_.yml": "", **{f"docs/{page}.md": BODY for page in pages}}

    assert survey(write(tmp_path, files)).problems == ()


ODD_LABELS = {
    "a surrogate": r"\ud800 Bad",
    "controls": r"\u001b Bad\u0000\u0085\n\tlabel",
    "nothing else": r"\ud800\u0007",
}


@pytest.mark.parametrize("label", [*ODD_LABELS.values(), "long " * 60_000], ids=[*ODD_LABELS, "no end"])
@pytest.mark.parametrize(
    "files",
    [
        {"m/_category_.json": '{"label": "LABEL"}'},
        {"m/_category_.yml": 'label: "LABEL"'},
        {
            "mkdocs.yml": 'site_name: "LABEL"\nnav:\n  - "LABEL":\n      - "LABEL": m/a.md',
            "docs/m/a.md": "Some words here.",
        },
        {"book.toml": '[book]\ntitle = "LABEL"\nsrc = "."', "SUMMARY.md": "[LABEL](m/a.md)\n"},
        {"lectern.toml": 'title = "LABEL"\n[[modules]]\nfolder = "m"\ntitle = "LABEL"'},
        {"docusaurus.config.js": "title: 'LABEL'"},
        {"m/a.md": '---\ntitle: "LABEL"\nsidebar_label: "LABEL"\n---\nSome words here.'},
    ],
    ids=["category", "category yaml", "mkdocs", "mdbook", "manifest", "docusaurus", "front matter"],
)
def test_titles_from_outside_are_one_short_line(tmp_path: Path, files: dict[str, str], label: str) -> None:
    """Whatever a site's files call a page, its titles can be stored and shown: no lone surrogate, no control
    character, no line break, and not a label that would go a megabyte long into every breadcrumb."""
    texts = {name: text.replace("LABEL", label) for name, text in files.items()}
    try:
        book_survey = survey(write(tmp_path, {"m/a.md": "Some words here.", "n/b.md": BODY, **texts}))
    except BadManifest:
        assert r"\ud800" in label  # TOML itself refuses it
        return

    titles = [book_survey.manifest.title, *(module.title for module in book_survey.manifest.modules)]
    for lesson in book_survey.lessons:
        titles += [lesson.page_title, lesson.module_title, lesson.chapter_title, lesson.lesson_title]
        result = read_lesson(tmp_path, lesson, book_survey.manifest)
        titles += [text for chunk in result.chunks for text in (*chunk.trail, *chunk.breadcrumb.split(" › "))]
    assert book_survey.lessons
    for title in titles:
        assert title.isprintable()
        assert title.strip() == title != ""
        assert len(title) <= 300


def test_a_partial_is_shown_by_the_page_that_imports_it(tmp_path: Path) -> None:
    """Docusaurus writes no page for `_install.mdx`: its text is on the pages that import it, and it is no lesson."""
    files = {
        "docusaurus.config.js": "",
        "docs/guide/start.mdx": f"import Install from './_install.mdx';\n\n{BODY}\n<Install />\n",
        "docs/guide/_install.mdx": "import Deep from '@site/docs/_deep.mdx';\n\nInstall it first.\n\n<Deep/>\n",
        "docs/_deep.mdx": "The deepest words of all.",
        "docs/_lonely.mdx": BODY,
    }
    book_survey = survey(write(tmp_path, files))
    [lesson] = book_survey.lessons
    text = "\n".join(chunk.text for chunk in read_lesson(tmp_path, lesson, book_survey.manifest).chunks)

    assert (lesson.source_file, lesson.url) == ("docs/guide/start.mdx", "/guide/start")
    assert "Install it first." in text
    assert "The deepest words of all." in text
    assert set(book_survey.files_left_out) == {"docs/guide/_install.mdx", "docs/_deep.mdx", "docs/_lonely.mdx"}


def test_odd_navigation_never_stops_a_book(tmp_path: Path) -> None:
    """An absolute address in `nav`, and a position beyond all bounds, cost nothing but themselves."""
    nav = "nav:\n  - Part:\n      - API: /api/\n      - One: a/one.md\n      - Two: a/two.md\n"
    write(tmp_path / "mk", {"mkdocs.yml": nav, "docs/a/one.md": BODY, "docs/a/two.md": BODY})
    endless = '{"label": "X", "position": 1e30}'
    write(tmp_path / "ds", {"docusaurus.config.js": "", "docs/m/c/_category_.json": endless, "docs/m/c/a.md": BODY})

    assert len(survey(tmp_path / "mk" / "docs").lessons) == 2
    [lesson] = survey(tmp_path / "ds" / "docs").lessons
    assert lesson.place.chapter < 10**6


def test_modules_are_in_the_sites_order(tmp_path: Path) -> None:
    """Where nav says Basics comes before Advanced, so does the book; what nav leaves out comes last."""
    nav = "nav:\n  - Basics: basics/one.md\n  - Advanced: advanced/two.md\n"
    pages = {"docs/basics/one.md": BODY, "docs/advanced/two.md": BODY, "docs/aside/three.md": BODY}
    write(tmp_path, {"mkdocs.yml": nav, **pages})

    book_survey = survey(tmp_path / "docs")

    assert [module.slug for module in book_survey.manifest.modules] == ["basics", "advanced", "aside"]
