"""The archive of conversations: rows move between two tables of the same shape, and nothing is lost by ageing."""

from __future__ import annotations

from sqlalchemy import Table, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from lectern.domain.failpoints import reached
from lectern.records.talk_tables import archived_messages, archived_turns, messages, turns


async def put_away(connection: AsyncConnection, thread: int, upto: int | None) -> None:
    """Move messages up to a `seq`, or all, and the turns that are then not live any more."""
    if upto is not None and upto <= 0:
        return
    await _move(connection, (messages, archived_messages, "seq"), thread, upto=upto)
    reached("threads.archiving")
    await _move(connection, (turns, archived_turns, "number"), thread, upto=None if upto is None else upto // 2)


async def bring_back(connection: AsyncConnection, thread: int, after: int) -> None:
    """Move the messages after a `seq`, and their turns, to where they are live."""
    await _move(connection, (archived_messages, messages, "seq"), thread, after=after)
    await _move(connection, (archived_turns, turns, "number"), thread, after=after // 2)


async def _move(
    connection: AsyncConnection,
    way: tuple[Table, Table, str],
    thread: int,
    *,
    upto: int | None = None,
    after: int | None = None,
) -> None:
    source, target, place = way
    which = source.c.thread == thread
    if upto is not None:
        which &= source.c[place] <= upto
    if after is not None:
        which &= source.c[place] > after
    names = [column.name for column in source.columns]
    await connection.execute(insert(target).from_select(names, select(source).where(which)))
    await connection.execute(delete(source).where(which))
