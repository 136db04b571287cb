"""Following an author: no edit is missed, whenever it is made, and no failure ends the following."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from lectern.app import watching as module
from lectern.app.commands import Ingest
from lectern.app.watching import follow_books, watching
from lectern.cli import ingest as command
from lectern.domain.errors import Busy, ProviderError
from lectern.domain.jobs import IngestionJob

MAX_WAIT_SECONDS = 60.0  # how long a test waits for what must come


@asynccontextmanager
async def meanwhile(work: Any) -> AsyncIterator[asyncio.Task[None]]:
    """Do this in the background, and cancel it at the end."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a state, not for a time."""
    async with asyncio.timeout(MAX_WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110  # what is waited for has no event of its own
            await asyncio.sleep(0.02)


class Desk:
    """Stands in for a Lectern: remembers what it was asked to ingest, and what it read of it."""

    def __init__(self, **books: Path) -> None:
        self.sources = books
        self.read: list[tuple[str, str]] = []
        self.troubles: list[BaseException] = []
        self.during: Callable[[], None] | None = None
        self.forbidden: set[str] = set()
        self.jobs = self

    async def may_read(self, entry: Any) -> bool:
        """Whether its folder may be read from."""
        return entry.manifest.book_id not in self.forbidden

    async def books(self) -> list[Any]:
        """The books, as far as a follower looks at them."""

        class Entry:
            def __init__(self, book_id: str, source: Path) -> None:
                self.manifest = type("Manifest", (), {"book_id": book_id})
                self.source = str(source)

        return [Entry(name, source) for name, source in self.sources.items()]

    async def ingest(self, folder: Path, *, book: str) -> IngestionJob:
        """Read the book's one lesson; fail as often as there are troubles."""
        self.read.append((book, (folder / "a.md").read_text(encoding="utf-8")))
        if self.during:
            deed, self.during = self.during, None
            deed()
        if self.troubles:
            raise self.troubles.pop(0)
        return IngestionJob(job_id=1, book_id=book, mode="incremental", status="completed", queued_at="")


def a_book(folder: Path, text: str = "first") -> Path:
    """A folder with one lesson."""
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(text, encoding="utf-8")
    return folder


async def test_every_edit_after_the_beginning_is_seen(tmp_path: Path) -> None:
    """The first line of the block can already edit, and what is edited while nobody asks is kept."""
    book = a_book(tmp_path / "book")
    async with watching(book) as watch:
        for n in range(3):
            (book / f"{n}.md").write_text("x", encoding="utf-8")
            await asyncio.sleep(0.1)
        seen_files: set[str] = set()
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            while seen_files != {"0.md", "1.md", "2.md"}:
                seen_files |= {path.name for path in await watch.edits()}

        assert await watch.edits(0.01) == frozenset()


async def test_a_folder_that_is_not_there_is_an_error_not_a_wait(tmp_path: Path) -> None:
    """Whoever watches hears that nothing can be watched."""
    with pytest.raises(FileNotFoundError):
        async with watching(tmp_path / "none"):
            pass


async def test_a_folder_that_is_not_allowed_any_more_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said once, and the other books are followed."""
    monkeypatch.setattr(module, "BOOK_CHECK_SECONDS", 0.2)
    desk = Desk(free=a_book(tmp_path / "free"), bound=a_book(tmp_path / "bound"))
    desk.forbidden = {"bound"}
    texts: list[str] = []
    async with meanwhile(follow_books(desk, lambda _: None, texts.append)):
        await until(lambda: bool(desk.read))
        desk.sources["more"] = a_book(tmp_path / "more")
        await until(lambda: ("more", "first") in desk.read)

    assert {book for book, _ in desk.read} == {"free", "more"}
    assert ["LECTERN_BOOKS" in line for line in texts] == [True]


async def test_an_edit_during_the_first_ingestion_is_ingested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ingest --watch` watches first: an edit made while it reads is not left for the next edit; no trouble ends it."""
    book = a_book(tmp_path / "book")
    read: list[tuple[str, str]] = []

    async def ingesting(order: Ingest, remarks: list[str], *, direct: bool, json: bool) -> int:
        read.append((order.mode, (book / "a.md").read_text(encoding="utf-8")))
        if len(read) <= 2:
            (book / "a.md").write_text(f"edit {len(read)}", encoding="utf-8")
        if len(read) == 2:
            raise RuntimeError("a bug")
        return 0

    monkeypatch.setattr(command, "_ingest", ingesting)
    order = Ingest(folder=str(book), mode="full", replace=True)
    async with meanwhile(command._watch(book, order, [], direct=False, json=True)) as task:
        await until(lambda: len(read) >= 3 or task.done())

    assert read[:3] == [("full", "first"), ("incremental", "edit 1"), ("incremental", "edit 2")]


async def test_a_first_ingestion_that_fails_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the call is answered at once, not watched."""

    async def ingesting(order: Ingest, remarks: list[str], *, direct: bool, json: bool) -> int:
        raise ProviderError("test", "is down")

    monkeypatch.setattr(command, "_ingest", ingesting)
    with pytest.raises(ProviderError):
        await command._watch(a_book(tmp_path / "book"), Ingest(folder="book"), [], direct=False, json=True)


async def test_a_follower_catches_up_when_it_begins(tmp_path: Path) -> None:
    """What was edited before the server started, and while it was catching up, is ingested with no further edit."""
    desk = Desk(book=a_book(tmp_path / "book"))
    desk.during = lambda: (tmp_path / "book" / "a.md").write_text("meanwhile", encoding="utf-8") and None
    async with meanwhile(follow_books(desk, lambda _: None, print)):
        await until(lambda: len(desk.read) >= 2)

    assert desk.read[:2] == [("book", "first"), ("book", "meanwhile")]


async def test_a_follower_catches_up_with_books_that_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A book that comes later is followed, and what was edited until then is not missed; one that goes is let go."""
    monkeypatch.setattr(module, "BOOK_CHECK_SECONDS", 0.05)
    desk = Desk()
    async with meanwhile(follow_books(desk, lambda _: None, print)):
        await asyncio.sleep(0.1)
        desk.sources["one"] = a_book(tmp_path / "one")
        await until(lambda: ("one", "first") in desk.read)
        desk.sources["two"] = a_book(tmp_path / "two", "other")
        (tmp_path / "one" / "a.md").write_text("second", encoding="utf-8")
        await until(lambda: {("two", "other"), ("one", "second")} <= set(desk.read))
        del desk.sources["one"]
        (tmp_path / "two" / "a.md").write_text("third", encoding="utf-8")
        await until(lambda: ("two", "third") in desk.read)


@pytest.mark.parametrize("trouble", [ProviderError("test", "is down"), RuntimeError("a bug"), OSError("disk")])
async def test_no_failure_ends_the_following(tmp_path: Path, trouble: Exception) -> None:
    """It is reported, and the next edit is ingested."""
    desk = Desk(book=a_book(tmp_path / "book"))
    desk.troubles = [trouble]
    texts: list[str] = []
    async with meanwhile(follow_books(desk, lambda _: None, texts.append)):
        await until(lambda: bool(texts))
        (tmp_path / "book" / "a.md").write_text("second", encoding="utf-8")
        await until(lambda: len(desk.read) >= 2)

    assert desk.read[-1] == ("book", "second")
    assert len(texts) == 1
    assert texts[0].startswith("book: ")


async def test_a_busy_book_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that began before the edit does not swallow it: the follower comes back, and reports nothing."""
    monkeypatch.setattr(module, "BOOK_CHECK_SECONDS", 0.05)
    desk = Desk(book=a_book(tmp_path / "book"))
    desk.troubles = [Busy("x"), Busy("x")]
    texts: list[str] = []
    async with meanwhile(follow_books(desk, lambda _: None, texts.append)):
        await until(lambda: len(desk.read) >= 3)

    assert texts == []


async def test_cancelling_ends_the_following(tmp_path: Path) -> None:
    """In the midst of an ingestion, too."""
    desk = Desk(book=a_book(tmp_path / "book"))
    desk.troubles = [asyncio.CancelledError()]
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(MAX_WAIT_SECONDS):
            await follow_books(desk, lambda _: None, print)


async def test_a_folder_that_vanishes_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that breaks is begun anew."""
    monkeypatch.setattr(module, "BOOK_CHECK_SECONDS", 0.05)
    desk = Desk(book=a_book(tmp_path / "book"))
    real, broken = module.watching, [OSError("no more watches")]

    def breaking(*folders: Path) -> Any:
        if broken:
            raise broken.pop()
        return real(*folders)

    monkeypatch.setattr(module, "watching", breaking)
    texts: list[str] = []
    async with meanwhile(follow_books(desk, lambda _: None, texts.append)):
        await until(lambda: bool(desk.read))

    assert texts == ["OSError: no more watches"]
