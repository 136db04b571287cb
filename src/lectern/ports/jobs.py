"""The seams of jobs: what is kept of them, and who is alone with a book. No code here."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lectern.domain.jobs import IngestionJob, JobOrder, JobRecord, Origin


class BookLocks(Protocol):
    """One job per book at a time, in this process and among all that share its database."""

    @property
    def held(self) -> bool:
        """Whether this process is alone with any book."""

    def alone(self, book_id: str) -> AbstractAsyncContextManager[None]:
        """Be alone with a book while the block runs; Busy where somebody else is. Never waits."""

    async def confirm(self, book_id: str) -> None:
        """Still alone? Raises where the database let go of us."""

    async def taken(self, book_id: str) -> bool:
        """Whether another process is alone with a book at this moment."""


class JobLog(Protocol):
    """Every job there was, for longer than the process that carries it on."""

    async def add(
        self, order: JobOrder, *, owner: str, origin: Origin, key: str | None = None, begun: bool = False
    ) -> JobRecord | None:
        """Write a new job down, queued or begun; None where this owner has used the idempotency key before."""

    async def join(self, order: JobOrder, *, owner: str, key: str, job_id: int) -> bool:
        """Another request got this job; False where its owner has used the idempotency key before."""

    async def begin(self, job_id: int) -> int:
        """It runs now; how often it has been begun."""

    async def note(self, job: IngestionJob) -> bool:
        """How far it is; whether somebody asked for its end meanwhile."""

    async def end(self, job: IngestionJob) -> None:
        """It has ended; a job that had ended before stays as it was."""

    async def put_back(self, job_id: int, *, uncounted: bool) -> None:
        """It waits to be taken up again; `uncounted` where it was stopped in peace."""

    async def ask_to_end(self, job_id: int) -> None:
        """Whoever carries it on is to cancel it."""

    async def ending(self, job_ids: Collection[int]) -> frozenset[int]:
        """Those of these jobs that somebody asked to end."""

    async def record(self, job_id: int) -> JobRecord | None:
        """One job."""

    async def keyed(self, owner: str, key: str) -> tuple[JobRecord, JobOrder] | None:
        """The job that this owner got with an idempotency key, and what was asked for."""

    async def forget_keys(self, owner: str) -> None:
        """Forget the idempotency keys of an owner and of its readers."""

    async def open_jobs(self, book_id: str | None = None) -> tuple[JobRecord, ...]:
        """Those that are queued or running, the oldest first; of one book or of all."""

    async def page(self, *, books: frozenset[str] | None, limit: int, before: int | None) -> tuple[JobRecord, ...]:
        """The newest first, without their warnings and errors; of these books, None for all."""
