"""One turn of a conversation, read downward: wait for the thread, complete the question, answer it, store the turn in
one transaction. A turn that fails leaves a row in the turn log and does not change the conversation."""

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
from lectern.domain.tracing import UNTRACED, Attributes
from lectern.ports.threads import ThreadStore, TurnLeases, TurnLog
from lectern.ports.tracing import Tracer
from lectern.schemas.scope import scope_from

CONTEXT_TURNS = 20  # at most so many earlier turns go to the model
SUMMARY_SECONDS = 15.0  # the time limit for a summary by the model
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """A question in a thread, before the thread is known."""

    owner: str
    thread_id: str
    run_id: str
    text: str
    new: bool = False  # the thread's id was made for this request, so the thread does not exist yet
    digest: str = ""  # of the request, if its run id comes from an idempotency key
    book_id: str | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)  # those of the request; None clears one
    metadata: Json = field(default_factory=dict)
    top_k: int | None = None
    similarity_threshold: float | None = None
    readable: frozenset[str] | None = None  # books that the owner may read; None for all
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRules:
    """What an operator may set about conversations."""

    max_turns: int = 50  # 0 for no limit
    wait_seconds: float = 30.0  # how long a request waits for the one before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How a conversation reaches the books and the answerer."""

    ask: Callable[[Question], AsyncIterator[ReplyEvent]]
    resolve: Callable[[Scope, frozenset[str] | None], Awaitable[ResolvedScope]]  # raises if a filter does not fit
    summarise: Callable[[Sequence[str]], Awaitable[str | None]]  # None without a model


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """What a conversation works with."""

    threads: ThreadStore
    log: TurnLog
    leases: TurnLeases
    answering: Answering
    render: Callable[[Reply, str, str], Json]  # a reply as clients get it, with its book and its thread
    rules: ConversationRules
    tracer: Tracer = UNTRACED


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegun:
    """The turn holds its thread and the question is complete; the first event."""

    run_id: str
    thread_id: str
    book_id: str
    kind: Literal["begun"] = "begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStored:
    """The reply is stored; the last event."""

    reply: Json
    kind: Literal["kept"] = "kept"


ConversationEvent = TurnBegun | ReplyEvent | TurnStored


def converse(request: TurnRequest, deps: Conversations) -> AsyncGenerator[ConversationEvent, None]:
    """A turn's events, from the moment it holds its thread to the stored reply."""
    return deps.tracer.over("turn", _converse(request, deps), {"lectern.run_id": request.run_id})


async def _converse(request: TurnRequest, deps: Conversations) -> AsyncGenerator[ConversationEvent, None]:
    async with deps.leases.hold(request.owner, request.thread_id, request.run_id, deps.rules.wait_seconds):
        if (reply := await _stored_reply(request, deps)) is not None:
            yield TurnStored(reply=reply)
            return
        head = None if request.new else await deps.threads.head(request.owner, request.thread_id)
        question = await _complete(request, head, deps)
        await _begin(request, deps)
        yield TurnBegun(run_id=request.run_id, thread_id=request.thread_id, book_id=question.scope.book_id)
        async with aclosing(_logged(request, head, question, deps)) as events:
            async for event in events:
                yield event
    if ((head.turn_count if head else 0) + 1) % SUMMARY_FROM == 0:
        await _summarise(request, question, deps)


async def _stored_reply(request: TurnRequest, deps: Conversations) -> Json | None:
    """The reply of an earlier attempt with the same idempotency key, for a client that did not receive it."""
    if not request.digest:
        return None  # the run id is new
    run = await deps.log.run(request.owner, request.run_id)
    if run is not None and run.digest != request.digest:
        raise KeyUsed
    return await deps.threads.reply(request.owner, request.run_id)


async def _begin(request: TurnRequest, deps: Conversations) -> None:
    """Log the attempt. This turn holds the thread, so an earlier attempt with the same id has ended."""
    try:
        if not await _run_to_end(deps.log.begin(_run(request))):
            raise Busy("the same request is under way elsewhere; wait for it, then ask for its reply")
    except asyncio.CancelledError:
        await _end(deps, request, "cancelled", None)
        raise


async def _logged(
    request: TurnRequest, head: ThreadHead | None, question: Question, deps: Conversations
) -> AsyncGenerator[ConversationEvent, None]:
    """The turn's events; a failure of any kind is logged."""
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
    rendered = deps.render(reply, book_id, request.thread_id)
    turn = Turn(
        run_id=request.run_id,
        question=reply.account.question,
        standalone=reply.account.standalone,
        answer=reply.text,
        refused=not isinstance(reply, Answer),
        confidence=reply.account.metrics.confidence,
        asked_at=asked_at,
        replied_at=str(rendered["timestamp"]),
        reply=rendered,
        look_ups=reply.account.look_ups,
        instructions=reply.account.instructions,
        tool_uses=reply.account.tool_uses,
    )
    storing = deps.threads.append(
        request.owner,
        request.thread_id,
        turn,
        thread_exists=head is not None,
        beginning=Beginning(book_id=book_id, title=title_of(turn.question), metadata=request.metadata),
        filters=_filters(request, head),
        summary=_summary(head, question.history, turn),
    )
    with deps.tracer.span("store"):
        await _run_to_end(storing, keep_result=True)
    deps.tracer.note(_figures(reply, book_id))
    yield TurnStored(reply=rendered)


def _figures(reply: Reply, book_id: str) -> Attributes:
    """What the turn's span says about its reply: how it ended, and counts."""
    account = reply.account
    ending = {"lectern.outcome": "answered"}
    if not isinstance(reply, Answer):
        ending = {"lectern.outcome": "refused", "lectern.reason": reply.reason}
    return {
        **ending,
        "lectern.book": book_id,
        "lectern.confidence_level": account.metrics.confidence_level,
        "lectern.passages": account.retrieval_count,
        "lectern.cited": len(reply.citations) if isinstance(reply, Answer) else 0,
        "lectern.tokens": account.tokens_used,
        "lectern.model": account.model,
    }


async def _complete(request: TurnRequest, head: ThreadHead | None, deps: Conversations) -> Question:
    """The question with the book, scope and history of its thread. Raises if the request is wrong."""
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
    """The filters of the request, else the last ones of the thread; None clears one."""
    filters = {**(head.filters if head else {}), **request.filters}
    return {name: value for name, value in filters.items() if value is not None}


def _book_id(request: TurnRequest, head: ThreadHead | None, rules: ConversationRules) -> str | None:
    """The thread's book, or the one that the first question names. Raises if the thread is about another book, or has
    no turn left."""
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
    questions = [exchange.standalone or exchange.question for exchange in history]
    return topics_of([*questions, turn.standalone]) or None


async def _summarise(request: TurnRequest, question: Question, deps: Conversations) -> None:
    """Store the model's summary of the conversation. The reply was sent before, and a failure is ignored."""
    questions = [*(exchange.question for exchange in question.history), request.text]
    with suppress(LecternError, TimeoutError):
        async with asyncio.timeout(SUMMARY_SECONDS):
            summary = await deps.answering.summarise(questions)
        if summary:
            await _run_to_end(deps.threads.summarise(request.owner, request.thread_id, summary))


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
    await _run_to_end(deps.log.end(request.run_id, state, error))


async def _run_to_end(work: Coroutine[Any, Any, T], *, keep_result: bool = False) -> T:
    """Finish the work even if the turn is cancelled; the cancellation is raised afterwards. With `keep_result`,
    it is not raised if the work succeeded."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if keep_result and not task.cancelled() and task.exception() is None:
            return task.result()
        raise
