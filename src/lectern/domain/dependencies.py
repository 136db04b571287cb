"""Calls of what a process depends on and cannot control: another server that may be slow, refuse or be gone. Every call
is reported to watchers, which count and log it. There is one list of watchers for the whole process, so that code
anywhere can report without being handed anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Dependency = Literal["qdrant", "database", "embedder", "language_model", "redis"]
DEPENDENCIES: tuple[Dependency, ...] = ("qdrant", "database", "embedder", "language_model", "redis")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that has ended."""

    dependency: Dependency
    seconds: float
    error: Exception | None = None  # why it failed


Watcher = Callable[[Call], None]
_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> Callable[[], None]:
    """Call `watcher` for every call from now on; the returned function ends that."""
    _watchers.append(watcher)
    return lambda: _watchers.remove(watcher)


def report(call: Call) -> None:
    """Tell the watchers of a call."""
    for watcher in _watchers:
        watcher(call)


@contextmanager
def calling(dependency: Dependency) -> Iterator[None]:
    """The block is one call. A cancelled call is no failure: its caller has gone."""
    start = time.perf_counter()
    error: Exception | None = None
    try:
        yield
    except Exception as exc:
        error = exc
        raise
    finally:
        report(Call(dependency=dependency, seconds=time.perf_counter() - start, error=error))
