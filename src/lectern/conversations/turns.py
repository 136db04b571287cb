"""One turn of a conversation, read downward: wait for the thread, see what it is about, answer, keep the turn whole.
What fails leaves a line in the turn log and the talk as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from lectern.conversations.topics import topics_of
from lectern.domain.clock import utc_now
from lectern.domain.errors import Busy, Conflict, KeyUsed, LecternError
from lectern.domain.replies import Answer, Exchange, Question, Replied, Reply, ReplyEvent
from lectern.domain.scope import ResolvedScope, Scope
from lectern.domain.threads import (
    SUMMARY_FROM,
    Beginning,
    Json,
    Run,
    RunState,
    ThreadHead,
    Turn,
    check_metadata,
    title_of,
)
from lectern.ports.threads import ThreadStore, TurnLeases, TurnLog
from lectern.schemas.scope import scope_from

CONTEXT_TURNS = 20  # that a model sees at most
SUMMARY_SECONDS = 15.0  # that a model may take for a summary
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A question in a thread, before the thread is known."""

    owner: str
    thread_id: str
    run_id: str
    text: str
    new: bool = False  # the thread's id was made for this request, so there is none yet
    digest: str = ""  # of the request, where its run id was made of an idempotency key
    book_id: str | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)  # those that were given; None clears one
    metadata: Json = field(default_factory=dict)
    top_k: int | None = None
    similarity_threshold: float | None = None
    readable: frozenset[str] | None = None  # books that the owner may read; None for all
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRules:
    """What an operator may set about deps."""

    max_turns: int = 50  # 0 for no limit
    patience: float = 30.0  # seconds that a request waits for the one before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How a conversation reaches the books and whoever answers."""

    ask: Callable[[Question], AsyncIterator[ReplyEvent]]
    resolve: Callable[[Scope, frozenset[str] | None], Awaitable[ResolvedScope]]  # raises where a filter does not fit
    summarise: Callable[[Sequence[str]], Awaitable[str | None]]  # by the model, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """Everybody who has a part in a conversation."""

    threads: ThreadStore
    log: TurnLog
    leases: TurnLeases
    answering: Answering
    render: Callable[[Reply, str, str], Json]  # a reply as it is shown: with its book and its thread
    rules: ConversationRules


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


ConversationEvent = Begun | ReplyEvent | Kept


async def converse(request: TurnRequest, deps: Conversations) -> AsyncGenerator[ConversationEvent, None]:
    """A turn's events, from the moment it is this request's turn to the reply that is kept."""
    async with deps.leases.holding(request.owner, request.thread_id, request.run_id, deps.rules.patience):
        if (kept := await _kept(request, deps)) is not None:
            yield Kept(reply=kept)
            return
        head = None if request.new else await deps.threads.head(request.owner, request.thread_id)
        question = await _complete(request, head, deps)
        await _begin(request, deps)
        yield Begun(run_id=request.run_id, thread_id=request.thread_id, book_id=question.scope.book_id)
        async with aclosing(_logged(request, head, question, deps)) as events:
            async for event in events:
                yield event
    await _summarise(request, question, deps)


async def _kept(request: TurnRequest, deps: Conversations) -> Json | None:
    """The reply of an earlier attempt under the same key: the answer to a request whose answer was lost."""
    if not request.digest:
        return None  # the run id is new
    known = await deps.log.run(request.owner, request.run_id)
    if known is not None and known.digest != request.digest:
        raise KeyUsed
    return await deps.threads.reply(request.owner, request.run_id)


async def _begin(request: TurnRequest, deps: Conversations) -> None:
    """Write the attempt down. The thread is ours, so an earlier one under this id is not under way any more."""
    try:
        if not await _whole(deps.log.begin(_run(request))):
            raise Busy("the same request is under way elsewhere; wait for it, then ask for its reply")
    except asyncio.CancelledError:
        await _end(deps, request, "cancelled", None)
        raise


async def _logged(
    request: TurnRequest, head: ThreadHead | None, question: Question, deps: Conversations
) -> AsyncGenerator[ConversationEvent, None]:
    """The turn itself; however it fails, the log says so."""
    try:
        async with aclosing(_turn(request, head, question, deps)) as events:
            async for event in events:
                yield event
    except LecternError as exc:
        await _end(deps, request, "error", str(exc))
        raise
    except (asyncio.CancelledError, GeneratorExit):
        await _end(deps, request, "cancelled", None)
        raise
    except Exception:
        await _end(deps, request, "error", "something went wrong on the server")
        raise


async def _turn(
    request: TurnRequest, head: ThreadHead | None, question: Question, deps: Conversations
) -> AsyncGenerator[ConversationEvent, None]:
    asked_at, book_id = utc_now(), question.scope.book_id
    reply: Reply | None = None
    async with aclosing(deps.answering.ask(question)) as events:  # type: ignore[type-var]  # an async generator
        async for event in events:
            yield event
            if isinstance(event, Replied):
                reply = event.reply
    assert reply is not None  # `Replied` is always the last event
    shown = deps.render(reply, book_id, request.thread_id)
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
    keeping = deps.threads.append(
        request.owner,
        request.thread_id,
        turn,
        thread_exists=head is not None,
        beginning=Beginning(book_id=book_id, title=title_of(turn.question), metadata=request.metadata),
        filters=_filters(request, head),
        summary=_summary(head, question.history, turn),
    )
    await _whole(keeping, late=True)
    yield Kept(reply=shown)


async def _complete(request: TurnRequest, head: ThreadHead | None, deps: Conversations) -> Question:
    """The question with all that the thread adds to it; whatever is wrong with it is found out here."""
    check_metadata(request.metadata)
    book_id = _book_id(request, head, deps.rules)
    return Question(
        text=request.text,
        scope=await deps.answering.resolve(scope_from(_filters(request, head), book_id), request.readable),
        top_k=request.top_k,
        similarity_threshold=request.similarity_threshold,
        history=await deps.threads.recent(request.owner, request.thread_id, CONTEXT_TURNS) if head else (),
        readable=request.readable,
        stream=request.stream,
    )


def _filters(request: TurnRequest, head: ThreadHead | None) -> dict[str, Any]:
    """Those that were given, else the thread's last; None clears one."""
    filters = {**(head.filters if head else {}), **request.filters}
    return {name: value for name, value in filters.items() if value is not None}


def _book_id(request: TurnRequest, head: ThreadHead | None, rules: ConversationRules) -> str | None:
    """The thread's book, or the one that the first question names; and whether one more turn fits."""
    if head is None:
        return request.book_id
    if request.book_id is not None and request.book_id != head.book_id:
        raise Conflict(f"this thread is about {head.book_id!r}; ask about {request.book_id!r} in a new one")
    if rules.max_turns and head.turn_count >= rules.max_turns:
        raise Conflict(f"this thread has its {rules.max_turns} turns; go on in a new one (leave session_id out)")
    return head.book_id


def _summary(head: ThreadHead | None, history: tuple[Exchange, ...], turn: Turn) -> str | None:
    if head is None or head.turn_count + 1 < SUMMARY_FROM:
        return None
    asked = [one.standalone or one.question for one in history]
    return topics_of([*asked, turn.standalone]) or None


async def _summarise(request: TurnRequest, question: Question, deps: Conversations) -> None:
    """Every five exchanges, the model's word for what the talk is about; nobody waits for it, and it may fail."""
    asked = [*(one.question for one in question.history), request.text]
    if len(asked) < SUMMARY_FROM or len(asked) % SUMMARY_FROM:
        return
    with suppress(LecternError, TimeoutError):
        async with asyncio.timeout(SUMMARY_SECONDS):
            said = await deps.answering.summarise(asked)
        if said:
            await _whole(deps.threads.summarise(request.owner, request.thread_id, said))


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


async def _end(deps: Conversations, request: TurnRequest, state: RunState, error: str | None) -> None:
    await _whole(deps.log.end(request.run_id, state, error))


async def _whole(work: Coroutine[Any, Any, T], *, late: bool = False) -> T:
    """Not broken off in the middle: whoever cancels a turn waits for the transaction that is under way. With `late`,
    what succeeded all the same is not cancelled any more."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if late and not task.cancelled() and task.exception() is None:
            return task.result()
        raise
