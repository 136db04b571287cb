"""Modules, chapters and lessons from paths, front matter and the order of neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.reading.names import folder_number, lesson_number, without_number
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, lessons_by_file, surveyed, write

ROBOTS = '[[modules]]\nslug = "ros2"\nfolder = "module-1-ros2"\ntitle = "Nervous System"\n'


def places(root: Path, *files: str, toml: str = "", fronts: dict[str, str] | None = None) -> dict[str, str]:
    """`module:chapter:lesson` by file."""
    texts = {file: f"---\n{(fronts or {})[file]}\n---\n{BODY}" if file in (fronts or {}) else BODY for file in files}
    book_survey = survey(write(root, {**texts, **({"lectern.toml": toml} if toml else {})}), book_id="b")
    return {file: str(lesson.place).removeprefix("b:") for file, lesson in lessons_by_file(book_survey).items()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-intro", 1),
        ("7", 7),
        ("10. Ten", 10),
        ("003 - x", 3),
        ("chapter-26-x", 26),
        ("Chapter 3", 3),
        ("lesson01_physical", 1),
        ("part-2", 2),
        ("week3", 3),
        ("module-1-ros2", 1),
        ("unit_4", 4),
        ("day-12-x", 12),
        ("ros2-nodes", None),
        ("3d-vision", None),
        ("2nd-steps", None),
        ("intro-2", None),
        ("appendix", None),
        ("mp3", None),
        ("subchapter", None),
    ],
)
def test_numbers_in_folder_names(name: str, expected: int | None) -> None:
    """A leading number, or one after a word that numbers things; no other digit."""
    assert folder_number(name) == expected


@pytest.mark.parametrize(
    ("name", "chapter", "expected"),
    [
        ("01-intro", 4, 1),
        ("lesson-3-x", 4, 3),
        ("lesson01_units", 4, 1),
        ("09_chapter_31_quiz", 31, 9),
        ("chapter-4-quiz", 4, None),
        ("4.2-joints", 4, 2),
        ("4.2-joints", 5, 4),
        ("part-2", 4, 2),
        ("ros2-nodes", 4, None),
        ("ch04-02-x", 4, 2),
    ],
)
def test_numbers_in_lesson_names(name: str, chapter: int, expected: int | None) -> None:
    """A chapter's own number in a lesson's name says nothing about the lesson."""
    assert lesson_number(name, chapter) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("module-1-ros2", "Ros2"),
        ("05-Python-Fundamentals", "Python Fundamentals"),
        ("chapter-3", "Chapter 3"),
        ("module01", "Module 1"),
        ("appendix_a", "Appendix a"),
    ],
)
def test_names_for_people(name: str, expected: str) -> None:
    """Numbers and separators go; a name that is nothing else keeps them."""
    assert without_number(name) == expected


def test_the_usual_book(tmp_path: Path) -> None:
    """READMEs are overviews: of the book, a module, a chapter; lessons have their number."""
    assert places(
        tmp_path,
        "README.md",
        "module-1-ros2/README.md",
        "module-1-ros2/chapter-3-x/README.md",
        "module-1-ros2/chapter-3-x/01-a.md",
        "module-1-ros2/chapter-3-x/02-b.mdx",
        "module-2-sim/chapter-10-y/lesson-4-c.md",
    ) == {
        "README.md": "main:0:0",
        "module-1-ros2/README.md": "module-1-ros2:0:0",
        "module-1-ros2/chapter-3-x/README.md": "module-1-ros2:3:0",
        "module-1-ros2/chapter-3-x/01-a.md": "module-1-ros2:3:1",
        "module-1-ros2/chapter-3-x/02-b.mdx": "module-1-ros2:3:2",
        "module-2-sim/chapter-10-y/lesson-4-c.md": "module-2-sim:10:4",
    }


def test_a_manifest_names_modules_by_folder(tmp_path: Path) -> None:
    """Also where a wrapping folder stands before it; other folders keep their own slug."""
    assert places(
        tmp_path, "docs/module-1-ros2/chapter-1-x/01-a.md", "docs/Extra Stuff/b.md", "docs/intro.md", toml=ROBOTS
    ) == {
        "docs/Extra Stuff/b.md": "extra-stuff:0:1",
        "docs/intro.md": "main:0:1",
        "docs/module-1-ros2/chapter-1-x/01-a.md": "ros2:1:1",
    }


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["docs/m/1-c/1-a.md", "docs/n/x.md"], ["m:1:1", "n:0:1"]),
        (["src/m/1-c/1-a.md", "src/n/x.md", "README.md"], ["m:1:1", "n:0:1", "main:0:0"]),
        (["my-book/m/1-c/1-a.md", "my-book/n/x.md"], ["m:1:1", "n:0:1"]),
        (["my-book/docs/m/1-c/1-a.md", "my-book/docs/n/x.md"], ["m:1:1", "n:0:1"]),
        (["module-1/1-c/1-a.md", "module-1/x.md"], ["module-1:1:1", "module-1:0:1"]),
        (["m/1-c/1-a.md", "README.md"], ["m:1:1", "main:0:0"]),
    ],
)
def test_wrapping_folders_are_stepped_over(tmp_path: Path, files: list[str], expected: list[str]) -> None:
    """docs, src, content, or a lone folder around everything; a lone folder with a number is a module."""
    placed = places(tmp_path, *files)

    assert [placed[file] for file in files] == expected


def test_a_chapter_may_be_one_file(tmp_path: Path) -> None:
    """`chapter-26-x.md` straight in a module is chapter 26, lesson 0; a plain leading number is a lesson."""
    assert places(tmp_path, "m/chapter-26-x.md", "m/ros2-nodes.md", "m/03-c.md", "m/ch02-04-d.md", "n/x.md") == {
        "m/03-c.md": "m:0:3",
        "m/ch02-04-d.md": "m:2:4",
        "m/chapter-26-x.md": "m:26:0",
        "m/ros2-nodes.md": "m:0:4",
        "n/x.md": "n:0:1",
    }


def test_dotted_numbers_are_chapters_of_their_own(tmp_path: Path) -> None:
    """`1.1-x` and `1.2-y` are two chapters: of module 1 by their second numbers, else in order; a file `2.3-x` in no
    chapter is lesson 3 of chapter 2."""
    files = ["1-base/1.1-x/a.md", "1-base/1.2-y/a.md", "m/1.1-x/a.md", "m/1.2-y/a.md", "m/2.1-z/a.md"]
    more = ["n/2.3-x.md", "n/2.4-y.md", "3-top/3.1-x.md", "3-top/3.2-y.md", "o/2.0-x/a.md", "o/3.0-y/a.md"]

    assert list(places(tmp_path, *files, *more).values()) == [
        "1-base:1:1",
        "1-base:2:1",
        "3-top:1:0",
        "3-top:2:0",
        "m:1:1",
        "m:2:1",
        "m:3:1",
        "n:2:3",
        "n:2:4",
        "o:2:1",
        "o:3:1",
    ]


def test_pages_above_the_modules_come_first(tmp_path: Path) -> None:
    """The introduction is not the last module because its name sorts after the folders."""
    book_survey = survey(write(tmp_path, {"introduction.md": BODY, "a/x.md": BODY, "b/y.md": BODY}))
    write(tmp_path, {"introduction.md": f"---\nsidebar_position: 1\n---\n{BODY}"})

    assert [module.slug for module in book_survey.manifest.modules] == ["main", "a", "b"]
    assert [module.slug for module in survey(tmp_path).manifest.modules] == ["main", "a", "b"]


def test_folders_below_a_chapter_belong_to_it(tmp_path: Path) -> None:
    """However deep; a README there takes its folder's number instead of being a second overview."""
    assert places(
        tmp_path,
        "m/2-c/README.md",
        "m/2-c/deep/er/05-a.md",
        "m/2-c/lesson-7/README.md",
        "m/2-c/deep/README.md",
        "n/x.md",
    ) == {
        "m/2-c/README.md": "m:2:0",
        "m/2-c/deep/README.md": "m:2:8",
        "m/2-c/deep/er/05-a.md": "m:2:5",
        "m/2-c/lesson-7/README.md": "m:2:7",
        "n/x.md": "n:0:1",
    }


def test_front_matter_numbers_come_first(tmp_path: Path) -> None:
    """A whole number in front matter wins over the path; anything else does not."""
    files = ["m/15-uv/01-a.md", "m/15-uv/02-b.md", "m/15-uv/03-c.md", "n/x.md"]
    fronts = {files[0]: "chapter: 12\nlesson: 9", files[1]: "lesson: 2.2", files[2]: "chapter: 'Chapter 15: UV'"}

    assert places(tmp_path, *files, fronts=fronts) == {
        files[0]: "m:12:9",
        files[1]: "m:15:2",
        files[2]: "m:15:3",
        files[3]: "n:0:1",
    }


def test_numbers_that_disagree_are_reported(tmp_path: Path) -> None:
    """A number that is none is worth a warning only where it contradicts the place taken."""
    fronts = {"01-a.md": "lesson: 1.1", "02-b.md": "lesson: 7.5", "03-c.md": "lesson: 'Lesson 3: C'"}
    files = {name: f"---\n{front}\n---\n{BODY}" for name, front in fronts.items()}

    book_survey = survey(write(tmp_path, files))

    assert [(problem.file, problem.line) for problem in book_survey.problems] == [("02-b.md", 2)]


def test_without_numbers_the_order_counts(tmp_path: Path) -> None:
    """Sidebar positions first, then path order after the highest number that a neighbour has."""
    files = ["m/c/alpha.md", "m/c/beta.md", "m/c/gamma.md", "m/c/05-named.md", "m/d/x.md", "n/x.md"]
    fronts = {"m/c/gamma.md": "sidebar_position: 2"}

    assert places(tmp_path, *files, fronts=fronts) == {
        "m/c/05-named.md": "m:1:5",
        "m/c/alpha.md": "m:1:6",
        "m/c/beta.md": "m:1:7",
        "m/c/gamma.md": "m:1:2",
        "m/d/x.md": "m:2:1",
        "n/x.md": "n:0:1",
    }


def test_unnumbered_chapters_follow_numbered_ones(tmp_path: Path) -> None:
    """An appendix does not take chapter 1's number, and a category file's position counts."""
    files = ["m/appendix/a.md", "m/chapter-1-x/a.md", "m/extras/a.md", "m/chapter-7.md", "n/x.md"]
    write(tmp_path, {"m/extras/_category_.json": '{"label": "Extras", "position": 3}'})

    assert places(tmp_path, *files) == {
        "m/appendix/a.md": "m:8:1",
        "m/chapter-1-x/a.md": "m:1:1",
        "m/chapter-7.md": "m:7:0",
        "m/extras/a.md": "m:3:1",
        "n/x.md": "n:0:1",
    }


def test_two_files_with_one_place_are_both_kept(tmp_path: Path) -> None:
    """The first by path has the design's ids, each further one its own path in them, and a warning names both."""
    files = {f"m/1-c/01-{name}.md": f"# {name}\n\nThe same words in every file.\n" for name in "abc"}
    book_survey = survey(write(tmp_path, {**files, "n/x.md": BODY}), book_id="b")

    doubled = [lesson.place.doubled_by for lesson in book_survey.lessons[:3]]

    assert doubled == [None, "m/1-c/01-b.md", "m/1-c/01-c.md"]
    assert [(problem.file, problem.severity) for problem in book_survey.problems] == [
        ("m/1-c/01-b.md", "warning"),
        ("m/1-c/01-c.md", "warning"),
    ]
    assert all("m/1-c/01-a.md" in problem.message for problem in book_survey.problems)


def test_front_matter_may_name_a_module_of_the_book(tmp_path: Path) -> None:
    """A known slug moves a lesson there; a sentence or an unknown name does not."""
    files = ["extra.md", "other.md", "module-1-ros2/chapter-1-x/01-a.md"]
    fronts = {"extra.md": "module: ros2", "other.md": "module: 'Module 9: Something'"}

    placed = places(tmp_path, *files, toml=ROBOTS, fronts=fronts)

    assert (placed["extra.md"], placed["other.md"]) == ("ros2:0:1", "main:0:1")


def test_limits_warn_and_drop_nothing(tmp_path: Path) -> None:
    """No file is lost for its place, whatever the manifest's limits say."""
    toml = "[limits]\nmax_chapter = 20\nmax_lesson = 15\n"

    book_survey = survey(write(tmp_path, {"lectern.toml": toml, "m/59-x/16-a.md": BODY, "n/20-y/15-b.md": BODY}))

    assert len(book_survey.lessons) == 2
    assert sorted(problem.message.split()[0] for problem in book_survey.problems) == ["chapter", "lesson"]


def test_titles_of_modules_chapters_and_lessons(tmp_path: Path) -> None:
    """The site's label, else the overview's title, else the folder's name without its number. A heading of a lower
    level is no title."""
    book_survey = survey(
        write(
            tmp_path,
            {
                "m-one/README.md": "# Module One\n\nAbout the first module.\n",
                "m-one/chapter-1-nodes/README.md": "---\ntitle: Chapter of Nodes\n---\nSome overview text.\n",
                "m-one/chapter-1-nodes/01-a.md": "## First heading\n\nSome text of the lesson.\n",
                "m-one/chapter-2-topics/my-lesson.md": "No heading at all in this one.\n",
                "m-one/chapter-3-z/a.md": BODY,
                "m-one/chapter-3-z/_category_.yml": "label: Labelled\nposition: 3\n",
                "two/chapter-9.md": "# Nine\n\nThe ninth chapter.\n",
                "two/ch09-01-x.md": BODY,
            },
        ),
        book_id="b",
    )

    titles = {
        lesson.source_file: (lesson.module_title, lesson.chapter_title, lesson.lesson_title)
        for lesson in book_survey.lessons
    }

    assert titles == {
        "m-one/README.md": ("Module One", "Module One", "Module One"),
        "m-one/chapter-1-nodes/01-a.md": ("Module One", "Chapter of Nodes", "A"),
        "m-one/chapter-1-nodes/README.md": ("Module One", "Chapter of Nodes", "Chapter of Nodes"),
        "m-one/chapter-2-topics/my-lesson.md": ("Module One", "Topics", "My lesson"),
        "m-one/chapter-3-z/a.md": ("Module One", "Labelled", "A lesson"),
        "two/ch09-01-x.md": ("Two", "Nine", "A lesson"),
        "two/chapter-9.md": ("Two", "Nine", "Nine"),
    }


@pytest.mark.parametrize(
    ("name", "number", "title"),
    [
        ("2023-09-12-notes", None, "2023-09-12 notes"),
        ("2023.09.12", None, "2023.09.12"),
        ("20230912 notes", None, "20230912 notes"),
        ("2023-09", None, "2023-09"),
        ("2023-13-notes", 2023, "13 notes"),
        ("12-2023-notes", 12, "2023 notes"),
    ],
)
def test_dates_are_no_numbers(name: str, number: int | None, title: str) -> None:
    """A diary or a blog has no lesson 2023; its titles keep the date."""
    assert lesson_number(name, None) == number
    assert without_number(name) == title


def test_positions_that_are_no_numbers_keep_the_order_of_the_site(tmp_path: Path) -> None:
    """`sidebar_position: 0` comes first and 1.5 between 1 and 2, for files and for folders."""
    positions = {"zero": "0", "one": "1", "half": "1.5", "two": "2"}
    files = {f"m/{name}.md": f"---\nsidebar_position: {at}\n---\n{BODY}" for name, at in positions.items()}
    folders = {f"m/{name}/_category_.yml": f"position: {at}" for name, at in positions.items()}
    pages = {f"m/{name}/a.md": BODY for name in positions}
    book = {**files, **folders, **pages, "m/rest.md": BODY, "m/index.md": BODY, "n/a.md": BODY}
    lessons = lessons_by_file(surveyed(tmp_path, book))

    names = ("index", "zero", "one", "half", "two", "rest")
    assert [lessons[f"m/{name}.md"].place.lesson for name in names] == [0, 1, 2, 3, 4, 5]
    assert [lessons[f"m/{name}/a.md"].place.chapter for name in names[1:5]] == [1, 2, 3, 4]


def test_the_title_of_a_page(tmp_path: Path) -> None:
    """Front matter, first-level heading, the site's label, the file's name, in this order; never a lower heading."""
    pages = "{Home: index.md}, {First: a.md}, {Second: b.md}, {Third: c.md}"
    nav = f"site_name: Book\nnav: [{pages}, {{Group: [{{Inner: [{{Deep: g/d.md}}]}}]}}]"
    files = {
        "mkdocs.yml": nav,
        "docs/index.md": "## News\n\nSome text of the page.\n",
        "docs/a.md": "---\ntitle: From front matter\n---\n# Heading\n\nSome text of the page.\n",
        "docs/b.md": "# Heading\n\nSome text of the page.\n",
        "docs/c.md": "## Section\n\nSome text of the page.\n",
        "docs/last-page.md": "Some text.\n\n## Section\n\n# Late\n",
        "docs/g/d.md": BODY,
    }
    lessons = lessons_by_file(surveyed(tmp_path, files))

    assert {file.removeprefix("docs/"): lesson.page_title for file, lesson in lessons.items()} == {
        "index.md": "Home",
        "a.md": "From front matter",
        "b.md": "Heading",
        "c.md": "Third",
        "last-page.md": "Last page",
        "g/d.md": "A lesson",
    }
    assert lessons["docs/a.md"].module_title == "Book"
    assert lessons["docs/g/d.md"].module_title == "Group"
