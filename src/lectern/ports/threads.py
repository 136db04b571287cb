"""Ports of conversations: where threads are stored, the log of runs, and whose turn it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lectern.domain.insights import PastTurn
from lectern.domain.replies import Exchange
from lectern.domain.threads import (
    LIVE_MESSAGES,
    Beginning,
    Feedback,
    Json,
    Run,
    RunState,
    Thread,
    ThreadEdit,
    ThreadHead,
    ThreadPage,
    Turn,
)


class ThreadStore(Protocol):
    """Threads and their turns, each within its owner."""

    async def head(self, owner: str, thread_id: str) -> ThreadHead | None:
        """A thread without its messages, if this owner has it."""

    async def heads(
        self, owner: str, *, limit: int, cursor: str | None = None, query: str = "", book_id: str | None = None
    ) -> ThreadPage:
        """The owner's threads, the most recently used first; with a `query`, those that have each of its words in the
        title or in a question."""

    async def thread(
        self, owner: str, thread_id: str, *, before: int | None = None, limit: int | None = LIVE_MESSAGES
    ) -> Thread:
        """A thread with its last messages, or those before a `seq`; without a limit, all of them."""

    async def recent(self, owner: str, thread_id: str, max_turns: int) -> tuple[Exchange, ...]:
        """What was answered in the last `max_turns` turns, oldest first."""

    async def turns(self, owner: str, thread_id: str) -> tuple[Turn, ...]:
        """Every turn of a thread, in order."""

    async def reply(self, owner: str, run_id: str) -> Json | None:
        """The reply of a run, as it was shown."""

    async def append(  # noqa: PLR0913  # what a turn is made of
        self,
        owner: str,
        thread_id: str,
        turn: Turn,
        *,
        thread_exists: bool,
        beginning: Beginning,
        filters: Json,
        summary: str | None,
    ) -> None:
        """Store a complete turn; `thread_exists` says that the thread existed when the turn began. `summary` does not
        replace one by a language model."""

    async def edit(self, owner: str, thread_id: str, change: ThreadEdit) -> ThreadHead:
        """Change a thread's title or metadata."""

    async def summarise(self, owner: str, thread_id: str, summary: str) -> None:
        """Store a summary by a language model; later turns keep it until the model writes another."""

    async def rate(self, owner: str, thread_id: str, number: int, feedback: Feedback | None) -> None:
        """Store the feedback on a turn instead of an earlier one; None takes it back."""

    async def delete(self, owner: str, thread_id: str) -> None:
        """Delete a thread and everything that belongs to it."""

    async def forget(self, owner: str) -> int:
        """Delete every thread and run of an owner and of its readers; returns how many threads were deleted."""

    async def purge(self, before: str) -> int:
        """Delete threads of every owner that were last used before a moment; returns how many."""

    async def archive_idle(self, before: str) -> int:
        """Move threads that were last used before a moment to the archive; returns how many."""


class TurnHistory(Protocol):
    """The stored turns of every owner."""

    def turns(self, book_id: str, since: str, limit: int) -> AsyncIterator[Sequence[PastTurn]]:
        """The turns about a book since a moment, the newest first and at most `limit`, in batches."""


class TurnLog(Protocol):
    """Every attempt at a turn."""

    async def begin(self, run: Run) -> bool:
        """Store an attempt; False if it already has its reply. The caller must hold the thread's lease."""

    async def end(self, run_id: str, state: RunState, error: str | None = None) -> None:
        """Note that the attempt ended without a reply."""

    async def end_all_of(self, owner: str, error: str) -> None:
        """Cancel every attempt of an owner and of its readers; the process that runs one notices within about a
        second."""

    @property
    def shared(self) -> bool:
        """Whether other processes may end the runs of this one."""

    async def ended_elsewhere(self, run_ids: Collection[str]) -> frozenset[str]:
        """The attempts among these that another process ended: cancelled, interrupted, or deleted with their thread."""

    async def run(self, owner: str, run_id: str) -> Run | None:
        """An attempt of this owner."""

    async def purge(self, before: str) -> None:
        """Delete attempts that ended before a moment."""

    async def sweep(self) -> int:
        """At the start of a process: mark attempts that no process runs any more as interrupted."""


class TurnLeases(Protocol):
    """One turn at a time in a thread, whichever process takes it."""

    def hold(self, owner: str, thread_id: str, run_id: str, wait_seconds: float) -> AbstractAsyncContextManager[None]:
        """Hold the turn of a thread while the block runs. Waiting longer than `wait_seconds` is an error."""
