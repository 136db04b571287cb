"""Outages: a job that needs a server which is gone, slow or overloaded waits and goes on when it is back. Only what
waiting may mend is waited for: a key that is refused, a full disk or a damaged index fails the job at once."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from lectern.domain.clock import utc_now
from lectern.domain.errors import LecternError, OutOfResources, ProviderError, RateLimited, StoreUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a job waits; all values are seconds."""

    first_wait: float = 1.0  # the next ones double
    longest_wait: float = 60.0
    longest_outage: float = math.inf


NO_PATIENCE = Patience(longest_outage=0.0)


def is_outage(error: LecternError) -> bool:
    """Whether waiting may mend it, and nothing else has to change."""
    is_elsewhere = isinstance(error, ProviderError | StoreUnavailable) and not isinstance(error, OutOfResources)
    return is_elsewhere and error.retryable


class Outage:
    """What a job waits for, if anything, and since when."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._begun_at = 0.0
        self._tries = 0
        self.since: str | None = None
        self.reason: str | None = None

    def wait_seconds(self, error: LecternError) -> float:
        """How long to wait before the next try. Raises the error if there is nothing to wait for, or if it was waited
        for long enough."""
        now = time.monotonic()
        begun_at = self._begun_at if self.since else now
        if not is_outage(error) or now - begun_at >= self._patience.longest_outage:
            raise error
        self._begun_at = begun_at
        self.since, self.reason = self.since or utc_now(), str(error)
        wait = min(self._patience.first_wait * 2.0**self._tries, self._patience.longest_wait)
        self._tries += 1
        return max(wait, error.retry_after) if isinstance(error, RateLimited) else wait

    def end(self) -> None:
        """What was waited for answers again."""
        self.since = self.reason = None
        self._tries = 0
