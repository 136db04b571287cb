"""The job's figures while it runs. Chunks are counted by their ids: those that the index gained, lost and kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from lectern.domain.books import Problem, Survey
from lectern.domain.clock import utc_now, whole_seconds
from lectern.domain.jobs import IngestionJob, IngestionRecord, Intent, JobStatus, Mode, Plan


@dataclass(slots=True)
class JobProgress:
    """The figures of the report so far."""

    job_id: int
    book_id: str
    mode: Mode
    queued_at: str = field(default_factory=utc_now)
    started_at: str | None = None
    discovered: int = 0
    left_out: int = 0
    includes: tuple[int, int] = (0, 0)  # read, failed
    language: str | None = None
    unchanged: set[str] = field(default_factory=set)
    processed: set[str] = field(default_factory=set)
    deleted_files: set[str] = field(default_factory=set)
    before: set[str] | None = None  # None until the first plan
    after: set[str] = field(default_factory=set)
    chunks_written: int = 0
    embedded: int = 0
    problems: list[Problem] = field(default_factory=list)
    applying: list[Intent] = field(default_factory=list)  # whose change failed half-way and is completed later
    waiting: tuple[str, str] | None = None  # since when, and for what
    seconds: dict[str, float] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)

    def begin(self, survey: Survey, records: Mapping[str, IngestionRecord], plan: Plan) -> None:
        """Store the figures of a plan before its first lesson is read. Called again if a file changed and the folder
        was planned again."""
        self.discovered = survey.files_discovered
        self.left_out = len(survey.files_left_out)
        self.includes = survey.includes, survey.includes_failed
        self.language = survey.manifest.language
        self.unchanged = set(plan.unchanged) if plan.mode == "incremental" else set()
        lessons = {lesson.source_file for lesson in survey.lessons}
        self.processed &= lessons  # not a file that broke or was removed since the last plan
        there = lessons | {problem.file for problem in survey.problems if problem.severity == "error"}
        self.deleted_files = (self.deleted_files | set(plan.deleted)) - there
        done = [problem for problem in self.problems if problem.file in self.processed]  # is not read again
        self.problems = [*survey.problems, *(problem for problem in done if problem not in survey.problems)]
        self.after = {chunk for record in records.values() for chunk in record.chunk_ids}
        if self.before is None:
            self.before = set(self.after)
        for intent in self.applying:
            if all(records.get(record.source_file) == record for record in intent.records):
                self.count_change(intent)
        self.applying = []

    def count_change(self, intent: Intent) -> None:
        """Count a replacement that was applied to the index."""
        self.chunks_written += len(intent.change.put)
        self.after -= set(intent.change.drop)
        self.after |= {chunk for record in intent.records for chunk in record.chunk_ids}
        self.processed |= {record.source_file for record in intent.records}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of this block under `name`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def job(self, status: JobStatus = "running", error_message: str | None = None) -> IngestionJob:
        """The job with the figures so far."""
        over = status in {"completed", "failed", "cancelled"}
        duration = time.monotonic() - self._started
        now = utc_now()
        before = self.before or set()
        errors = tuple(problem for problem in self.problems if problem.severity == "error")
        failed = {problem.file for problem in errors}  # each file counts once: failed, else processed, else skipped
        return IngestionJob(
            job_id=self.job_id,
            book_id=self.book_id,
            mode=self.mode,
            status=status,
            queued_at=self.queued_at,
            started_at=self.started_at,
            completed_at=now if over else None,
            duration_seconds=whole_seconds(self.started_at or now, now) if over else None,
            error_message=error_message,
            waiting_since=self.waiting[0] if self.waiting and not over else None,
            waiting_for=self.waiting[1] if self.waiting and not over else None,
            files_discovered=self.discovered,
            files_processed=len(self.processed - failed),
            files_skipped=len(self.unchanged - self.processed - failed),
            files_failed=len(failed),
            files_deleted=len(self.deleted_files),
            files_left_out=self.left_out,
            includes_read=self.includes[0],
            includes_failed=self.includes[1],
            language=self.language,
            chunks_created=len(self.after - before),
            chunks_deleted=len(before - self.after),
            chunks_kept=len(before & self.after),
            chunks_embedded=self.embedded,
            chunks_per_second=round(self.chunks_written / duration, 1) if over and duration else 0.0,
            stage_seconds={name: round(spent, 3) for name, spent in self.seconds.items()},
            warnings=tuple(problem for problem in self.problems if problem.severity == "warning"),
            errors=errors,
        )
