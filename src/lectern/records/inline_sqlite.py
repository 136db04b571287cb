"""SQLite on the event loop, for SQLAlchemy's async engine. A statement within a transaction works in memory and takes
some ten microseconds. To send each through a thread, as other drivers do, took ten times as long and, worse, held the
one connection while the loop was busy with others: twenty talks at once waited for that more than for the model.

What reaches for the disk or goes over many rows still has a thread to itself: COMMIT, DELETE, rows in bulk. Nobody else
has the connection meanwhile, and whoever is cancelled waits for its end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import URL, Pool
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import await_only

NAME = "sqlite+inline"
LONG = ("DELETE", "VACUUM")
FEW = 50  # rows: half a millisecond


class _Cursor(sqlite3.Cursor):
    async def _async_soft_close(self) -> None:
        """What SQLAlchemy asks of a cursor whose rows may have to be waited for; here they are at hand."""


class QuietConnection(sqlite3.Connection):
    """A connection that knows whether its commits wait for the disk."""

    waits = True

    def cursor(self, factory: type[sqlite3.Cursor] = _Cursor) -> sqlite3.Cursor:  # type: ignore[override]  # a default
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
    def get_pool_class(cls, url: URL) -> type[Pool]:  # SQLAlchemy's signature
        """One that waits without blocking the loop."""
        return AsyncAdaptedQueuePool

    def create_connect_args(self, url: URL) -> Any:  # noqa: ANN401  # SQLAlchemy's signature
        """The loop's thread and ours take turns."""
        arguments, options = super().create_connect_args(url)
        return arguments, {**options, "check_same_thread": False, "factory": QuietConnection}

    def do_commit(self, dbapi_connection: Any) -> None:  # noqa: ANN401  # a DB-API connection
        """Waits for the disk, unless the transaction is a note."""
        if dbapi_connection.waits:
            self._apart(dbapi_connection.commit)
        else:
            await_only(_at_once())
            dbapi_connection.commit()

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:  # noqa: ANN401
        """In memory, but for what goes over many rows."""
        if statement.startswith(LONG):
            self._apart(cursor.execute, statement, parameters)
        else:
            await_only(_at_once())
            cursor.execute(statement, parameters)

    def do_executemany(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:  # noqa: ANN401
        """A few rows at once, many in the thread."""
        if len(parameters) > FEW:
            self._apart(cursor.executemany, statement, parameters)
        else:
            await_only(_at_once())
            cursor.executemany(statement, parameters)

    def do_terminate(self, dbapi_connection: Any) -> None:  # noqa: ANN401  # a DB-API connection
        """Close what nobody gave back."""
        dbapi_connection.close()

    def _apart(self, work: Callable[..., object], *given: Any) -> None:  # noqa: ANN401
        await_only(_whole(asyncio.get_running_loop().run_in_executor(self._thread, work, *given)))


async def _at_once() -> None:
    """SQLAlchemy takes a driver that never awaits for one that blocks by mistake."""


async def _whole(work: asyncio.Future[object]) -> None:
    """Not left behind: the connection would go on in a thread while another transaction begins on it."""
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


registry.register("sqlite.inline", __name__, InlineSqlite.__name__)
