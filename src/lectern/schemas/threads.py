"""Conversations in requests and responses, under the names that the design gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from pydantic import ConfigDict, Field

from lectern.domain.conversation import messages_of
from lectern.domain.threads import (
    TITLE_LENGTH,
    FeedbackReason,
    Rating,
    Role,
    Thread,
    ThreadEdit,
    ThreadHead,
    ThreadPage,
    Turn,
)
from lectern.domain.threads import Message as DomainMessage
from lectern.schemas.common import Metadata, Request, Response


class Message(Response):
    """One message of a conversation."""

    role: Role
    content: str
    timestamp: str
    confidence: float | None = Field(default=None, description="Of an assistant's message.")
    seq: int = Field(description="Its place in the thread, from 1; 0 for messages between a question and its reply.")
    name: str | None = Field(default=None, description="Of a tool's message: the tool.")
    tool_calls: list[dict[str, Any]] | None = Field(default=None, description="Of an assistant that calls tools.")
    tool_call_id: str | None = Field(default=None, description="Of a tool's message: the call that it answers.")

    @classmethod
    def of(cls, message: DomainMessage) -> Self:
        """The message as the design has it."""
        return cls.model_validate(message, from_attributes=True)


class ToolCall(Response):
    """One retrieval of a turn."""

    tool_name: str
    query: str
    results_count: int
    avg_similarity: float
    timestamp: str


class ThreadHeadOut(Response):
    """A conversation without its messages."""

    thread_id: str
    book_id: str
    title: str
    topic_summary: str | None
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    turn_count: int
    archived: bool = Field(description="Moved to the archive, because it was not used for an hour; read as before.")
    version: int

    @classmethod
    def of_head(cls, head: ThreadHead) -> Self:
        """The head as lists show it."""
        return cls.model_validate(head, from_attributes=True)


class ConversationThread(ThreadHeadOut):
    """A conversation with a page of its messages."""

    filters: dict[str, Any] = Field(description="Of the last turn; the next one keeps those it leaves out.")
    messages: list[Message]
    retrieval_history: list[ToolCall]
    before: int | None = Field(description="`before` of the page of older messages; null on the first.")

    @classmethod
    def of(cls, thread: Thread) -> Self:
        """The thread as the design has it."""
        return cls(**_parts(thread))


class FeedbackOut(Response):
    """What the reader thought of a reply."""

    rating: Rating
    reason: FeedbackReason | None
    comment: str


class TurnOut(Response):
    """A turn as it was shown."""

    run_id: str
    question: str
    reply: dict[str, Any] = Field(description="The ChatResponse.")
    number: int = Field(description="Its place in the thread, from 1.")
    feedback: FeedbackOut | None
    messages: list[Message] = Field(
        default_factory=list,
        description="Everything that was said in the turn: tool calls and their results for a key with the right "
        "`read`, the instructions for one with `admin`.",
    )

    @classmethod
    def of(cls, turn: Turn) -> Self:
        """A turn as a response."""
        feedback = turn.feedback and FeedbackOut.model_validate(turn.feedback, from_attributes=True)
        return cls(
            run_id=turn.run_id,
            question=turn.question,
            reply=dict(turn.reply),
            number=turn.number,
            feedback=feedback,
            messages=[Message.of(message) for message in messages_of(turn)],
        )


class ExportOut(ConversationThread):
    """A whole conversation."""

    turns: list[TurnOut]

    @classmethod
    def of_turns(cls, thread: Thread, turns: Sequence[Turn]) -> Self:
        """The thread with every reply in full."""
        return cls(**_parts(thread), turns=[TurnOut.of(turn) for turn in turns])


class ThreadPageOut(Response):
    """Conversations, the most recently used first."""

    threads: list[ThreadHeadOut]
    next_cursor: str | None

    @classmethod
    def of(cls, page: ThreadPage) -> Self:
        """One page."""
        return cls(threads=[ThreadHeadOut.of_head(head) for head in page.heads], next_cursor=page.cursor)


class ThreadEditIn(Request):
    """What may be changed; a field that is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"title": "URDF", "metadata": {"tags": ["ros2"]}}]})

    title: str | None = Field(default=None, min_length=1, max_length=TITLE_LENGTH)
    metadata: Metadata | None = Field(default=None, description="At most 4 KiB as JSON.")

    def change(self, version: int | None) -> ThreadEdit:
        """The request as a `ThreadEdit`."""
        return ThreadEdit(title=self.title, metadata=self.metadata, version=version)


def _parts(thread: Thread) -> dict[str, Any]:
    head = ThreadHeadOut.of_head(thread.head).model_dump()
    return {
        **head,
        "filters": dict(thread.head.filters),
        "messages": [Message.of(message) for message in thread.messages],
        "retrieval_history": [
            ToolCall.model_validate(look_up, from_attributes=True) for look_up in thread.retrieval_history
        ],
        "before": thread.earlier,
    }
