"""The seams of conversations: where threads are kept, what was tried, and whose turn it is. No code here."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lectern.domain.replies import Exchange
from lectern.domain.threads import (
    LIVE_MESSAGES,
    Beginning,
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

    async def heads(self, owner: str, *, limit: int, cursor: str | None = None) -> ThreadPage:
        """The owner's threads, the last used first."""

    async def thread(
        self, owner: str, thread_id: str, *, before: int | None = None, limit: int | None = LIVE_MESSAGES
    ) -> Thread:
        """A thread with its last messages, or those before a `seq`; without a limit all of them."""

    async def recent(self, owner: str, thread_id: str, most: int) -> tuple[Exchange, ...]:
        """What was answered in the last `most` turns, oldest first."""

    async def turns(self, owner: str, thread_id: str) -> tuple[Turn, ...]:
        """Every turn of a thread, in order."""

    async def reply(self, owner: str, run_id: str) -> Json | None:
        """The reply that a run came to, as it was shown."""

    async def append(  # noqa: PLR0913  # what a turn is made of
        self,
        owner: str,
        thread_id: str,
        turn: Turn,
        *,
        known: bool,
        beginning: Beginning,
        filters: Json,
        summary: str | None,
    ) -> None:
        """Keep a turn, whole; `known` says that the thread was there when the turn began."""

    async def edit(self, owner: str, thread_id: str, change: ThreadEdit) -> ThreadHead:
        """Give a thread another title or other metadata."""

    async def summarise(self, owner: str, thread_id: str, summary: str) -> None:
        """Give a thread a better summary of its topics."""

    async def delete(self, owner: str, thread_id: str) -> None:
        """Remove a thread and all that belongs to it."""

    async def forget(self, owner: str) -> int:
        """Remove every thread of an owner and of its readers, and all that was tried; how many threads that were."""

    async def purge(self, before: str) -> int:
        """Forget threads of every owner that were last used before a moment; how many that were."""

    async def archive_idle(self, before: str) -> int:
        """Move threads that were last used before a moment to the archive; how many that were."""


class TurnLog(Protocol):
    """Every attempt at a turn."""

    async def begin(self, run: Run) -> bool:
        """Write an attempt down, for whoever has the thread; False where it has its reply."""

    async def end(self, run_id: str, state: RunState, error: str | None = None) -> None:
        """The attempt came to nothing."""

    async def end_all_of(self, owner: str, error: str) -> None:
        """Every attempt of this owner's, and of its readers, is cancelled; whoever carries it on will hear of it."""

    @property
    def shared(self) -> bool:
        """Whether other processes may end what this one carries on."""

    async def ended(self, run_ids: Collection[str]) -> frozenset[str]:
        """Those of these attempts that another process ended: cancelled, given up, or gone with their thread."""

    async def run(self, owner: str, run_id: str) -> Run | None:
        """An attempt of this owner's."""

    async def purge(self, before: str) -> None:
        """Forget attempts that ended before a moment."""

    async def sweep(self) -> int:
        """At the start of a process: attempts that nobody carries on any more were interrupted."""


class TurnLeases(Protocol):
    """One turn at a time in a thread, whichever process takes it."""

    def holding(self, owner: str, thread_id: str, run_id: str, patience: float) -> AbstractAsyncContextManager[None]:
        """Be the one whose turn it is; whoever waits longer than `patience` gets an error."""
