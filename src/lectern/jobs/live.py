"""A job that this process carries on. Its events are numbered and kept, and clients only follow: who drops out comes
back by number."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Literal

from lectern.domain.errors import LecternError
from lectern.domain.jobs import IngestionJob, JobEvent, JobRecord, Planned
from lectern.following import Followed

Ending = Literal["cancelled", "stopping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """This process does not carry the job on any more, though it has not ended; the last event."""

    error: LecternError
    kind: Literal["stopped"] = "stopped"


class JobCancelled(LecternError):
    """A job that somebody ended on purpose, to whoever waited for its result."""

    status = 409


LiveEvent = JobEvent | Stopped


class LiveJob(Followed[LiveEvent]):
    """One job and its events so far."""

    def __init__(self, record: JobRecord) -> None:
        super().__init__()
        self.record = record
        self.error: BaseException | None = None  # what ended a job that failed
        self.ending: Ending | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def job_id(self) -> int:
        """The record's number."""
        return self.record.job.job_id

    @property
    def job(self) -> IngestionJob:
        """The job as it stands."""
        return self.record.job

    def publish(self, event: LiveEvent) -> None:
        """Add an event and wake everybody who follows."""
        if isinstance(event, Planned):  # how it will be done is large, and nobody's who follows
            event = replace(event, plan=replace(event.plan, replacements=()))
        if not isinstance(event, Stopped):
            self.record = replace(self.record, job=event.job)
        self.add(event)

    def finish(self, error: BaseException | None = None) -> None:
        """No event will come any more."""
        self.done, self.error = True, error
        self.ring()

    def working(self, work: asyncio.Task[None]) -> None:
        """This task does the work; whoever wants an end before it began gets it now."""
        self._work = work
        if self.ending is not None:
            work.cancel()

    def end(self, ending: Ending) -> None:
        """Have the work broken off between two steps; what ends it first is what it ended by."""
        if self.ending is None:
            self.ending = ending
            if self._work is not None:
                self._work.cancel()
