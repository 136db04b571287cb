"""Whatever an author does, and in whatever steps it is ingested, the index ends equal to a fresh ingest: in every
field, in what it is found by, and however often the process died, the book was removed or the embedder changed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from lectern.domain import failpoints
from lectern.ingestion.doctor import examine
from lectern.ingestion.ingest import IngestDeps
from lectern.ingestion.replacing import remove
from tests.books import Author
from tests.doubles import WordEmbedder
from tests.ingest_parts import agreement, content, counts_are_right, open_ingest_parts, run

INSTANTS = (
    "ingest.embedded",
    "ledger.before-intend",
    "ledger.intended",
    "index.put",
    "index.before-drop",
    "index.changed",
    "index.flushed",
    "ledger.before-count",
    "ledger.before-settle",
    "ledger.settled",
    "ledger.saved-book",
    "ingest.replaced",
)


class WindowEmbedder(WordEmbedder):
    """Another embedder, which reads a chunk in two windows."""

    fingerprint = "test/windows/32"

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """Two halves, each under the trail."""
        words = text.split()
        halves = (words[: len(words) // 2], words[len(words) // 2 :])
        return tuple(f"{' > '.join(trail)}\n{' '.join(half)}" for half in halves)


class Dead(BaseException):
    """The process ends here; nothing in it may catch that."""


class History:
    """One home, one author, and all that happens to them."""

    def __init__(self, folder: Path, seed: int, *, server: bool) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.author = Author(folder / "book", seed)
        self.server = server
        self.embedder: WordEmbedder = WordEmbedder()
        self.deeds: list[str] = []

    async def go(self) -> None:
        """Some sessions of some ingestions each; a server in memory has only one, since it forgets with it."""
        async with AsyncExitStack() as stack:
            ingest_deps = await self._open(stack)
            for _ in range(self.chance.randint(2, 5)):
                if not self.server and self.chance.random() < 0.3:
                    await stack.aclose()
                    ingest_deps = await self._open(stack)
                await self._step(ingest_deps)
            await self._ingest(ingest_deps)
            actual, counts = await content(ingest_deps), await counts_are_right(ingest_deps)
            assert [finding.kind async for finding in examine(ingest_deps, mend=False)] == [], self.deeds
        async with open_ingest_parts(self.folder / "fresh", self.embedder) as ingest_deps:
            await run(ingest_deps, self.author.folder)
            assert actual == await content(ingest_deps), self.deeds
            assert counts == await counts_are_right(ingest_deps), self.deeds
        shutil.rmtree(self.folder)  # an engine's files are large, and a campaign has thousands of them

    async def _open(self, stack: AsyncExitStack) -> IngestDeps:
        if self.chance.random() < 0.25:
            self.embedder = WindowEmbedder() if type(self.embedder) is WordEmbedder else WordEmbedder()
        self.deeds.append(f"open with {self.embedder.fingerprint}")
        opened = open_ingest_parts(self.folder / "home", self.embedder, server=self.server)
        return await stack.enter_async_context(opened)

    async def _step(self, ingest_deps: IngestDeps) -> None:
        self.deeds += [self.author.edit() for _ in range(self.chance.randint(1, 4))]
        choice = self.chance.random()
        if choice < 0.08 and (entry := await ingest_deps.ledger.book("book")):
            self.deeds.append("remove")
            await remove(ingest_deps.ledger, ingest_deps.collections, entry)
        elif choice < 0.35:
            await self._die(ingest_deps)
        else:
            await self._ingest(ingest_deps)

    async def _ingest(self, ingest_deps: IngestDeps) -> None:
        mode = self.chance.choice(["incremental", "incremental", "incremental", "full", "recreate"])
        self.deeds.append(mode)
        job = await run(ingest_deps, self.author.folder, mode)
        await agreement(ingest_deps)
        await counts_are_right(ingest_deps)
        assert job.files_processed + job.files_skipped + job.files_failed == job.files_discovered, self.deeds

    async def _die(self, ingest_deps: IngestDeps) -> None:
        """An ingestion that is broken off, as by a kill; what comes next finds what it left."""
        instant, count = self.chance.choice(INSTANTS), self.chance.randint(1, 2)
        self.deeds.append(f"die at {instant}")
        failpoints.listen(dying(instant, count))
        try:
            await run(ingest_deps, self.author.folder)
        except Dead:
            """The next ingestion, or the next start, has to mend it."""
        finally:
            failpoints.listen(None)


def dying(instant: str, count: int) -> Callable[[str], None]:
    """A listener that ends the work when this instant comes for the `count`-th time."""
    remaining = count

    def listener(reached: str) -> None:
        nonlocal remaining
        remaining -= reached == instant
        if reached == instant and remaining == 0:
            raise Dead(instant)

    return listener


@pytest.fixture(autouse=True)
def _nobody_listens_afterwards() -> Iterator[None]:
    yield
    failpoints.listen(None)


async def test_any_history_ends_equal_to_a_fresh_ingest(tmp_path: Path, histories: int, seed: int) -> None:
    """Edits, renames, moves, swaps, new siblings, manifest changes, breakage and deletes, deaths, restarts, removals
    and other embedders: id by id, field by field, vector by vector, word by word."""
    for number in range(seed, seed + histories):
        await History(tmp_path / str(number), number, server=False).go()


async def test_a_server_ends_equal_to_a_fresh_ingest_too(tmp_path: Path, histories: int, seed: int) -> None:
    """The same histories on a Qdrant server, where versions stand side by side, end equal to the embedded index."""
    for number in range(seed, seed + max(5, histories // 20)):
        await History(tmp_path / str(number), number, server=True).go()


async def test_a_lost_change_would_be_noticed(tmp_path: Path) -> None:
    """The comparison can fail: an edit that was never ingested is seen as a difference."""
    author = Author(tmp_path / "book", 1)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)
    author._change_a_line()
    async with open_ingest_parts(tmp_path / "fresh") as ingest_deps:
        await run(ingest_deps, author.folder)
        assert before != await content(ingest_deps)


@pytest.mark.parametrize("server", [False, True])
async def test_stale_words_and_vectors_would_be_noticed(tmp_path: Path, server: bool) -> None:
    """Payloads alone would not tell: chunks found by another language's stems, or by other windows, are different."""
    author = Author(tmp_path / "book", 2)
    author._write(Path("lectern.toml"), 'language = "en"\n')
    stored_by_index = []
    for number, (language, embedder) in enumerate(
        (("en", WordEmbedder()), ("de", WordEmbedder()), ("en", WindowEmbedder()))
    ):
        embedder.fingerprint = "test/same/32"  # so that nothing but what is found by tells them apart
        author._write(Path("lectern.toml"), f'language = "{language}"\n')
        async with open_ingest_parts(tmp_path / str(number), embedder, server=server) as ingest_deps:
            await run(ingest_deps, author.folder)
            stored_by_index.append(await content(ingest_deps))

    assert (
        [str(stored) for stored in stored_by_index[0]]
        == [str(stored) for stored in stored_by_index[1]]
        == [str(stored) for stored in stored_by_index[2]]
    )
    assert stored_by_index[0] != stored_by_index[1]
    assert stored_by_index[0] != stored_by_index[2]


@pytest.fixture
def histories(request: pytest.FixtureRequest) -> int:
    """How many histories to try; `make crash` asks for more."""
    return int(request.config.getoption("--histories"))
