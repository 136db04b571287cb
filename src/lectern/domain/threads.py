"""A conversation: turns, each a question and its reply, numbered within their thread. A turn is stored completely or
not at all. A failed turn leaves a line in the turn log and nothing in the conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from uuid import UUID

from lectern.domain.errors import BadInput
from lectern.domain.replies import LookUp, ToolUse
from lectern.domain.scope import refuse_undecodable

Role = Literal["system", "user", "assistant", "tool"]
Rating = Literal["up", "down"]
FeedbackReason = Literal["wrong", "incomplete", "off_topic", "hard_to_read", "other"]
RunState = Literal["running", "replied", "error", "cancelled", "interrupted"]
LIVE_MESSAGES = 50  # of a thread; older ones are read from the archive
SUMMARY_FROM = 5  # exchanges
SUMMARY_LENGTH = 200  # characters
TITLE_LENGTH = 200
MAX_AUTO_TITLE_LENGTH = 80  # of a title made from the first question
MAX_QUERY, MAX_QUERY_WORDS = 200, 12  # characters and words of a search for conversations
COMMENT_LENGTH = 500  # of the feedback on a turn
METADATA_BYTES = 4096
METADATA_DEPTH = 20
LOCAL_OWNER = "local"  # of every thread while no key exists, and of the terminal's

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What was said, and by whom."""

    role: Role
    content: str
    timestamp: str
    confidence: float | None = None  # of an assistant's
    seq: int = 0  # place among the thread's questions and replies, from 1; 0 for messages in between
    name: str | None = None  # the tool's
    tool_calls: tuple[Json, ...] | None = None  # of an assistant's that calls tools
    tool_call_id: str | None = None  # of a tool's: the call that it answers

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise BadInput(f"a role is one of {', '.join(get_args(Role))}, not {self.role!r}", field="role")
        if self.role == "user" and not self.content.strip():
            raise BadInput("a user's message must not be empty", field="content")
        if self.tool_calls is not None and self.role != "assistant":
            raise BadInput("only an assistant's message has tool_calls", field="tool_calls")
        for field_ in ("name", "tool_call_id"):
            if getattr(self, field_) is not None and self.role != "tool":
                raise BadInput(f"only a tool's message has {field_}", field=field_)


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
class Feedback:
    """What a reader thinks of a reply: a thumb up or down, and for the latter a reason."""

    rating: Rating
    reason: FeedbackReason | None = None
    comment: str = ""

    def __post_init__(self) -> None:
        if self.rating not in get_args(Rating):
            raise BadInput(f"a rating is up or down, not {self.rating!r}", field="rating")
        if self.reason is not None and self.reason not in get_args(FeedbackReason):
            raise BadInput(f"reason must be one of {', '.join(get_args(FeedbackReason))}", field="reason")
        if self.reason is not None and self.rating == "up":
            raise BadInput("only a thumb down has a reason; leave it out", field="reason")
        check_text(self.comment, "comment")
        if len(self.comment) > COMMENT_LENGTH:
            raise BadInput(f"a comment has at most {COMMENT_LENGTH} characters", field="comment")


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
    instructions: str = ""  # the system message
    tool_uses: tuple[ToolUse, ...] = ()
    number: int = 0  # within its thread, from 1; given when it is kept
    feedback: Feedback | None = None


def doubtful_claims(reply: Json) -> list[Json]:
    """The doubtful claims of a reply as it was shown."""
    statements = reply.get("statements")
    rows = statements if isinstance(statements, list) else ()
    return [row for row in rows if isinstance(row, dict) and row.get("verdict") == "doubtful"]


def without_doubtful(answer: str, reply: Json) -> str:
    """An answer without its doubtful claims: a later answer must not rest on them."""
    parts: list[str] = []
    end = 0
    for claim in doubtful_claims(reply):
        start, stop = claim.get("start"), claim.get("end")
        if not isinstance(start, int) or not isinstance(stop, int) or start < end:
            continue  # a damaged row
        if answer[start:stop] == claim.get("text"):
            parts.append(answer[end:start])
            end = stop
    return "".join([*parts, answer[end:]]).strip()


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
    if _has_nul(metadata):
        raise BadInput("metadata holds a NUL character; send plain text", field="metadata")


def _has_nul(value: object) -> bool:
    """Whether a text in a JSON value has a character that PostgreSQL cannot store."""
    if isinstance(value, Mapping):
        return any(_has_nul(part) for pair in value.items() for part in pair)
    return any(map(_has_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\x00" in value


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


def query_words(query: str) -> tuple[str, ...]:
    """The words that a conversation is searched for."""
    refuse_undecodable(query, "query")
    if len(query) > MAX_QUERY or "\0" in query:
        raise BadInput(f"a query has at most {MAX_QUERY} characters, and no control characters", field="query")
    words = tuple(dict.fromkeys(query.split()))
    if len(words) > MAX_QUERY_WORDS:
        raise BadInput(f"a query has at most {MAX_QUERY_WORDS} words, not {len(words)}", field="query")
    return words
