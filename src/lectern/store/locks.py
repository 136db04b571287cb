"""Locks on books. Within a process a set holds them. On PostgreSQL there is also a session lock on a separate
connection, for all other processes. The lock ends with the connection, so a killed process holds nothing."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from lectern.domain.errors import Busy, StoreUnavailable
from lectern.store.database import reading, report_outages

# An advisory lock is one 64-bit number; `pg_locks` shows it in two halves.
_LOCK_QUERY = text(
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32 | objid::bigint) = :key"
)


class SqlBookLocks:
    """One job per book at a time."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._shared = engine.dialect.name != "sqlite"  # SQLite has one process, so the set is all there is
        # Not from the pool: a queue of jobs would leave no connection for readers.
        self._lock_engine = create_async_engine(engine.url, poolclass=NullPool) if self._shared else engine
        self._connections: dict[str, AsyncConnection | None] = {}

    @property
    def holds_any(self) -> bool:
        """Whether this process holds the lock of any book."""
        return bool(self._connections)

    @asynccontextmanager
    async def hold(self, book_id: str) -> AsyncIterator[None]:
        """Hold the lock of a book while the block runs; Busy if another holds it."""
        if book_id in self._connections:
            raise _busy(book_id)
        self._connections[book_id] = None
        try:
            if not self._shared:
                yield
                return
            connection = self._connections[book_id] = await self._lock(book_id)
            try:
                yield
            finally:
                await _unlock(connection, book_id)
        finally:
            del self._connections[book_id]

    async def _lock(self, book_id: str) -> AsyncConnection:
        """A connection that holds the lock. It has no transaction: one that stays open for an hour would keep the
        database from cleaning up."""
        async with report_outages():
            connection = await self._lock_engine.connect()
            locked = False
            try:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                query = text("SELECT pg_try_advisory_lock(:key)")
                locked = bool((await connection.execute(query, {"key": _key(book_id)})).scalar())
            finally:
                if not locked:
                    await connection.invalidate()  # after a cancellation it may hold the lock: do not use it again
                    await connection.close()
        if not locked:
            raise _busy(book_id)
        return connection

    async def confirm(self, book_id: str) -> None:
        """Raise if our lock is lost: a broken connection ends the lock, and another process may have begun."""
        connection = self._connections.get(book_id)
        if connection is None:
            return
        try:
            await connection.execute(text("SELECT 1"))
        except (DBAPIError, OSError) as exc:
            raise StoreUnavailable(
                f"the database let go of {book_id!r} while it was being ingested; what is done is kept, start again"
            ) from exc

    async def is_locked_elsewhere(self, book_id: str) -> bool:
        """Whether another process holds the lock of a book now."""
        if not self._shared or book_id in self._connections:
            return False
        async with reading(self._engine) as connection:
            return (await connection.execute(_LOCK_QUERY, {"key": _key(book_id)})).first() is not None


async def _unlock(connection: AsyncConnection, book_id: str) -> None:
    try:
        await connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(book_id)})
    except SQLAlchemyError:
        await connection.invalidate()  # the connection is broken, which ended the lock
    except BaseException:
        await connection.invalidate()  # it was cancelled: a pooled connection must not keep the lock
        raise
    finally:
        await connection.close()


def _key(book_id: str) -> int:
    """The lock's number; its highest bit stays clear, so that its two halves can be put together again."""
    return int.from_bytes(hashlib.sha256(f"lectern book\n{book_id}".encode()).digest()[:8]) >> 1


def _busy(book_id: str) -> Busy:
    """Another process may hold the lock, so the reason is not known here."""
    return Busy(f"{book_id!r} is being ingested, calibrated, examined or removed; try again when that has ended")
