"""A server's periodic work on threads: idle ones are archived, and those older than the retention time are deleted."""

from __future__ import annotations

import asyncio
import logging

from lectern.domain.clock import days_ago
from lectern.ports.threads import ThreadStore, TurnLog

IDLE_DAYS = 1 / 24  # a thread that was not used for an hour is archived
LOG_DAYS = 30  # ended attempts stay in the turn log: long enough for a client that repeats a request
INTERVAL_SECONDS = 300.0
log = logging.getLogger("lectern.threads")


async def keep_tidy(threads: ThreadStore, turn_log: TurnLog, retention_days: float | None) -> None:
    """Archive idle threads and delete old ones at intervals, until it is cancelled."""
    while True:
        try:
            await tidy(threads, retention_days)
            await turn_log.purge(days_ago(LOG_DAYS))
        except Exception:  # the next round may succeed
            log.exception("threads were not archived")
        await asyncio.sleep(INTERVAL_SECONDS)


async def tidy(threads: ThreadStore, retention_days: float | None) -> tuple[int, int]:
    """Archive idle threads and delete old ones; returns how many of each."""
    purged = await threads.purge(days_ago(retention_days)) if retention_days is not None else 0
    return await threads.archive_idle(days_ago(IDLE_DAYS)), purged
