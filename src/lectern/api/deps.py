"""The dependencies of routes: the Lectern, its parts, and the caller with the right that a route needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Header, Request

from lectern.api.auth import READER_NEEDED, caller_of
from lectern.api.sse import Streams
from lectern.app.lectern import Lectern
from lectern.conversations.runs import Runs
from lectern.conversations.turns import Conversations
from lectern.domain.errors import Forbidden, Unauthorised
from lectern.domain.keys import Caller, Right


async def lectern_of(request: Request) -> Lectern:
    """The Lectern that the application was started with."""
    lectern = request.app.state.lectern
    assert isinstance(lectern, Lectern)
    return lectern


LecternDep = Annotated[Lectern, Depends(lectern_of)]


async def conversations_of(lectern: LecternDep) -> Conversations:
    """The conversations of the Lectern."""
    return lectern.app.conversations


async def runs_of(lectern: LecternDep) -> Runs:
    """The runs of the Lectern."""
    return lectern.app.runs


async def streams_of(request: Request) -> Streams:
    """The open streams of the application."""
    streams = request.app.state.streams
    assert isinstance(streams, Streams)
    return streams


StreamsDep = Annotated[Streams, Depends(streams_of)]
ConversationsDep = Annotated[Conversations, Depends(conversations_of)]
RunsDep = Annotated[Runs, Depends(runs_of)]


def _needs(right: Right) -> Callable[[Caller], Awaitable[Caller]]:
    async def caller(caller: Annotated[Caller, Depends(caller_of)]) -> Caller:
        if right not in caller.rights:
            raise Forbidden(f"this key lacks the right {right!r}; ask the operator for one that has it")
        if right == "chat" and caller.nameless:
            raise Unauthorised(READER_NEEDED)
        return caller

    return caller


KnownCaller = Annotated[Caller, Depends(caller_of)]
ReadCaller = Annotated[Caller, Depends(_needs("read"))]
ChatCaller = Annotated[Caller, Depends(_needs("chat"))]
IngestCaller = Annotated[Caller, Depends(_needs("ingest"))]
AdminCaller = Annotated[Caller, Depends(_needs("admin"))]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="The same key and body twice is one request, carried out once."),
]
