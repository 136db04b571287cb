"""Whatever an author does, and in whatever steps it is ingested, the index ends equal to a fresh ingest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.books import Author
from tests.workshop import agreement, content, run, workshop


async def _history(folder: Path, seed: int, *, server: bool = False) -> None:
    chance = random.Random(seed)
    author = Author(folder / "book", seed)
    deeds: list[str] = []
    async with workshop(folder / "home", server=server) as shop:
        for _ in range(chance.randint(2, 5)):
            deeds += [author.edit() for _ in range(chance.randint(1, 4))]
            mode = chance.choice(["incremental", "incremental", "incremental", "full", "recreate"])
            job = await run(shop, author.folder, mode)
            deeds.append(mode)
            await agreement(shop)
            assert job.files_processed + job.files_skipped + job.files_failed == job.files_discovered, deeds
        ours = await content(shop)
    async with workshop(folder / "fresh") as shop:
        await run(shop, author.folder)
        assert ours == await content(shop), deeds


async def test_any_history_ends_equal_to_a_fresh_ingest(tmp_path: Path, histories: int) -> None:
    """Edits, renames, moves, swaps, new siblings, manifest changes, breakage and deletes: id by id, field by field."""
    for seed in range(histories):
        await _history(tmp_path / str(seed), seed)


async def test_a_server_ends_equal_to_a_fresh_ingest_too(tmp_path: Path, histories: int) -> None:
    """The same histories on a Qdrant server, where versions stand side by side, end equal to the embedded index."""
    for seed in range(max(5, histories // 20)):
        await _history(tmp_path / str(seed), seed, server=True)


async def test_a_lost_change_would_be_noticed(tmp_path: Path) -> None:
    """The comparison can fail: an edit that was never ingested is seen as a difference."""
    author = Author(tmp_path / "book", 1)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        before = await content(shop)
    author._change_a_line()
    async with workshop(tmp_path / "fresh") as shop:
        await run(shop, author.folder)
        assert before != await content(shop)


@pytest.fixture
def histories(request: pytest.FixtureRequest) -> int:
    """How many histories to try; `make crash` asks for more."""
    return int(request.config.getoption("--histories"))
