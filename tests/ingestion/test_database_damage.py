"""Random damage of the database file (RELIABILITY S2): the doctor finds it, or it does no harm; never a traceback."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.errors import LecternError
from tests.books import Author
from tests.crash.test_kills import in_child

FOUND, REFUSED = 7, 8  # exit statuses of a child: the doctor found something, or an error said what to do
ARCHIVED = "INSERT INTO archived_turns VALUES (9, 1, 'r', 0, 's',"  # then reply, look_ups and transcript
THREAD = (
    "INSERT INTO conversation_threads (owner, thread_id, book_id, title, created_at, updated_at, turn_count, last_seq, "
    "archived, version, metadata, filters) VALUES ('o', 't', 'b', 't', 'm', 'm', 0, 0, 0, 1,"
)


@pytest.fixture(scope="module")
def sound_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one small book, closed properly."""
    folder = tmp_path_factory.mktemp("sound")
    Author(folder / "book", 5)
    asyncio.run(_ingest(folder))
    return folder / "home"


async def _ingest(folder: Path) -> None:
    async with open_lectern(Settings(home=folder / "home")) as lectern:
        await lectern.ingest(folder / "book", book="book")


def test_damage_of_the_database_is_found_or_harmless(sound_home: Path, tmp_path: Path, kills: int) -> None:
    """Flipped bytes, lost pages and cut ends: `doctor` has findings, or an error in words, or all chunks are there."""
    chance = random.Random(20)
    outcomes: Counter[int] = Counter()
    for n in range(max(12, kills)):
        home = tmp_path / f"hurt-{n}"
        shutil.copytree(sound_home, home)
        hurt = _hurt(home / "lectern.db", chance)
        status = in_child(lambda home=home: _examine(home))
        assert status in {0, FOUND << 8, REFUSED << 8}, f"{n}: {hurt}: {status}"
        outcomes[status] += 1
        shutil.rmtree(home)

    assert outcomes[FOUND << 8] + outcomes[REFUSED << 8] > 0


async def _examine(home: Path) -> None:
    """What `lectern doctor` does; then what a reader does."""
    try:
        async with open_lectern(Settings(home=home)) as lectern:
            findings = [finding async for finding in lectern.doctor(mend=True)]
            if findings:
                os._exit(FOUND)
            [entry] = await lectern.books()
            assert len(await lectern.app.library.chunks("book")) == entry.total_chunks
    except LecternError as exc:
        assert len(str(exc)) > 20  # noqa: PT017  # not the point of the test
        os._exit(REFUSED)


def _hurt(file: Path, chance: random.Random) -> str:
    size = file.stat().st_size
    deed = chance.choice(["bytes", "page", "cut"])
    with file.open("r+b") as handle:
        if deed == "cut":
            handle.truncate(size - chance.randrange(1, size // 2))
        elif deed == "page":
            handle.seek(4096 * chance.randrange(size // 4096))
            handle.write(bytes(4096))
        else:
            for _ in range(20):
                handle.seek(chance.randrange(size))
                handle.write(bytes([chance.randrange(256)]))
    return deed


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE lessons SET chunk_ids = 'x'", "chunk_ids that cannot be read"),
        ("INSERT INTO turns VALUES (9, 1, 'r', 0, 's', '{}', 'x', '{}')", "refer to no row of conversation_threads"),
        ("INSERT INTO turns VALUES (9, 1, 'r', 0, 's', '{}', 'x', '{}')", "look_ups that cannot be read"),
        (
            "INSERT INTO turns VALUES (9, 1, 'r', 0, 's', '{}', '{}', 'x')",
            "turns have a transcript that cannot be read",
        ),
        (f"{ARCHIVED} 'x', '{{}}', '{{}}')", "archived_turns have a reply that cannot be read"),
        (f"{ARCHIVED} '{{}}', 'x', '{{}}')", "archived_turns have a look_ups that cannot be read"),
        (f"{ARCHIVED} '{{}}', '{{}}', 'x')", "archived_turns have a transcript that cannot be read"),
        (f"{THREAD} 'x', '{{}}')", "conversation_threads have a metadata that cannot be read"),
        (f"{THREAD} '{{}}', 'x')", "conversation_threads have a filters that cannot be read"),
    ],
)
async def test_rows_that_cannot_be_right_are_found(
    sound_home: Path, tmp_path: Path, statement: str, words: str
) -> None:
    """A value that is no JSON and a row whose parent is gone are findings that say what to restore."""
    home = tmp_path / "home"
    shutil.copytree(sound_home, home)
    database = sqlite3.connect(home / "lectern.db")
    database.execute(statement)
    database.commit()
    database.close()
    async with open_lectern(Settings(home=home)) as lectern:
        details = [finding.detail async for finding in lectern.doctor() if finding.kind == "damaged database"]

    assert any(words in detail and "put a copy" in detail for detail in details), details


async def test_a_book_that_cannot_be_read_is_an_error_in_words(sound_home: Path, tmp_path: Path) -> None:
    """A book's row that holds no JSON ends every command with what to restore."""
    home = tmp_path / "home"
    shutil.copytree(sound_home, home)
    database = sqlite3.connect(home / "lectern.db")
    database.execute("UPDATE books SET manifest = '{'")
    database.commit()
    database.close()
    with pytest.raises(LecternError, match="Put a copy"):
        async with open_lectern(Settings(home=home)):
            pass
