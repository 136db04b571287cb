"""Runs as Server-Sent Events. The data of an event is one line of ASCII JSON, so no text of a book can break the
framing. The last event is `reply` or `error`. The server owns the run; a client that disconnects does not end it."""

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
from lectern.api.rendered import StreamedBlocks, with_html
from lectern.conversations.runs import REVOKED, Failed, LiveRun, RunEvent
from lectern.conversations.turns import TurnBegun, TurnStored
from lectern.domain.errors import Cancelled, LecternError, Overloaded, Unauthorised
from lectern.domain.keys import Caller
from lectern.domain.replies import Delta, Entered, EvidenceFound, Judged, Replied
from lectern.domain.threads import Run
from lectern.ports.threads import ThreadStore, TurnLog
from lectern.schemas.chat import ConfidenceMetrics, ConsideredOut, StatementOut

PING_SECONDS = 15  # proxies close connections that are silent for longer
SEND_TIMEOUT = 30.0  # seconds that a client may leave its buffer full
POLL_SECONDS = 0.5  # between two reads of a run that another process owns
HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
KEY_CHECK_SECONDS = 2.0  # a silent stream checks this often whether its key was revoked
STORED_EVENT_ID = "stored"  # the id of an event from the database; a stream cannot be resumed after it

KeyCheck = Callable[[str], Awaitable[bool]]  # whether the key with this id is still valid


def leave_streams_to_their_runs() -> None:
    """Stop the library from closing all streams when the server stops: the runs have some time to finish."""
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]  # ships no types for it


class Streams:
    """Limits the open streams, in all and of each owner. The response counts them, because it always ends; a generator
    may never have been started."""

    def __init__(self, max_streams: int, max_per_owner: int, key_valid: KeyCheck | None = None) -> None:
        self._max_streams, self._max_per_owner = max_streams, max_per_owner
        self._key_valid = key_valid  # a key may be revoked while its stream is open
        self._open: Counter[str] = Counter()

    def open(self, caller: Caller, events: AsyncIterator[ServerSentEvent]) -> EventSourceResponse:
        """The response that sends events as they come; raises if too many streams are open."""
        owner = caller.owner
        if self._open[owner] >= self._max_per_owner or self._open.total() >= self._max_streams:
            raise Overloaded("too many streams are open; close some, or come back in a moment")
        if self._key_valid is not None and caller.key_id is not None:
            events = _while_key_valid(events, caller.key_id, self._key_valid)
        return _Stream(events, self._open, owner)


class _Stream(EventSourceResponse):
    """A response that counts as an open stream while it is sent."""

    def __init__(self, events: AsyncIterator[ServerSentEvent], open_: Counter[str], owner: str) -> None:
        super().__init__(events, ping=PING_SECONDS, send_timeout=SEND_TIMEOUT, sep="\n", headers=HEADERS)
        self._open, self._owner = open_, owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._open[self._owner] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._open -= Counter([self._owner])


async def _while_key_valid(
    events: AsyncIterator[ServerSentEvent], key_id: str, key_valid: KeyCheck
) -> AsyncIterator[ServerSentEvent]:
    """The events while the key is valid, also checked while no event comes; then an error as the last event."""
    next_event: asyncio.Future[ServerSentEvent | None] | None = None
    try:
        while await key_valid(key_id):
            next_event = next_event or asyncio.ensure_future(anext(events, None))
            if not (await asyncio.wait([next_event], timeout=KEY_CHECK_SECONDS))[0]:
                continue
            if (event := next_event.result()) is None:
                return
            next_event = None
            yield event
        yield frame("error", _problem(Unauthorised(REVOKED)), STORED_EVENT_ID)
    finally:
        if next_event is not None:
            next_event.cancel()
            await asyncio.wait([next_event])


async def live_events(
    run: LiveRun, last_event_id: str | None = None, *, html: bool = False
) -> AsyncIterator[ServerSentEvent]:
    """The events of a run of this process, after the last event that the client received. With `html` there are
    `block` events too, always from the first block on."""
    place = run.place_of(last_event_id)
    blocks = StreamedBlocks() if html else None
    if blocks is not None:  # rendered in threads: a long block takes a while
        earlier = [sent for event in run.events[:place] if (sent := _name_and_body(event)) is not None]
        for block in await asyncio.to_thread(blocks.catch_up, earlier):
            yield frame("block", block, run.id_of(place))
    async for number, event in run.follow(place):
        if (name_and_body := _name_and_body(event)) is None:
            continue
        name, body = name_and_body
        if blocks is not None:
            for block in await asyncio.to_thread(blocks.of, name, body):
                yield frame("block", block, run.id_of(number - 1))  # its own event has not been sent yet
            body = await asyncio.to_thread(with_html, body) if name == "reply" else body
        yield frame(name, body, run.id_of(number))


async def stored_events(
    run: Run, threads: ThreadStore, log: TurnLog, *, html: bool = False
) -> AsyncIterator[ServerSentEvent]:
    """The last event of a run that this process does not own, read from the database once the run has ended."""
    record: Run | None = run
    while record is not None and record.state == "running":
        await asyncio.sleep(POLL_SECONDS)
        record = await log.run(run.owner, run.run_id)
    reply = await threads.reply(run.owner, run.run_id) if record and record.state == "replied" else None
    if reply is not None:
        yield frame("reply", await asyncio.to_thread(with_html, reply) if html else dict(reply), STORED_EVENT_ID)
        return
    error = record.error if record else None
    yield frame("error", _problem(Cancelled(error or "the run ended without a reply; ask again")), STORED_EVENT_ID)


def _name_and_body(event: RunEvent) -> tuple[str, dict[str, Any]] | None:  # noqa: PLR0911  # one for each kind of event
    """The name and body of an event; None for an event that is not sent."""
    match event:
        case TurnBegun():
            ids = {"run_id": event.run_id, "session_id": event.thread_id, "book_id": event.book_id}
            return "status", {"state": "pending", **ids}
        case Entered(state="pending") | Replied():
            return None
        case Entered():
            return "status", {"state": event.state}
        case EvidenceFound():
            sources = [ConsideredOut.of(hit).model_dump() for hit in event.hits]
            metrics = event.metrics
            confidence = {"confidence": metrics.confidence, "confidence_level": metrics.confidence_level}
            return "sources", {"sources": sources, **confidence, "metrics": ConfidenceMetrics.of(metrics).model_dump()}
        case Delta():
            return "delta", {"text": event.text}
        case Judged():
            return "verdict", {"claim": event.number, **StatementOut.of(event.statement).model_dump()}
        case TurnStored():
            return "reply", dict(event.reply)
        case Failed():
            return "error", _problem(event.error)


def _problem(error: LecternError) -> dict[str, Any]:
    return problem_body(error).model_dump()


def frame(name: str, body: dict[str, Any], number: str) -> ServerSentEvent:
    """One event; its data is one line of ASCII JSON."""
    return ServerSentEvent(data=json.dumps(body), event=name, id=number, sep="\n")
