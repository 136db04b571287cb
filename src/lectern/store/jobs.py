"""Jobs in the SQL database. A row is written before any work is done. It holds the progress while the job runs and the
whole report at the end. At least the newest thousand jobs of a book are kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Insert, Row, Select, delete, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.books import Problem
from lectern.domain.clock import days_ago, utc_now
from lectern.domain.failpoints import reached
from lectern.domain.jobs import OPEN_STATUSES, IngestionJob, JobOrder, JobRecord, Origin
from lectern.store.database import reading, transaction
from lectern.store.keys import belongs, refuse_revoked
from lectern.store.locks import Fence, no_fence
from lectern.store.tables import job_keys, jobs

JOBS_TO_KEEP = 1000  # of a book; a watched book has a job for every pause in its author's edits
KEY_DAYS = 7.0  # how long a job is kept for requests that repeat its idempotency key
# Fields that have a column, so they are not in the report.
_COLUMN_FIELDS = frozenset({"job_id", "book_id", "status", "queued_at", "mode", "warnings", "errors"})
_LIST_COLUMNS = [column for column in jobs.c if column.name != "problems"]


class SqlJobs:
    """The job log."""

    def __init__(self, engine: AsyncEngine, fence: Fence = no_fence) -> None:
        self._engine = engine
        self._fence = fence  # who runs a job holds the lock of its book; who has lost it may not change the job

    async def add(
        self, order: JobOrder, *, owner: str, origin: Origin, key: str | None = None, running: bool = False
    ) -> JobRecord | None:
        """Store a new job, queued or running; None if this owner has used the idempotency key before."""
        now = utc_now()
        job = IngestionJob(
            job_id=0,
            book_id=order.book_id,
            mode=order.mode,
            status="running" if running else "queued",
            queued_at=now,
            started_at=now if running else None,
        )
        values = {
            "book_id": order.book_id,
            "queued_at": now,
            "owner": owner,
            "request": _request(order, origin),
            "cancelling": 0,
            "attempts": int(running),
            **_values(job),
        }
        try:
            async with transaction(self._engine) as connection:
                await refuse_revoked(connection, owner)
                statement = insert(jobs).values(**values).returning(jobs.c.job_id)
                number = int((await connection.execute(statement)).scalar_one())
                if key is not None:
                    await connection.execute(_insert_key(order, owner, key, number))
        except IntegrityError:
            return None
        reached("jobs.added")
        job = dataclasses.replace(job, job_id=number)
        return JobRecord(job=job, order=order, owner=owner, origin=origin, attempts=int(running))

    async def join(self, order: JobOrder, *, owner: str, key: str, job_id: int) -> bool:
        """Note that another request got this job; False if its owner has used the idempotency key before."""
        try:
            async with transaction(self._engine) as connection:
                await refuse_revoked(connection, owner)
                await connection.execute(_insert_key(order, owner, key, job_id))
        except IntegrityError:
            return False
        return True

    async def begin(self, job_id: int) -> int:
        """Note that the job runs now; returns how often it was begun."""
        statement = update(jobs).where(jobs.c.job_id == job_id, _open())
        statement = statement.values(status="running", attempts=jobs.c.attempts + 1)
        async with transaction(self._engine) as connection:
            await self._check(connection, job_id)
            attempts = (await connection.execute(statement.returning(jobs.c.attempts))).scalar() or 0
        reached("jobs.begun")
        return int(attempts)

    async def note(self, job: IngestionJob) -> bool:
        """Store the job's progress; returns whether a cancel was requested in the meantime."""
        statement = update(jobs).where(jobs.c.job_id == job.job_id, _open()).values(**_values(job))
        async with transaction(self._engine) as connection:
            await self._fence(connection, job.book_id)
            return bool((await connection.execute(statement.returning(jobs.c.cancelling))).scalar())

    async def end(self, job: IngestionJob) -> None:
        """Store the job's end. A job that had ended before is not changed."""
        statement = update(jobs).where(jobs.c.job_id == job.job_id, _open())
        async with transaction(self._engine) as connection:
            await self._fence(connection, job.book_id)
            await connection.execute(statement.values(**_values(job)))
            await _prune(connection, job.book_id)
            reached("jobs.before-end")
        reached("jobs.ended")

    async def put_back(self, job_id: int, *, uncounted: bool) -> None:
        """Put the job back in the queue; `uncounted` if a normal stop ended it."""
        statement = update(jobs).where(jobs.c.job_id == job_id, jobs.c.status == "running")
        values: dict[str, Any] = {"status": "queued"}
        if uncounted:
            values["attempts"] = jobs.c.attempts - 1
        async with transaction(self._engine) as connection:
            await self._check(connection, job_id)
            await connection.execute(statement.values(**values))

    async def ask_to_end(self, job_id: int) -> None:
        """Request a cancel from the process that runs the job."""
        async with transaction(self._engine) as connection:
            await connection.execute(update(jobs).where(jobs.c.job_id == job_id, _open()).values(cancelling=1))

    async def ending(self, job_ids: Collection[int]) -> frozenset[int]:
        """The jobs among these for which a cancel was requested."""
        if not job_ids:
            return frozenset()
        query = select(jobs.c.job_id).where(jobs.c.job_id.in_(job_ids), jobs.c.cancelling == 1)
        async with reading(self._engine) as connection:
            return frozenset((await connection.execute(query)).scalars())

    async def record(self, job_id: int) -> JobRecord | None:
        """One job."""
        records = await self._records(select(jobs).where(jobs.c.job_id == job_id))
        return records[0] if records else None

    async def keyed(self, owner: str, key: str) -> tuple[JobRecord, JobOrder] | None:
        """The job that this owner got with an idempotency key, and the order that it sent."""
        query = (
            select(jobs, job_keys.c.request.label("asked"))
            .join_from(jobs, job_keys)
            .where(job_keys.c.owner == owner, job_keys.c.key == key)
        )
        async with reading(self._engine) as connection:
            row = (await connection.execute(query)).first()
        return None if row is None else (_record(row), _order(json.loads(row.asked)))

    async def forget_keys(self, owner: str) -> None:
        """Delete the idempotency keys of an owner and of its readers."""
        async with transaction(self._engine) as connection:
            await connection.execute(delete(job_keys).where(belongs(job_keys.c.owner, owner)))

    async def open_jobs(self, book_id: str | None = None) -> tuple[JobRecord, ...]:
        """Queued and running jobs, the oldest first; of one book or of all."""
        query = select(jobs).where(_open()).order_by(jobs.c.job_id)
        return await self._records(query if book_id is None else query.where(jobs.c.book_id == book_id))

    async def page(self, *, books: frozenset[str] | None, limit: int, before: int | None) -> tuple[JobRecord, ...]:
        """Jobs of these books (None: of all), the newest first, without their warnings and errors."""
        query = select(*_LIST_COLUMNS).order_by(jobs.c.job_id.desc()).limit(limit)
        if books is not None:
            query = query.where(jobs.c.book_id.in_(sorted(books)))
        return await self._records(query if before is None else query.where(jobs.c.job_id < before))

    async def _check(self, connection: AsyncConnection, job_id: int) -> None:
        book_id = (await connection.execute(select(jobs.c.book_id).where(jobs.c.job_id == job_id))).scalar()
        if book_id is not None:
            await self._fence(connection, book_id)

    async def _records(self, query: Select[Any]) -> tuple[JobRecord, ...]:
        async with reading(self._engine) as connection:
            return tuple(_record(row) for row in await connection.execute(query))


def _open() -> ColumnElement[bool]:
    return jobs.c.status.in_(sorted(OPEN_STATUSES))


async def _prune(connection: AsyncConnection, book_id: str) -> None:
    of_book = jobs.c.book_id == book_id
    oldest = select(jobs.c.job_id).where(of_book).order_by(jobs.c.job_id.desc()).offset(JOBS_TO_KEEP).limit(1)
    old = jobs.c.job_id <= oldest.scalar_subquery()
    await connection.execute(delete(jobs).where(of_book, old, ~_open(), jobs.c.queued_at < days_ago(KEY_DAYS)))


def _values(job: IngestionJob) -> dict[str, Any]:
    """The columns that describe the job itself."""
    body = dataclasses.asdict(job)
    problems = [*body["errors"], *body["warnings"]]
    report = {name: value for name, value in body.items() if name not in _COLUMN_FIELDS}
    return {"status": job.status, "report": json.dumps(report), "problems": json.dumps(problems)}


def _request(order: JobOrder, origin: Origin) -> str:
    body = dataclasses.asdict(order)
    del body["book_id"]  # has a column
    return json.dumps({**body, "origin": origin})


def _insert_key(order: JobOrder, owner: str, key: str, job_id: int) -> Insert:
    request = json.dumps(dataclasses.asdict(order))
    return insert(job_keys).values(owner=owner, key=key, job_id=job_id, request=request)


def _order(request: dict[str, Any]) -> JobOrder:
    return JobOrder(
        book_id=request["book_id"],
        folder=request.get("folder", ""),
        source=request.get("source"),
        bound=request.get("bound", request.get("source") is not None),
        mode=request.get("mode", "incremental"),
        replace=request.get("replace", False),
    )


def _record(row: Row[Any]) -> JobRecord:
    request: dict[str, Any] = json.loads(row.request)  # empty for a job that is older than the job log
    problems = [Problem(**problem) for problem in json.loads(getattr(row, "problems", "[]"))]
    report: dict[str, Any] = json.loads(row.report)
    if row.status == "queued":
        report |= {"started_at": None, "waiting_since": None, "waiting_for": None}  # it may have been begun before
    if report.get("duration_seconds") is not None:
        report["duration_seconds"] = round(report["duration_seconds"])  # an earlier version stored fractions
    job = IngestionJob(
        **report,
        job_id=row.job_id,
        book_id=row.book_id,
        mode=request.get("mode", "incremental"),
        status=row.status,
        queued_at=row.queued_at,
        warnings=tuple(problem for problem in problems if problem.severity == "warning"),
        errors=tuple(problem for problem in problems if problem.severity == "error"),
    )
    return JobRecord(
        job=job,
        order=_order({**request, "book_id": row.book_id}),
        owner=row.owner,
        origin=request.get("origin", "terminal"),
        attempts=row.attempts,
        cancelling=bool(row.cancelling),
    )
