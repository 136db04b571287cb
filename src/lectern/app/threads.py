"""Conversations put together: the store and the log on one database, the answers of the staff, replies as they are
shown."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.app.settings import Settings
from lectern.conversations.runs import Runs, Watcher
from lectern.conversations.turns import Responder, Talk, TalkRules, TurnRequest, converse
from lectern.domain.replies import Replied, Reply
from lectern.domain.scope import Scope
from lectern.domain.threads import LOCAL_OWNER, Json, Thread, ThreadEdit, ThreadHead, ThreadPage, Turn, checked_id
from lectern.ports.threads import ThreadStore
from lectern.schemas.chat import ChatResponse
from lectern.store.leases import Leases
from lectern.store.threads import SqlThreads
from lectern.store.turn_log import SqlTurnLog


def runs_on(
    engine: AsyncEngine,
    settings: Settings,
    responder: Responder,
    watchers: Sequence[Watcher],
) -> Runs:
    """Conversations kept in this database."""
    leases = Leases(engine)
    talk = Talk(
        threads=SqlThreads(engine, leases),
        log=SqlTurnLog(engine),
        leases=leases,
        responder=responder,
        render=render,
        rules=TalkRules(max_turns=settings.max_turns, patience=settings.thread_wait),
    )
    return Runs(talk, most=settings.max_runs, most_of_one=settings.max_runs_per_key, watchers=watchers)


async def ask_in_thread(  # one parameter for each thing that can be asked for
    talk: Talk, thread_id: str, text: str, scope: Scope, top_k: int | None, similarity_threshold: float | None
) -> Reply:
    """One turn of the local owner's, to its reply."""
    given = {
        name: value for name, value in dataclasses.asdict(scope).items() if value is not None and name != "book_id"
    }
    request = TurnRequest(
        owner=LOCAL_OWNER,
        thread_id=checked_id(thread_id),
        run_id=str(uuid.uuid4()),
        text=text,
        book_id=scope.book_id,
        filters=given,
        top_k=top_k,
        similarity_threshold=similarity_threshold,
    )
    reply: Reply | None = None
    async with aclosing(converse(request, talk)) as events:
        async for event in events:
            if isinstance(event, Replied):
                reply = event.reply
    assert reply is not None  # a turn that ends without an error has one
    return reply


def render(reply: Reply, book_id: str, thread_id: str) -> Json:
    """A reply as it is shown and kept."""
    return ChatResponse.of(reply, book_id=book_id, session_id=thread_id).model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class OwnThreads:
    """One owner's conversations; from Python and the terminal the local one's."""

    store: ThreadStore
    owner: str = LOCAL_OWNER

    async def list(self, *, limit: int = 20, cursor: str | None = None) -> ThreadPage:
        """The last used first."""
        return await self.store.heads(self.owner, limit=limit, cursor=cursor)

    async def read(self, thread_id: str, *, before: int | None = None) -> Thread:
        """A thread with its last 50 messages, or those before a `seq`."""
        return await self.store.thread(self.owner, thread_id, before=before)

    async def turns(self, thread_id: str) -> tuple[Turn, ...]:
        """Every turn, each with its reply as it was shown."""
        return await self.store.turns(self.owner, thread_id)

    async def edit(self, thread_id: str, change: ThreadEdit) -> ThreadHead:
        """Another title or other metadata."""
        return await self.store.edit(self.owner, thread_id, change)

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and all that belongs to it."""
        await self.store.delete(self.owner, thread_id)
