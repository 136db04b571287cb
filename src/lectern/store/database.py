"""The SQL database: opened once, one write connection on SQLite, migrated before anybody reads it.

SQLite before 3.51.3 can damage a WAL file when two connections meet in a checkpoint. So SQLite has one process (the
owner of LECTERN_HOME) and one connection here.

Connections, with the database's own errors turned into ours: a store that does not answer is a 503, and nothing of
the transaction was kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from lectern.domain.errors import ConfigError, StoreUnavailable
from lectern.domain.extras import import_extra
from lectern.store import inline_sqlite
from lectern.store.inline_sqlite import LONG

NOTE = "lectern_note"  # the option of an engine whose transactions are notes
HEAD = "0003"  # the newest migration; a test holds it against the folder
MIGRATING = 0x1EC7E24  # the name of the lock under which one process migrates while the others wait
ONE: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": 60}
SEVERAL: dict[str, Any] = {"pool_size": 10, "max_overflow": 20, "pool_timeout": 10, "pool_pre_ping": True}
OURS = (IntegrityError, DataError, ProgrammingError)  # about what was asked, not about the database


@asynccontextmanager
async def open_database(url: URL) -> AsyncIterator[AsyncEngine]:
    """An engine whose tables are those of this version."""
    alone = url.get_backend_name() == "sqlite"
    engine = create_async_engine(url, **(ONE if alone else SEVERAL))
    try:
        if alone:
            event.listen(engine.sync_engine, "connect", _prepare_sqlite)
            event.listen(engine.sync_engine, "begin", _begin_sqlite)
        try:
            await _whole(_migrate(engine))
        except (DBAPIError, OSError) as exc:
            raise ConfigError(_unusable(url, exc, alone=alone)) from exc
        yield engine
    except DatabaseError as exc:
        if not alone:
            raise
        raise ConfigError(_unusable(url, exc, alone=alone)) from exc
    finally:
        await engine.dispose()
        if isinstance(engine.dialect, inline_sqlite.InlineSqlite):
            engine.dialect.close()


def _unusable(url: URL, exc: DBAPIError | OSError, *, alone: bool) -> str:
    said = exc.orig if isinstance(exc, DBAPIError) else exc.strerror or exc
    if not alone:
        return (
            f"the database {url.database!r} at {url.host or 'its socket'} cannot be used ({said}); check DATABASE_URL"
        )
    return (
        f"the database {url.database} cannot be used ({said}). If it is damaged, move it away, together with "
        "the index folder beside it, and ingest your books again"
    )


def database_url(given: str) -> URL:
    """A PostgreSQL address as people write it, for the driver that is used here."""
    try:
        url = make_url(given)
    except ArgumentError:
        raise ConfigError("DATABASE_URL is no address; write postgresql://user:password@host:5432/name") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise ConfigError(
            f"DATABASE_URL names {url.get_backend_name()!r}; only postgresql:// is known. Without it, SQLite is used"
        )
    import_extra("asyncpg", extra="server", setting="DATABASE_URL")
    query = dict(url.query)
    if mode := query.pop("sslmode", None):
        query["ssl"] = mode  # the driver's word for it
    return url.set(drivername="postgresql+asyncpg", query=query)


def sqlite_url(path: Path | None) -> URL:
    """The URL of a SQLite file, whatever characters its path has; None for one that is in memory only."""
    return URL.create(inline_sqlite.NAME, database=":memory:" if path is None else str(path))


def _begin_sqlite(connection: Connection) -> None:
    """What is only a note, such as that a turn has begun, need not survive a power cut; a kill it does."""
    level = "NORMAL" if connection.get_execution_options().get(NOTE) else "FULL"
    if connection.info.get("synchronous", "FULL") != level:
        connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        connection.info["synchronous"] = level
    connection.exec_driver_sql("BEGIN")


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401  # a DB-API connection
    connection.isolation_level = (
        None  # else the driver commits before every CREATE, and a killed migration is half done
    )
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Not broken off in the middle: a connection that was being made would be left to nobody."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _migrate(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        found = await connection.run_sync(_version)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise ConfigError(
            f"the database is at schema {found}, newer than this Lectern's {HEAD}; "
            "use the Lectern that wrote it, or a newer one"
        )
    await _upgrade(engine)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


async def _upgrade(engine: AsyncEngine) -> None:
    from alembic import command
    from alembic.config import Config

    def run(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", "lectern.store:migrations")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    async with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATING})"))
        await connection.run_sync(run)


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """All of what is done with it, or nothing."""
    async with speaking(), engine.begin() as connection:
        yield connection


@asynccontextmanager
async def reading(engine: AsyncEngine, *, much: bool = False) -> AsyncIterator[AsyncConnection]:
    """For looking, not for changing. `much` says that there may be thousands of rows."""
    async with speaking(), engine.connect() as connection:
        yield await connection.execution_options(**{LONG: True}) if much else connection


@asynccontextmanager
async def speaking() -> AsyncIterator[None]:
    """Around whatever talks to the database."""
    try:
        yield
    except OURS:
        raise
    except (DBAPIError, PoolExhausted, OSError) as exc:
        raise StoreUnavailable("the database does not answer; nothing was changed, try again in a moment") from exc
