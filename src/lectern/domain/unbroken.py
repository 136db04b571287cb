"""Work that is not broken off in the middle, however often whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def whole(work: Awaitable[T], *, late: bool = False) -> T:
    """Wait for the end of the work; who was cancelled meanwhile is so then. With `late`, what succeeded all the same is
    not cancelled any more."""
    task, broken_off = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as exc:
            broken_off = exc
    failed = task.cancelled() or task.exception() is not None
    if broken_off is None or (late and not failed):
        return task.result()
    raise broken_off
