"""Runs belong to the server. A turn is carried on in a task of its own, its events are numbered and kept for a while,
and clients only follow: who drops out comes back by number, and nothing but `cancel` or its budget ends a run early."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, TypeVar

from lectern.conversations.turns import ConversationEvent, Conversations, Kept, TurnRequest, converse
from lectern.domain.errors import Cancelled, KeyUsed, LecternError, Overloaded, Unexpected
from lectern.domain.event_log import EventLog, Poller
from lectern.domain.threads import Json

KEPT = 500  # ended runs whose events can still be followed; their replies are in the database for good
CANCELLED = "the run was cancelled; nothing of it was kept"
REVOKED = "the key was revoked; nothing of the run was kept"
UNEXPECTED = "something went wrong on the server; its log has the details"
T = TypeVar("T", bound=Json)
log = logging.getLogger("lectern.runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run came to nothing; the last event."""

    error: LecternError
    kind: Literal["failed"] = "failed"


RunEvent = ConversationEvent | Failed


class LiveRun(EventLog[RunEvent]):
    """One run and its events so far."""

    def __init__(self, request: TurnRequest) -> None:
        super().__init__()
        self.request = request
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    async def begun(self) -> None:
        """Wait for the first event; a run that fails before it raises."""
        while not self.events:
            await self._bell.wait()
        if isinstance(first := self.events[0], Failed):
            raise first.error

    async def reply(self) -> Json:
        """Wait for the end; a run that failed raises."""
        await self.over()
        last = self.events[-1]
        if isinstance(last, Failed):
            raise last.error
        assert isinstance(last, Kept)  # by `publish`
        return last.reply

    async def ended(self) -> None:
        """Wait until nothing of it is under way any more, the tidying after its reply included."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def publish(self, event: RunEvent) -> None:
        """One more event; the reply and the failure are the last."""
        self.done = isinstance(event, Kept | Failed)
        self.add(event)

    def begin(self, conversations: Conversations) -> asyncio.Task[None]:
        """Carry the run on from here."""
        self._task = asyncio.create_task(self._carry(conversations), name=f"run {self.request.run_id}")
        return self._task

    @property
    def under_way(self) -> bool:
        """Whether it is in the turn log, and has neither its reply nor an error yet."""
        return bool(self.events) and not self.done

    def end(self) -> None:
        """Have it ended, unless its reply is being kept already. Once: a second word would break off the tidying up."""
        if self._task is not None and not self._ending:
            self._ending = True
            self._task.cancel()

    async def cancel(self) -> None:
        """The same, and wait until it has ended."""
        self.end()
        await self.ended()

    async def _carry(self, conversations: Conversations) -> None:
        try:
            async with aclosing(converse(self.request, conversations)) as events:
                async for event in events:
                    self.publish(event)
        except LecternError as exc:
            self._fail(exc)
        except asyncio.CancelledError:
            self._fail(Cancelled(CANCELLED))
        except Exception:
            log.exception("a turn failed", extra={"run_id": self.request.run_id})
            self._fail(Unexpected(UNEXPECTED))

    def _fail(self, error: LecternError) -> None:
        """The last event, unless there is one: what goes wrong after the reply is no part of the turn."""
        if not self.done:
            self.publish(Failed(error=error))


Outcome = Literal["answered", "refused", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a question ended, for those who count and log."""

    text: str
    reply: Json | None = None
    error: LecternError | None = None  # where there is no reply
    run_id: str | None = None  # of a question in a conversation
    thread_id: str | None = None

    @classmethod
    def of(cls, run: LiveRun) -> Ended:
        """A run that has its last event."""
        last, asked = run.events[-1], run.request
        return cls(
            text=asked.text,
            reply=last.reply if isinstance(last, Kept) else None,
            error=last.error if isinstance(last, Failed) else None,
            run_id=asked.run_id,
            thread_id=asked.thread_id,
        )

    @property
    def outcome(self) -> Outcome:
        """In a word."""
        if self.reply is not None:
            return "answered" if self.reply.get("should_answer") else "refused"
        return "cancelled" if isinstance(self.error, Cancelled) else "failed"


Watcher = Callable[[Ended], None]


async def watched(asking: Awaitable[T], text: str, watchers: Sequence[Watcher]) -> T:
    """The reply to a question outside of any conversation; whoever watches hears how it ended."""
    reply: T | None = None
    error: LecternError = Unexpected(UNEXPECTED)
    try:
        reply = await asking
    except LecternError as exc:
        error = exc
        raise
    except asyncio.CancelledError:
        error = Cancelled(CANCELLED)
        raise
    else:
        return reply
    finally:
        ended = Ended(text=text, reply=reply, error=None if reply else error)
        for watcher in watchers:
            watcher(ended)


class Runs:
    """The runs of this process."""

    def __init__(
        self, conversations: Conversations, *, most: int, most_of_one: int, watchers: Sequence[Watcher] = ()
    ) -> None:
        self.conversations = conversations
        self._most, self._most_of_one = most, most_of_one
        self._live: dict[str, LiveRun] = {}  # under way, or among the last that ended
        self._last: deque[LiveRun] = deque()  # those that ended, oldest first
        self._own: Counter[str] = Counter()  # runs under way, by owner
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._poller = Poller(self._tasks, self._listen)
        self._watchers = watchers  # told of every run that ended

    def start(self, request: TurnRequest) -> LiveRun:
        """Begin a run, or give the one that is under way with the same id."""
        known = self.find(request.owner, request.run_id)
        if known is not None and known.request.digest != request.digest:
            raise KeyUsed
        if known is not None and not known.done:
            return known
        self._refuse_too_many(request.owner)
        run = self._live[request.run_id] = LiveRun(request)
        task = run.begin(self.conversations)
        self._tasks.add(task)
        if self.conversations.log.shared:
            self._poller.open()
        self._own[request.owner] += 1
        task.add_done_callback(lambda ended: self._ended(ended, run))
        return run

    def find(self, owner: str, run_id: str) -> LiveRun | None:
        """A run of this owner's that is under way, or has just ended."""
        run = self._live.get(run_id)
        return run if run is not None and run.request.owner == owner else None

    async def recall(self, owner: str, run_id: str) -> LiveRun | None:
        """The same, unless its conversation is gone by now: whoever deleted it, here, by a command or in another
        process, nothing of it is given from memory."""
        run = self.find(owner, run_id)
        kept = run is not None and run.done and isinstance(run.events[-1], Kept)
        if run is None or not kept or await self.conversations.threads.reply(owner, run_id) is not None:
            return run
        self._forget(run)
        return None

    async def end_all_of(self, owner: str) -> None:
        """End what an owner, and every reader of its key, has under way, here and elsewhere; nothing of what ended
        before is given from memory either."""
        own = [run for run in self._live.values() if run.request.owner.partition("/")[0] == owner]
        await self.conversations.log.end_all_of(owner, REVOKED)
        await asyncio.gather(*(run.cancel() for run in own))
        for run in own:
            self._forget(run)

    def forget_thread(self, owner: str, thread_id: str) -> None:
        """Nothing of a deleted thread is given from memory either."""
        for run in [one for one in self._live.values() if one.done]:
            if (run.request.owner, run.request.thread_id) == (owner, thread_id):
                self._forget(run)

    @property
    def active(self) -> int:
        """How many runs are under way."""
        return len(self._tasks)

    async def close(self, grace: float) -> None:
        """Take on nothing new, let runs finish for a while, then end the rest."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._poller.close()

    async def _listen(self) -> None:
        """End what somebody cancelled, or whose thread somebody deleted, in another process."""
        begun = {run.request.run_id: run for run in self._live.values() if run.under_way}
        for run_id in await self.conversations.log.ended_elsewhere(begun) if begun else ():
            begun[run_id].end()

    def _ended(self, task: asyncio.Task[None], run: LiveRun) -> None:
        self._tasks.discard(task)
        if not run.done:  # cancelled before its first step
            run.publish(Failed(error=Cancelled(CANCELLED)))
        self._own -= Counter([run.request.owner])  # drops owners with none left
        self._last.append(run)
        if len(self._last) > KEPT:
            self._forget(self._last.popleft())
        for watcher in self._watchers:
            watcher(Ended.of(run))

    def _forget(self, run: LiveRun) -> None:
        if self._live.get(run.request.run_id) is run:
            del self._live[run.request.run_id]

    def _refuse_too_many(self, owner: str) -> None:
        if self._closing:
            raise Overloaded("the server is stopping; ask again in a moment")
        if self._own[owner] >= self._most_of_one or len(self._tasks) >= self._most:
            raise Overloaded("too many questions are being answered; ask again in a moment")
