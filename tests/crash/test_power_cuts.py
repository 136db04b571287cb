"""A power cut, modelled: of what was written since the last sync, any page may be on the disk or not, in any order, and
files may be as long as they were, as they are, or in between. What was synced is there.

A child ingests. Each time it has synced the index, the files are copied (what the disk surely has); at a random later
instant they are copied again (what the page cache has), and the child is killed. A disk is made of both copies, page by
page at random, and the next process must give what a fresh ingest gives. The database is taken from the later copy: its
commits are synced, and it has a log of its own."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from lectern.domain import failpoints
from lectern.domain.errors import IndexDamaged, LecternError
from lectern.index import edge
from lectern.ingestion.doctor import examine
from lectern.ingestion.ingest import IngestDeps
from tests.books import Author
from tests.crash.test_kills import in_child
from tests.ingest_parts import agreement, content, counts_are_right, open_ingest_parts, run

PAGE = 4096
CUT_AT = (
    "index.put",
    "index.before-drop",
    "index.changed",
    "index.before-flush",
    "ledger.before-settle",
    "ledger.settled",
)
SOUND, MENDED, BUILT_AGAIN = 0, 7, 8  # exit statuses of the child that looks; a test fails on any other


class Cut:
    """A listener that copies the synced files and, at an instant, the written ones; then the process ends."""

    def __init__(self, home: Path, folder: Path, name: str, count: int) -> None:
        self._index, self._home, self._folder = home / "index", home, folder
        self._name, self._count = name, count

    def __call__(self, reached: str) -> None:
        """Copy what is on the disk now, or end."""
        if reached == "index.flushed":
            self.synced()
        if reached == self._name:
            self._count -= 1
            if self._count == 0:
                shutil.copytree(self._home, self._folder / "written")
                os.kill(os.getpid(), signal.SIGKILL)

    def synced(self) -> None:
        """Everything in the index is on the disk."""
        shutil.rmtree(self._folder / "synced", ignore_errors=True)
        shutil.copytree(self._index, self._folder / "synced")


def _files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _disk(folder: Path, chance: random.Random) -> int:
    """Make `folder/home` of the two copies; returns how many pages are not as they were written last."""
    shutil.copytree(folder / "written", folder / "home")
    index = folder / "home" / "index"
    old, new = _files(folder / "synced"), _files(folder / "written" / "index")
    lost = 0
    for name in sorted(new):
        kept = chance.choice([0.0, 0.2, 0.5, 0.8, 1.0])  # the share of its pages that reached the disk
        before, after = old.get(name, b""), new[name]
        length = chance.choice([len(before), len(after), chance.randint(*sorted((len(before), len(after))))])
        data = bytearray(after[:length].ljust(length, b"\0"))
        for start in range(0, length, PAGE):
            if chance.random() >= kept and after[start : start + PAGE] != before[start : start + PAGE]:
                data[start : start + PAGE] = before[start : start + PAGE].ljust(min(PAGE, length - start), b"\0")
                lost += 1
        if name not in old and chance.random() < 0.3:
            (index / name).unlink()
            lost += 1
        else:
            (index / name).write_bytes(data[:length])
    for name in old.keys() - new.keys():
        if chance.random() < 0.5:  # that it was deleted is not on the disk
            (index / name).parent.mkdir(parents=True, exist_ok=True)
            (index / name).write_bytes(old[name])
            lost += 1
    return lost


@pytest.mark.parametrize("serving", [False, True])
def test_a_power_cut_leaves_nothing_wrong(
    tmp_path: Path, kills: int, seed: int, monkeypatch: pytest.MonkeyPatch, *, serving: bool
) -> None:
    """By the terminal (which flushes) and in a server (which syncs): after every cut the next start and ingestion give
    what a fresh ingest gives. An index that cannot be read says so, and `doctor --mend` builds it again; never is
    another content served."""
    chance = random.Random(seed)
    author = Author(tmp_path / "book", seed)
    outcomes: Counter[int] = Counter()
    lost = cuts = 0
    if serving:
        monkeypatch.setattr(edge, "FLUSH_AFTER_POINTS", 10**9)
    while cuts < max(3, kills // 10):
        folder = tmp_path / f"cut-{cuts}"
        folder.mkdir()
        home = tmp_path / "home"
        for _ in range(chance.randint(1, 3)):
            author.edit()
        cut = Cut(home, folder, chance.choice(CUT_AT), chance.randint(1, 3))

        async def work(home: Path = home, cut: Cut = cut) -> None:
            async with open_ingest_parts(home) as deps:
                index = deps.collections.current.index
                assert isinstance(index, edge.EdgeIndex)
                index._shard.flush()
                if serving:
                    index._sync_folder = home / "index" / index.collection
                cut.synced()
                failpoints.listen(cut)
                await run(deps, author.folder, "full")

        status = in_child(work)
        assert status in {0, signal.SIGKILL}, status
        if status == signal.SIGKILL:
            cuts += 1
            lost += _disk(folder, chance)
            shutil.rmtree(home)
            shutil.move(folder / "home", home)
            status = in_child(lambda home=home, folder=folder: _look(home, author.folder, folder))
            assert status >> 8 in {SOUND, MENDED, BUILT_AGAIN}, status
            outcomes[status >> 8] += 1
            if status >> 8 != SOUND:
                shutil.rmtree(home)
        shutil.rmtree(folder)

    assert lost > 0
    assert outcomes[SOUND] > 0


async def _look(home: Path, book: Path, folder: Path) -> None:
    """Open, read and ingest as the next process does; an index that cannot be read is mended as the error says."""
    status = SOUND
    try:
        async with open_ingest_parts(home) as deps:
            if (entry := await deps.ledger.book("book")) is not None:
                await deps.collections.serving(entry)  # raises if readers are not served
                await agreement(deps)
                await counts_are_right(deps)
            await _ingested_like_a_fresh_one(deps, book, folder)
    except LecternError as exc:
        assert "doctor --mend" in str(exc)  # noqa: PT017  # not the point of the test
        status = await _mend(home)
        async with open_ingest_parts(home) as deps:
            await _ingested_like_a_fresh_one(deps, book, folder)
    os._exit(status)


async def _mend(home: Path) -> int:
    """What `doctor --mend` does; an index that cannot even be opened is removed first. Returns how it was done."""
    status = MENDED
    try:
        async with open_ingest_parts(home) as deps:
            [_ async for _ in examine(deps, mend=True)]
    except IndexDamaged:
        status = BUILT_AGAIN
        shutil.rmtree(home / "index")
        async with open_ingest_parts(home) as deps:
            [_ async for _ in examine(deps, mend=True)]
    return status


async def _ingested_like_a_fresh_one(deps: IngestDeps, book: Path, folder: Path) -> None:
    await run(deps, book)
    actual, counts = await content(deps), await counts_are_right(deps)
    async with open_ingest_parts(folder / "fresh") as fresh:
        await run(fresh, book)
        assert actual == await content(fresh)
        assert counts == await counts_are_right(fresh)


def test_the_model_of_a_power_cut_loses_what_was_not_synced(tmp_path: Path) -> None:
    """The disks that are made differ: pages are old, zero or new, files are missing, short or back again."""
    for name, text in (("synced/a", b"a" * 9000), ("synced/gone", b"x"), ("written/index/a", b"b" * 20_000)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text)
    disks = set()
    for number in range(40):
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        _disk(tmp_path, random.Random(number))
        file = tmp_path / "home" / "index" / "a"
        disks.add((file.exists() and file.read_bytes()[:1], (tmp_path / "home" / "index" / "gone").exists()))
    assert {(b"a", True), (b"b", False)} <= disks
