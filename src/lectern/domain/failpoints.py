"""Named instants between two steps of a replacement. Nothing happens there, unless a crash test has asked to be told:
it then kills the process on the spot, and the next one has to mend what is left."""

from __future__ import annotations

from collections.abc import Callable

_listener: Callable[[str], None] | None = None


def reached(name: str) -> None:
    """This instant has come."""
    if _listener is not None:
        _listener(name)


def listen(listener: Callable[[str], None] | None) -> None:
    """Be told of every instant from now on; None stops it."""
    global _listener  # noqa: PLW0603  # one listener for the process is the point
    _listener = listener
