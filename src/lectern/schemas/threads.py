"""Conversations in requests and responses, under the names that the design gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from pydantic import ConfigDict, Field

from lectern.domain.threads import TITLE_LENGTH, Message, Role, Thread, ThreadEdit, ThreadHead, ThreadPage, Turn
from lectern.schemas.common import Metadata, Request, Response


class MessageOut(Response):
    """One message of a conversation."""

    role: Role
    content: str
    timestamp: str
    confidence: float | None = Field(default=None, description="Of an assistant's message.")
    seq: int = Field(description="Its place in the thread, from 1.")

    @classmethod
    def of(cls, message: Message) -> Self:
        """The message as the design has it."""
        return cls.model_validate(message, from_attributes=True)


class LookUpOut(Response):
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


class ThreadOut(ThreadHeadOut):
    """A conversation with a page of its messages."""

    filters: dict[str, Any] = Field(description="Of the last turn; the next one keeps those it leaves out.")
    messages: list[MessageOut]
    retrieval_history: list[LookUpOut]
    before: int | None = Field(description="`before` of the page of older messages; null on the first.")

    @classmethod
    def of(cls, thread: Thread) -> Self:
        """The thread as the design has it."""
        return cls(**_parts(thread))


class TurnOut(Response):
    """A turn as it was shown."""

    run_id: str
    question: str
    reply: dict[str, Any] = Field(description="The ChatResponse.")


class ExportOut(ThreadOut):
    """A whole conversation."""

    turns: list[TurnOut]

    @classmethod
    def of_turns(cls, thread: Thread, turns: Sequence[Turn]) -> Self:
        """The thread with every reply in full."""
        replies = [TurnOut(run_id=turn.run_id, question=turn.question, reply=dict(turn.reply)) for turn in turns]
        return cls(**_parts(thread), turns=replies)


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
        "messages": [MessageOut.of(message) for message in thread.messages],
        "retrieval_history": [
            LookUpOut.model_validate(look_up, from_attributes=True) for look_up in thread.retrieval_history
        ],
        "before": thread.earlier,
    }
