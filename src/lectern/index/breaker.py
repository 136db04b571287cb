"""A breaker before a server that does not answer: after a few failures in a row nobody waits for the next one. Now and
then one request is let through, and when it succeeds, all are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lectern.domain.errors import ProviderError

FAILURES = 3  # in a row
REST = 5.0  # seconds between two tries; what a 503 tells clients to wait


class Breaker:
    """Lets requests pass while the server answers."""

    def __init__(self, provider: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider, self._clock = provider, clock
        self._failures = 0
        self._until = 0.0

    @contextmanager
    def passing(self) -> Iterator[None]:
        """One request; an error at once where the last ones failed."""
        if self._failures >= FAILURES:
            if self._clock() < self._until:
                raise ProviderError(self._provider, "does not answer, and was asked a moment ago; try again soon")
            self._until = self._clock() + REST  # this one tries for everybody
        try:
            yield
        except ProviderError as exc:
            if exc.retryable:
                self._failures += 1
                self._until = self._clock() + REST
            raise
        self._failures = 0
