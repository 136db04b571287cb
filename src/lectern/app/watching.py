"""Ingests again when an author edits: each pause in the edits starts an ingestion. Watching begins before the first
ingestion, so no edit is missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lectern.domain.errors import Busy, LecternError

if TYPE_CHECKING:
    from lectern.app.lectern import Lectern
    from lectern.domain.books import BookEntry
    from lectern.domain.jobs import IngestionJob

IGNORED = (".git", ".lectern", "node_modules", ".venv")
LOOK_AGAIN = 5.0  # seconds after which a server looks whether books have come or gone
HEARTBEAT = 100  # milliseconds after which the watcher says that it watches

Done = Callable[["IngestionJob"], None]
Failed = Callable[[str], None]


class Watch:
    """The edits below some folders, collected until they are asked for."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._news = asyncio.Event()
        self._begun = asyncio.Event()
        self._error: Exception | None = None

    async def edits(self, within: float | None = None) -> frozenset[Path]:
        """The paths edited since the last call; waits for some, at most this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._news.wait()
        if self._error is not None:
            raise self._error
        found = frozenset(self._paths)
        self._paths.clear()
        self._news.clear()
        return found

    async def begun(self) -> None:
        """Wait until every further edit is seen."""
        await self._begun.wait()
        if self._error is not None:
            raise self._error

    async def gather(self, folders: Iterable[Path]) -> None:
        """Watch until cancelled."""
        from watchfiles import DefaultFilter, awatch

        only = DefaultFilter(ignore_dirs=IGNORED)
        try:
            async for changes in awatch(*folders, watch_filter=only, yield_on_timeout=True, rust_timeout=HEARTBEAT):
                self._begun.set()
                if changes:
                    self._paths |= {Path(path) for _, path in changes}
                    self._news.set()
        except Exception as exc:  # noqa: BLE001  # a folder that vanished, a limit of the system: whoever asks hears of it
            self._error = exc
        finally:
            self._begun.set()
            self._news.set()


@asynccontextmanager
async def watching(*folders: Path) -> AsyncIterator[Watch]:
    """Watch these folders while the block runs; no edit is missed from its first line on."""
    watch = Watch()
    gathering = asyncio.create_task(watch.gather(folders))
    try:
        await watch.begun()
        yield watch
    finally:
        gathering.cancel()
        await asyncio.wait([gathering])


async def follow_books(lectern: Lectern, done: Done, failed: Failed) -> None:
    """Keep every indexed book up to date while its author edits it, until cancelled; also books that are added
    later."""
    told: set[str] = set()
    while True:
        try:
            for left in await _left_out(lectern) - told:
                failed(f"{left}: its folder may not be read from any more, so it is not followed; see LECTERN_BOOKS")
                told.add(left)
            await _follow(lectern, done, failed)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the next edit is to be followed
            failed(said(exc))
            await asyncio.sleep(LOOK_AGAIN)


async def _follow(lectern: Lectern, done: Done, failed: Failed) -> None:
    """Keep the present books up to date; first ingest what was edited before the watch began."""
    sources = await _sources(lectern)
    if not sources:
        await asyncio.sleep(LOOK_AGAIN)
        return
    async with watching(*sources.values()) as watch:
        due = set(sources)
        while await _sources(lectern) == sources:
            due = {book_id for book_id in sorted(due) if await _busy(lectern, book_id, sources[book_id], done, failed)}
            paths = await watch.edits(LOOK_AGAIN)
            due |= {book for book, folder in sources.items() if any(path.is_relative_to(folder) for path in paths)}


async def _busy(lectern: Lectern, book_id: str, folder: Path, done: Done, failed: Failed) -> bool:
    """Ingest a book; returns whether it has to be tried again, because another job may have begun before the edit."""
    try:
        done(await lectern.ingest(folder, book=book_id))
    except Busy:
        return True
    except Exception as exc:  # noqa: BLE001  # the next edit may mend it
        failed(f"{book_id}: {said(exc)}")
    return False


def said(exc: Exception) -> str:
    """An error in one line."""
    return str(exc) if isinstance(exc, LecternError) else f"{type(exc).__name__}: {exc}"


async def _left_out(lectern: Lectern) -> set[str]:
    return {entry.manifest.book_id for entry in await lectern.books() if not await lectern.jobs.may_read(entry)}


async def _sources(lectern: Lectern) -> dict[str, Path]:
    entries = [entry for entry in await lectern.books() if await lectern.jobs.may_read(entry)]
    return await asyncio.to_thread(_folders, entries)


def _folders(entries: Iterable[BookEntry]) -> dict[str, Path]:
    """The folders of books that still exist."""
    return {entry.manifest.book_id: path for entry in entries if (path := Path(entry.source)).is_dir()}
