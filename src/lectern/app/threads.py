"""Builds conversations on one database: the store, the turn log, the leases, and how a reply is rendered."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.app.settings import Settings
from lectern.conversations.runs import Runs, Watcher
from lectern.conversations.turns import (
    Answering,
    ConversationRules,
    Conversations,
    TurnBegun,
    TurnRequest,
    TurnStored,
    converse,
)
from lectern.domain.conversation import Conversation, conversation_of
from lectern.domain.errors import BadInput, UnknownThread
from lectern.domain.replies import Reply, ReplyEvent
from lectern.domain.scope import Scope
from lectern.domain.threads import (
    LOCAL_OWNER,
    Feedback,
    FeedbackReason,
    Json,
    Rating,
    Thread,
    ThreadEdit,
    ThreadHead,
    ThreadPage,
    Turn,
    checked_id,
)
from lectern.domain.tracing import UNTRACED
from lectern.ports.threads import ThreadStore
from lectern.ports.tracing import Tracer
from lectern.schemas.chat import ChatResponse
from lectern.schemas.scope import fields_of
from lectern.store.leases import Leases
from lectern.store.threads import SqlThreads
from lectern.store.turn_log import SqlTurnLog


def build_runs(
    engine: AsyncEngine,
    settings: Settings,
    answering: Answering,
    watchers: Sequence[Watcher],
    tracer: Tracer = UNTRACED,
) -> Runs:
    """Runs whose conversations are stored in this database."""
    leases = Leases(engine)
    conversations = Conversations(
        threads=SqlThreads(engine, leases),
        log=SqlTurnLog(engine),
        leases=leases,
        answering=answering,
        render=render,
        rules=ConversationRules(max_turns=settings.max_turns, wait_seconds=settings.thread_wait),
        tracer=tracer,
    )
    return Runs(
        conversations, max_runs=settings.max_runs, max_runs_per_owner=settings.max_runs_per_key, watchers=watchers
    )


async def turn_in_thread(  # noqa: PLR0913  # one parameter for each thing that can be asked for
    conversations: Conversations,
    thread_id: str,
    text: str,
    scope: Scope,
    top_k: int | None,
    similarity_threshold: float | None,
    *,
    stream: bool,
) -> AsyncIterator[ReplyEvent]:
    """One turn of the local owner: the events of its answer. It is stored before they end."""
    request = TurnRequest(
        owner=LOCAL_OWNER,
        thread_id=checked_id(thread_id),
        run_id=str(uuid.uuid4()),
        text=text,
        book_id=scope.book_id,
        filters=fields_of(scope),
        top_k=top_k,
        similarity_threshold=similarity_threshold,
        stream=stream,
    )
    async with aclosing(converse(request, conversations)) as events:
        async for event in events:
            if not isinstance(event, TurnBegun | TurnStored):
                yield event


def render(reply: Reply, book_id: str, thread_id: str) -> Json:
    """A reply as it is shown and stored."""
    return ChatResponse.of(reply, book_id=book_id, session_id=thread_id).model_dump(mode="json")


def possible_id(thread_id: str) -> str:
    """A thread's id as it is stored. One that no thread can have is an unknown thread, as over HTTP: PostgreSQL would
    not take it for an id."""
    try:
        return checked_id(thread_id)
    except BadInput:
        raise UnknownThread(f"there is no thread {thread_id!r}", field="thread_id") from None


@dataclass(frozen=True, slots=True)
class OwnThreads:
    """One owner's conversations; from Python and the terminal, those of the local owner."""

    store: ThreadStore
    owner: str = LOCAL_OWNER

    async def list(
        self, *, limit: int = 20, cursor: str | None = None, query: str = "", book: str | None = None
    ) -> ThreadPage:
        """The owner's conversations, the most recently used first; those about a `book`, and those that have each word
        of a `query` in the title or in a question."""
        return await self.store.heads(self.owner, limit=limit, cursor=cursor, query=query, book_id=book)

    async def read(self, thread_id: str, *, before: int | None = None) -> Thread:
        """A thread with its last 50 messages, or those before a `seq`."""
        return await self.store.thread(self.owner, possible_id(thread_id), before=before)

    async def turns(self, thread_id: str) -> tuple[Turn, ...]:
        """Every turn of a conversation, each with its reply as it was shown."""
        return await self.store.turns(self.owner, possible_id(thread_id))

    async def conversation(self, thread_id: str) -> Conversation:
        """A whole conversation as messages, with the instructions and the tool calls."""
        head = (await self.store.thread(self.owner, possible_id(thread_id))).head
        return conversation_of(head, await self.turns(thread_id))

    async def edit(self, thread_id: str, change: ThreadEdit) -> ThreadHead:
        """Change the title or metadata of a conversation."""
        return await self.store.edit(self.owner, possible_id(thread_id), change)

    async def rate(
        self,
        thread_id: str,
        turn: int,
        rating: Rating | None,
        *,
        reason: FeedbackReason | None = None,
        comment: str = "",
    ) -> None:
        """Store the feedback on a turn, by its number, instead of an earlier one; None takes it back."""
        feedback = None if rating is None else Feedback(rating=rating, reason=reason, comment=comment)
        await self.store.rate(self.owner, possible_id(thread_id), turn, feedback)

    async def delete(self, thread_id: str) -> None:
        """Delete a conversation and everything that belongs to it."""
        await self.store.delete(self.owner, possible_id(thread_id))
