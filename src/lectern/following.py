"""Events that are numbered and kept, so that whoever follows may drop out and come back by number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

Event = TypeVar("Event")


class Followed(Generic[Event]):
    """Something under way, and its events so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.done = False  # no event will come any more
        self._bell = asyncio.Event()

    async def follow(self, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """The events after a number, each with its own, until the last; a number that was never given begins anew."""
        after = after if after <= len(self.events) else 0
        while True:
            while after < len(self.events):
                after += 1
                yield after, self.events[after - 1]
            if self.done:
                return
            await self._bell.wait()

    async def over(self) -> None:
        """Wait until no event will come any more."""
        while not self.done:
            await self._bell.wait()

    def add(self, event: Event) -> None:
        """One more event, for everybody who follows."""
        self.events.append(event)
        self.ring()

    def ring(self) -> None:
        """Wake everybody who follows."""
        self._bell.set()
        self._bell = asyncio.Event()
