"""The SQL database: opened once, one write connection on SQLite, migrated before anybody reads it.

SQLite before 3.51.3 can damage a WAL file when two connections meet in a checkpoint. So SQLite has one process (the
owner of LECTERN_HOME) and one connection here. SQLAlchemy throws away a connection whose statement was cancelled, and
opens another while the thread of the first still works, so a cancelled task waits for its statement first.

A store that does not answer is a 503, whatever the driver calls it, and nothing of the transaction was stored.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
from sqlalchemy import URL, Connection, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from lectern.domain.errors import ConfigError, StoreUnavailable
from lectern.domain.extras import import_extra

NOTE = "lectern_note"  # the option of an engine whose transactions are notes
HEAD = "0003"  # the newest migration; a test holds it against the folder
MIGRATING = 0x1EC7E24  # the name of the lock under which one process migrates while the others wait
BUSY_SECONDS = 5.0  # that a database which another program has locked is waited for
ROWS_AT_ONCE = 64  # aiosqlite's own; SQLAlchemy fetches all rows in one step and never uses it
ONE: dict[str, Any] = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0, "pool_timeout": 60}
SEVERAL: dict[str, Any] = {"pool_size": 10, "max_overflow": 20, "pool_timeout": 10, "pool_pre_ping": True}
OURS = (IntegrityError, DataError, ProgrammingError)  # about what was asked, not about the database


@asynccontextmanager
async def open_database(url: URL) -> AsyncIterator[AsyncEngine]:
    """An engine whose tables are those of this version."""
    alone = url.get_backend_name() == "sqlite"
    engine = _sqlite_engine(url) if alone else create_async_engine(url, **SEVERAL)
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


class SqliteConnection(aiosqlite.Connection):
    """A connection whose statements come to their end although the task that waits for them is cancelled."""

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # aiosqlite's
        """Everything that the connection's thread does passes through here. If the task is cancelled, the result
        counts all the same, and the cancellation is raised by the next thing that the task awaits."""
        in_thread: Callable[..., Awaitable[Any]] = super()._execute
        result: Future[Any] = Future()

        def work() -> None:
            try:
                result.set_result(fn(*args, **kwargs))
            except Exception as exc:  # noqa: BLE001  # whatever it is, the task gets it
                result.set_exception(exc)

        cancellations, waiting = 0, in_thread(work)
        while True:
            try:
                await waiting
                break
            except asyncio.CancelledError:
                cancellations += 1
                waiting = in_thread(lambda: None)  # the thread takes its work in order: this ends after ours
        if cancellations and (task := asyncio.current_task()):
            _cancel_again(task, cancellations)
        return result.result()


def _cancel_again(task: asyncio.Task[Any], times: int) -> None:
    """Cancel as often as before; without the first half the task's own count, which timeouts read, would double."""
    for _ in range(times):
        task.uncancel()
    for _ in range(times):
        task.cancel()


def _sqlite_engine(url: URL) -> AsyncEngine:
    async def connect() -> aiosqlite.Connection:
        connection = SqliteConnection(lambda: sqlite3.connect(url.database or "", timeout=BUSY_SECONDS), ROWS_AT_ONCE)
        connection._thread.daemon = True  # as SQLAlchemy does; a process must be able to end
        return await connection

    return create_async_engine(url, async_creator=connect, **ONE)


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
    return URL.create("sqlite+aiosqlite", database=":memory:" if path is None else str(path))


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
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """For looking, not for changing."""
    async with speaking(), engine.connect() as connection:
        yield connection


@asynccontextmanager
async def speaking() -> AsyncIterator[None]:
    """Around whatever talks to the database."""
    try:
        yield
    except OURS:
        raise
    except (DBAPIError, PoolExhausted, OSError) as exc:
        raise StoreUnavailable("the database does not answer; nothing was changed, try again in a moment") from exc
