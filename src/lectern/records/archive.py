"""The archive of conversations: rows move between two tables of the same shape, and nothing is lost by ageing."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Delete, Insert, Table, bindparam, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from lectern.domain.failpoints import reached
from lectern.records.talk_tables import archived_messages, archived_turns, messages, turns

Way = tuple[Table, Table, str]  # from, to, and the column that says how far


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
    connection: AsyncConnection, way: Way, thread: int, *, upto: int | None = None, after: int | None = None
) -> None:
    bounds = {name: value for name, value in (("upto", upto), ("after", after)) if value is not None}
    for statement in _moving(way, frozenset(bounds)):
        await connection.execute(statement, {"of_thread": thread, **bounds})


@cache
def _moving(way: Way, bounds: frozenset[str]) -> tuple[Insert, Delete]:
    """Made once: from the 26th on, every turn of a talk moves an older one."""
    source, target, place = way
    which = source.c.thread == bindparam("of_thread")
    if "upto" in bounds:
        which &= source.c[place] <= bindparam("upto")
    if "after" in bounds:
        which &= source.c[place] > bindparam("after")
    names = [column.name for column in source.columns]
    return insert(target).from_select(names, select(source).where(which)), delete(source).where(which)
