"""Reads the stored turns of all owners, for insights. Each batch is one short query, so that other work on SQLite's one
connection waits for a batch at most. Replies are parsed in a thread, because twenty thousand of them are many
megabytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import BindParameter, Row, Select, Table, bindparam, desc, select, union_all
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.insights import PastTurn
from lectern.store import turn_bodies
from lectern.store.database import reading
from lectern.store.tables import archived_messages, archived_turns, messages, threads, turn_feedback, turns

BATCH_TURNS = 200
_PAIRS = ((turns, messages), (archived_turns, archived_messages))  # a turn is archived together with its messages


def _question_of(turn: Table, message: Table) -> Any:  # noqa: ANN401  # SQLAlchemy's own name for the type is long
    return (message.c.thread == turn.c.thread) & (message.c.seq == 2 * turn.c.number - 1)


def _runs_query() -> Select[Any]:
    """The runs of a book's turns since a moment, the newest first. A thread that was not used since then has none."""
    since: BindParameter[str] = bindparam("since")
    used_since: BindParameter[str] = bindparam("used_since")  # the same moment, in the type of another column
    parts = [
        select(turn.c.run_id, message.c.timestamp)
        .join_from(threads, turn, turn.c.thread == threads.c.number)
        .join(message, _question_of(turn, message))
        .where(
            threads.c.book_id == bindparam("of_book"), threads.c.updated_at >= used_since, message.c.timestamp >= since
        )
        for turn, message in _PAIRS
    ]
    whole = union_all(*parts).subquery()
    newest_first = (desc(whole.c.timestamp), desc(whole.c.run_id))
    return select(whole.c.run_id).order_by(*newest_first).limit(bindparam("most"))


def _turns_query() -> Select[Any]:
    """The turns of some runs, with what insights need of them."""
    parts = [
        select(
            turn.c.run_id,
            turn.c.refused,
            turn.c.standalone,
            turn.c.reply,
            message.c.timestamp.label("asked_at"),
            turn_feedback.c.rating,
            turn_feedback.c.reason,
            turn_feedback.c.comment,
        )
        .join_from(turn, message, _question_of(turn, message))
        .outerjoin(turn_feedback, (turn_feedback.c.thread == turn.c.thread) & (turn_feedback.c.turn == turn.c.number))
        .where(turn.c.run_id.in_(bindparam("runs", expanding=True)))
        for turn, message in _PAIRS
    ]
    whole = union_all(*parts).subquery()
    return select(whole).order_by(desc(whole.c.asked_at), desc(whole.c.run_id))


_RUNS_QUERY, _TURNS_QUERY = _runs_query(), _turns_query()


class SqlTurnHistory:
    """The stored turns of every owner, in the SQL database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def turns(self, book_id: str, since: str, limit: int) -> AsyncIterator[Sequence[PastTurn]]:
        """The turns about a book since a moment, the newest first and at most `limit`, in batches. A turn that is
        deleted meanwhile is left out."""
        async with reading(self._engine) as connection:
            parameters = {"of_book": book_id, "since": since, "used_since": since, "most": limit}
            run_ids = (await connection.execute(_RUNS_QUERY, parameters)).scalars().all()
        for start in range(0, len(run_ids), BATCH_TURNS):
            async with reading(self._engine) as connection:
                batch = run_ids[start : start + BATCH_TURNS]
                rows = (await connection.execute(_TURNS_QUERY, {"runs": batch})).all()
            yield await asyncio.to_thread(_past_turns, rows)


def _past_turns(rows: Sequence[Row[Any]]) -> list[PastTurn]:
    return [
        PastTurn(
            asked_at=row.asked_at,
            question=row.standalone,
            refused=bool(row.refused),
            reply=turn_bodies.read_object(row.reply),
            feedback=turn_bodies.feedback(row) if row.rating else None,
        )
        for row in rows
    ]
