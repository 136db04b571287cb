"""Whether the database itself is sound: the pages of the file, the references between tables, and the values in the
rows. PostgreSQL checks its own pages, so only SQLite is examined."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sqlalchemy import text
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.errors import ConfigError
from lectern.store.tables import metadata

Check = Callable[[AsyncConnection], Awaitable[list[str]]]
MAX_FAULTS = 10  # of one kind; a damaged page often has hundreds
JSON_COLUMNS = (
    ("books", "manifest"),
    ("lessons", "chunk_ids"),
    ("conversation_threads", "metadata"),
    ("conversation_threads", "filters"),
    *((table, column) for table in ("turns", "archived_turns") for column in ("reply", "look_ups", "transcript")),
)


async def database_faults(engine: AsyncEngine) -> list[str]:
    """What is wrong with the database, in words; nothing if it is sound."""
    if engine.dialect.name != "sqlite":
        return []
    checks: list[Check] = [
        _pages,
        _references,
        *(_readable(table) for table in metadata.tables),
        *map(_json, JSON_COLUMNS),
    ]
    faults: list[str] = []
    for check in checks:
        try:
            async with engine.connect() as connection:
                faults += await check(connection)
        except (DatabaseError, ConfigError, UnicodeError, ValueError) as exc:
            reason = exc.orig if isinstance(exc, DatabaseError) else type(exc).__name__
            faults.append(f"a check could not be finished ({reason})")
    return list(dict.fromkeys(faults))


async def _pages(connection: AsyncConnection) -> list[str]:
    lines = (await connection.execute(text(f"PRAGMA quick_check({MAX_FAULTS})"))).scalars()
    return [str(line).splitlines()[0] for line in lines if line != "ok"]


async def _references(connection: AsyncConnection) -> list[str]:
    rows = (await connection.execute(text("PRAGMA foreign_key_check"))).all()
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        counts[row[0], row[2]] = counts.get((row[0], row[2]), 0) + 1
    return [f"{count} rows of {table} refer to no row of {other}" for (table, other), count in counts.items()]


def _readable(table: str) -> Check:
    async def check(connection: AsyncConnection) -> list[str]:
        rows = await connection.stream(text(f'SELECT * FROM "{table}"'))  # noqa: S608  # our own name
        async for _ in rows:
            pass
        return []

    return check


def _json(place: tuple[str, str]) -> Check:
    table, column = place

    async def check(connection: AsyncConnection) -> list[str]:
        query = f"SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND NOT json_valid({column})"  # noqa: S608  # our names
        count = (await connection.execute(text(query))).scalar() or 0
        return [f"{count} rows of {table} have a {column} that cannot be read"] if count else []

    return check
