"""Runs many searches, a few at a time: enough to use all cores, few enough that an interrupt takes effect soon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_CONCURRENT = 2 * (os.cpu_count() or 1)  # one search embeds while another reads the index


async def run_concurrently(
    items: Sequence[Item], work: Callable[[Item], Awaitable[Result]], advance: Callable[[int, int], None]
) -> list[Result]:
    """The results of `work` for the items, in order; `advance` gets the number of finished items and the total."""
    semaphore, finished = asyncio.Semaphore(MAX_CONCURRENT), 0

    async def run_item(item: Item) -> Result:
        nonlocal finished
        async with semaphore:
            result = await work(item)
        finished += 1
        advance(finished, len(items))
        return result

    tasks = [asyncio.ensure_future(run_item(item)) for item in items]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()  # after an error the rest is not needed; after success this does nothing
