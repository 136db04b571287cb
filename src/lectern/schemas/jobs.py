"""Jobs in requests and responses, under the names that the design gives them. A folder is named as the caller named it;
nothing else about the machine is disclosed."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from lectern.domain.errors import BadInput
from lectern.domain.jobs import REPORT_TOTALS, JobRecord, JobStatus, Mode, Planned
from lectern.schemas.common import Request, Response

MAX_JOB_ID = 2**31 - 1  # both databases can compare it


class IngestionRequest(Request):
    """What to ingest, and how."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"mode": "incremental"}, {"source": "robotics/docs", "dry_run": True}]}
    )

    mode: Mode = Field(
        default="incremental",
        description="`incremental`: what changed; `full`: every file again; `recreate`: nothing trusted.",
    )
    source: str | None = Field(
        default=None,
        min_length=1,
        max_length=1024,
        description="The book's folder, below one that LECTERN_BOOKS lists: absolute, or relative to one of those. May "
        "be left out for a book that is indexed: then it is read from where it was read before.",
    )
    dry_run: bool = Field(default=False, description="Say what would happen, and change nothing.")
    replace: bool = Field(default=False, description="Go on although the folder looks like another book.")


class FileProblem(Response):
    """What is wrong with a file, where, and how to fix it."""

    file: str
    line: int | None
    message: str
    severity: Literal["warning", "error"] = Field(description="An error costs the file its place in the index.")


class IngestionJob(Response):
    """One ingestion, queued to finished."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job_id": 7,
                    "book_id": "physical-ai-robotics",
                    "mode": "incremental",
                    "status": "completed",
                    "queued_at": "2025-12-17T14:23:45.123Z",
                    "started_at": "2025-12-17T14:23:45.131Z",
                    "completed_at": "2025-12-17T14:23:49.002Z",
                    "duration_seconds": 4,
                    "error_message": None,
                    "waiting_since": None,
                    "waiting_for": None,
                    "files_discovered": 38,
                    "files_processed": 2,
                    "files_skipped": 36,
                    "files_failed": 0,
                    "files_deleted": 0,
                    "files_left_out": 1,
                    "includes_read": 12,
                    "includes_failed": 0,
                    "language": "en",
                    "chunks_created": 5,
                    "chunks_deleted": 3,
                    "chunks_kept": 245,
                    "chunks_embedded": 6,
                    "chunks_per_second": 2.6,
                    "stage_seconds": {"read": 0.03, "embed": 0.41, "index": 0.09},
                    "warnings": [],
                    "errors": [],
                    "attempts": 1,
                }
            ]
        }
    )

    job_id: int
    book_id: str
    mode: Mode
    status: JobStatus
    queued_at: str
    started_at: str | None = Field(description="Null while it is queued.")
    completed_at: str | None = Field(description="Null until it has ended.")
    duration_seconds: int | None
    error_message: str | None = Field(description="Why it could not go on.")
    waiting_since: str | None = Field(
        default=None, description="Since when it waits for a server that it needs; null while it works."
    )
    waiting_for: str | None = Field(default=None, description="What that server is, and what is wrong with it.")
    files_discovered: int = Field(description="processed + skipped + failed, once it has ended.")
    files_processed: int
    files_skipped: int
    files_failed: int
    files_deleted: int
    files_left_out: int = Field(
        default=0, description="Not published, or in a format that is not read; warnings name them."
    )
    includes_read: int = Field(default=0, description="Directives in lessons whose files are shown there.")
    includes_failed: int = Field(default=0, description="Directives that could not be followed; warnings name them.")
    language: str | None = Field(
        default=None, description="Of the book: as the manifest declares it, else as its text is in; `und` if unknown."
    )
    chunks_created: int
    chunks_deleted: int
    chunks_kept: int
    chunks_embedded: int = Field(description="Texts that were sent to the embedder.")
    chunks_per_second: float
    stage_seconds: dict[str, float]
    warnings: list[FileProblem] = Field(description="Left out in lists.")
    errors: list[FileProblem] = Field(description="Left out in lists.")
    attempts: int = Field(description="How often it was begun: more than once where a server died on the way.")

    @classmethod
    def of(cls, record: JobRecord) -> Self:
        """A record as a response."""
        body = dataclasses.asdict(record.job)
        for name in ("error_message", "waiting_for"):
            if body[name]:
                body[name] = record.order.in_words(body[name])
        return cls(**body, attempts=record.attempts)


class IngestionPage(Response):
    """Jobs, the newest first."""

    jobs: list[IngestionJob]
    next_cursor: str | None

    @classmethod
    def of(cls, records: tuple[JobRecord, ...], limit: int) -> Self:
        """A page, from one record more than it shows."""
        page = [IngestionJob.of(record) for record in records[:limit]]
        more = len(records) > limit
        return cls(jobs=page, next_cursor=str(page[-1].job_id) if more else None)


def before_of(cursor: str | None) -> int | None:
    """The job number after which a page begins."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal()) or int(cursor) > MAX_JOB_ID:
        raise BadInput("this cursor was not given out here; begin without one", field="cursor")
    return int(cursor)


class PlannedChunks(Response):
    """What a plan would do to the chunks of the book."""

    add: int
    keep: int
    remove: int


class IngestionPlan(Response):
    """What an ingestion would do; nothing was changed."""

    book_id: str
    mode: Mode
    new: list[str]
    modified: list[str]
    moved: list[tuple[str, str]] = Field(description="From, to: the same file under another path.")
    deleted: list[str]
    unchanged: list[str]
    chunks: PlannedChunks
    files_left_out: int = Field(default=0, description="Not published, or in a format that is not read.")
    includes_read: int = 0
    includes_failed: int = 0
    language: str | None = None
    warnings: list[FileProblem]
    errors: list[FileProblem]

    @classmethod
    def of(cls, planned: Planned) -> Self:
        """The plan of a dry run."""
        plan = dataclasses.asdict(dataclasses.replace(planned.plan, replacements=()))  # how it will be done is large
        del plan["replacements"]
        assert planned.forecast is not None  # a dry run has one
        job = planned.job
        problems: dict[str, Any] = {
            "warnings": [dataclasses.asdict(problem) for problem in job.warnings],
            "errors": [dataclasses.asdict(problem) for problem in job.errors],
        }
        chunks = PlannedChunks(**dataclasses.asdict(planned.forecast))
        totals = {name: getattr(job, name) for name in REPORT_TOTALS}
        return cls(**plan, **problems, **totals, book_id=job.book_id, chunks=chunks)
