"""The commands, run as a person or a program runs them."""

import json
from pathlib import Path

import pytest

from tests.served import lectern

LESSON = """\
---
title: Nodes
---

# Nodes

## What is a node?

A node is a process that computes. Nodes talk to each other over topics.

## How fast is a topic?

The camera topic publishes thirty images every second, which is a lot for a laptop.
"""


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one lesson."""
    folder = tmp_path / "tiny-book"
    (folder / "docs").mkdir(parents=True)
    (folder / "docs" / "01-nodes.md").write_text(LESSON, encoding="utf-8")
    return folder


def test_from_a_book_to_a_cited_answer(book: Path, tmp_path: Path) -> None:
    """Ingest, search, ask and list, each with one JSON line as the last of stdout."""
    home = tmp_path / "home"

    job = json.loads(lectern("ingest", str(book), "--json", home=home).stdout.splitlines()[-1])
    assert (job["status"], job["book_id"], job["files_processed"], job["files_failed"]) == (
        "completed",
        "tiny-book",
        1,
        0,
    )
    assert job["chunks_created"] == job["chunks_embedded"] >= 1

    results = json.loads(lectern("search", "how do nodes talk", "--json", home=home).stdout)
    assert "over topics" in results["results"][0]["text"]

    reply = json.loads(lectern("ask", "What is a node?", "--json", home=home).stdout)
    assert "A node is a process that computes. [1]" in reply["response"]
    assert reply["sources"][0]["source_file"] == "docs/01-nodes.md"

    lines = lectern("chunks", "tiny-book", "--json", home=home).stdout.splitlines()
    assert len(lines) == job["chunks_created"]
    assert {"id", "payload"} == set(json.loads(lines[0]))


def test_a_book_can_be_taken_out(book: Path, tmp_path: Path) -> None:
    """After `books --remove` nothing of it is found, another book is as it was, and its files are still there."""
    home, second_book = tmp_path / "home", tmp_path / "other-book"
    second_book.mkdir()
    (second_book / "01-arms.md").write_text(
        "# Arms\n\nAn arm has six joints and a hand at its end.\n", encoding="utf-8"
    )
    for folder in (book, second_book):
        lectern("ingest", str(folder), home=home)
    before = lectern("chunks", "other-book", "--json", home=home).stdout

    declined = lectern("books", "--remove", "tiny-book", home=home, check=False, typed="n\n")
    assert (declined.returncode, "tiny-book" in lectern("books", home=home).stdout) == (2, True)
    removal = json.loads(lectern("books", "--remove", "tiny-book", "--yes", "--json", home=home).stdout)

    assert removal["chunks_deleted"] >= 1
    assert [book["book_id"] for book in json.loads(lectern("books", "--json", home=home).stdout)] == ["other-book"]
    assert lectern("chunks", "other-book", "--json", home=home).stdout == before
    assert "agree" in lectern("doctor", home=home).stdout
    assert (book / "docs" / "01-nodes.md").exists()
    unknown = lectern("books", "--remove", "tiny-book", "--yes", home=home, check=False)
    assert (unknown.returncode, "other-book" in unknown.stderr) == (2, True)


def test_errors_name_options_as_they_are_typed(book: Path, tmp_path: Path) -> None:
    """A person never typed `hardware_tier_filter`."""
    lectern("ingest", str(book), home=tmp_path / "home")
    wrong = lectern("search", "how do nodes talk", "--tier", "7", home=tmp_path / "home", check=False)

    assert (wrong.returncode, "--tier must be 1 to 4" in wrong.stderr) == (2, True)
    many = lectern("search", "how do nodes talk", "--limit", "50", home=tmp_path / "home", check=False)
    assert (many.returncode, "--limit must be 1 to 20" in many.stderr) == (2, True)
    (book / "lectern.toml").write_text("foo = 1\n", encoding="utf-8")
    result = lectern("ingest", str(book), home=tmp_path / "home", check=False)
    assert (result.returncode, "book_id" in result.stderr, "--book" in result.stderr) == (2, True, False)


def test_an_unchanged_book_is_not_embedded_again(book: Path, tmp_path: Path) -> None:
    """The second run skips what has not changed; a full run reuses every vector."""
    home = tmp_path / "home"
    first = json.loads(lectern("ingest", str(book), "--json", home=home).stdout)
    again = json.loads(lectern("ingest", str(book), "--json", home=home).stdout)
    full = json.loads(lectern("ingest", str(book), "--mode", "full", "--json", home=home).stdout)

    assert (again["files_skipped"], again["chunks_embedded"], again["chunks_kept"]) == (1, 0, first["chunks_created"])
    assert (full["files_processed"], full["chunks_embedded"], full["chunks_created"]) == (1, 0, 0)


def test_an_edit_changes_only_what_was_edited(book: Path, tmp_path: Path) -> None:
    """After an edit the index equals a fresh ingest of the edited book."""
    home, fresh = tmp_path / "home", tmp_path / "fresh"
    lectern("ingest", str(book), home=home)
    lesson = book / "docs" / "01-nodes.md"
    lesson.write_text(LESSON.replace("thirty", "sixty"), encoding="utf-8")

    lectern("ingest", str(book), home=home)
    lectern("ingest", str(book), home=fresh)

    assert _content(home) == _content(fresh)


def _content(home: Path) -> list[dict[str, object]]:
    stamps = {"created_at", "updated_at", "version", "embedded_at"}
    lines = [json.loads(line) for line in lectern("chunks", "--json", home=home).stdout.splitlines()]
    return [
        {"id": line["id"], **{key: value for key, value in line["payload"].items() if key not in stamps}}
        for line in lines
    ]


def test_a_refusal_is_exit_4(book: Path, tmp_path: Path) -> None:
    """What the book does not say is refused, and a script can tell."""
    home = tmp_path / "home"
    lectern("ingest", str(book), home=home)

    refused = lectern("ask", "Which wine goes well with roast duck?", home=home, check=False)

    assert refused.returncode == 4
    assert "couldn't find that information" in refused.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ingest", "no-such-folder"], "no-such-folder"),
        (["ingest", ".", "--mode", "sideways"], "sideways"),
        (["ask", "What is a node?"], "lectern ingest"),
        (["search", "ab"], "lectern ingest"),
        (["serve", "--host", "0.0.0.0", "--port", "0"], "0.0.0.0"),
        (["serve", "--port", "99999"], "99999"),
        (["ingest", __file__], "is a file"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    """A mistake is answered by one line that says what to do, and nothing is left behind."""
    result = lectern(*arguments, home=tmp_path / "none", check=False)

    assert result.returncode == 2
    assert says in result.stderr
    assert result.stderr.startswith("lectern: ")
    assert len(result.stderr.splitlines()) == 1


def test_help_loads_nothing_heavy() -> None:
    """`lectern --help` imports no model, no engine, no SDK: that is what keeps it instant."""
    import subprocess
    import sys

    code = (
        "import sys, lectern.cli.main\n"
        "heavy = {'numpy', 'onnxruntime', 'qdrant_edge', 'agents', 'openai', 'fastapi', 'sqlalchemy', 'pydantic'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or None)"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr


def test_a_damaged_database_is_one_line_with_advice(book: Path, tmp_path: Path) -> None:
    """No command answers a database that is none with a traceback."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "lectern.db").write_bytes(b"this is no database" * 100)

    result = lectern("books", home=home, check=False)

    assert result.returncode == 2
    assert "ingest your books again" in result.stderr
    assert "Traceback" not in result.stderr


def test_bytes_that_are_no_text_are_refused(book: Path, tmp_path: Path) -> None:
    """A question in another encoding is answered by one line, not by a traceback."""
    home = tmp_path / "home"
    lectern("ingest", str(book), home=home)

    result = lectern("ask", "\udcff what is a node", home=home, check=False)

    assert (result.returncode, "UTF-8" in result.stderr) == (2, True)


def test_a_folder_in_which_nothing_can_be_read_leaves_no_book(tmp_path: Path) -> None:
    """Exit 2, the first reason, and no empty book that would stand in the way of others."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.md").write_bytes(b"\0\0\0")
    home = tmp_path / "home"

    result = lectern("ingest", str(tmp_path / "broken"), home=home, check=False)

    assert (result.returncode, "a.md" in result.stderr) == (2, True)
    assert "No book" in lectern("books", home=home).stdout


def test_the_book_by_argument_or_by_option(book: Path, tmp_path: Path) -> None:
    """Commands that take the book as their argument know the option of all others, too; two books are an error."""
    home = tmp_path / "home"
    lectern("ingest", str(book), "--book", "one", home=home)
    renamed_book = book.rename(tmp_path / "second-book")
    lectern("ingest", str(renamed_book), "--book", "two", home=home)

    outlines = [lectern("outline", *how, "--json", home=home).stdout for how in (["one"], ["--book", "one"])]
    assert outlines[0] == outlines[1]
    unsaid = lectern("outline", home=home, check=False)
    assert unsaid.returncode == 2
    assert "--book" in unsaid.stderr
    for command in ("outline", "chunks", "calibrate"):
        torn = lectern(command, "one", "--book", "two", home=home, check=False)
        assert torn.returncode == 2
        assert "two books" in torn.stderr
