"""Turns as the database stores them. JSON is written in ASCII, because PostgreSQL cannot store every character. A
damaged row reads as an empty one, and the log says so."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from lectern.domain.replies import LookUp
from lectern.domain.threads import Json, Message, Turn

log = logging.getLogger("lectern.store")


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
        "reply": json.dumps(dict(turn.reply)),
        "look_ups": json.dumps([dataclasses.asdict(look_up) for look_up in turn.look_ups]),
    }


def turn(row: Row[Any], messages: Mapping[int, Message]) -> Turn:
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
        number=row.number,
    )


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


def storable(text: str) -> str:
    """Text that both databases and UTF-8 can store; other characters become a replacement character."""
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def _read(body: str, empty: Any) -> Any:  # noqa: ANN401  # JSON is any of its types
    try:
        value = json.loads(body)
    except ValueError:
        log.warning("a stored turn cannot be read (it is not JSON); it is shown empty")
        return empty
    return value if isinstance(value, type(empty)) else empty
