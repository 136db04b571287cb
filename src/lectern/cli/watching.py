"""Following an author's edits: every pause in them is worth an ingestion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lectern.domain.errors import LecternError

if TYPE_CHECKING:
    from lectern.domain.jobs import IngestionJob
    from lectern.ports import BookEntry
    from lectern.wiring import Lectern

IGNORED = (".git", ".lectern", "node_modules", ".venv")
LOOK_AGAIN = 5_000  # milliseconds after which a server looks whether books have come or gone


async def edits(*folders: Path, look_again: int | None = None) -> AsyncIterator[frozenset[Path]]:
    """The paths of every burst of edits below these folders; with `look_again` also nothing, every so often."""
    from watchfiles import DefaultFilter, awatch

    watched = awatch(
        *folders,
        watch_filter=DefaultFilter(ignore_dirs=IGNORED),
        yield_on_timeout=look_again is not None,
        rust_timeout=look_again or 0,
    )
    async for changes in watched:
        yield frozenset(Path(path) for _, path in changes)


async def follow_books(lectern: Lectern, done: Callable[[IngestionJob], None], failed: Callable[[str], None]) -> None:
    """Keep every indexed book up to date while its author edits it, until cancelled; books that come later, too."""
    while True:
        sources = await _sources(lectern)
        if not sources:
            await asyncio.sleep(LOOK_AGAIN / 1000)
            continue
        async for paths in edits(*sources.values(), look_again=LOOK_AGAIN):
            for book_id, folder in sources.items():
                if any(path.is_relative_to(folder) for path in paths):
                    try:
                        done(await lectern.ingest(folder, book=book_id))
                    except LecternError as exc:  # the next edit may mend it
                        failed(f"{book_id}: {exc}")
            if await _sources(lectern) != sources:
                break


async def _sources(lectern: Lectern) -> dict[str, Path]:
    entries = await lectern.books()
    return await asyncio.to_thread(_folders, entries)


def _folders(entries: Iterable[BookEntry]) -> dict[str, Path]:
    """Where books lie that are still there."""
    return {entry.manifest.book_id: path for entry in entries if (path := Path(entry.source)).is_dir()}
