"""Turns as the database stores them. JSON is written in ASCII, because PostgreSQL cannot store every character. A
damaged row reads as an empty one, and the log says so."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from lectern.domain.clock import utc_now
from lectern.domain.replies import LookUp, ToolUse
from lectern.domain.threads import Feedback, Json, Message, Turn

log = logging.getLogger("lectern.store")
_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)  # half a character, or the half of a pair, as JSON writes it


def message(row: Row[Any]) -> Message:
    """The message in a row."""
    return Message(seq=row.seq, role=row.role, content=row.content, timestamp=row.timestamp, confidence=row.confidence)


def message_rows(thread: int, seq: int, turn: Turn) -> list[dict[str, Any]]:
    """The two messages of a turn, after a `seq`."""
    shared = {"thread": thread, "confidence": None}
    question = {"seq": seq + 1, "role": "user", "content": storable(turn.question), "timestamp": turn.asked_at}
    answer = {"seq": seq + 2, "role": "assistant", "content": storable(turn.answer), "timestamp": turn.replied_at}
    return [{**shared, **question}, {**shared, **answer, "confidence": turn.confidence}]


def turn_row(thread: int, number: int, turn: Turn) -> dict[str, Any]:
    """The row of a turn, without its messages."""
    return {
        "thread": thread,
        "number": number,
        "run_id": turn.run_id,
        "refused": int(turn.refused),
        "standalone": storable(turn.standalone),
        "reply": _written(dict(turn.reply)),
        "look_ups": _written([dataclasses.asdict(look_up) for look_up in turn.look_ups]),
        "transcript": _written(
            {"instructions": turn.instructions, "tool_uses": [dataclasses.asdict(use) for use in turn.tool_uses]}
        ),
    }


def turn(row: Row[Any], messages: Mapping[int, Message], feedback: Feedback | None = None) -> Turn:
    """The turn in a row, with its messages by `seq`."""
    question, answer = messages[2 * row.number - 1], messages[2 * row.number]
    return Turn(
        run_id=row.run_id,
        question=question.content,
        standalone=row.standalone,
        answer=answer.content,
        refused=bool(row.refused),
        confidence=answer.confidence or 0.0,
        asked_at=question.timestamp,
        replied_at=answer.timestamp,
        reply=read_object(row.reply),
        look_ups=look_ups(row.look_ups),
        instructions=str(read_object(row.transcript).get("instructions", "")),
        tool_uses=tool_uses(row.transcript),
        number=row.number,
        feedback=feedback,
    )


def feedback(row: Row[Any]) -> Feedback:
    """The feedback in a row."""
    return Feedback(rating=row.rating, reason=row.reason, comment=row.comment)


def feedback_row(thread: int, number: int, feedback: Feedback) -> dict[str, Any]:
    """The row of the feedback on a turn."""
    return {"thread": thread, "turn": number, "given_at": utc_now(), **dataclasses.asdict(feedback)}


def read_object(body: str) -> Json:
    """A JSON object: a reply as it was shown, a thread's filters or metadata."""
    fields: Json = _read(body, {})
    return fields


def look_ups(body: str) -> tuple[LookUp, ...]:
    """The look-ups of a turn, from JSON."""
    try:
        return tuple(LookUp(**fields) for fields in _read(body, []))
    except TypeError:
        log.warning("a stored turn has look-ups that cannot be read; they are left out")
        return ()


def tool_uses(body: str) -> tuple[ToolUse, ...]:
    """The tool calls in a turn's transcript."""
    try:
        return tuple(ToolUse(**fields) for fields in read_object(body).get("tool_uses", ()))
    except TypeError:
        log.warning("a stored turn has tool calls that cannot be read; they are left out")
        return ()


def storable(text: str) -> str:
    """Text that both databases and UTF-8 can store; other characters become a replacement character."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def _written(value: object) -> str:
    """A value as JSON that any program can read: half a character would be refused for ever by whoever reads it."""
    return json.dumps(_readable(json.dumps(value)))


def _readable(body: str) -> Any:  # noqa: ANN401  # JSON is any of its types
    """The value of a JSON text, with a replacement character for half a character, which older versions stored."""
    value = json.loads(body)
    if _HALF.search(body) is None:
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _read(body: str, empty: Any) -> Any:  # noqa: ANN401  # JSON is any of its types
    try:
        value = _readable(body)
    except ValueError:
        log.warning("a stored turn cannot be read (it is not JSON); it is shown empty")
        return empty
    return value if isinstance(value, type(empty)) else empty
