"""What a server does now and then: threads that rest go to the archive, and where the operator must forget, they go."""

from __future__ import annotations

import asyncio
import logging

from lectern.domain.clock import days_ago
from lectern.ports.threads import ThreadStore, TurnLog

IDLE_DAYS = 1 / 24  # a thread that was not used for an hour rests
LOGGED_DAYS = 30  # attempts that ended are remembered: long enough for any second try
EVERY = 300.0  # seconds
log = logging.getLogger("lectern.threads")


async def keep_tidy(threads: ThreadStore, turn_log: TurnLog, retention_days: float | None) -> None:
    """Archive and, if told to, forget; until it is cancelled."""
    while True:
        try:
            await tidy(threads, retention_days)
            await turn_log.purge(days_ago(LOGGED_DAYS))
        except Exception:  # whatever it was, the next round may succeed
            log.exception("threads were not archived")
        await asyncio.sleep(EVERY)


async def tidy(threads: ThreadStore, retention_days: float | None) -> tuple[int, int]:
    """How many threads went to the archive, and how many are gone."""
    purged = await threads.purge(days_ago(retention_days)) if retention_days is not None else 0
    return await threads.archive_idle(days_ago(IDLE_DAYS)), purged
