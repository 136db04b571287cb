"""What `lectern ingest` and `lectern jobs follow` show while they work, and their reports."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lectern.cli.progress import IngestProgress
from tests.books import Author
from tests.served import LECTERN, lectern, serving

FILES = 60
PROGRESS_LINE = re.compile(r"lectern: (Reading|Embedding) lessons: [\d,]+ of [\d,]+ files")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book that takes a few seconds."""
    author = Author(tmp_path / "book", 5)
    for n in range(FILES):
        author._write(Path(f"mod-d/chapter-1-z/{n:03}-lesson.md"), author._lesson())
    (author.folder / "notes.rst").write_text("Another format.\n", encoding="utf-8")
    return author.folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server that owns the home."""
    env = {**os.environ, "LECTERN_HOME": str(tmp_path / "home")}
    with serving([LECTERN, "serve", "--port", "0"], env=env) as url:
        yield url


def on_a_terminal(*arguments: str, home: Path) -> str:
    """What a command draws on a terminal of 120 columns, with its escape sequences left out."""
    master, slave = pty.openpty()
    env = {**os.environ, "LECTERN_HOME": str(home), "COLUMNS": "120", "TERM": "xterm"}
    process = subprocess.Popen([LECTERN, *arguments], stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    drawn = b""
    while process.poll() is None or select.select([master], [], [], 0)[0]:
        if select.select([master], [], [], 0.1)[0]:
            try:
                drawn += os.read(master, 65_536)
            except OSError:  # the terminal is gone with its last process
                break
    os.close(master)
    assert process.wait(30) == 0, drawn
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.decode())


def test_lines_where_there_is_no_terminal(book: Path, tmp_path: Path) -> None:
    """The first numbers come before the first lesson is indexed, on stderr; stdout is the one line of JSON."""
    done = lectern("ingest", str(book), "--json", home=tmp_path / "home")

    assert PROGRESS_LINE.search(done.stderr), done.stderr
    assert json.loads(done.stdout)["files_processed"] > FILES


def test_a_bar_on_a_terminal(book: Path, tmp_path: Path) -> None:
    """With counts, the rate and the time that is left; the report follows."""
    drawn = on_a_terminal("ingest", str(book), home=tmp_path / "home")

    assert re.search(r"Embedding lessons .* of \d+ files · [\d,]+ texts, [\d.]+ a second · about \d+ s left", drawn)
    assert "lessons indexed" in drawn
    assert "1 files left out" in drawn
    assert "language en" in drawn


def test_through_a_server_it_is_the_same(book: Path, tmp_path: Path, server: str) -> None:
    """The numbers are those of the job's events."""
    done = lectern("ingest", str(book), "--json", home=tmp_path / "home")

    assert PROGRESS_LINE.search(done.stderr), done.stderr
    assert json.loads(done.stdout)["files_left_out"] == 1
    assert httpx.get(f"{server}/ingestions/1", timeout=120).json()["language"] == "en"


def test_a_job_can_be_followed(book: Path, tmp_path: Path, server: str) -> None:
    """`jobs follow` shows the same numbers of a job that somebody else started, and then its report."""
    home = tmp_path / "home"
    lectern("jobs", "start", "book", "--source", str(book), home=home)
    done = lectern("jobs", "follow", "1", home=home)
    again = lectern("jobs", "follow", "1", "--json", home=home)

    assert PROGRESS_LINE.search(done.stderr), done.stderr
    assert "completed" in done.stdout
    assert "lessons indexed" in done.stdout
    assert json.loads(again.stdout)["status"] == "completed"
    assert lectern("jobs", "follow", "99", home=home, check=False).returncode == 2


def test_a_dry_run_has_the_totals_of_the_report(book: Path, tmp_path: Path) -> None:
    """What is left out, the includes and the language, in the terminal and as JSON."""
    (book / "mod-d" / "chapter-1-z" / "000-lesson.md").write_text("# One\n\n![[001-lesson]]\n\n![[missing]]\n")
    text = lectern("ingest", str(book), "--dry-run", home=tmp_path / "home").stdout
    plan = json.loads(lectern("ingest", str(book), "--dry-run", "--json", home=tmp_path / "home").stdout)
    job = json.loads(lectern("ingest", str(book), "--json", home=tmp_path / "home").stdout)

    totals = ("files_left_out", "includes_read", "includes_failed", "language")
    assert [plan[name] for name in totals] == [job[name] for name in totals]
    assert (plan["files_left_out"], plan["language"]) == (1, "en")
    assert f"includes: {job['includes_read']} read, {job['includes_failed']} failed" in text
    assert "left out: 1 files" in text
    assert "language: en" in text


def test_numbers_are_shown_as_far_as_they_are_known() -> None:
    """Before the plan the time alone; a time that is left once a share of the work is done."""
    progress = IngestProgress()
    assert (progress.name, progress.numbers()) == ("Reading the folder", "0 s")

    progress.take({"kind": "planned", "job_id": 7, "plan": {}})
    progress.take({"kind": "working", "stage": "read", "done": 0, "total": 1200, "share": 0.0, "embedded": 0})
    assert (progress.job_id, progress.name, progress.numbers()) == (7, "Reading lessons", "0 of 1,200 files")

    progress.take({"kind": "working", "stage": "embed", "done": 600, "total": 1200, "share": 0.5, "embedded": 2000})
    assert re.fullmatch(r"600 of 1,200 files · 2,000 texts, [\d.]+ a second · about 0 s left", progress.numbers())
