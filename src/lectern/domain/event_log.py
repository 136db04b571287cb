"""Events that are numbered and kept, so that whoever follows may drop out and come back by number. An event's id names
its attempt, too: whoever comes back with one of another attempt, or of something else, begins at the beginning."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from typing import Generic, TypeVar

from lectern.domain.errors import StoreUnavailable

log = logging.getLogger("lectern.events")
POLL_SECONDS = 1.0  # seconds between two questions to the database, whether another process wants an end
Event = TypeVar("Event")


class EventLog(Generic[Event]):
    """Something under way, and its events so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.done = False  # no event will come any more
        self._attempt = secrets.token_hex(
            4
        )  # a number would come again: after a stop in peace attempts are not counted
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

    def id_of(self, number: int) -> str:
        """The id of an event, which no other attempt gives out."""
        return f"{self._attempt}-{number}"

    def place_of(self, last_event_id: str | None) -> int:
        """Where to go on after an event; whoever has seen the end sees it again."""
        attempt, _, number = (last_event_id or "").partition("-")
        ours = attempt == self._attempt and number.isascii() and number.isdecimal()
        place = int(number) if ours else 0
        return 0 if place > len(self.events) else min(place, len(self.events) - self.done)

    async def over(self) -> None:
        """Wait until no event will come any more."""
        while not self.done:
            await self._bell.wait()

    def add(self, event: Event) -> None:
        """One more event, for everybody who follows."""
        self.events.append(event)
        self._wake()

    def _wake(self) -> None:
        """Wake everybody who follows."""
        self._bell.set()
        self._bell = asyncio.Event()


class Poller:
    """Hears, while something is under way here, what another process wrote down about it: one question a second for
    all of it, and none while there is nothing."""

    def __init__(self, under_way: Sized, listen: Callable[[], Awaitable[None]]) -> None:
        self._under_way = under_way
        self._listen = listen
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Something is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._hear())

    async def close(self) -> None:
        """Nothing will be under way any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hear(self) -> None:
        while self._under_way:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self._listen()
            except StoreUnavailable:
                continue  # the next question may get through
            except Exception:  # an ear that fell silent would be noticed by nobody
                log.exception("ends in other processes could not be asked for")
