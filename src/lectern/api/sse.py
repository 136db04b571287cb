"""Runs as Server-Sent Events. Every event is one line of ASCII JSON, so no text of a book can break the framing; the
last is `reply` or `error`, whatever happens. Following costs nothing but the connection: the run is the server's."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import AppStatus
from starlette.types import Receive, Scope, Send

from lectern.api.errors import problem_body
from lectern.conversations.runs import REVOKED, Failed, LiveRun, RunEvent
from lectern.conversations.turns import TurnBegun, TurnStored
from lectern.domain.errors import Cancelled, LecternError, Overloaded, Unauthorised
from lectern.domain.keys import Caller
from lectern.domain.replies import Delta, Entered, EvidenceFound, Replied
from lectern.domain.threads import Run
from lectern.ports.threads import ThreadStore, TurnLog
from lectern.schemas.chat import ConsideredOut, MetricsOut

PING = 15  # seconds; proxies cut what is silent for longer
STALLED = 30.0  # seconds that a client may leave its buffer full
POLLED = 0.5  # seconds between two looks at a run that another process carries on
HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
LOOKED = 2.0  # seconds after which a silent stream looks whether its key was revoked
STORED = "stored"  # the id of an event that was read from the database: no attempt's, so nothing goes on after it

Stands = Callable[[str], Awaitable[bool]]


def leave_streams_to_their_runs() -> None:
    """A stopping server lets answers finish for a while; the library would cut their streams at once."""
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]  # ships no types for it


class Streams:
    """How many streams are open, in all and of each owner. A stream's place is given back by its response, which ends
    however the client leaves; a generator may never have been started."""

    def __init__(self, most: int, most_of_one: int, stands: Stands | None = None) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._stands = stands  # whether a key does, which may have been revoked since its request came
        self._open: Counter[str] = Counter()

    def open(self, caller: Caller, events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
        """The response that sends events as they come, if there is room for one more."""
        owner = caller.owner
        if self._open[owner] >= self._most_of_one or self._open.total() >= self._most:
            raise Overloaded("too many streams are open; close some, or come back in a moment")
        if self._stands is not None and caller.key_id is not None:
            events = _while_it_stands(events, caller.key_id, self._stands)
        return _Stream(events, self._open, owner)


class _Stream(EventSourceResponse):
    """A stream that counts while it is sent."""

    def __init__(self, events: AsyncIterator[ServerSentEvent], open_: Counter[str], owner: str) -> None:
        super().__init__(events, ping=PING, send_timeout=STALLED, sep="\n", headers=HEADERS)
        self._open, self._owner = open_, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open[self._owner] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open -= Counter([self._owner])


async def _while_it_stands(
    events: AsyncIterator[ServerSentEvent], key_id: str, stands: Stands
) -> AsyncIterator[ServerSentEvent]:
    """The events for as long as the key opens something; a stream that only waits is looked at, too."""
    following: asyncio.Future[ServerSentEvent | None] | None = None
    try:
        while await stands(key_id):
            following = following or asyncio.ensure_future(anext(events, None))
            if not (await asyncio.wait([following], timeout=LOOKED))[0]:
                continue
            if (event := following.result()) is None:
                return
            following = None
            yield event
        yield frame("error", _problem(Unauthorised(REVOKED)), STORED)
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait([following])


async def live_events(run: LiveRun, last_event_id: str | None = None) -> AsyncIterator[ServerSentEvent]:
    """The events of a run of this process, after the one that arrived last."""
    async for number, event in run.follow(run.place_of(last_event_id)):
        if (shown := _named(event)) is not None:
            name, body = shown
            yield frame(name, body, run.id_of(number))


async def stored_events(known: Run, threads: ThreadStore, log: TurnLog) -> AsyncIterator[ServerSentEvent]:
    """How a run ended that this process does not know, once it has."""
    state: Run | None = known
    while state is not None and state.state == "running":
        await asyncio.sleep(POLLED)
        state = await log.run(known.owner, known.run_id)
    reply = await threads.reply(known.owner, known.run_id) if state and state.state == "replied" else None
    if reply is not None:
        yield frame("reply", dict(reply), STORED)
        return
    error = state.error if state else None
    yield frame("error", _problem(Cancelled(error or "the run ended without a reply; ask again")), STORED)


def _named(event: RunEvent) -> tuple[str, dict[str, Any]] | None:  # noqa: PLR0911  # one a kind of event
    """An event's name and body; None for one that says nothing new."""
    match event:
        case TurnBegun():
            named = {"run_id": event.run_id, "session_id": event.thread_id, "book_id": event.book_id}
            return "status", {"state": "pending", **named}
        case Entered(state="pending") | Replied():
            return None
        case Entered():
            return "status", {"state": event.state}
        case EvidenceFound():
            found = [ConsideredOut.of(hit).model_dump() for hit in event.hits]
            metrics = event.metrics
            weighed = {"confidence": metrics.confidence, "confidence_level": metrics.confidence_level}
            return "sources", {"sources": found, **weighed, "metrics": MetricsOut.of(metrics).model_dump()}
        case Delta():
            return "delta", {"text": event.text}
        case TurnStored():
            return "reply", dict(event.reply)
        case Failed():
            return "error", _problem(event.error)


def _problem(error: LecternError) -> dict[str, Any]:
    return problem_body(error).model_dump()


def frame(name: str, body: dict[str, Any], number: str) -> ServerSentEvent:
    """One event; its data is one line of ASCII."""
    return ServerSentEvent(data=json.dumps(body), event=name, id=number, sep="\n")
