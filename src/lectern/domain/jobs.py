"""One ingestion, from its plan to its report. The plan and the events are plain values: a dry run is a plan that is not
carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lectern.domain.books import LessonPlace, LessonSource, Problem
from lectern.domain.chunks import Change

Mode = Literal["incremental", "full", "recreate"]
JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
Origin = Literal["server", "terminal"]  # who carries a job on: only a server takes up again what a kill broke off
REPORT_TOTALS = ("files_left_out", "includes_read", "includes_failed", "language")  # known before a lesson is indexed
OPEN_STATUSES: frozenset[JobStatus] = frozenset({"queued", "running"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestionRecord:
    """What the ledger knows of one indexed file."""

    source_file: str
    file_hash: str
    digest: str
    place: LessonPlace
    parent_doc_id: str
    chunk_ids: tuple[str, ...]
    ingested_at: str
    page_title: str
    lesson_title: str
    chapter_title: str
    module_title: str
    url: str
    payload_digest: str  # of the chunks as they were put into the index
    terms: Mapping[int, int] | None = field(default=None, compare=False)  # in how many chunks each occurs; written only

    @property
    def chunk_count(self) -> int:
        """How many chunks of this file the index holds."""
        return len(self.chunk_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Lessons that change together: readers see all of it or nothing.

    Usually this is one file's new version for its old one. Lessons that swap places (a file inserted before them, two
    names exchanged) share ids while they change, so they are one replacement.
    """

    lessons: tuple[LessonSource, ...]  # as they will be in the index
    retired: tuple[IngestionRecord, ...]  # the records that they replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an ingestion will do, file by file."""

    mode: Mode
    replacements: tuple[Replacement, ...]
    new: tuple[str, ...]
    modified: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]  # (from, to): the same bytes under another path
    deleted: tuple[str, ...]
    unchanged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestionJob:
    """A job as programs see it, running or ended."""

    job_id: int
    book_id: str
    mode: Mode
    status: JobStatus
    queued_at: str
    started_at: str | None = None
    completed_at: str | None = None
    duration_seconds: int | None = None
    error_message: str | None = None
    waiting_since: str | None = None  # a server that the job needs does not answer; it goes on when that is back
    waiting_for: str | None = None  # what that server is, and what is wrong with it
    files_discovered: int = 0
    files_processed: int = 0
    files_skipped: int = 0
    files_failed: int = 0
    files_deleted: int = 0
    files_left_out: int = 0  # not published, or in a format that is not read; warnings name them
    includes_read: int = 0  # directives in lessons whose files are shown there
    includes_failed: int = 0
    language: str | None = None  # of the book, declared or noticed; None until the folder was read
    chunks_created: int = 0
    chunks_deleted: int = 0
    chunks_kept: int = 0
    chunks_embedded: int = 0
    chunks_per_second: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    errors: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """What a job was asked to do."""

    book_id: str
    folder: str  # where the book is read from
    source: str | None = None  # as a caller named it
    bound: bool = False  # the folder is a caller's choice, now or when the book came in: LECTERN_BOOKS must allow it
    mode: Mode = "incremental"
    replace: bool = False

    def same_work(self, order: JobOrder) -> bool:
        """Whether both orders ask for the same work, even in different words."""
        fields = (self.book_id, self.folder, self.mode, self.replace)
        return fields == (order.book_id, order.folder, order.mode, order.replace)

    def same_words(self, order: JobOrder) -> bool:
        """Whether one order could be a repeated request of the other."""
        fields = (self.book_id, self.source, self.mode, self.replace)
        return fields == (order.book_id, order.source, order.mode, order.replace)

    def in_words(self, message: str) -> str:
        """A message for callers, in which the folder is named as the caller named it."""
        return message.replace(self.folder, self.source or "the book's folder") if self.folder else message


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as the database stores it, whichever process runs it."""

    job: IngestionJob
    order: JobOrder
    owner: str
    origin: Origin
    attempts: int = 0  # how often it was begun; a graceful stop takes its own back
    cancelling: bool = False  # somebody asked for its end

    @property
    def open(self) -> bool:
        """Whether the job has not ended yet."""
        return self.job.status in OPEN_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a plan would do to the chunks of the book, by id."""

    add: int
    keep: int
    remove: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The folder was read and compared with the ledger."""

    job: IngestionJob
    plan: Plan
    forecast: Forecast | None = None  # of a dry run, which reads the lessons for it
    kind: Literal["planned"] = "planned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """Lessons are being read or embedded; about one event a second."""

    job: IngestionJob
    stage: Literal["read", "embed"]
    done: int  # files of the plan that are done, of `total`
    total: int
    share: float  # of the whole plan, 0 to 1; the lessons that are being embedded count in part
    kind: Literal["working"] = "working"


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsIndexed:
    """Another batch of lessons is in the index and in the ledger."""

    job: IngestionJob
    done: int  # files of the plan that are done, of `total`
    total: int
    kind: Literal["indexed"] = "indexed"

    @property
    def share(self) -> float:
        """The share of the plan that is done, 0 to 1."""
        return self.done / self.total if self.total else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The job has ended; its report is final."""

    job: IngestionJob
    kind: Literal["finished"] = "finished"


JobEvent = Planned | Working | LessonsIndexed | Finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A replacement written down before the index is changed, complete enough to be applied again after a crash."""

    change: Change
    records: tuple[IngestionRecord, ...]
    retired: tuple[str, ...]  # source files whose records go


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Intents that a killed process may or may not have applied."""

    number: int
    book_id: str
    collection: str
    intents: tuple[Intent, ...]
