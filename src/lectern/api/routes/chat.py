"""Questions over HTTP, answered in one response or as a stream. The server owns the run in both cases, so a client that
disconnects does not end it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import JSONResponse, Response
from sse_starlette import EventSourceResponse

from lectern.api.deps import ChatCaller, ConversationsDep, IdempotencyKey, RunsDep, StreamsDep
from lectern.api.rendered import with_html
from lectern.api.sse import live_events, stored_events
from lectern.api.turn_requests import turn_request
from lectern.domain.errors import UnknownRun
from lectern.schemas.chat import ChatRequest, ChatResponse, RunOut
from lectern.schemas.common import event_stream, problems

EVENTS = event_stream(
    status="{state}, and in the first {run_id, session_id, book_id}",
    sources="{sources: [{chunk_id, page_title, section, url, similarity_score}], confidence, confidence_level, "
    "metrics}",
    delta="{text}: more of the answer, as it comes; the reply is authoritative",
    block="{index, html, count}, if HTML was asked for: a top-level block of the text so far; it replaces the block "
    "with this index, and `count` blocks are left",
    verdict="{claim, text, start, end, citations, verdict, support, evidence, chunk_id, reason}: of a claim of the "
    "text so far; a later event with the same `claim` replaces it",
    reply="the ChatResponse, as the conversation holds it; the last event",
    error="a Problem; the last event",
)
router = APIRouter(prefix="/chat", tags=["chat"], responses=problems(401, 403, 404, 408, 409, 413, 422, 429, 503))


@dataclass(frozen=True, slots=True)
class Resumed:
    """How a stream goes on."""

    last_event_id: Annotated[str | None, Header(max_length=40, description="The last event that arrived.")] = None
    html: Annotated[bool, Query(description="With HTML and `block` events, from the first block on.")] = False


@router.post("/run", operation_id="chatRun", response_model=ChatResponse, responses=EVENTS)
async def chat_run(
    body: ChatRequest, runs: RunsDep, streams: StreamsDep, caller: ChatCaller, idempotency_key: IdempotencyKey = None
) -> Response:
    """Answer a question from the book, with citations, or refuse; with `stream` it answers as `/chat/stream` does.
    `X-Run-ID` names the run; the reply can be fetched again under this id."""
    run = runs.start(turn_request(body, caller, idempotency_key, stream=body.stream))
    if body.stream:
        await run.wait_until_begun()
        return streams.open(caller, live_events(run, html=body.html))
    reply = await run.reply()
    reply = await asyncio.to_thread(with_html, reply) if body.html else reply
    return JSONResponse(dict(reply), headers={"X-Run-ID": run.request.run_id})


@router.post("/stream", operation_id="chatStream", response_class=EventSourceResponse, responses=EVENTS)
async def chat_stream(
    body: ChatRequest, runs: RunsDep, streams: StreamsDep, caller: ChatCaller, idempotency_key: IdempotencyKey = None
) -> Response:
    """Answer as Server-Sent Events: `status`, `sources`, `delta` …, `verdict` …, and last `reply` or `error`."""
    run = runs.start(turn_request(body, caller, idempotency_key, stream=True))
    await run.wait_until_begun()
    return streams.open(caller, live_events(run, html=body.html))


@router.get("/stream/{run_id}", operation_id="chatResume", response_class=EventSourceResponse, responses=EVENTS)
async def chat_resume(
    run_id: UUID,
    runs: RunsDep,
    conversations: ConversationsDep,
    streams: StreamsDep,
    caller: ChatCaller,
    resumed: Annotated[Resumed, Depends()],
) -> Response:
    """Resume a stream after a lost connection; once there is a reply, it is returned."""
    if (run := await runs.recall(caller.owner, str(run_id))) is not None:
        return streams.open(caller, live_events(run, resumed.last_event_id, html=resumed.html))
    record = await conversations.log.run(caller.owner, str(run_id))
    if record is None:
        raise _unknown(run_id)
    return streams.open(caller, stored_events(record, conversations.threads, conversations.log, html=resumed.html))


@router.post("/runs/{run_id}/cancel", operation_id="chatCancel")
async def chat_cancel(run_id: UUID, runs: RunsDep, conversations: ConversationsDep, caller: ChatCaller) -> RunOut:
    """Cancel a run; a run that has its reply is not changed."""
    run = runs.find(caller.owner, str(run_id))
    if run is not None:
        await run.cancel()
    elif (record := await conversations.log.run(caller.owner, str(run_id))) is not None and record.state == "running":
        # the process that owns the run reads this
        await conversations.log.end(str(run_id), "cancelled", "cancelled on request")
    record = await conversations.log.run(caller.owner, str(run_id))
    if record is None:
        raise _unknown(run_id)
    return RunOut.of(record)


def _unknown(run_id: UUID) -> UnknownRun:
    return UnknownRun(f"there is no run {str(run_id)!r}", field="run_id")
