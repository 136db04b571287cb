"""A conversation: turns, each a question and its reply, numbered within their thread. A turn is stored completely or
not at all. A failed turn leaves a line in the turn log and nothing in the conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from lectern.domain.errors import BadInput
from lectern.domain.replies import LookUp
from lectern.domain.scope import refuse_undecodable

Role = Literal["user", "assistant"]
RunState = Literal["running", "replied", "error", "cancelled", "interrupted"]
LIVE_MESSAGES = 50  # of a thread; older ones are read from the archive
SUMMARY_FROM = 5  # exchanges
SUMMARY_LENGTH = 200  # characters
TITLE_LENGTH = 200
MAX_AUTO_TITLE_LENGTH = 80  # of a title made from the first question
METADATA_BYTES = 4096
METADATA_DEPTH = 20
LOCAL_OWNER = "local"  # of every thread while no key exists, and of the terminal's

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What was said, and by whom; `seq` is its place in the thread."""

    seq: int
    role: Role
    content: str
    timestamp: str
    confidence: float | None = None  # of an assistant's


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadHead:
    """A thread without its messages."""

    thread_id: str
    book_id: str
    title: str
    topic_summary: str | None
    metadata: Json
    filters: Json  # of its last turn, under the names that requests use
    created_at: str
    updated_at: str
    turn_count: int
    archived: bool
    version: int  # counts changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its reply, as they are stored."""

    run_id: str
    question: str
    standalone: str
    answer: str
    refused: bool
    confidence: float
    asked_at: str
    replied_at: str
    reply: Json  # as it was shown
    look_ups: tuple[LookUp, ...] = ()
    number: int = 0  # within its thread, from 1; given when it is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread as it is read: its head, a page of messages, and what was looked up for them."""

    head: ThreadHead
    messages: tuple[Message, ...]
    retrieval_history: tuple[LookUp, ...]
    earlier: int | None  # the `before` of the page before this one


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """Threads, newest first."""

    heads: tuple[ThreadHead, ...]
    cursor: str | None  # of the next page


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt at a turn, as the turn log stores it."""

    run_id: str
    owner: str
    thread_id: str
    question: str
    state: RunState
    error: str | None
    digest: str  # of the request, so that one key is not used for two
    begun_at: str
    ended_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEdit:
    """What an owner may change; None leaves it."""

    title: str | None = None
    metadata: Json | None = None
    version: int | None = None  # the one that was read; another is a conflict

    def __post_init__(self) -> None:
        if self.title is not None:
            check_text(self.title, "title")
            if not 1 <= len(self.title.strip()) <= TITLE_LENGTH:
                raise BadInput(f"a title has 1 to {TITLE_LENGTH} characters", field="title")
        if self.metadata is not None:
            check_metadata(self.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a thread's first turn fixes for all later ones."""

    book_id: str
    title: str
    metadata: Json = field(default_factory=dict)


def check_metadata(metadata: Json) -> None:
    """Refuse metadata that is more than 4 KiB of JSON or cannot be returned as it came."""
    try:
        size = len(json.dumps(dict(metadata), allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):  # a number that is none, text that is no UTF-8, too deep
        raise BadInput("metadata must be plain JSON: finite numbers, valid text", field="metadata") from None
    if size > METADATA_BYTES:
        raise BadInput(f"metadata may have {METADATA_BYTES} bytes as JSON, this has {size}", field="metadata")
    if _depth(metadata) > METADATA_DEPTH:
        raise BadInput(f"metadata may be nested {METADATA_DEPTH} deep", field="metadata")


def _depth(value: object) -> int:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + max((_depth(child) for child in inner), default=0)


def check_text(text: str, field_: str) -> None:
    """Refuse text that a database cannot store."""
    refuse_undecodable(text, field_)
    if "\x00" in text:
        raise BadInput(f"{field_} holds a NUL character; send plain text", field=field_)


def title_of(question: str) -> str:
    """The first question, shortened."""
    line = " ".join(question.split())
    if len(line) <= MAX_AUTO_TITLE_LENGTH:
        return line
    return line[: MAX_AUTO_TITLE_LENGTH - 1].rsplit(" ", 1)[0].rstrip(" ,.;:") + "…"


def checked_id(thread_id: str) -> str:
    """A thread's id, checked to be a UUID of version 4."""
    try:
        uuid = UUID(thread_id)
    except ValueError:
        uuid = None
    if uuid is None or uuid.version != 4:  # noqa: PLR2004  # by its name
        raise BadInput(f"{thread_id!r} is no thread id; it must be a UUID of version 4", field="session_id")
    return str(uuid)
