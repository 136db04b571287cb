"""Conversations over HTTP. A caller sees only their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from fastapi.responses import PlainTextResponse, Response
from pydantic import UUID4

from lectern.api.deps import ChatCaller, ConversationsDep, RunsDep
from lectern.api.rendered import with_html
from lectern.conversations.export import as_markdown
from lectern.domain.errors import BadInput
from lectern.domain.keys import Caller
from lectern.domain.threads import MAX_QUERY, Turn
from lectern.schemas.common import problems
from lectern.schemas.insights import FeedbackIn
from lectern.schemas.threads import ConversationThread, ExportOut, ThreadEditIn, ThreadPageOut

router = APIRouter(prefix="/threads", tags=["threads"], responses=problems(401, 403, 404, 422, 429, 503))


@router.get("", operation_id="listThreads")
async def list_threads(
    conversations: ConversationsDep,
    caller: ChatCaller,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(max_length=200, description="`next_cursor` of the page before.")] = None,
    query: Annotated[
        str, Query(max_length=MAX_QUERY, description="Words that all are in the title or in a question.")
    ] = "",
    book_id: Annotated[str | None, Query(max_length=200, description="About this book only.")] = None,
) -> ThreadPageOut:
    """Your conversations, the most recently used first."""
    heads = conversations.threads.heads(caller.owner, limit=limit, cursor=cursor, query=query, book_id=book_id)
    return ThreadPageOut.of(await heads)


@router.get("/{thread_id}", operation_id="readThread")
async def read_thread(
    thread_id: UUID4,
    conversations: ConversationsDep,
    caller: ChatCaller,
    response: Response,
    before: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Messages before this `seq`.")] = None,
) -> ConversationThread:
    """A conversation with its last 50 messages, or those before a `seq`."""
    thread = await conversations.threads.thread(caller.owner, str(thread_id), before=before)
    response.headers["ETag"] = f'"{thread.head.version}"'
    return ConversationThread.of(thread)


@router.patch("/{thread_id}", operation_id="editThread", responses=problems(408, 409, 413))
async def edit_thread(
    thread_id: UUID4,
    body: ThreadEditIn,
    conversations: ConversationsDep,
    caller: ChatCaller,
    response: Response,
    if_match: Annotated[str | None, Header(description="The `ETag` that was read; another is a conflict.")] = None,
) -> ConversationThread:
    """Change the title or metadata of a conversation."""
    change = body.change(_version(if_match))
    await conversations.threads.edit(caller.owner, str(thread_id), change)
    thread = await conversations.threads.thread(caller.owner, str(thread_id))
    response.headers["ETag"] = f'"{thread.head.version}"'
    return ConversationThread.of(thread)


@router.post("/{thread_id}/feedback", operation_id="rateTurn", status_code=204, responses=problems(408, 413))
async def rate_turn(thread_id: UUID4, body: FeedbackIn, conversations: ConversationsDep, caller: ChatCaller) -> None:
    """Say whether a reply was any good, or take it back. The feedback belongs to the conversation."""
    await conversations.threads.rate(caller.owner, str(thread_id), body.turn, body.feedback())


@router.delete("/{thread_id}", operation_id="deleteThread", status_code=204)
async def delete_thread(thread_id: UUID4, runs: RunsDep, caller: ChatCaller) -> None:
    """Delete a conversation and everything that belongs to it."""
    await runs.conversations.threads.delete(caller.owner, str(thread_id))
    runs.forget_thread(caller.owner, str(thread_id))


@router.get(
    "/{thread_id}/export",
    operation_id="exportThread",
    response_model=ExportOut,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def export_thread(
    thread_id: UUID4,
    conversations: ConversationsDep,
    caller: ChatCaller,
    *,
    format_: Annotated[Literal["json", "markdown"], Query(alias="format")] = "json",
    html: Annotated[bool, Query(description="With answers and passages as HTML, in JSON.")] = False,
) -> ExportOut | PlainTextResponse:
    """A whole conversation, with every reply and its sources."""
    thread = await conversations.threads.thread(caller.owner, str(thread_id), limit=None)
    turns = [_readable(turn, caller) for turn in await conversations.threads.turns(caller.owner, str(thread_id))]
    if format_ == "markdown":
        return PlainTextResponse(as_markdown(thread.head, turns), media_type="text/markdown")
    if html:
        turns = await asyncio.to_thread(lambda: [replace(turn, reply=with_html(turn.reply)) for turn in turns])
    return ExportOut.of_turns(thread, turns)


def _readable(turn: Turn, caller: Caller) -> Turn:
    """A turn without what the key may not read: passages, and the operator's instructions."""
    return replace(
        turn,
        tool_uses=turn.tool_uses if "read" in caller.rights else (),
        instructions=turn.instructions if "admin" in caller.rights else "",
    )


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match == "*":
        return None
    try:
        return int(if_match.strip().removeprefix("W/").strip('"'))
    except ValueError:
        raise BadInput("If-Match must be an ETag that was given out", field="If-Match") from None
