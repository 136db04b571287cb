"""Named points between two steps of a replacement. Nothing happens there, unless a crash test listens: it kills the
process at that point, and the next process has to repair what is left."""

from __future__ import annotations

from collections.abc import Callable

_listener: Callable[[str], None] | None = None


def reached(name: str) -> None:
    """Report that this point is reached."""
    if _listener is not None:
        _listener(name)


def listen(listener: Callable[[str], None] | None) -> None:
    """Call this function at every point from now on; None stops it."""
    global _listener  # noqa: PLW0603  # one listener for the process is the point
    _listener = listener
