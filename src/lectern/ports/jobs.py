"""Ports of jobs: what is stored of them, and locks on books."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from lectern.domain.jobs import IngestionJob, JobOrder, JobRecord, Origin


class BookLocks(Protocol):
    """One job per book at a time, in this process and among all that share its database."""

    @property
    def holds_any(self) -> bool:
        """Whether this process holds the lock of any book."""

    def hold(self, book_id: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a book while the block runs; Busy if another holds it. Never waits."""

    async def confirm(self, book_id: str) -> None:
        """Raise if the database has lost our lock."""

    async def is_locked_elsewhere(self, book_id: str) -> bool:
        """Whether another process holds the lock of a book now."""


class JobLog(Protocol):
    """Every job, stored for longer than the process that runs it."""

    async def add(
        self, order: JobOrder, *, owner: str, origin: Origin, key: str | None = None, running: bool = False
    ) -> JobRecord | None:
        """Store a new job, queued or running; None if this owner has used the idempotency key before."""

    async def join(self, order: JobOrder, *, owner: str, key: str, job_id: int) -> bool:
        """Note that another request got this job; False if its owner has used the idempotency key before."""

    async def begin(self, job_id: int) -> int:
        """Note that the job runs now; returns how often it was begun."""

    async def note(self, job: IngestionJob) -> bool:
        """Store the job's progress; returns whether a cancel was requested in the meantime."""

    async def end(self, job: IngestionJob) -> None:
        """Store the job's end. A job that had ended before is not changed."""

    async def put_back(self, job_id: int, *, uncounted: bool) -> None:
        """Put the job back in the queue; `uncounted` if a normal stop ended it."""

    async def ask_to_end(self, job_id: int) -> None:
        """Request a cancel from the process that runs the job."""

    async def ending(self, job_ids: Collection[int]) -> frozenset[int]:
        """The jobs among these for which a cancel was requested."""

    async def record(self, job_id: int) -> JobRecord | None:
        """One job."""

    async def keyed(self, owner: str, key: str) -> tuple[JobRecord, JobOrder] | None:
        """The job that this owner got with an idempotency key, and the order that it sent."""

    async def forget_keys(self, owner: str) -> None:
        """Delete the idempotency keys of an owner and of its readers."""

    async def open_jobs(self, book_id: str | None = None) -> tuple[JobRecord, ...]:
        """Queued and running jobs, the oldest first; of one book or of all."""

    async def page(self, *, books: frozenset[str] | None, limit: int, before: int | None) -> tuple[JobRecord, ...]:
        """Jobs of these books (None: of all), the newest first, without their warnings and errors."""
