"""Jobs as Server-Sent Events: `planned`, `progress` …, and last `finished` or `error`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from sse_starlette import ServerSentEvent

from lectern.api.errors import problem_body
from lectern.api.sse import STORED, frame
from lectern.domain.errors import JobFailed, LecternError, Overloaded, error_code
from lectern.domain.jobs import Finished, JobRecord, LessonsIndexed, Plan, Planned
from lectern.jobs.executor import LiveEvent, LiveJob
from lectern.jobs.runner import Jobs
from lectern.schemas.jobs import IngestionJob

POLLED = 1.0  # seconds between two looks at a job that another process carries on
COUNTED = ("new", "modified", "moved", "deleted", "unchanged")


async def live_events(live: LiveJob, last_event_id: str | None) -> AsyncIterator[ServerSentEvent]:
    """The events of a job of this process, after the one that arrived last."""
    async for number, event in live.follow(live.place_of(last_event_id)):
        name, body = _named(event, live)
        yield frame(name, body, live.id_of(number))


async def stored_events(record: JobRecord, jobs: Jobs) -> AsyncIterator[ServerSentEvent]:
    """The same for a job that this process does not carry on: how far it is, and how it ended."""
    seen = record
    while record.open and not jobs.closed:
        await asyncio.sleep(POLLED)
        record = await jobs.record(record.job.job_id, None)
        if record.open and record != seen:
            seen = record
            yield frame("progress", {"job": IngestionJob.of(record).model_dump()}, STORED)
    name, body = _ended(record)
    yield frame(name, body, STORED)


def _named(event: LiveEvent, live: LiveJob) -> tuple[str, dict[str, Any]]:
    record = live.record
    match event:
        case Planned():
            return "planned", {"job": _job(replace(record, job=event.job)), "files": _counts(event.plan)}
        case LessonsIndexed():
            then = _job(replace(record, job=event.job))
            return "progress", {"job": then, "done": event.done, "total": event.total}
        case Finished():
            return _ended(replace(record, job=event.job), live.error)
        case _:
            return "error", problem_body(event.error).model_dump()


def _ended(record: JobRecord, error: BaseException | None = None) -> tuple[str, dict[str, Any]]:
    job = _job(record)
    if record.open:
        return "error", problem_body(Overloaded("this server is stopping; ask again in a moment")).model_dump()
    if record.job.status != "failed":
        return "finished", {"job": job}
    body = problem_body(JobFailed(job["error_message"])).model_dump()
    if isinstance(error, LecternError):
        body["code"] = error_code(type(error))  # what ended it: a caller may want to tell these apart
    return "error", {**body, "job": job}


def _job(record: JobRecord) -> dict[str, Any]:
    return IngestionJob.of(record).model_dump()


def _counts(plan: Plan) -> dict[str, int]:
    return {name: len(getattr(plan, name)) for name in COUNTED}
