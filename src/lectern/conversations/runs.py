"""Runs belong to the server, not to the client that began them. Each turn runs in a separate task. Its events are
numbered and kept for a while, so that a client which lost its connection can resume by number. A client that goes away
does not end its run."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, TypeVar

from lectern.conversations.turns import ConversationEvent, Conversations, TurnRequest, TurnStored, converse
from lectern.domain.errors import Cancelled, KeyUsed, LecternError, Overloaded, Unexpected
from lectern.domain.event_log import EventLog, Poller
from lectern.domain.threads import Json

MAX_ENDED_RUNS = 500  # whose events can still be followed; their replies stay in the database
CANCELLED = "the run was cancelled; nothing of it was kept"
REVOKED = "the key was revoked; nothing of the run was kept"
UNEXPECTED = "something went wrong on the server; its log has the details"
T = TypeVar("T", bound=Json)
log = logging.getLogger("lectern.runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run failed; the last event."""

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

    async def wait_until_begun(self) -> None:
        """Wait for the first event; a run that fails before it raises."""
        while not self.events:
            await self._wakeup.wait()
        if isinstance(first := self.events[0], Failed):
            raise first.error

    async def reply(self) -> Json:
        """Wait for the end; a run that failed raises."""
        await self.over()
        last = self.events[-1]
        if isinstance(last, Failed):
            raise last.error
        assert isinstance(last, TurnStored)  # by `publish`
        return last.reply

    async def wait_until_ended(self) -> None:
        """Wait until the run's task has ended, including the work after its reply."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def publish(self, event: RunEvent) -> None:
        """Add an event; a stored reply or a failure is the last."""
        self.done = isinstance(event, TurnStored | Failed)
        self.add(event)

    def begin(self, conversations: Conversations) -> asyncio.Task[None]:
        """Start the task of the run."""
        self._task = asyncio.create_task(self._run(conversations), name=f"run {self.request.run_id}")
        return self._task

    @property
    def running(self) -> bool:
        """Whether the run is in the turn log and has neither its reply nor an error yet."""
        return bool(self.events) and not self.done

    def end(self) -> None:
        """Cancel the task, unless the reply is being stored. Only the first call does: a second one would cancel the
        clean-up."""
        if self._task is not None and not self._ending:
            self._ending = True
            self._task.cancel()

    async def cancel(self) -> None:
        """Cancel the run and wait until it has ended."""
        self.end()
        await self.wait_until_ended()

    async def _run(self, conversations: Conversations) -> None:
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
        """Publish the failure, unless the run has its last event: an error after the reply is not part of the turn."""
        if not self.done:
            self.publish(Failed(error=error))


Outcome = Literal["answered", "refused", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOutcome:
    """How a question ended, for metrics and logs."""

    text: str
    reply: Json | None = None
    error: LecternError | None = None  # if there is no reply
    run_id: str | None = None  # of a question in a conversation
    thread_id: str | None = None

    @classmethod
    def of(cls, run: LiveRun) -> QuestionOutcome:
        """The outcome of a run that has its last event."""
        last, request = run.events[-1], run.request
        return cls(
            text=request.text,
            reply=last.reply if isinstance(last, TurnStored) else None,
            error=last.error if isinstance(last, Failed) else None,
            run_id=request.run_id,
            thread_id=request.thread_id,
        )

    @property
    def outcome(self) -> Outcome:
        """The outcome in one word."""
        if self.reply is not None:
            return "answered" if self.reply.get("should_answer") else "refused"
        return "cancelled" if isinstance(self.error, Cancelled) else "failed"


Watcher = Callable[[QuestionOutcome], None]


async def report_outcome(answering: Awaitable[T], text: str, watchers: Sequence[Watcher]) -> T:
    """The reply to a question outside of any conversation; the watchers are called with its outcome."""
    reply: T | None = None
    error: LecternError = Unexpected(UNEXPECTED)
    try:
        reply = await answering
    except LecternError as exc:
        error = exc
        raise
    except asyncio.CancelledError:
        error = Cancelled(CANCELLED)
        raise
    else:
        return reply
    finally:
        outcome = QuestionOutcome(text=text, reply=reply, error=None if reply else error)
        for watcher in watchers:
            watcher(outcome)


class Runs:
    """The runs of this process."""

    def __init__(
        self, conversations: Conversations, *, max_runs: int, max_runs_per_owner: int, watchers: Sequence[Watcher] = ()
    ) -> None:
        self.conversations = conversations
        self._max_runs, self._max_runs_per_owner = max_runs, max_runs_per_owner
        self._live: dict[str, LiveRun] = {}  # running, or among the last that ended
        self._ended_runs: deque[LiveRun] = deque()  # oldest first
        self._runs_by_owner: Counter[str] = Counter()  # how many are running
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._poller = Poller(self._tasks, self._end_cancelled)
        self._watchers = watchers  # called for every run that ended

    def start(self, request: TurnRequest) -> LiveRun:
        """Begin a run, or return the running one with the same id."""
        existing = self.find(request.owner, request.run_id)
        if existing is not None and existing.request.digest != request.digest:
            raise KeyUsed
        if existing is not None and not existing.done:
            return existing
        self._refuse_too_many(request.owner)
        run = self._live[request.run_id] = LiveRun(request)
        task = run.begin(self.conversations)
        self._tasks.add(task)
        if self.conversations.log.shared:
            self._poller.open()
        self._runs_by_owner[request.owner] += 1
        task.add_done_callback(lambda task: self._finish(task, run))
        return run

    def find(self, owner: str, run_id: str) -> LiveRun | None:
        """A run of this owner that is running or has ended recently."""
        run = self._live.get(run_id)
        return run if run is not None and run.request.owner == owner else None

    async def recall(self, owner: str, run_id: str) -> LiveRun | None:
        """A run of this owner, unless its conversation was deleted, perhaps by another process: then nothing of it is
        returned from memory."""
        run = self.find(owner, run_id)
        has_reply = run is not None and run.done and isinstance(run.events[-1], TurnStored)
        if run is None or not has_reply or await self.conversations.threads.reply(owner, run_id) is not None:
            return run
        self._forget(run)
        return None

    async def end_all_of(self, owner: str) -> None:
        """End the runs of an owner and of every reader of its key, in this and other processes, and forget their
        events."""
        owner_runs = [run for run in self._live.values() if run.request.owner.partition("/")[0] == owner]
        await self.conversations.log.end_all_of(owner, REVOKED)
        await asyncio.gather(*(run.cancel() for run in owner_runs))
        for run in owner_runs:
            self._forget(run)

    def forget_thread(self, owner: str, thread_id: str) -> None:
        """Forget the ended runs of a deleted thread."""
        for run in [run for run in self._live.values() if run.done]:
            if (run.request.owner, run.request.thread_id) == (owner, thread_id):
                self._forget(run)

    @property
    def active(self) -> int:
        """How many runs have not ended."""
        return len(self._tasks)

    async def close(self, grace: float) -> None:
        """Accept no new run, wait up to `grace` seconds for the running ones, then cancel the rest."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=grace)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await self._poller.close()

    async def _end_cancelled(self) -> None:
        """End runs that were cancelled, or whose thread was deleted, in another process."""
        running_runs = {run.request.run_id: run for run in self._live.values() if run.running}
        for run_id in await self.conversations.log.ended_elsewhere(running_runs) if running_runs else ():
            running_runs[run_id].end()

    def _finish(self, task: asyncio.Task[None], run: LiveRun) -> None:
        self._tasks.discard(task)
        if not run.done:  # cancelled before its first step
            run.publish(Failed(error=Cancelled(CANCELLED)))
        self._runs_by_owner -= Counter([run.request.owner])  # drops owners that have none
        self._ended_runs.append(run)
        if len(self._ended_runs) > MAX_ENDED_RUNS:
            self._forget(self._ended_runs.popleft())
        for watcher in self._watchers:
            watcher(QuestionOutcome.of(run))

    def _forget(self, run: LiveRun) -> None:
        if self._live.get(run.request.run_id) is run:
            del self._live[run.request.run_id]

    def _refuse_too_many(self, owner: str) -> None:
        if self._closing:
            raise Overloaded("the server is stopping; ask again in a moment")
        if self._runs_by_owner[owner] >= self._max_runs_per_owner or len(self._tasks) >= self._max_runs:
            raise Overloaded("too many questions are being answered; ask again in a moment")
