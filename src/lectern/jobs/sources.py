"""Where a book may be read from. Whoever asks over HTTP names a folder; the operator has said below which folders that
may be. Whatever else is named gets one answer, there or not: two would be a way to look around."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from lectern.domain.errors import BadInput, ConfigError

LONGEST = 1024  # characters of a path that anybody means
VARIABLE = "LECTERN_BOOKS"


def check_roots(roots: Sequence[Path]) -> None:
    """Refuse to serve with a folder that is not there: it is a slip of the pen, or a disk that is not mounted."""
    for root in roots:
        if not root.is_dir():
            raise ConfigError(f"{VARIABLE} names {str(root)!r}, which is no folder; mend it, or mount what is missing")


def allowed_folder(source: str, roots: Sequence[Path]) -> Path:
    """The folder that is meant, with every link in it followed; absolute, or relative to one of the roots."""
    asked = _plain(source)
    inside = [found for root in roots if (found := _below(asked, root)) is not None]
    folder = next((found for found in inside if found.is_dir()), None)
    if folder is None:
        raise _refused(source)
    return folder


def still_allowed(folder: str, roots: Sequence[Path]) -> bool:
    """Whether a folder that was allowed when a job was queued still is what it was."""
    return any(_below(PurePath(folder), root) == Path(folder) for root in roots)


def _plain(source: str) -> PurePath:
    """The path as it is written; what nobody writes by accident is refused before the disk hears of it."""
    asked = PurePath(source)
    harmless = source.isprintable() and len(source) <= LONGEST and source.strip()
    if not harmless or ".." in asked.parts:
        raise _refused(source)
    return asked


def _below(asked: PurePath, root: Path) -> Path | None:
    """Where the path leads if it stays below the root, however it is linked; None where it leaves it."""
    root = Path(os.path.realpath(root))
    try:
        found = Path(os.path.realpath(root / asked))  # an absolute path takes the root's place
    except (OSError, ValueError):
        return None
    return found if found.is_relative_to(root) else None


def _refused(source: str) -> BadInput:
    return BadInput(
        f"{source!r} is no folder below those that books may be read from; the operator lists those in {VARIABLE}",
        field="source",
    )
