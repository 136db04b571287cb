"""Damaged files: an index that lost something is never served as if the book were shorter."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from lectern.domain.errors import IndexDamaged, LecternError
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.doctor import examine
from tests.books import Author
from tests.crash.test_kills import in_child
from tests.ingest_parts import content, open_ingest_parts, run

NOTICED = 7  # the exit status of a child that found the damage


def test_no_damage_to_the_index_is_served_as_healthy(tmp_path: Path, kills: int) -> None:
    """Flips, cuts and losses over every kind of file: the home opens right, or the error says how to mend it."""
    chance = random.Random(9)
    author = Author(tmp_path / "book", 9)
    asyncio.run(_ingest(tmp_path / "home", author))
    outcomes: Counter[int] = Counter()
    for n in range(max(30, kills // 5)):
        home = tmp_path / f"hurt-{n}"
        shutil.copytree(tmp_path / "home", home)
        hurt = _hurt(home / "index", chance)
        status = in_child(lambda home=home: _look(home))
        assert status in {0, NOTICED << 8}, f"{hurt}: {status}"
        outcomes[status] += 1
        shutil.rmtree(home)

    assert len(outcomes) == 2  # some damage does no harm, some is noticed


async def _ingest(home: Path, author: Author) -> None:
    async with open_ingest_parts(home) as ingest_deps:
        await run(ingest_deps, author.folder)


async def _look(home: Path) -> None:
    """Read everything, as a reader would; a damaged index is another exit status."""
    try:
        async with open_ingest_parts(home) as ingest_deps:
            entry = await ingest_deps.ledger.book("book")
            assert entry is not None
            serving = await ingest_deps.collections.serving(entry)
            assert len(await content(ingest_deps)) == entry.total_chunks
            where = ChunkFilter(book_id="book")
            [vector] = await serving.embedder.embed(["robot"], purpose="question")
            results = await serving.index.read(
                lambda view: view.find(vector, "robot", language="en", where=where, limit=5)
            )
            assert results
    except LecternError as exc:
        assert "doctor" in str(exc) or "recreate" in str(exc)  # noqa: PT017  # not the point of the test
        os._exit(NOTICED)


def _hurt(folder: Path, chance: random.Random) -> str:
    """One file loses its head, its tail, some bits, or itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    file = chance.choice(files)
    size = min(file.stat().st_size, 1 << 20)
    deed = chance.choice(["cut", "flip", "lose", "empty"])
    if deed == "lose":
        file.unlink()
    elif deed == "empty":
        file.write_bytes(b"")
    elif deed == "cut":
        with file.open("r+b") as handle:
            handle.truncate(chance.randrange(size))
    else:
        with file.open("r+b") as handle:
            for _ in range(8):
                handle.seek(chance.randrange(size))
                handle.write(bytes([chance.randrange(256)]))
    return f"{deed} {file.relative_to(folder)}"


async def test_an_index_that_lost_everything_is_mended(tmp_path: Path) -> None:
    """The folder of the index was deleted: questions fail with advice, and the doctor reads the book again."""
    author = Author(tmp_path / "book", 2)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)
    shutil.rmtree(tmp_path / "home" / "index")

    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await ingest_deps.collections.serving(entry)

        assert [finding async for finding in examine(ingest_deps, mend=True)]
        await ingest_deps.collections.serving(entry)
        assert await content(ingest_deps) == before
