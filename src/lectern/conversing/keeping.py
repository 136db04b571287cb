"""What a server does now and then: threads that rest go to the archive, and where the operator must forget, they go."""

from __future__ import annotations

import asyncio
import logging

from lectern.domain.clock import days_ago
from lectern.domain.errors import StoreUnavailable
from lectern.thread_ports import ThreadStore

IDLE_DAYS = 1 / 24  # a thread that was not used for an hour rests
EVERY = 300.0  # seconds
log = logging.getLogger("lectern.threads")


async def keep_tidy(threads: ThreadStore, retention_days: float | None) -> None:
    """Archive and, if told to, forget; until it is cancelled."""
    while True:
        try:
            await tidy(threads, retention_days)
        except StoreUnavailable as exc:
            log.warning("threads were not archived: %s", exc)
        await asyncio.sleep(EVERY)


async def tidy(threads: ThreadStore, retention_days: float | None) -> tuple[int, int]:
    """How many threads went to the archive, and how many are gone."""
    purged = await threads.purge(days_ago(retention_days)) if retention_days is not None else 0
    return await threads.archive_idle(days_ago(IDLE_DAYS)), purged
