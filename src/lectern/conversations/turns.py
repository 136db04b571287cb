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
from lectern.domain.scope import Scope
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
class TalkRules:
    """What an operator may set about conversations."""

    max_turns: int = 50  # 0 for no limit
    patience: float = 30.0  # seconds that a request waits for the one before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Responder:
    """How a talk reaches the books and whoever answers."""

    answer: Callable[[Question], AsyncIterator[ReplyEvent]]
    book: Callable[[str | None, frozenset[str] | None], Awaitable[str]]  # which book is meant
    where: Callable[[Scope], Awaitable[object]]  # raises where a filter does not fit the book
    summary: Callable[[Sequence[str]], Awaitable[str | None]]  # by the model, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Everybody who has a part in a conversation."""

    threads: ThreadStore
    log: TurnLog
    leases: TurnLeases
    responder: Responder
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
    async with talk.leases.holding(request.owner, request.thread_id, request.run_id, talk.rules.patience):
        if (kept := await _kept(request, talk)) is not None:
            yield Kept(reply=kept)
            return
        head = None if request.new else await talk.threads.head(request.owner, request.thread_id)
        question = await _question(request, head, talk)
        await _begin(request, talk)
        yield Begun(run_id=request.run_id, thread_id=request.thread_id, book_id=_book_of(question))
        async with aclosing(_logged(request, head, question, talk)) as events:
            async for event in events:
                yield event
    await _summarise(request, question, talk)


async def _kept(request: TurnRequest, talk: Talk) -> Json | None:
    """The reply of an earlier attempt under the same key: the answer to a request whose answer was lost."""
    if not request.digest:
        return None  # the run id is new
    known = await talk.log.run(request.owner, request.run_id)
    if known is not None and known.digest != request.digest:
        raise KeyUsed
    return await talk.threads.reply(request.owner, request.run_id)


async def _begin(request: TurnRequest, talk: Talk) -> None:
    """Write the attempt down. The thread is ours, so an earlier one under this id is not under way any more."""
    try:
        if not await _whole(talk.log.begin(_run(request))):
            raise Busy("the same request is under way elsewhere; wait for it, then ask for its reply")
    except asyncio.CancelledError:
        await _end(talk, request, "cancelled", None)
        raise


async def _logged(
    request: TurnRequest, head: ThreadHead | None, question: Question, talk: Talk
) -> AsyncGenerator[TalkEvent, None]:
    """The turn itself; however it fails, the log says so."""
    try:
        async with aclosing(_turn(request, head, question, talk)) as events:
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
    request: TurnRequest, head: ThreadHead | None, question: Question, talk: Talk
) -> AsyncGenerator[TalkEvent, None]:
    asked_at, book_id = utc_now(), _book_of(question)
    reply: Reply | None = None
    async with aclosing(talk.responder.answer(question)) as events:  # type: ignore[type-var]  # an async generator
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
        filters=_filters(request, head),
        summary=_summary(head, question.history, turn),
    )
    await _whole(keeping, late=True)
    yield Kept(reply=shown)


async def _question(request: TurnRequest, head: ThreadHead | None, talk: Talk) -> Question:
    """The question with all that the thread adds to it; whatever is wrong with it is found out here."""
    check_metadata(request.metadata)
    book_id = await _book(request, head, talk)
    scope = _scope(book_id, _filters(request, head))
    await talk.responder.where(scope)
    return Question(
        text=request.text,
        scope=scope,
        top_k=request.top_k,
        similarity_threshold=request.similarity_threshold,
        history=await talk.threads.recent(request.owner, request.thread_id, CONTEXT_TURNS) if head else (),
        readable=request.readable,
        stream=request.stream,
    )


def _filters(request: TurnRequest, head: ThreadHead | None) -> dict[str, Any]:
    """Those that were given, else the thread's last; None clears one."""
    filters = {**(head.filters if head else {}), **request.filters}
    return {name: value for name, value in filters.items() if value is not None}


def _book_of(question: Question) -> str:
    assert question.scope.book_id is not None  # it was resolved before
    return question.scope.book_id


async def _book(request: TurnRequest, head: ThreadHead | None, talk: Talk) -> str:
    """The thread's book, or the one that is meant when it begins; and whether one more turn fits."""
    if head is None:
        return await talk.responder.book(request.book_id, request.readable)
    if request.book_id is not None and request.book_id != head.book_id:
        raise Conflict(f"this thread is about {head.book_id!r}; ask about {request.book_id!r} in a new one")
    most = talk.rules.max_turns
    if most and head.turn_count >= most:
        raise Conflict(f"this thread has its {most} turns; go on in a new one (leave session_id out)")
    return await talk.responder.book(head.book_id, request.readable)


def _summary(head: ThreadHead | None, history: tuple[Exchange, ...], turn: Turn) -> str | None:
    if head is None or head.turn_count + 1 < SUMMARY_FROM:
        return None
    asked = [one.standalone or one.question for one in history]
    return topics_of([*asked, turn.standalone]) or None


async def _summarise(request: TurnRequest, question: Question, talk: Talk) -> None:
    """Every five exchanges, the model's word for what the talk is about; nobody waits for it, and it may fail."""
    asked = [*(one.question for one in question.history), request.text]
    if len(asked) < SUMMARY_FROM or len(asked) % SUMMARY_FROM:
        return
    with suppress(LecternError, TimeoutError):
        async with asyncio.timeout(SUMMARY_SECONDS):
            said = await talk.responder.summary(asked)
        if said:
            await _whole(talk.threads.summarise(request.owner, request.thread_id, said))


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
