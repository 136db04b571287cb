"""SQLite on the event loop, for SQLAlchemy's async engine. A short statement works in memory and takes some ten
microseconds. To send each through a thread, as other drivers do, took ten times as long and, worse, held the one
connection while the loop was busy with others: twenty talks at once waited for that more than for the model.

What may take long still has a thread: a commit, which waits for the disk; DELETE, rows in bulk, and reading that was
marked as long; and whatever meets a database that another program has locked. Nobody else has the connection
meanwhile, and whoever is cancelled waits for its end. See decision 0010."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import URL, Pool
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import await_only

NAME = "sqlite+inline"
LONG = "lectern_long"  # the option of a connection whose statements read a great deal
DELETING = ("DELETE", "VACUUM")
FEW = 50  # rows: half a millisecond
PATIENCE, PAUSE = 5.0, 0.02  # seconds that a locked database is waited for, and between two tries


class LoopCursor(sqlite3.Cursor):
    """A cursor that may hold all its rows already."""

    _read: deque[Any] | None = None

    def execute_and_read(self, statement: str, parameters: Any) -> None:  # noqa: ANN401  # the driver's own
        """Execute and fetch, for a thread to do."""
        self.execute(statement, parameters)
        self._read = deque(super().fetchall()) if self.description else None

    def fetchone(self) -> Any:  # noqa: ANN401  # the driver's own
        """The next row."""
        if self._read is None:
            return super().fetchone()
        return self._read.popleft() if self._read else None

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows."""
        if self._read is None:
            return super().fetchmany(self.arraysize if size is None else size)
        most = self.arraysize if size is None else size
        return [self._read.popleft() for _ in range(min(most, len(self._read)))]

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        if self._read is None:
            return super().fetchall()
        rows, self._read = list(self._read), deque()
        return rows

    async def _async_soft_close(self) -> None:
        """What SQLAlchemy asks of a cursor whose rows may have to be waited for; here they are at hand."""


class LoopConnection(sqlite3.Connection):
    """A connection whose cursors a loop can use."""

    def cursor(self, factory: type[sqlite3.Cursor] = LoopCursor) -> sqlite3.Cursor:  # type: ignore[override]  # a default
        """One that SQLAlchemy can use on a loop."""
        return super().cursor(factory)


class InlineSqlite(SQLiteDialect_pysqlite):
    """The standard library's SQLite, used from one loop."""

    driver = "inline"
    supports_statement_cache = True
    is_async = True
    has_terminate = True

    def __init__(self, **options: Any) -> None:  # noqa: ANN401  # the dialect's own
        super().__init__(**options)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lectern-sqlite")

    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        """One that waits without blocking the loop."""
        return AsyncAdaptedQueuePool

    def create_connect_args(self, url: URL) -> Any:  # noqa: ANN401  # SQLAlchemy's signature
        """The loop's thread and ours take turns; SQLite itself never waits for a lock, because the loop would."""
        arguments, options = super().create_connect_args(url)
        return arguments, {**options, "check_same_thread": False, "factory": LoopConnection, "timeout": 0}

    def do_commit(self, dbapi_connection: Any) -> None:  # noqa: ANN401  # a DB-API connection
        """Waits for the disk."""
        self._apart(dbapi_connection.commit)

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:  # noqa: ANN401  # untyped
        """In memory, but for what takes long."""
        if context is not None and context.execution_options.get(LONG):
            self._apart(cursor.execute_and_read, statement, parameters)
        elif statement.lstrip()[:6].upper().startswith(DELETING):
            self._apart(cursor.execute, statement, parameters)
        else:
            self._at_once(cursor.execute, statement, parameters)

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:  # noqa: ANN401  # untyped
        """A few rows at once, many in the thread."""
        (self._apart if len(parameters) > FEW else self._at_once)(cursor.executemany, statement, parameters)

    def do_terminate(self, dbapi_connection: Any) -> None:  # noqa: ANN401  # a DB-API connection
        """Close what nobody gave back."""
        dbapi_connection.close()

    def close(self) -> None:
        """End the thread; nothing is under way any more."""
        self._thread.shutdown(wait=False)

    def _at_once(self, work: Callable[..., object], *given: Any) -> None:  # noqa: ANN401  # whatever the work takes
        await_only(_here())
        try:
            work(*given)
        except sqlite3.OperationalError as exc:
            if not _locked(exc):
                raise
            self._apart(work, *given)

    def _apart(self, work: Callable[..., object], *given: Any) -> None:  # noqa: ANN401  # whatever the work takes
        loop = asyncio.get_running_loop()
        await_only(_whole(loop.run_in_executor(self._thread, _patiently, work, *given)))


def _patiently(work: Callable[..., object], *given: Any) -> None:  # noqa: ANN401  # whatever the work takes
    """Again and again while another program has the database; a statement that met a lock has done nothing."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            work(*given)
        except sqlite3.OperationalError as exc:
            if not _locked(exc) or time.monotonic() > end:
                raise
            time.sleep(PAUSE)
        else:
            return


def _locked(exc: sqlite3.OperationalError) -> bool:
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


async def _here() -> None:
    """SQLAlchemy takes a driver that never awaits for one that blocks by mistake."""


async def _whole(work: asyncio.Future[None]) -> None:
    """Not left behind, however often it is cancelled: the thread would go on with the connection while another
    transaction begins on it. Where the work was done, the cancelling comes with the next thing that is awaited:
    SQLAlchemy throws away a connection whose commit was cancelled, and one in memory is the whole database."""
    task, cancelled = asyncio.current_task(), 0
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            cancelled += 1
    work.result()
    if task is not None:
        for _ in range(cancelled):
            task.uncancel()
        for _ in range(cancelled):
            task.cancel()


registry.register("sqlite.inline", __name__, InlineSqlite.__name__)
