"""Numbered events that are kept, so that a client can disconnect and resume by number. An event's id also names its
attempt. A client that resumes with an id of another attempt starts from the beginning."""

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
    """Work in progress, and its events so far."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.done = False  # no event will come any more
        self._attempt = secrets.token_hex(
            4
        )  # a number would repeat: an attempt that a normal stop ended is not counted
        self._wakeup = asyncio.Event()

    async def follow(self, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """The events after a number, each with its own number, until the last. An unknown number starts from the
        beginning."""
        after = after if after <= len(self.events) else 0
        while True:
            while after < len(self.events):
                after += 1
                yield after, self.events[after - 1]
            if self.done:
                return
            await self._wakeup.wait()

    def id_of(self, number: int) -> str:
        """The id of an event. No other attempt uses it."""
        return f"{self._attempt}-{number}"

    def place_of(self, last_event_id: str | None) -> int:
        """The number to continue after. A client that has seen the last event gets it again."""
        attempt, _, number = (last_event_id or "").partition("-")
        same_attempt = attempt == self._attempt and number.isascii() and number.isdecimal()
        place = int(number) if same_attempt else 0
        return 0 if place > len(self.events) else min(place, len(self.events) - self.done)

    async def over(self) -> None:
        """Wait until the last event was added."""
        while not self.done:
            await self._wakeup.wait()

    def add(self, event: Event) -> None:
        """Add an event for all followers."""
        self.events.append(event)
        self._wake()

    def _wake(self) -> None:
        """Wake all followers."""
        self._wakeup.set()
        self._wakeup = asyncio.Event()


class Poller:
    """Asks the database once a second, while there is work in progress here, what other processes wrote about it."""

    def __init__(self, under_way: Sized, listen: Callable[[], Awaitable[None]]) -> None:
        self._under_way = under_way
        self._listen = listen
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start polling: there is work in progress."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._hear())

    async def close(self) -> None:
        """Stop polling for good."""
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
            except Exception:  # nobody would notice that polling had stopped
                log.exception("ends in other processes could not be asked for")
