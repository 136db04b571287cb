"""`lectern ingest` while its author edits, and when it is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.books import Author
from tests.served import LECTERN, lectern, serving


def start(*arguments: str, home: Path) -> subprocess.Popen[str]:
    """A command that goes on."""
    return subprocess.Popen(
        [LECTERN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LECTERN_HOME": str(home)},
        preexec_fn=_hears_ctrl_c,  # noqa: PLW1509  # it only sets a handler
    )


def _hears_ctrl_c() -> None:
    """A shell starts what it puts into the background deaf to Ctrl-C, and so would be all that we start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_watch_takes_up_an_edit(tmp_path: Path) -> None:
    """`--watch` ingests once, then again after every edit, and Ctrl-C ends it in peace."""
    author, home = Author(tmp_path / "book", 1), tmp_path / "home"
    process = start("ingest", str(author.folder), "--watch", "--json", home=home)
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        (author.folder / "mod-b" / "09-new.md").write_text("# New\n\nA lesson about warp drives.\n", encoding="utf-8")
        second = json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)

    assert first["chunks_created"] > 0
    assert (second["files_processed"], second["chunks_embedded"]) == (1, 1)
    assert "Traceback" not in errors
    assert "warp drives" in lectern("search", "warp drives", home=home).stdout


def test_an_interrupted_ingestion_leaves_everything_right(tmp_path: Path) -> None:
    """Ctrl-C at any moment: exit 130 with one line, index and ledger agree, and the next run completes the book."""
    author, home = Author(tmp_path / "book", 2), tmp_path / "home"
    for n in range(150):
        author._write(Path(f"mod-d/chapter-1-z/{n:03}-lesson.md"), author._lesson())
    for delay in (0.3, 1.2, 2.0, 2.6):
        process = start("ingest", str(author.folder), home=home)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)

        assert process.returncode in {130, 0, -signal.SIGINT}, errors
        assert "Traceback" not in errors or process.returncode == -signal.SIGINT
        if home.exists():
            assert lectern("doctor", home=home).returncode == 0
    job = json.loads(lectern("ingest", str(author.folder), "--json", home=home).stdout)
    assert job["files_processed"] + job["files_skipped"] == job["files_discovered"]


@pytest.fixture
def long_book(tmp_path: Path) -> Path:
    """A book that takes a while, in several batches."""
    author = Author(tmp_path / "book", 3)
    for n in range(700):
        author._write(Path(f"mod-d/chapter-1-z/{n:03}-lesson.md"), author._lesson())
    return author.folder


def interrupted(process: subprocess.Popen[str]) -> str:
    """Wait until some files are indexed, then press Ctrl-C; what the command has to say."""
    assert process.stderr is not None
    lines = ""
    while not re.search(r": [1-9][\d,]* of", lines):
        lines += process.stderr.readline()
        assert process.poll() is None, lines
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=120)[1]


def assert_kept(errors: str, home: Path, book: Path) -> None:
    """The last line of an interrupted command says what the index holds, and the next run leaves that alone."""
    assert "Traceback" not in errors
    kept = re.search(r"interrupted; ([\d,]+) of 7\d\d files \(([\d,]+) chunks\) are indexed and kept", errors)
    assert kept, errors
    files, chunks = (int(number.replace(",", "")) for number in kept.groups())
    [entry] = json.loads(lectern("books", "--json", home=home).stdout)
    plan = json.loads(lectern("ingest", str(book), "--dry-run", "--json", home=home).stdout)
    assert entry["total_chunks"] == chunks > 0
    assert len(plan["unchanged"]) == files > 0
    assert plan["new"]


def test_ctrl_c_says_what_was_kept(tmp_path: Path, long_book: Path) -> None:
    """Files and chunks that are indexed, as the index itself counts them."""
    home = tmp_path / "home"
    process = start("ingest", str(long_book), home=home)
    errors = interrupted(process)

    assert process.returncode == 130
    assert_kept(errors, home, long_book)


def test_ctrl_c_says_what_was_kept_on_a_server(tmp_path: Path, long_book: Path) -> None:
    """The job ends with the command, and the command waits for its end to say what the server has."""
    home = tmp_path / "home"
    env = {**os.environ, "LECTERN_HOME": str(home)}
    with serving([LECTERN, "serve", "--port", "0"], env=env) as url:
        process = start("ingest", str(long_book), home=home)
        errors = interrupted(process)

        assert process.returncode == 130
        assert httpx.get(f"{url}/ingestions/1", timeout=120).json()["status"] == "cancelled"
        assert_kept(errors, home, long_book)
