"""A whole conversation as messages, those of tools and the instructions included, in the form that language models
take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lectern.domain.errors import BadInput
from lectern.domain.replies import ToolUse
from lectern.domain.threads import Message, ThreadHead, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A thread with every message, in order."""

    id: str
    messages: tuple[Message, ...]
    created_at: str
    model: str  # of the last reply

    def __post_init__(self) -> None:
        if not self.messages or self.messages[0].role != "system":
            raise BadInput("a conversation starts with a system message", field="messages")

    def to_openai_messages(self) -> list[dict[str, Any]]:
        """The messages in the form of OpenAI's Chat Completions."""
        return [_openai_message(message) for message in self.messages]


def conversation_of(head: ThreadHead, turns: Sequence[Turn]) -> Conversation:
    """The conversation in a thread. The instructions are those of the last turn: they hold for all of it."""
    last = turns[-1] if turns else None
    system = Message(role="system", content=last.instructions if last else "", timestamp=head.created_at)
    return Conversation(
        id=head.thread_id,
        messages=(system, *(message for turn in turns for message in messages_of(turn) if message.role != "system")),
        created_at=head.created_at,
        model=str(last.reply.get("model", "")) if last else "",
    )


def messages_of(turn: Turn) -> tuple[Message, ...]:
    """All messages of a turn: the instructions if they are known, the question, each tool call with its result, and
    the reply."""
    system = Message(role="system", content=turn.instructions, timestamp=turn.asked_at)
    question = Message(role="user", content=turn.question, timestamp=turn.asked_at, seq=2 * turn.number - 1)
    reply = Message(
        role="assistant",
        content=turn.answer,
        timestamp=turn.replied_at,
        confidence=turn.confidence,
        seq=2 * turn.number,
    )
    calls = [message for use in turn.tool_uses for message in _call_and_result(use)]
    return (*((system,) if turn.instructions else ()), question, *calls, reply)


def _call_and_result(use: ToolUse) -> tuple[Message, Message]:
    call = {"id": use.call_id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
    return (
        Message(role="assistant", content="", timestamp=use.timestamp, tool_calls=(call,)),
        Message(role="tool", content=use.output, timestamp=use.timestamp, name=use.name, tool_call_id=use.call_id),
    )


def tool_uses_of(messages: Sequence[Message]) -> tuple[ToolUse, ...]:
    """The tool calls among the messages of a turn, each with its result."""
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    calls = [call for message in messages for call in message.tool_calls or ()]
    return tuple(
        ToolUse(
            call_id=call["id"],
            name=call["function"]["name"],
            arguments=call["function"]["arguments"],
            output=results[call["id"]].content,
            timestamp=results[call["id"]].timestamp,
        )
        for call in calls
        if call["id"] in results
    )


def _openai_message(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        fields["tool_calls"] = [dict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return fields
