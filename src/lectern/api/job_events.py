"""Jobs as Server-Sent Events: `planned`, any number of `progress`, and last `finished` or `error`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from sse_starlette import ServerSentEvent

from lectern.api.errors import problem_body
from lectern.api.sse import STORED_EVENT_ID, frame
from lectern.domain.errors import JobFailed, LecternError, Overloaded, error_code
from lectern.domain.jobs import Finished, JobRecord, LessonsIndexed, Plan, Planned, Working
from lectern.jobs.executor import LiveEvent, LiveJob
from lectern.jobs.runner import Jobs
from lectern.schemas.jobs import IngestionJob

POLL_SECONDS = 1.0  # between two reads of a job that another process runs
PLAN_FIELDS = ("new", "modified", "moved", "deleted", "unchanged")


async def live_events(live: LiveJob, last_event_id: str | None) -> AsyncIterator[ServerSentEvent]:
    """The events of a job that this process runs, after the last event that the client received."""
    async for number, event in live.follow(live.place_of(last_event_id)):
        name, body = _name_and_body(event, live)
        yield frame(name, body, live.id_of(number))


async def stored_events(record: JobRecord, jobs: Jobs) -> AsyncIterator[ServerSentEvent]:
    """The progress and the end of a job that another process runs, read from the database."""
    previous = record
    while record.open and not jobs.closed:
        await asyncio.sleep(POLL_SECONDS)
        record = await jobs.record(record.job.job_id, None)
        if record.open and record != previous:
            previous = record
            yield frame("progress", {"job": IngestionJob.of(record).model_dump()}, STORED_EVENT_ID)
    name, body = _last_event(record)
    yield frame(name, body, STORED_EVENT_ID)


def _name_and_body(event: LiveEvent, live: LiveJob) -> tuple[str, dict[str, Any]]:
    record = live.record
    match event:
        case Planned():
            return "planned", {"job": _job(replace(record, job=event.job)), "files": _counts(event.plan)}
        case Working() | LessonsIndexed():
            stage = event.stage if isinstance(event, Working) else "index"
            figures = {"done": event.done, "total": event.total, "share": round(event.share, 4), "stage": stage}
            return "progress", {"job": _job(replace(record, job=event.job)), **figures}
        case Finished():
            return _last_event(replace(record, job=event.job), live.error)
        case _:
            return "error", problem_body(event.error).model_dump()


def _last_event(record: JobRecord, error: BaseException | None = None) -> tuple[str, dict[str, Any]]:
    job = _job(record)
    if record.open:
        return "error", problem_body(Overloaded("this server is stopping; ask again in a moment")).model_dump()
    if record.job.status != "failed":
        return "finished", {"job": job}
    body = problem_body(JobFailed(job["error_message"])).model_dump()
    if isinstance(error, LecternError):
        body["code"] = error_code(type(error))  # the cause, so that a caller can tell these apart
    return "error", {**body, "job": job}


def _job(record: JobRecord) -> dict[str, Any]:
    return IngestionJob.of(record).model_dump()


def _counts(plan: Plan) -> dict[str, int]:
    return {name: len(getattr(plan, name)) for name in PLAN_FIELDS}
