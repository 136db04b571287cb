"""Commands as values. The terminal makes one and runs it in its own process, or sends it to the server that owns the
home. `command_handlers` runs it in both cases. Nothing heavy is imported here. Each class says what its lines
contain."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

from lectern.domain.errors import BadInput
from lectern.domain.insights import DEFAULT_DAYS
from lectern.domain.jobs import Mode
from lectern.domain.keys import Right
from lectern.domain.scope import Scope, SearchMode

LOCAL_TOKEN_HEADER = "x-lectern-token"  # noqa: S105  # the header that lets a command of this machine in


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One SearchResponse."""

    text: str
    scope: Scope = field(default_factory=Scope)
    limit: int = 5
    mode: SearchMode = "hybrid"
    offset: int = 0
    expand: int = 0
    similarity_threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One ChatResponse."""

    text: str
    scope: Scope = field(default_factory=Scope)
    top_k: int | None = None
    similarity_threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChunks:
    """Every chunk of a book that the index really holds, a line each."""

    book: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBooks:
    """Every indexed book, a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveBook:
    """How many chunks were taken out with a book."""

    book: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOutline:
    """One outline."""

    book: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowLesson:
    """One whole lesson."""

    parent_doc_id: str
    book: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """A question, and whether the book answers it."""

    text: str
    answerable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrate:
    """The figures of a calibration."""

    book: str | None = None
    questions: tuple[JudgedQuestion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Every disagreement between index and ledger, and what the language model can do, a line each."""

    mend: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest:
    """The plan, then progress, then the job."""

    folder: str
    book: str | None = None
    mode: Mode = "incremental"
    dry_run: bool = False
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJobs:
    """Jobs, the newest first, a line each, without their warnings and errors."""

    limit: int = 20
    book: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowJob:
    """One job with its report."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """The job that was cancelled, or had ended before."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowJob:
    """The events of an ingestion until its end, a line each; the last has the job."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    """A job on the server; without a server it runs here and now."""

    book: str
    source: str | None = None
    mode: Mode = "incremental"
    replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateKey:
    """A new key with its text, the only time it is shown, and which of its books are not indexed yet."""

    name: str
    books: tuple[str, ...] = ()  # none: every book
    rights: tuple[Right, ...] = ("read", "chat")
    days: float | None = None
    origins: tuple[str, ...] = ()
    publishable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListKeys:
    """Every key without its text, a line each, the oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateKey:
    """The key with its new text, the only time it is shown."""

    key_id: str
    grace: float = 0.0
    days: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeKey:
    """The key, which is revoked now."""

    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKey:
    """The key as it was, and how many conversations were deleted with it."""

    key_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """The answer as it comes, then the ChatResponse."""

    thread_id: str
    text: str
    book: str | None = None
    filters: dict[str, Any] = field(default_factory=dict)  # under the names of a request; None clears one
    top_k: int | None = None
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListThreads:
    """The local owner's conversations, the most recently used first, a line each."""

    limit: int = 20
    query: str = ""
    book: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowThread:
    """One conversation with its last messages."""

    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportThread:
    """One whole conversation, as JSON or as a page of Markdown."""

    thread_id: str
    format: Literal["json", "markdown"] = "json"
    ephemeral: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteThread:
    """The id of the conversation that was deleted."""

    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeThreads:
    """How many conversations, of every owner, were deleted."""

    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowInsights:
    """One InsightsOut."""

    book: str | None = None
    days: int = DEFAULT_DAYS


BookCommand = (
    ListChunks | ListBooks | RemoveBook | ShowOutline | ShowLesson | Calibrate | Doctor | Ingest | ShowInsights
)
JobCommand = ListJobs | ShowJob | CancelJob | FollowJob | StartJob
KeyCommand = CreateKey | ListKeys | RotateKey | RevokeKey | DeleteKey
ThreadCommand = Chat | ListThreads | ShowThread | ExportThread | DeleteThread | PurgeThreads
Command = Search | Ask | BookCommand | JobCommand | KeyCommand | ThreadCommand

COMMANDS: dict[str, type[Command]] = {kind.__name__: kind for kind in Command.__args__}


def to_json(command: Command) -> dict[str, Any]:
    """A command's fields, as they are sent to a server."""
    return dataclasses.asdict(command)


def from_json(name: str, body: object) -> Command:
    """The command that was sent; an unknown command is an error."""
    from pydantic import TypeAdapter, ValidationError

    if name not in COMMANDS:
        raise BadInput(f"this server knows no command {name!r}; stop it and start the version that sent this")
    unknown = (
        set(body) - {field.name for field in dataclasses.fields(COMMANDS[name])} if isinstance(body, dict) else set()
    )
    if unknown:  # an option of a newer version must not be dropped without a word
        raise BadInput(
            f"this server knows no option {min(unknown)!r} of {name}; stop it and start the version that sent this"
        )
    try:
        command: Command = TypeAdapter(COMMANDS[name]).validate_python(body)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or name
        raise BadInput(f"{where}: {first['msg']}") from None
    return command
