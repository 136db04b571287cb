"""The folders that books may be read from. A request over HTTP names a folder; it must be below one of the folders that
the operator listed. Every other path gets the same answer, whether it exists or not, so that a caller cannot explore
the disk. A key that is not admin over all books is held to the folder of its book, so that a key of one book cannot
have the text of another indexed as its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath

from lectern.domain.errors import BadInput, ConfigError

MAX_PATH_LENGTH = 1024  # characters; no real path is longer
VARIABLE = "LECTERN_BOOKS"


def check_roots(roots: Sequence[Path]) -> None:
    """Raise if a listed folder does not exist: it is a typing error, or a disk that is not mounted."""
    for root in roots:
        if not root.is_dir():
            raise ConfigError(f"{VARIABLE} names {str(root)!r}, which is no folder; mend it, or mount what is missing")


def allowed_folder(source: str, roots: Sequence[Path]) -> Path:
    """The folder that a source names, with links resolved. The source is absolute or relative to one of the roots."""
    path = _checked_path(source)
    candidates = [candidate for root in roots if (candidate := _below(path, root)) is not None]
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    if folder is None:
        raise _refusal(source)
    return folder


def own_folder(source: str, roots: Sequence[Path], own: Sequence[str], foreign: Sequence[str]) -> Path:
    """The folder that a source names, if it is one of the book's `own` folders or lies in one, and if it neither is,
    holds nor lies in a folder of another book (`foreign`)."""
    folder = allowed_folder(source, roots)
    is_own = any(folder.is_relative_to(os.path.realpath(path)) for path in own)
    if not is_own or any(_overlap(folder, Path(os.path.realpath(path))) for path in foreign):
        raise _refusal(source)
    return folder


def named_after(book_id: str, roots: Sequence[Path]) -> list[str]:
    """The folders below the roots that have the name of a book: they are its own before it is indexed."""
    return [str(root / book_id) for root in roots]


def still_allowed(folder: str, roots: Sequence[Path]) -> bool:
    """Whether a folder that was allowed when a job was queued is still allowed and leads to the same place."""
    return any(_below(PurePath(folder), root) == Path(folder) for root in roots)


def _checked_path(source: str) -> PurePath:
    """The source as a path. A path with `..`, control characters or an unusual length is refused without disk
    access."""
    path = PurePath(source)
    harmless = source.isprintable() and len(source) <= MAX_PATH_LENGTH and source.strip()
    if not harmless or ".." in path.parts:
        raise _refusal(source)
    return path


def _below(path: PurePath, root: Path) -> Path | None:
    """The resolved path if it is below the root, with links followed; else None."""
    root = Path(os.path.realpath(root))
    try:
        folder = Path(os.path.realpath(root / path))  # an absolute path replaces the root
    except (OSError, ValueError):
        return None
    return folder if folder.is_relative_to(root) else None


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def _refusal(source: str) -> BadInput:
    return BadInput(
        f"{source!r} is no folder below those that books may be read from; the operator lists those in {VARIABLE}, and "
        "a key that is not admin over all books may name only the folder of its book",
        field="source",
    )
