"""Real kills: a child ingests and is killed at a named or a random instant; the next process mends what is left."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lectern.domain import failpoints
from lectern.domain.scope import ChunkFilter
from tests.books import Author
from tests.ingest_parts import agreement, content, counts_are_right, open_ingest_parts, run

FAILPOINTS = (
    "ingest.planned",
    "ingest.read",
    "ingest.embedded",
    "ingest.replaced",
    "ingest.before-sweep",
    "vectors.before-remember",
    "vectors.remembered",
    "ledger.before-intend",
    "ledger.intended",
    "ledger.before-count",
    "ledger.before-settle",
    "ledger.settled",
    "ledger.forgotten",
    "ledger.before-save-book",
    "ledger.saved-book",
    "database.migrating",
    "index.created",
    "index.before-ready",
    "index.put",
    "index.before-drop",
    "index.changed",
    "index.before-flush",
    "index.flushed",
)


def in_child(work: Callable[[], Awaitable[None]], *, kill_after: float | None = None) -> int:
    """Run `work` in a forked process, perhaps kill it; the raw exit status."""
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work())
            os._exit(0)
        except BaseException:  # noqa: BLE001  # whatever it is, the parent must hear of it
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def killed_at(name: str, count: int) -> Callable[[str], None]:
    """A listener that kills this process when the instant comes for the `count`-th time."""
    outcomes: Counter[str] = Counter()

    def listener(reached: str) -> None:
        outcomes[reached] += 1
        if reached == name and outcomes[name] == count:
            os.kill(os.getpid(), signal.SIGKILL)

    return listener


class Campaign:
    """One home, one author, many kills."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.author = Author(folder / "book", seed)
        self.kills = 0
        self.round = 0

    def kill_once(self, name: str | None) -> None:
        """Edit, ingest and be killed; without a name at a random instant."""
        self.round += 1
        for _ in range(self.chance.randint(1, 3)):
            self.author.edit()
        mode = "recreate" if name == "ingest.before-sweep" else self.chance.choice(["incremental", "full", "recreate"])
        count = self.chance.randint(1, 2)

        async def work() -> None:
            if name is not None:
                failpoints.listen(killed_at(name, count))
            async with open_ingest_parts(self.folder / "home") as ingest_deps:
                await run(ingest_deps, self.author.folder, mode)

        status = in_child(work, kill_after=None if name else self.chance.uniform(0.005, 0.25))
        assert status in {0, signal.SIGKILL}, status
        self.kills += status == signal.SIGKILL

    def check(self) -> None:
        """A fresh process finds lessons whole, index and ledger agreeing, and ends equal to a fresh ingest."""

        async def work() -> None:
            async with open_ingest_parts(self.folder / "home") as ingest_deps:
                await agreement(ingest_deps)
                await chains_are_whole(ingest_deps)
                await counts_are_right(ingest_deps)
                await run(ingest_deps, self.author.folder)
                actual, counts = await content(ingest_deps), await counts_are_right(ingest_deps)
            async with open_ingest_parts(self.folder / f"fresh-{self.round}") as ingest_deps:
                await run(ingest_deps, self.author.folder)
                assert actual == await content(ingest_deps)
                assert counts == await counts_are_right(ingest_deps)

        assert in_child(work) == 0
        shutil.rmtree(self.folder / f"fresh-{self.round}", ignore_errors=True)  # a thousand would fill the disk


async def chains_are_whole(ingest_deps) -> None:
    """Every lesson is of one version: all its chunks are there, linked both ways, and from one state of the file."""
    stored_chunks = await ingest_deps.collections.current.index.read(
        lambda view: view.chunks(ChunkFilter(book_id="book"))
    )
    lessons: dict[str, list] = {}
    for stored in stored_chunks:
        lessons.setdefault(stored.chunk.parent_doc_id, []).append(stored.chunk)
    for chunks in lessons.values():
        ids = [chunk.id for chunk in chunks]
        assert [chunk.chunk_index for chunk in chunks] == list(range(chunks[0].total_chunks))
        assert [chunk.prev_chunk_id for chunk in chunks] == [None, *ids[:-1]]
        assert [chunk.next_chunk_id for chunk in chunks] == [*ids[1:], None]
        assert len({chunk.source_file_hash for chunk in chunks}) == 1


def test_no_kill_leaves_anything_wrong(tmp_path: Path, kills: int, seed: int) -> None:
    """After every kill: no chunk lost, doubled, orphaned or stale, by ids and every field, and every term counted."""
    campaign = Campaign(tmp_path, seed=kills + seed)
    turn = 0
    while campaign.kills < kills:
        name = FAILPOINTS[turn % len(FAILPOINTS)] if turn % 3 else None
        for _ in range(campaign.chance.choice([1, 1, 1, 2])):  # a process may die twice before one gets through
            campaign.kill_once(name)
        campaign.check()
        turn += 1
        assert turn < 10 * kills + 50, "kills do not happen"


@pytest.mark.parametrize("name", FAILPOINTS)
def test_every_named_instant_is_reached_and_survived(tmp_path: Path, name: str) -> None:
    """Each failpoint exists in the code, kills, and is mended."""
    campaign = Campaign(tmp_path, seed=7)
    if not name.startswith(("index.", "database.")) or name in {"index.put", "index.before-drop", "index.changed"}:
        assert in_child(lambda: _ingest(campaign)) == 0
        campaign.author._change_a_line()

    async def work() -> None:
        failpoints.listen(killed_at(name, 1))
        async with open_ingest_parts(campaign.folder / "home") as ingest_deps:
            await run(ingest_deps, campaign.author.folder, "recreate")

    assert in_child(work) == signal.SIGKILL
    campaign.check()


async def _ingest(campaign: Campaign) -> None:
    async with open_ingest_parts(campaign.folder / "home") as ingest_deps:
        await run(ingest_deps, campaign.author.folder)


def test_without_the_intent_a_kill_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks can fail: a ledger that forgets its intents leaves an index that does not agree."""
    from lectern.store.ledger import SqlLedger

    campaign = Campaign(tmp_path, seed=3)
    assert in_child(lambda: _ingest(campaign)) == 0
    campaign.author._change_a_line()
    campaign.author._add()

    async def work() -> None:
        failpoints.listen(killed_at("index.put", 1))
        async with open_ingest_parts(campaign.folder / "home") as ingest_deps:
            await run(ingest_deps, campaign.author.folder)

    assert in_child(work) == signal.SIGKILL

    async def forgetful(_self: SqlLedger) -> list:
        return []

    monkeypatch.setattr(SqlLedger, "unsettled", forgetful)

    async def look() -> None:
        async with open_ingest_parts(campaign.folder / "home") as ingest_deps:
            await agreement(ingest_deps)

    assert in_child(look) != 0
