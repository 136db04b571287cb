"""What belongs to a book: what its site publishes, and nothing else. What is left out is named."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lectern.domain.errors import BookNotFound
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.navigation import chapter_numbers
from lectern.reading.published import Contents, drafts, excluded_by
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, lessons_by_file, write

SUMMARY = """# Summary

[Preface](preface.md)

# Basics

- [Start](start.md)
    - [Setup](start/setup.md)
        - [Deep](start/deep.md)
- [Draft]()
- [`Types`](types.md#top)

# Going on

- [More](more.md)

---

[Words](<the words.md>)
"""
TOCTREE = """- title: 0. Setup
  sections:
  - local: chapter0/1
    title: Introduction
- title: 1. Models
  sections:
  - local: chapter1/1
    title: What they are
  - title: Inside
    sections:
    - local: chapter1/2
- title: Unit 3. Training
  sections:
  - local_fw: { pt: chapter3/pt, tf: chapter3/tf }
"""


def published(root: Path, files: dict[str, str | bytes]) -> tuple[list[str], list[str]]:
    """The lessons and the files that are left out."""
    book_survey = survey(write(root, files))
    return sorted(lessons_by_file(book_survey)), sorted(book_survey.files_left_out)


def places(root: Path, files: dict[str, str | bytes]) -> dict[str, tuple[str, int, int, str]]:
    """Module, chapter, lesson and the chapter's title by file."""
    lessons = lessons_by_file(survey(write(root, files)))
    return {
        file: (lesson.place.module, lesson.place.chapter, lesson.place.lesson, lesson.chapter_title)
        for file, lesson in lessons.items()
    }


def test_summary_is_the_structure_of_a_book(tmp_path: Path) -> None:
    """Parts are modules, numbers are mdBook's, drafts have a number and no page, and folders do not matter."""
    names = ("preface", "start", "start/setup", "start/deep", "types", "more", "the words")
    files = {"book.toml": "[book]\ntitle = 'B'\nsrc = 'text'", "text/SUMMARY.md": SUMMARY}

    assert places(tmp_path, {**files, **{f"text/{name}.md": BODY for name in names}}) == {
        "text/preface.md": ("main", 0, 1, "B"),
        "text/start.md": ("basics", 1, 0, "Start"),
        "text/start/setup.md": ("basics", 1, 1, "Start"),
        "text/start/deep.md": ("basics", 1, 2, "Start"),
        "text/types.md": ("basics", 3, 0, "Types"),
        "text/more.md": ("going-on", 4, 0, "More"),
        "text/the words.md": ("going-on", 5, 1, "A lesson"),
    }


def test_mdbook_publishes_what_summary_lists(tmp_path: Path) -> None:
    """Other files of the folder, and those outside of it, are named; the table of contents is neither."""
    files = {"book.toml": "[book]", "src/SUMMARY.md": "- [A](a.md)\n", "src/a.md": BODY, "src/old.md": BODY}
    lessons, left_out = published(
        tmp_path, {**files, "README.md": BODY, "first-edition/src/a.md": BODY, "TODO.md": BODY}
    )
    messages = " ".join(problem.message for problem in survey(tmp_path).problems)

    assert lessons == ["src/a.md"]
    assert left_out == ["README.md", "TODO.md", "first-edition/src/a.md", "src/old.md"]
    assert "src/old.md" in messages
    assert "first-edition/src/a.md" in messages


def test_a_summary_that_lists_little_restricts_nothing(tmp_path: Path) -> None:
    """Without a book.toml, a file of that name may be a summary of the book."""
    files = {"SUMMARY.md": "# Summary\n\nSee [a](a.md).\n- [a](a.md)\n", **{f"{name}.md": BODY for name in "abcdef"}}

    assert published(tmp_path, files) == ([f"{name}.md" for name in "abcdef"], [])


def test_mkdocs_publishes_its_folder_without_what_it_excludes(tmp_path: Path) -> None:
    """Pages that are not in the nav are published too; `exclude_docs` and `draft_docs` are not, nor templates."""
    config = "nav: [a.md]\nexclude_docs: |\n  drafts/\n  /b.md\n  !keep.md\n  *.tmp.md\ndraft_docs: |\n  next/**\n"
    pages = ("a", "b", "c/b", "drafts/x", "drafts/keep", "y.tmp", "next/z", "templates/t", "d/index", "d/README")
    lessons, left_out = published(
        tmp_path, {"mkdocs.yml": config, "README.md": BODY, **{f"docs/{page}.md": BODY for page in pages}}
    )

    assert lessons == [f"docs/{page}.md" for page in ("a", "c/b", "d/index", "drafts/keep")]
    assert len(left_out) == 7


@pytest.mark.parametrize(
    ("pattern", "page", "fits"),
    [
        ("drafts/", "a/drafts/b.md", True),
        ("drafts/", "drafts", False),
        ("/drafts", "a/drafts/b.md", False),
        ("a/*.md", "a/b.md", True),
        ("a/*.md", "a/b/c.md", False),
        ("a/**/c.md", "a/b/x/c.md", True),
        ("*.md", "x/y.md", True),
    ],
)
def test_patterns_are_those_of_gitignore(pattern: str, page: str, fits: bool) -> None:
    """A name fits at any depth, a path from the top, and a slash at the end means a folder."""
    assert excluded_by(pattern, page) is fits


def test_docusaurus_publishes_the_folders_of_its_docs_plugins(tmp_path: Path) -> None:
    """The preset's folder and those of further plugins; no blog, no old version, no partial, and comments are none."""
    config = """module.exports = {
      title: 'B',
      plugins: [['@docusaurus/plugin-content-docs', { id: 'more', path: 'more', routeBasePath: 'extra' }]],
      presets: [['classic', { docs: { // path: 'old',
        path: 'guide', sidebarPath: './sidebars.js' }, blog: { path: 'blog' } }]],
    };"""
    pages = ("guide/a", "guide/_part", "more/m", "blog/b", "versioned_docs/version-1/a", "README", "src/pages/p")
    files = {"docusaurus.config.js": config, **{f"{page}.md": BODY for page in pages}}
    lessons, left_out = published(tmp_path, files)

    assert lessons == ["guide/a.md", "more/m.md"]
    assert len(left_out) == 5
    assert [lesson.url for lesson in survey(tmp_path).lessons] == ["/a", "/extra/m"]
    write(tmp_path, {"lectern.toml": 'base_url = "https://x.org/docs"'})
    assert [lesson.url for lesson in survey(tmp_path).lessons] == ["https://x.org/docs/a", "https://x.org/extra/m"]


def test_sidebars_order_the_pages(tmp_path: Path) -> None:
    """Ids, categories and generated folders as they are written; pages by position; nothing is executed."""
    sidebars = """// 'z/last' comes first? No.
    export default { docs: ['intro', { type: 'category', label: 'z/last', link: {type: 'doc', id: 'z/index'},
      items: ['z/last', 'z/first'] }, {type: 'autogenerated', dirName: 'm'}] };"""
    pages = {
        "z/01-first": BODY,
        "z/last": BODY,
        "z/index": BODY,
        "m/b": f"---\nsidebar_position: 1\n---\n{BODY}",
        "m/a": BODY,
        "a-first-by-name": BODY,
        "10-start": f"---\nid: intro\n---\n{BODY}",
    }
    files = {
        "docusaurus.config.js": "",
        "sidebars.js": sidebars,
        **{f"docs/{name}.md": text for name, text in pages.items()},
    }
    book_survey = survey(write(tmp_path, files))
    lessons = lessons_by_file(book_survey)

    assert [module.slug for module in book_survey.manifest.modules] == ["main", "z", "m"]
    assert lessons["docs/10-start.md"].place.lesson < lessons["docs/a-first-by-name.md"].place.lesson
    assert lessons["docs/m/b.md"].place.lesson == 1
    assert lessons["docs/z/index.md"].place.lesson == 0


def test_toctree_is_the_structure_of_a_course(tmp_path: Path) -> None:
    """Its entries are chapters with the numbers of their titles; pages that it does not list are left out."""
    names = ("chapter0/1", "chapter1/1", "chapter1/2", "chapter3/pt", "chapter3/tf", "events/1")
    files = {"_toctree.yml": TOCTREE, **{f"{name}.mdx": BODY for name in names}}

    assert places(tmp_path, files) == {
        "chapter0/1.mdx": ("main", 0, 1, survey(tmp_path).manifest.title),
        "chapter1/1.mdx": ("main", 1, 1, "1. Models"),
        "chapter1/2.mdx": ("main", 1, 2, "1. Models"),
        "chapter3/pt.mdx": ("main", 3, 1, "Unit 3. Training"),
        "chapter3/tf.mdx": ("main", 3, 2, "Unit 3. Training"),
    }
    assert survey(tmp_path).files_left_out == ("events/1.mdx",)


def test_a_repository_is_its_book(tmp_path: Path) -> None:
    """Whoever names the repository means the one site in it, also some folders down."""
    files = {"website/docusaurus.config.js": "", "website/docs/m/a.md": BODY, "website/docs/b.md": BODY}
    more = {
        "README.md": BODY,
        "packages/x/README.md": BODY,
        "examples/site/mkdocs.yml": "",
        "examples/site/docs/e.md": BODY,
    }
    book_survey = survey(write(tmp_path, {**files, **more}))

    assert sorted(lessons_by_file(book_survey)) == ["website/docs/b.md", "website/docs/m/a.md"]
    assert {lesson.place.module: lesson.url for lesson in book_survey.lessons} == {"m": "/m/a", "main": "/b"}


def test_several_books_in_a_repository_are_listed(tmp_path: Path) -> None:
    """Nobody can know which one is meant."""
    files = {f"docs/{name}/mkdocs.yml": "site_name: X" for name in ("en", "fr")}
    write(tmp_path, {**files, "docs/en/docs/a.md": BODY, "docs/fr/docs/a.md": BODY})

    with pytest.raises(BookNotFound, match=r"2 books: docs/en/docs, docs/fr/docs; name the folder"):
        survey(tmp_path)


def test_a_site_that_is_a_small_part_of_a_book_restricts_nothing(tmp_path: Path) -> None:
    """Most lessons are outside of it."""
    files = {"site/mkdocs.yml": "site_name: X", "site/docs/a.md": BODY, **{f"m/{name}.md": BODY for name in "abc"}}

    assert published(tmp_path, files)[1] == []


@pytest.mark.parametrize("key", ["draft", "unlisted"])
def test_drafts_stay_out_and_are_named(tmp_path: Path, key: str) -> None:
    """The report says which page, and what to remove."""
    book_survey = survey(write(tmp_path, {"a.md": BODY, "b.md": f"---\n{key}: true\n---\n{BODY}", "TODO.md": BODY}))

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md"]
    assert book_survey.files_left_out == ("TODO.md", "b.md")
    assert book_survey.files_discovered == 1
    assert [key in problem.message for problem in book_survey.problems if problem.file == "b.md"] == [True]


def test_formats_that_are_not_read_are_counted_and_named(tmp_path: Path) -> None:
    """A Quarto book of which one file is Markdown does not look complete; `.markdown` is Markdown. Whatever is not
    known to be no text counts."""
    others = {f"{number}.qmd": BODY for number in range(3)} | {"x.ipynb": "{}", "y.rst": "Y", "z.png": "Z"}
    others |= {
        "b.TXT": "B",
        "c.html": "C",
        "d.Rmd": "D",
        "e.whatever": "E",
        "f.py": "F",
        "g.json": "{}",
        "LICENSE": "L",
    }
    book_survey = survey(write(tmp_path, {"a.markdown": BODY, **others}))
    messages = [problem.message for problem in book_survey.problems]

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.markdown"]
    assert sorted(book_survey.files_left_out) == [
        *("0.qmd", "1.qmd", "2.qmd"),
        *("b.TXT", "c.html", "d.Rmd", "e.whatever", "x.ipynb", "y.rst"),
    ]
    assert any("3 files are left out, because .qmd is not read" in message for message in messages)


def test_a_folder_without_markdown_says_what_it_has(tmp_path: Path) -> None:
    """Not only that there is nothing to read."""
    with pytest.raises(BookNotFound, match=r"2 files are left out, because \.qmd is not read"):
        survey(write(tmp_path, {"a.qmd": BODY, "b.qmd": BODY}))


def test_units_keep_their_numbers(tmp_path: Path) -> None:
    """`Unit 2` is chapter 2, whatever comes before it. Others are numbered in order where there is room, else last."""
    titles = ("Welcome", "Unit 1. First", "Bonus Unit 1. More", "Unit 2. Second", "Ends")
    toctree = "".join(f"- title: {title}\n  sections:\n  - local: p{at}\n" for at, title in enumerate(titles))
    lessons = places(tmp_path, {"_toctree.yml": toctree, **{f"p{at}.md": BODY for at in range(5)}})

    assert [lessons[f"p{at}.md"][1] for at in range(5)] == [0, 1, 3, 2, 4]


def test_chapters_are_numbered_in_linear_time() -> None:
    """20,000 titles without a number, and as many whose number is taken, take a moment of a processor."""
    start = time.process_time()
    plain = chapter_numbers(["Welcome"] * 20_000)
    taken = chapter_numbers(["Unit 1", "Unit 3"] + ["Welcome", "Unit 3"] * 10_000)

    assert time.process_time() - start < 1
    assert plain == list(range(1, 20_001))
    assert taken[:5] == [1, 3, 4, 5, 6]
    assert len(set(taken)) == len(taken) == 20_002


def test_a_toctree_that_means_harm_is_called_a_file(tmp_path: Path) -> None:
    """A site's configuration is not called front matter."""
    book_survey = survey(write(tmp_path, {"_toctree.yml": "- " * 100 + "x", "a.md": BODY}))
    message = next(problem.message for problem in book_survey.problems if problem.file == "_toctree.yml")

    assert message.startswith("the file is nested deeper than")


def test_published_pages_are_looked_through_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for every page, of which a book may have thousands."""
    looks = 0

    class Files(list[str]):
        def __iter__(self) -> Iterator[str]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    def counted(fronts: Mapping[str, FrontMatter]) -> Contents:
        contents = drafts(fronts)
        contents.files = Files(contents.files)
        return contents

    monkeypatch.setattr("lectern.reading.survey.drafts", counted)
    book_survey = survey(write(tmp_path, {f"p{at}.md": BODY for at in range(5)}))

    assert len(book_survey.lessons) == 5
    assert looks == 1


def test_pages_that_are_listed_without_a_file_are_named(tmp_path: Path) -> None:
    """By SUMMARY.md, nav and `_toctree.yml`; a link to another site is no page."""
    listings: tuple[dict[str, str | bytes], ...] = (
        {"book.toml": "", "src/SUMMARY.md": "- [A](a.md)\n- [B](b/c.md)\n- [Draft]()", "src/a.md": BODY},
        {"mkdocs.yml": "nav: [a.md, b/c.md, 'https://x.example/y.md']", "docs/a.md": BODY},
        {"_toctree.yml": "- title: X\n  sections:\n  - local: a\n  - local: b/c\n", "a.md": BODY},
    )
    for number, files in enumerate(listings):
        problems = survey(write(tmp_path / str(number), files)).problems

        assert [problem.message.partition(":")[2] for problem in problems] in (
            [" src/b/c.md"],
            [" docs/b/c.md"],
            [" b/c"],
        )


def test_all_names_of_files_that_are_left_out_are_in_the_report(tmp_path: Path) -> None:
    """However many they are: the job is the only place where they can be looked up."""
    old = {f"old/{number}.md": BODY for number in range(150)}
    book_survey = survey(write(tmp_path, {"mkdocs.yml": "", "docs/a.md": BODY, **old}))

    assert all(file in book_survey.problems[0].message for file in old)


def test_a_file_that_lists_pages_for_mkdocs_is_no_lesson(tmp_path: Path) -> None:
    """With the plugin literate-nav, SUMMARY.md gives the order. A README that lists pages is a page too."""
    files = {"mkdocs.yml": "plugins:\n- search\n- literate-nav:\n    nav_file: NAV.md\n", "docs/a.md": BODY}
    book_survey = survey(
        write(tmp_path / "a", {**files, "docs/NAV.md": "* [Bee](b.md)\n* [A](a.md)", "docs/b.md": "Bees."})
    )
    lessons = lessons_by_file(book_survey)
    readme = {"mkdocs.yml": "plugins: [{literate-nav: {nav_file: README.md}}]", "docs/README.md": BODY}

    assert {file: lesson.place.lesson for file, lesson in lessons.items()} == {"docs/a.md": 2, "docs/b.md": 1}
    assert lessons["docs/b.md"].page_title == "Bee"
    assert published(tmp_path / "b", {**files, "mkdocs.yml": "plugins: [literate-nav]", "docs/SUMMARY.md": BODY}) == (
        ["docs/a.md"],
        [],
    )
    assert published(tmp_path / "c", readme) == (["docs/README.md"], [])
