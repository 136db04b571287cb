"""Which files of a folder become lessons, and what happens to the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lectern.domain.errors import BookNotFound
from lectern.reading.chunking import ReadingRules
from lectern.reading.files import decoded, excluded, find_files, natural, read_bytes
from lectern.reading.lessons import read_lesson
from lectern.reading.problems import Unreadable
from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, surveyed, write


def errors(book_survey) -> dict[str, str]:
    """Errors of a survey, by file."""
    return {problem.file: problem.message for problem in book_survey.problems if problem.severity == "error"}


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("blog/a.md", "blog/**", True),
        ("blog/x/a.md", "blog/**", True),
        ("blogs/a.md", "blog/**", False),
        ("docs/blog/a.md", "blog/**", False),
        ("docs/blog/a.md", "**/blog/**", True),
        ("blog/a.md", "**/blog/**", True),
        ("blog/a.md", "blog", True),
        ("blog/a.md", "blog/", True),
        ("a/b.summary.md", "*.summary.md", True),
        ("a/b.md", "*.summary.md", False),
        ("a/b.md", "a/*.md", True),
        ("a/x/b.md", "a/*.md", False),
        ("a/x/y/b.md", "a/**/b.md", True),
        ("a/b.md", "a/**/b.md", True),
        ("a/b.md", "./a/b.md", True),
        ("a/b.md", "**", True),
    ],
)
def test_exclude_patterns(path: str, pattern: str, expected: bool) -> None:
    """`*` stays in a folder, `**` does not, a bare name matches anywhere, and a folder takes its content along."""
    assert excluded(path, pattern) is expected


def test_excluded_files_are_not_discovered(tmp_path: Path) -> None:
    """What the manifest excludes is neither a lesson nor counted."""
    book_survey = surveyed(tmp_path, {"lectern.toml": 'exclude = ["blog/**"]', "a.md": BODY, "blog/b.md": BODY})

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md"]
    assert book_survey.files_discovered == 1


def test_path_order_sorts_numbers_as_numbers() -> None:
    """Lesson 2 comes before lesson 10."""
    assert sorted(["l-10.md", "l-2.md", "a/10/x.md", "a/9/x.md"], key=natural) == [
        "a/9/x.md",
        "a/10/x.md",
        "l-2.md",
        "l-10.md",
    ]


def test_only_markdown_is_discovered_and_hidden_folders_are_not(tmp_path: Path) -> None:
    """Both suffixes in any case count; code, hidden folders and node_modules do not."""
    files = ["a.md", "b.mdx", "C.MD", "d.txt", "e.py", ".git/f.md", "node_modules/g.md", ".h.md"]

    files_found = find_files(write(tmp_path, dict.fromkeys(files, BODY)))

    assert files_found.files == ["C.MD", "a.md", "b.mdx"]


def test_a_missing_folder_a_file_and_an_empty_folder_are_no_book(tmp_path: Path) -> None:
    """Each says that no book is there, by the name that was given."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.md").write_text(BODY)

    for name in ("missing", "empty", "file.md"):
        with pytest.raises(BookNotFound, match=name):
            survey(tmp_path / name)


def test_a_link_out_of_the_book_is_never_followed(tmp_path: Path) -> None:
    """A linked file outside is an error line; what it holds never shows up."""
    (tmp_path / "secret.md").write_text("# Secret\n\nNobody may read these words.\n")
    book = write(tmp_path / "book", {"a.md": BODY})
    (book / "out.md").symlink_to(tmp_path / "secret.md")
    (book / "chain.md").symlink_to(book / "out.md")
    (book / "absolute.md").symlink_to("/etc/hostname")

    book_survey = survey(book)

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md"]
    assert set(errors(book_survey)) == {"out.md", "chain.md", "absolute.md"}
    assert book_survey.files_discovered == 4


def test_a_linked_folder_is_not_followed_and_is_reported(tmp_path: Path) -> None:
    """Neither one outside nor one that contains itself; the survey ends and says which."""
    write(tmp_path / "outside", {"x.md": BODY})
    book = write(tmp_path / "book", {"a.md": BODY})
    (book / "out").symlink_to(tmp_path / "outside")
    (book / "loop").symlink_to(book)

    book_survey = survey(book)

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md"]
    assert sorted(problem.file for problem in book_survey.problems) == ["loop", "out"]


def test_a_link_inside_the_book_is_read(tmp_path: Path) -> None:
    """A file linked from elsewhere in the book is a lesson like any other."""
    book = write(tmp_path, {"a.md": BODY})
    (book / "b.md").symlink_to(book / "a.md")

    assert [lesson.source_file for lesson in survey(book).lessons] == ["a.md", "b.md"]


def test_pipes_devices_and_folders_with_a_lessons_name_do_not_block(tmp_path: Path) -> None:
    """A FIFO is never opened to wait for a writer; everything that is no file is named."""
    book = write(tmp_path, {"a.md": BODY})
    os.mkfifo(book / "pipe.md")
    (book / "folder.md").mkdir()
    (book / "device.md").symlink_to("/dev/zero")

    book_survey = survey(book)

    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md"]
    assert {"pipe.md", "device.md"} <= set(errors(book_survey))
    assert book_survey.files_discovered == len(book_survey.lessons) + len(errors(book_survey))


@pytest.mark.parametrize(
    ("raw", "line", "says"),
    [
        (b"", None, "empty"),
        (b" \n\t\n", None, "empty"),
        (b"# A\n\nx\x00y\n", 3, "NUL"),
        (b"\xff\xfe#\x00 \x00", 1, "UTF-16"),
        (b"# A\n\n\nbad \xe9 byte\n", 4, "UTF-8"),
        (b"\xef\xbb\xbf# A\nbad \xe9\n", 2, "UTF-8"),
        (b"lone \xed\xa0\x80 surrogate", 1, "UTF-8"),
    ],
)
def test_what_is_no_text_fails_with_its_line(raw: bytes, line: int | None, says: str) -> None:
    """Bytes that cannot be a lesson are refused, saying what is wrong and where."""
    with pytest.raises(Unreadable, match=says) as caught:
        decoded(raw)

    assert caught.value.line == line


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbfa\r\nb\rc\n", b"a\nb\nc\n"])
def test_byte_order_marks_and_line_ends_are_evened_out(raw: bytes) -> None:
    """A mark goes; CRLF and CR become LF, line by line."""
    assert decoded(raw) == "a\nb\nc\n"


def test_a_bad_file_never_stops_the_others(tmp_path: Path) -> None:
    """Each bad file is one error; every good one is a lesson."""
    bad = {"nul.md": b"a\0b", "utf.md": b"\xff\xff\xff", "empty.md": b"", "only.md": b"---\ntitle: x\n---\n"}

    book_survey = surveyed(tmp_path, {"a.md": BODY, "b.md": BODY, **bad})

    assert set(errors(book_survey)) == set(bad)
    assert [lesson.source_file for lesson in book_survey.lessons] == ["a.md", "b.md"]


def test_files_over_the_limits_are_refused(tmp_path: Path) -> None:
    """Bytes, lines and tags each have a limit, and the message names it."""
    rules = ReadingRules(max_file_bytes=2000, max_lines=100, max_markup=50)
    files = {"big.md": "x" * 2001, "long.md": "x\n" * 101, "tags.md": "<b>" * 51, "fine.md": BODY}

    book_survey = survey(write(tmp_path, files), rules=rules)

    assert [lesson.source_file for lesson in book_survey.lessons] == ["fine.md"]
    assert "2,000" in errors(book_survey)["big.md"]
    assert "100" in errors(book_survey)["long.md"]
    assert "50" in errors(book_survey)["tags.md"]


def test_odd_names_are_read_or_named(tmp_path: Path) -> None:
    """Any printable name is a lesson's; one that no report could print is an error that can be printed."""
    good = ["späße.md", "第一課.md", "a b&c.md", "سبق.md", "-.md", "a:b.md", "x" * 250 + ".md"]
    book = write(tmp_path, dict.fromkeys(good, BODY))
    for raw in (b"new\nline.md", b"bad-\xff.md"):
        with open(os.path.join(os.fsencode(book), raw), "wb") as file:  # noqa: PTH118, PTH123  # bytes are the point
            file.write(BODY.encode())

    book_survey = survey(book)

    assert {lesson.source_file for lesson in book_survey.lessons} == set(good)
    assert len(errors(book_survey)) == 2
    assert all(name.isprintable() for name in errors(book_survey))


@pytest.mark.parametrize("path", ["../secret.md", "/etc/hostname", "a/../../secret.md"])
def test_reading_never_leaves_the_folder(tmp_path: Path, path: str) -> None:
    """Whatever path is asked for, nothing outside is opened."""
    (tmp_path / "secret.md").write_text("secret")
    book = write(tmp_path / "book", {"a/b.md": BODY})

    with pytest.raises(Unreadable, match="out of the book"):
        read_bytes(book, path, 1000)


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lessons nobody can look at are not taken for deleted in silence."""
    book = write(tmp_path, {"a.md": BODY, "locked/b.md": BODY})
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    book_survey = survey(book)

    assert "Permission denied" in errors(book_survey)["locked"]


def test_hidden_characters_are_pointed_at(tmp_path: Path) -> None:
    """Direction overrides and zero-width characters are a warning with a line; joiners that scripts need are not."""
    book_survey = surveyed(
        tmp_path,
        {
            "bad.md": "# A\n\nan\u202einstruction and\u200b more text\n",
            "urdu.md": "# سبق\n\nمی\u200cخواهم اور کچھ الفاظ\n",
            "flag.md": "# Flag\n\nEngland 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f plays\n",
        },
    )

    assert [(problem.file, problem.line, problem.severity) for problem in book_survey.problems] == [
        ("bad.md", 3, "warning")
    ]


@pytest.mark.parametrize(
    ("odd", "name"),
    [
        ("\x1b[2J", "U+001B"),
        ("\x07", "U+0007"),
        ("\x7f", "U+007F"),
        ("\x9b", "U+009B"),
        ("\U000e0100", "VARIATION SELECTOR-17"),
        ("\U000e01ef", "VARIATION SELECTOR-256"),
    ],
)
def test_control_characters_and_smuggled_bytes_are_pointed_at(tmp_path: Path, odd: str, name: str) -> None:
    """What drives a terminal, or carries bytes behind a letter, is named with its line; the text stays as it is."""
    book_survey = surveyed(tmp_path, {"a.md": f"# A\n\n\tSome words,\r\na{odd} and more.\n"})
    [problem] = book_survey.problems
    [chunk] = read_lesson(tmp_path, book_survey.lessons[0], book_survey.manifest).chunks

    assert (problem.line, problem.severity) == (4, "warning")
    assert name in problem.message
    assert "remove it" in problem.message
    assert odd in chunk.text
