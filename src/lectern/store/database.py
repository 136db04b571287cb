"""The SQL database: opened once, one write connection on SQLite, migrated before it is read.

SQLite before 3.51.3 can damage a WAL file when two connections meet in a checkpoint. So SQLite has one process (the
owner of LECTERN_HOME) and one connection here. SQLAlchemy throws away a connection whose statement was cancelled, and
opens another while the thread of the first still works, so a cancelled task waits for its statement first.

A store that does not answer is a 503, whatever the driver calls it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
from sqlalchemy import URL, Connection, ExceptionContext, event, inspect, make_url, text
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InvalidatePoolError,
    ProgrammingError,
)
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry, NullPool

from lectern.domain.dependencies import Call, report
from lectern.domain.errors import ConfigError, LecternError, OutOfResources, StoreUnavailable
from lectern.domain.extras import import_extra
from lectern.domain.resources import RESOURCES, shortage_of

NOTE_OPTION = "lectern_note"  # the engine option for transactions that need not survive a power cut
HEAD = "0009"  # the newest migration; a test compares it with the folder
MIGRATION_LOCK = 0x1EC7E24  # the number of the lock that a process holds while it migrates
BUSY_SECONDS = 5.0  # how long to wait for a database that another program has locked
FETCH_ROWS = 64  # aiosqlite's own; SQLAlchemy fetches all rows in one step and never uses it
SQLITE_POOL: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 60}
SERVER_POOL: dict[str, Any] = {"pool_timeout": 10}
IDLE_SECONDS = 30.0  # after which a connection may have been cut off without a word
SERVER_CONNECTIONS = 30  # of one process, at most
CONNECT_SECONDS = 5.0  # a server that accepts connections and says nothing
STATEMENT_SECONDS = 10.0  # far more than any statement here takes, migrations aside
DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
PRIMARY_CODE = 0xFF  # the part of SQLite's extended codes that names the kind of error
FULL_DISK_BYTES = 1024 * 1024  # less than one page of the log and of the shared memory
STATEMENT_ERRORS = (IntegrityError, DataError, ProgrammingError)  # the statement is wrong, the database is well


@asynccontextmanager
async def open_database(url: URL, connections: int = SERVER_CONNECTIONS) -> AsyncIterator[AsyncEngine]:
    """An engine whose tables are those of this version. `connections` are the most that it opens to PostgreSQL."""
    sqlite = url.get_backend_name() == "sqlite"
    engine = _sqlite_engine(url) if sqlite else _server_engine(url, connections)
    try:
        event.listen(engine.sync_engine, "before_cursor_execute", _note_start)
        event.listen(engine.sync_engine, "after_cursor_execute", _report_statement)
        if sqlite:
            event.listen(engine.sync_engine, "connect", _prepare_sqlite)
            event.listen(engine.sync_engine, "begin", _begin_sqlite)
            event.listen(engine.sync_engine, "handle_error", partial(_explain_error, url))
        try:
            await _run_to_end(_migrate(engine))
        except (DBAPIError, OSError) as exc:
            raise _unusable(url, exc, sqlite=sqlite) from exc
        except UnicodeDecodeError as exc:  # in a name of the schema, which the driver reads with the first statement
            raise _damaged(url, "it holds text that is not UTF-8") from exc
        yield engine
    except DatabaseError as exc:
        if not sqlite:
            raise
        raise _unusable(url, exc, sqlite=sqlite) from exc
    finally:
        await engine.dispose()


class SqliteConnection(aiosqlite.Connection):
    """A connection whose statements run to their end even if the task that waits for them is cancelled."""

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # aiosqlite's
        """Run a function in the connection's thread. If the task is cancelled meanwhile, the result still counts, and
        the cancellation is raised at the next await of the task."""
        in_thread: Callable[..., Awaitable[Any]] = super()._execute
        result: Future[Any] = Future()

        def work() -> None:
            try:
                result.set_result(fn(*args, **kwargs))
            except Exception as exc:  # noqa: BLE001  # it is raised again in the task
                result.set_exception(exc)

        cancellations, waiting = 0, in_thread(work)
        while True:
            try:
                await waiting
                break
            except asyncio.CancelledError:
                cancellations += 1
                waiting = in_thread(lambda: None)  # the thread works in order, so this ends after `work`
        if cancellations and (task := asyncio.current_task()):
            _cancel_again(task, cancellations)
        return result.result()


def _cancel_again(task: asyncio.Task[Any], times: int) -> None:
    """Cancel a task as often as it was cancelled before. Without `uncancel` the task's count of cancellations, which
    timeouts read, would double."""
    for _ in range(times):
        task.uncancel()
    for _ in range(times):
        task.cancel()


def _sqlite_engine(url: URL) -> AsyncEngine:
    async def connect() -> aiosqlite.Connection:
        connection = SqliteConnection(lambda: sqlite3.connect(url.database or "", timeout=BUSY_SECONDS), FETCH_ROWS)
        connection._thread.daemon = True  # as SQLAlchemy does; a process must be able to end
        return await connection

    return create_async_engine(url, async_creator=connect, poolclass=AsyncAdaptedQueuePool, **SQLITE_POOL)


def _server_engine(url: URL, connections: int) -> AsyncEngine:
    """A third of the connections stays open; the others are opened when many requests come at once."""
    kept = -(-connections // 3)
    sizes = {"pool_size": kept, "max_overflow": connections - kept}
    engine = create_async_engine(url, connect_args=timeouts(), **SERVER_POOL, **sizes)
    event.listen(engine.sync_engine, "checkin", _note_idle)
    event.listen(engine.sync_engine, "checkout", partial(_check_connection, engine.dialect))
    return engine


def _note_idle(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["idle_since"] = time.monotonic()


def _check_connection(dialect: Dialect, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:  # noqa: ANN401  # the driver's
    """Replace connections that the server has closed, which the driver knows without asking. Only one that was idle for
    long is asked: SQLAlchemy's own check, before every use, takes three statements."""
    idle = time.monotonic() - record.info.get("idle_since", time.monotonic())
    if connection.driver_connection.is_closed():
        raise InvalidatePoolError
    if idle > IDLE_SECONDS:
        try:
            dialect.do_ping(connection)
        except dialect.loaded_dbapi.Error as exc:
            raise InvalidatePoolError from exc


def timeouts() -> dict[str, Any]:
    """The driver's arguments, so that nobody waits for ever for a server that hangs."""
    return {"timeout": CONNECT_SECONDS, "command_timeout": STATEMENT_SECONDS}


def _note_start(connection: Connection, *_: object) -> None:
    connection.info["statement_start"] = time.perf_counter()


def _report_statement(connection: Connection, *_: object) -> None:
    """Report a statement that succeeded; `report_outages` reports failures, also those before any statement."""
    seconds = time.perf_counter() - connection.info["statement_start"]
    report(Call(dependency="database", seconds=seconds))


def _unusable(url: URL, exc: DBAPIError | OSError, *, sqlite: bool) -> LecternError:
    reason = exc.orig if isinstance(exc, DBAPIError) else exc.strerror or exc
    if not sqlite:
        return ConfigError(
            f"the database {url.database!r} at {url.host or 'its socket'} cannot be used ({reason}); check DATABASE_URL"
        )
    if shortage := _shortage(exc, url):
        return OutOfResources(f"the database {url.database} cannot be used now: {shortage}")
    if getattr(reason, "sqlite_errorcode", None) in DAMAGE_CODES:
        return _damaged(url, str(reason))
    return ConfigError(f"the database {url.database} cannot be used ({reason}); check its folder's permissions")


def _damaged(url: URL, reason: str) -> ConfigError:
    return ConfigError(
        f"the database {url.database} is damaged ({reason}). Put a copy of it back, with the index folder of the same "
        "moment; without one, move both to another place and ingest your books again"
    )


def _shortage(exc: BaseException, url: URL) -> str | None:
    """What the machine is short of, if that is why SQLite failed. On a full disk it often says `disk I/O error`."""
    original = exc.orig if isinstance(exc, DBAPIError) else exc
    if original is None:
        return None
    if (shortage := shortage_of(original)) is not None:
        return shortage
    codes = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
    if getattr(original, "sqlite_errorcode", 0) & PRIMARY_CODE not in codes or not url.database:
        return None
    if _has_no_descriptor():
        return RESOURCES[errno.EMFILE]
    folder = Path(url.database).parent
    if hasattr(os, "statvfs") and folder.is_dir():
        status = os.statvfs(folder)
        if status.f_bavail * status.f_frsize < FULL_DISK_BYTES:
            return RESOURCES[errno.ENOSPC]
    return None


def _has_no_descriptor() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as exc:
        return exc.errno in (errno.EMFILE, errno.ENFILE)
    return False


def database_url(address: str) -> URL:
    """The URL of a PostgreSQL address for the driver that is used here."""
    try:
        url = make_url(address)
    except ArgumentError:
        raise ConfigError("DATABASE_URL is no address; write postgresql://user:password@host:5432/name") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise ConfigError(
            f"DATABASE_URL names {url.get_backend_name()!r}; only postgresql:// is known. Without it, SQLite is used"
        )
    import_extra("asyncpg", extra="server", setting="DATABASE_URL")
    query = dict(url.query)
    if mode := query.pop("sslmode", None):
        query["ssl"] = mode  # the driver's name for it
    return url.set(drivername="postgresql+asyncpg", query=query)


def sqlite_url(path: Path | None) -> URL:
    """The URL of a SQLite file, whatever characters its path has; None for a database in memory."""
    return URL.create("sqlite+aiosqlite", database=":memory:" if path is None else str(path))


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction. A note, such as that a turn has begun, survives a kill, but need not survive a power cut."""
    level = "NORMAL" if connection.get_execution_options().get(NOTE_OPTION) else "FULL"
    if connection.info.get("synchronous", "FULL") != level:
        connection.exec_driver_sql(f"PRAGMA synchronous={level}")
        connection.info["synchronous"] = level
    connection.exec_driver_sql("BEGIN")


def _explain_error(url: URL, context: ExceptionContext) -> None:
    """Raise an error in words in place of the driver's, wherever a statement fails for want of something, meets a
    damaged page, or finds bytes that are no text, which were never written."""
    if isinstance(context.original_exception, UnicodeDecodeError):
        context.chained_exception = _damaged(url, "it holds text that is not UTF-8")
    elif getattr(context.original_exception, "sqlite_errorcode", None) in DAMAGE_CODES:
        context.chained_exception = _damaged(url, str(context.original_exception))
    elif shortage := _shortage(context.original_exception, url):
        context.chained_exception = OutOfResources(f"the database cannot be used now: {shortage}")


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401  # a DB-API connection
    connection.isolation_level = (
        None  # else the driver commits before every CREATE, and a killed migration is half done
    )
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


async def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work even if the caller is cancelled: otherwise a connection that is being opened would never be
    closed."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


async def _migrate(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        version = await connection.run_sync(_version)
    if version == HEAD:
        return
    if version is not None and version > HEAD:
        raise ConfigError(
            f"the database is at schema {version}, newer than this Lectern's {HEAD}; "
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

    if engine.dialect.name == "sqlite":
        async with engine.begin() as connection:
            await connection.run_sync(run)
        return
    patient = create_async_engine(engine.url, poolclass=NullPool)  # a migration may take longer than any statement
    try:
        async with patient.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            await connection.run_sync(run)
    finally:
        await patient.dispose()


def autocommit(engine: AsyncEngine) -> AsyncEngine:
    """The same engine for queries of one statement: on a server, without the two more to begin and end a
    transaction."""
    return engine if engine.dialect.name == "sqlite" else engine.execution_options(isolation_level="AUTOCOMMIT")


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection for changes: all of them are stored, or none."""
    async with report_outages(), engine.begin() as connection:
        yield connection


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection for queries that change nothing."""
    async with report_outages(), engine.connect() as connection:
        yield connection


@asynccontextmanager
async def report_outages() -> AsyncIterator[None]:
    """Turn the driver's connection errors in this block into StoreUnavailable, and report them."""
    start = time.perf_counter()
    try:
        yield
    except STATEMENT_ERRORS:
        raise
    except (DBAPIError, PoolExhausted, OSError) as exc:
        cause = exc.orig if isinstance(exc, DBAPIError) else exc  # SQLAlchemy's own text quotes the statement
        error = cause if isinstance(cause, Exception) else exc
        report(Call(dependency="database", seconds=time.perf_counter() - start, error=error))
        raise StoreUnavailable("the database does not answer; try again in a moment") from exc
