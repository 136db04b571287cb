"""One turn of a conversation, read downward: wait for the thread, see what it is about, answer, keep the turn whole.
What fails leaves a line in the turn log and the talk as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from lectern.answering.turns import Question, Replied, ReplyEvent
from lectern.conversing.topics import topics_of
from lectern.domain.clock import utc_now
from lectern.domain.errors import BadInput, Busy, Conflict, LecternError
from lectern.domain.queries import Scope
from lectern.domain.replies import Answer, Exchange, Reply
from lectern.domain.threads import SUMMARY_FROM, Beginning, Json, Run, RunState, ThreadHead, Turn, title_of
from lectern.thread_ports import ThreadStore, TurnLeases, TurnLog

CONTEXT_TURNS = 20  # that a model sees at most


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A question in a thread, before the thread is known."""

    owner: str
    thread_id: str
    run_id: str
    text: str
    digest: str = ""  # of the request that the run id was made for
    book_id: str | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)  # those that were given; None clears one
    metadata: Json = field(default_factory=dict)
    top_k: int | None = None
    similarity_threshold: float | None = None
    readable: frozenset[str] | None = None  # books that the owner may read; None for all
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkRules:
    """What an operator may set about conversations."""

    max_turns: int = 50  # 0 for no limit
    patience: float = 30.0  # seconds that a request waits for the one before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Everybody who has a part in a conversation."""

    threads: ThreadStore
    log: TurnLog
    leases: TurnLeases
    answer: Callable[[Question], AsyncIterator[ReplyEvent]]
    book: Callable[[str | None, frozenset[str] | None], Awaitable[str]]  # which book is meant
    render: Callable[[Reply, str, str], Json]  # a reply as it is shown: with its book and its thread
    rules: TalkRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The thread is ours and the question can be asked."""

    run_id: str
    thread_id: str
    book_id: str
    kind: Literal["begun"] = "begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The reply as it was shown and is kept; the last event."""

    reply: Json
    kind: Literal["kept"] = "kept"


TalkEvent = Begun | ReplyEvent | Kept


async def converse(request: TurnRequest, talk: Talk) -> AsyncGenerator[TalkEvent, None]:
    """A turn's events, from the moment it is this request's turn to the reply that is kept."""
    await _refuse_other_use(request, talk)
    async with talk.leases.holding(request.owner, request.thread_id, request.run_id, talk.rules.patience):
        head = await talk.threads.head(request.owner, request.thread_id)
        book_id = await _book(request, head, talk)
        if not await talk.log.begin(_run(request)):
            yield Kept(reply=await _already(request, talk))
            return
        yield Begun(run_id=request.run_id, thread_id=request.thread_id, book_id=book_id)
        async with aclosing(_logged(request, head, book_id, talk)) as events:
            async for event in events:
                yield event


async def _logged(
    request: TurnRequest, head: ThreadHead | None, book_id: str, talk: Talk
) -> AsyncGenerator[TalkEvent, None]:
    """The turn itself; however it fails, the log says so."""
    try:
        async with aclosing(_turn(request, head, book_id, talk)) as events:
            async for event in events:
                yield event
    except LecternError as exc:
        await _end(talk, request, "error", str(exc))
        raise
    except (asyncio.CancelledError, GeneratorExit):
        await _end(talk, request, "cancelled", None)
        raise
    except Exception:
        await _end(talk, request, "error", "something went wrong on the server")
        raise


async def _turn(
    request: TurnRequest, head: ThreadHead | None, book_id: str, talk: Talk
) -> AsyncGenerator[TalkEvent, None]:
    asked_at = utc_now()
    filters = {**(head.filters if head else {}), **request.filters}
    filters = {name: value for name, value in filters.items() if value is not None}
    history = await talk.threads.recent(request.owner, request.thread_id, CONTEXT_TURNS) if head else ()
    question = Question(
        text=request.text,
        scope=_scope(book_id, filters),
        top_k=request.top_k,
        similarity_threshold=request.similarity_threshold,
        history=history,
        readable=request.readable,
        stream=request.stream,
    )
    reply: Reply | None = None
    async with aclosing(talk.answer(question)) as events:  # type: ignore[type-var]  # an async generator
        async for event in events:
            yield event
            if isinstance(event, Replied):
                reply = event.reply
    assert reply is not None  # `Replied` is always the last event
    shown = talk.render(reply, book_id, request.thread_id)
    turn = Turn(
        run_id=request.run_id,
        question=reply.account.question,
        standalone=reply.account.standalone,
        answer=reply.text,
        refused=not isinstance(reply, Answer),
        confidence=reply.account.metrics.confidence,
        asked_at=asked_at,
        replied_at=str(shown["timestamp"]),
        reply=shown,
        look_ups=reply.account.look_ups,
    )
    keeping = talk.threads.append(
        request.owner,
        request.thread_id,
        turn,
        known=head is not None,
        beginning=Beginning(book_id=book_id, title=title_of(turn.question), metadata=request.metadata),
        filters=filters,
        summary=_summary(head, history, turn),
    )
    await _whole(keeping)
    yield Kept(reply=shown)


async def _refuse_other_use(request: TurnRequest, talk: Talk) -> None:
    known = await talk.log.run(request.owner, request.run_id)
    if known is not None and known.digest != request.digest:
        raise BadInput("this Idempotency-Key was used for another request; take a new one", field="Idempotency-Key")


async def _already(request: TurnRequest, talk: Talk) -> Json:
    """The reply of an earlier attempt under the same id."""
    kept = await talk.threads.reply(request.owner, request.run_id)
    if kept is None:
        raise Busy("the same request is under way; wait for it, then ask for its reply")
    return kept


async def _book(request: TurnRequest, head: ThreadHead | None, talk: Talk) -> str:
    """The thread's book, or the one that is meant when it begins; and whether one more turn fits."""
    if head is None:
        return await talk.book(request.book_id, request.readable)
    if request.book_id is not None and request.book_id != head.book_id:
        raise Conflict(f"this thread is about {head.book_id!r}; ask about {request.book_id!r} in a new one")
    most = talk.rules.max_turns
    if most and head.turn_count >= most:
        raise Conflict(f"this thread has its {most} turns; go on in a new one (leave session_id out)")
    return await talk.book(head.book_id, request.readable)


def _summary(head: ThreadHead | None, history: tuple[Exchange, ...], turn: Turn) -> str | None:
    if head is None or head.turn_count + 1 < SUMMARY_FROM:
        return None
    asked = [one.standalone or one.question for one in history]
    return topics_of([*asked, turn.standalone]) or None


def _run(request: TurnRequest) -> Run:
    return Run(
        run_id=request.run_id,
        owner=request.owner,
        thread_id=request.thread_id,
        question=request.text,
        state="running",
        error=None,
        digest=request.digest,
        begun_at=utc_now(),
    )


def _scope(book_id: str, filters: Mapping[str, Any]) -> Scope:
    given = dict(filters)
    if given.get("proficiency_levels") is not None:
        given["proficiency_levels"] = tuple(given["proficiency_levels"])  # JSON knows no tuples
    return Scope(book_id=book_id, **given)


async def _end(talk: Talk, request: TurnRequest, state: RunState, error: str | None) -> None:
    await _whole(talk.log.end(request.run_id, state, error))


async def _whole(work: Coroutine[Any, Any, Any]) -> None:
    """Not broken off in the middle: whoever cancels a turn waits for the transaction that is under way."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            return  # it is done: too late to cancel
        raise
