"""Many searches, a few at a time: enough that no core waits for another, few enough that an interrupt is heard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

AT_ONCE = 2 * (os.cpu_count() or 1)  # one embeds while another looks in the index


async def in_turn(
    items: Sequence[Item], work: Callable[[Item], Awaitable[Made]], done: Callable[[int, int], None]
) -> list[Made]:
    """What `work` makes of each, in order; `done` hears how far it is."""
    gate, finished = asyncio.Semaphore(AT_ONCE), 0

    async def one(item: Item) -> Made:
        nonlocal finished
        async with gate:
            made = await work(item)
        finished += 1
        done(finished, len(items))
        return made

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()  # after an error the rest is not wanted; after success this does nothing
