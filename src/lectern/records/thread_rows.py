"""Rows of conversations: found within their owner, live or archived, and read as values. Statements that every turn
needs are made once: to put one together takes longer than SQLite takes to carry it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Row, Select, Subquery, Table, bindparam, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from lectern.domain.errors import UnknownThread
from lectern.domain.threads import Message, ThreadHead
from lectern.records import turn_bodies
from lectern.records.talk_tables import archived_messages, archived_turns, messages, threads, turns


async def row_of(connection: AsyncConnection, owner: str, thread_id: str, *, lock: bool = False) -> Row[Any] | None:
    """A thread's row, if this owner has it; locked until the transaction ends, if it is to be changed."""
    query = _LOCKED_THREAD if lock else _THREAD
    return (await connection.execute(query, {"of_owner": owner, "of_thread": thread_id})).first()


async def known_row(connection: AsyncConnection, owner: str, thread_id: str, *, lock: bool = False) -> Row[Any]:
    """The same of a thread that must be there."""
    row = await row_of(connection, owner, thread_id, lock=lock)
    if row is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", field="thread_id")
    return row


async def said_in(connection: AsyncConnection, number: int, first: int) -> dict[int, Message]:
    """Messages by their `seq`, from a turn on."""
    found = await connection.execute(_SAID, {"of_thread": number, "from_seq": 2 * first - 1})
    return {row.seq: turn_bodies.message(row) for row in found}


async def turn_rows(connection: AsyncConnection, number: int, span: tuple[int, int]) -> Sequence[Row[Any]]:
    """Turns from one number to another, in order."""
    asked = {"of_thread": number, "first": span[0], "last": span[1]}
    found: Sequence[Row[Any]] = (await connection.execute(_TURNS, asked)).all()
    return found


def turns_of(seqs: Sequence[int]) -> tuple[int, int]:
    """The turns that messages belong to: each has two."""
    return ((seqs[0] + 1) // 2, (seqs[-1] + 1) // 2) if seqs else (1, 0)


def both(live: Table, archived: Table) -> Subquery:
    """A table and its archive as one."""
    parts: list[Select[Any]] = [select(live), select(archived)]
    return union_all(*parts).subquery()


def _said() -> Select[Any]:
    whole = both(messages, archived_messages)
    mine = (whole.c.thread == bindparam("of_thread")) & (whole.c.seq >= bindparam("from_seq"))
    return select(whole).where(mine).order_by(whole.c.seq)


def _turns() -> Select[Any]:
    whole = both(turns, archived_turns)
    mine = whole.c.number.between(bindparam("first"), bindparam("last"))
    return select(whole).where(whole.c.thread == bindparam("of_thread"), mine).order_by(whole.c.number)


def is_thread(
    owner: str | BindParameter[str], thread_id: str | BindParameter[str]
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Of threads: this one of this owner's."""
    return threads.c.owner == owner, threads.c.thread_id == thread_id


def head_of(row: Row[Any]) -> ThreadHead:
    """A thread without its messages."""
    return ThreadHead(
        thread_id=row.thread_id,
        book_id=row.book_id,
        title=row.title,
        topic_summary=row.topic_summary,
        metadata=turn_bodies.read_object(row.metadata),
        filters=turn_bodies.read_object(row.filters),
        created_at=row.created_at,
        updated_at=row.updated_at,
        turn_count=row.turn_count,
        archived=bool(row.archived),
        version=row.version,
    )


_THREAD = select(threads).where(*is_thread(bindparam("of_owner"), bindparam("of_thread")))
_LOCKED_THREAD = _THREAD.with_for_update()
_SAID, _TURNS = _said(), _turns()
