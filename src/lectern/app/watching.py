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

IGNORED_FOLDERS = (".git", ".lectern", "node_modules", ".venv")
BOOK_CHECK_SECONDS = 5.0  # how often a server checks for added and removed books
WATCH_TIMEOUT_MS = 100  # the first timeout shows that the watcher has started

OnIngested = Callable[["IngestionJob"], None]
OnFailed = Callable[[str], None]


class Watch:
    """Collects the edits below some folders until they are read."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._edited = asyncio.Event()
        self._started = asyncio.Event()
        self._error: Exception | None = None

    async def edits(self, within: float | None = None) -> frozenset[Path]:
        """The paths edited since the last call; waits for some, at most this many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._edited.wait()
        if self._error is not None:
            raise self._error
        edited_paths = frozenset(self._paths)
        self._paths.clear()
        self._edited.clear()
        return edited_paths

    async def wait_until_started(self) -> None:
        """Wait until the watcher sees every further edit."""
        await self._started.wait()
        if self._error is not None:
            raise self._error

    async def collect(self, folders: Iterable[Path]) -> None:
        """Watch until cancelled."""
        from watchfiles import DefaultFilter, awatch

        watch_filter = DefaultFilter(ignore_dirs=IGNORED_FOLDERS)
        try:
            async for changes in awatch(
                *folders, watch_filter=watch_filter, yield_on_timeout=True, rust_timeout=WATCH_TIMEOUT_MS
            ):
                self._started.set()
                if changes:
                    self._paths |= {Path(path) for _, path in changes}
                    self._edited.set()
        except Exception as exc:  # noqa: BLE001  # such as a folder that vanished; the next call raises it
            self._error = exc
        finally:
            self._started.set()
            self._edited.set()


@asynccontextmanager
async def watching(*folders: Path) -> AsyncIterator[Watch]:
    """Watch these folders while the block runs; no edit is missed from its first line on."""
    watch = Watch()
    collecting = asyncio.create_task(watch.collect(folders))
    try:
        await watch.wait_until_started()
        yield watch
    finally:
        collecting.cancel()
        await asyncio.wait([collecting])


async def follow_books(lectern: Lectern, on_ingested: OnIngested, on_failed: OnFailed) -> None:
    """Keep every indexed book up to date while its author edits it, until cancelled; also books that are added
    later."""
    reported: set[str] = set()
    while True:
        try:
            for book_id in await _unreadable_books(lectern) - reported:
                on_failed(
                    f"{book_id}: its folder may not be read from any more, so it is not followed; see LECTERN_BOOKS"
                )
                reported.add(book_id)
            await _follow(lectern, on_ingested, on_failed)
        except Exception as exc:  # noqa: BLE001  # after any error, the next edit is followed
            on_failed(error_line(exc))
            await asyncio.sleep(BOOK_CHECK_SECONDS)


async def _follow(lectern: Lectern, on_ingested: OnIngested, on_failed: OnFailed) -> None:
    """Keep the present books up to date; first ingest what was edited before the watch began."""
    sources = await _sources(lectern)
    if not sources:
        await asyncio.sleep(BOOK_CHECK_SECONDS)
        return
    async with watching(*sources.values()) as watch:
        due = set(sources)
        while await _sources(lectern) == sources:
            due = {
                book_id
                for book_id in sorted(due)
                if await _ingest_or_busy(lectern, book_id, sources[book_id], on_ingested, on_failed)
            }
            paths = await watch.edits(BOOK_CHECK_SECONDS)
            due |= {book for book, folder in sources.items() if any(path.is_relative_to(folder) for path in paths)}


async def _ingest_or_busy(
    lectern: Lectern, book_id: str, folder: Path, on_ingested: OnIngested, on_failed: OnFailed
) -> bool:
    """Ingest a book; returns whether it has to be tried again, because another job may have begun before the edit."""
    try:
        on_ingested(await lectern.ingest(folder, book=book_id))
    except Busy:
        return True
    except Exception as exc:  # noqa: BLE001  # the next edit may repair it
        on_failed(f"{book_id}: {error_line(exc)}")
    return False


def error_line(exc: Exception) -> str:
    """An error in one line."""
    return str(exc) if isinstance(exc, LecternError) else f"{type(exc).__name__}: {exc}"


async def _unreadable_books(lectern: Lectern) -> set[str]:
    return {entry.manifest.book_id for entry in await lectern.books() if not await lectern.jobs.may_read(entry)}


async def _sources(lectern: Lectern) -> dict[str, Path]:
    entries = [entry for entry in await lectern.books() if await lectern.jobs.may_read(entry)]
    return await asyncio.to_thread(_folders, entries)


def _folders(entries: Iterable[BookEntry]) -> dict[str, Path]:
    """The folders of books that still exist."""
    return {entry.manifest.book_id: path for entry in entries if (path := Path(entry.source)).is_dir()}
