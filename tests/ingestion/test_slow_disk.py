"""A disk that stalls, and an author who edits while a folder is read: readers are served meanwhile, and in the end the
index equals the folder. A stall ends when readers were answered: whoever waits for the disk instead hangs here."""

from __future__ import annotations

import asyncio
import random
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from lectern.domain.errors import SourceError
from lectern.domain.scope import ChunkFilter
from lectern.index import edge
from lectern.ingestion import worker
from tests.books import Author
from tests.ingest_parts import agreement, content, counts_are_right, open_ingest_parts, run

MAX_STALL_SECONDS = 30.0  # after which a test gives up
READS = 5


class Stall:
    """Work on a disk that waits until it is told to go on."""

    def __init__(self) -> None:
        self.begun, self.over, self.timed_out = threading.Event(), threading.Event(), False

    def wait(self) -> None:
        """Wait in the thread that asked the disk."""
        self.begun.set()
        self.timed_out = not self.over.wait(MAX_STALL_SECONDS) or self.timed_out


@pytest.mark.parametrize("stalled", ["reading a folder", "syncing the index"])
async def test_readers_are_served_while_the_disk_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stalled: str
) -> None:
    """A file that cannot be read yet, and a sync that does not come back, keep no reader waiting; then the ingestion
    goes on and completes."""
    author, stall = Author(tmp_path / "book", 8), Stall()
    async with open_ingest_parts(tmp_path / "home") as deps:
        await run(deps, author.folder)
        index = deps.collections.current.index
        assert isinstance(index, edge.EdgeIndex)
        index._sync_folder = tmp_path / "home" / "index" / index.collection  # as in a server
        author._change_a_line()
        author._add()
        read_batch = worker.read_batch
        if stalled == "reading a folder":
            monkeypatch.setattr(worker, "read_batch", lambda order: (stall.wait(), read_batch(order))[1])
        else:
            monkeypatch.setattr(edge, "sync", lambda _: stall.wait())
        job = asyncio.create_task(run(deps, author.folder))
        try:
            await asyncio.to_thread(stall.begun.wait, MAX_STALL_SECONDS)
            for _ in range(READS):
                assert await index.read(lambda view: view.chunks(ChunkFilter(book_id="book")))
            assert not job.done()
        finally:
            stall.over.set()
        assert (await job).status == "completed"
        assert not stall.timed_out
        await agreement(deps)


async def test_edits_while_a_folder_is_read_are_not_lost(tmp_path: Path, seed: int) -> None:
    """Files are changed, renamed, swapped, moved and deleted at every step of an ingestion. It completes or says why
    not; the one after the last edit makes the index what a fresh one is."""
    author, chance = Author(tmp_path / "book", seed), random.Random(seed)

    def edit() -> None:
        for _ in range(chance.randint(0, 2)):
            author.edit()

    class EditedMeanwhile(worker.InProcess):
        """Reads a folder whose author never rests."""

        async def survey(self, *arguments):
            edit()
            result = await super().survey(*arguments)
            edit()
            return result

        async def read(self, order):
            edit()
            return await super().read(order)

    async with open_ingest_parts(tmp_path / "home") as deps:
        restless = replace(deps, worker=EditedMeanwhile())
        for _ in range(8):
            try:
                await run(restless, author.folder)
            except SourceError as exc:
                assert str(exc)  # noqa: PT017  # every file was broken at that moment
            await agreement(deps)
        await run(deps, author.folder)
        actual, counts = await content(deps), await counts_are_right(deps)
    async with open_ingest_parts(tmp_path / "fresh") as deps:
        await run(deps, author.folder)
        assert actual == await content(deps)
        assert counts == await counts_are_right(deps)
