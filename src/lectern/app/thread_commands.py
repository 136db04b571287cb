"""What the terminal can ask of conversations, in the local owner's name."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from lectern.app.open import Lectern
from lectern.conversations.export import as_markdown
from lectern.conversations.runs import Failed
from lectern.conversations.turns import Kept, TurnRequest
from lectern.domain.clock import days_ago
from lectern.domain.replies import Delta
from lectern.domain.threads import LOCAL_OWNER, checked_id
from lectern.schemas.threads import ExportOut, ThreadHeadOut, ThreadOut

Params = dict[str, Any]
Lines = AsyncIterator[dict[str, Any]]


async def chat(lectern: Lectern, params: Params) -> Lines:
    """The answer as it comes, then the ChatResponse."""
    request = TurnRequest(
        owner=LOCAL_OWNER,
        thread_id=checked_id(params["thread_id"]),
        run_id=str(uuid.uuid4()),
        text=params["text"],
        book_id=params["book"],
        filters=params["filters"],
        top_k=params.get("top_k"),
        stream=True,
    )
    run = (await lectern.runs_in(ephemeral=params["ephemeral"])).start(request)
    try:
        async for _, event in run.follow():
            match event:
                case Delta():
                    yield {"kind": "delta", "text": event.text}
                case Kept():
                    yield {"kind": "reply", "reply": dict(event.reply)}
                case Failed():
                    raise event.error
                case _:
                    continue
    finally:
        if not run.done:  # Ctrl-C: at a terminal nobody comes back for the answer
            await run.cancel()


async def threads(lectern: Lectern, params: Params) -> Lines:
    """The local owner's conversations, the last used first, a line each."""
    cursor, left = None, params["limit"]
    while left > 0:
        page = await lectern.threads.list(limit=min(left, 100), cursor=cursor)
        for head in page.heads:
            yield ThreadHeadOut.of_head(head).model_dump()
        cursor, left = page.cursor, left - len(page.heads)
        if cursor is None:
            return


async def thread(lectern: Lectern, params: Params) -> Lines:
    """One conversation with its last messages."""
    yield ThreadOut.of(await lectern.threads.read(params["thread_id"])).model_dump()


async def export_thread(lectern: Lectern, params: Params) -> Lines:
    """One whole conversation, as JSON or as a page of Markdown."""
    store = (await lectern.runs_in(ephemeral=params.get("ephemeral", False))).talk.threads
    found = await store.thread(LOCAL_OWNER, params["thread_id"], limit=None)
    turns = await store.turns(LOCAL_OWNER, params["thread_id"])
    if params["format"] == "markdown":
        yield {"text": as_markdown(found.head, turns)}
    else:
        yield ExportOut.of_turns(found, turns).model_dump()


async def delete_thread(lectern: Lectern, params: Params) -> Lines:
    """Nothing is left of a conversation."""
    await lectern.threads.delete(params["thread_id"])
    yield {"thread_id": params["thread_id"]}


async def purge_threads(lectern: Lectern, params: Params) -> Lines:
    """How many conversations, of every owner, were forgotten."""
    yield {"threads_deleted": await lectern.talk.threads.purge(days_ago(params["days"]))}
