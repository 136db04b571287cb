"""Requests that meet a job which is there. The same idempotency key and words get the job that they got before, whether
it was begun for them or under way already; other work on a book that has a job must wait."""

from __future__ import annotations

from lectern.domain.errors import Busy, KeyUsed
from lectern.domain.jobs import JobOrder, JobRecord
from lectern.job_ports import JobLog


async def tried(records: JobLog, order: JobOrder, owner: str, key: str) -> JobRecord | None:
    """The job that this owner got with the key; other words under it are refused."""
    if (known := await records.keyed(owner, key)) is None:
        return None
    record, asked = known
    if not asked.same_words(order):
        raise KeyUsed
    return record


async def joined(records: JobLog, other: JobRecord, order: JobOrder, owner: str, key: str | None) -> JobRecord:
    """A job that was under way for the same; who tries again with this key, after its end, too, gets it again."""
    if key is None or await records.join(order, owner=owner, key=key, job_id=other.job.job_id):
        return other
    return await tried(records, order, owner, key) or other  # the same key came twice at once


def busy(record: JobRecord) -> Busy:
    """What is said to a request that this job is in the way of."""
    job = record.job
    return Busy(
        f"job {job.job_id} ({job.mode}) is {job.status} for {job.book_id!r}; wait until it has ended, or cancel it"
    )
