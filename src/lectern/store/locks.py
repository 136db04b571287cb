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
from lectern.store.database import reading, speaking

# An advisory lock is one 64-bit number; `pg_locks` shows it in two halves.
_TAKEN = text(
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32 | objid::bigint) = :key"
)


class SqlBookLocks:
    """One job per book at a time."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._shared = engine.dialect.name != "sqlite"  # SQLite has one process, so the set is all there is
        # Not from the pool: a queue of jobs would leave no connection for those who ask.
        self._own = create_async_engine(engine.url, poolclass=NullPool) if self._shared else engine
        self._mine: dict[str, AsyncConnection | None] = {}

    @property
    def held(self) -> bool:
        """Whether this process holds the lock of any book."""
        return bool(self._mine)

    @asynccontextmanager
    async def alone(self, book_id: str) -> AsyncIterator[None]:
        """Hold the lock of a book while the block runs; Busy if another holds it."""
        if book_id in self._mine:
            raise _busy(book_id)
        self._mine[book_id] = None
        try:
            if not self._shared:
                yield
                return
            connection = self._mine[book_id] = await self._locked(book_id)
            try:
                yield
            finally:
                await _let_go(connection, book_id)
        finally:
            del self._mine[book_id]

    async def _locked(self, book_id: str) -> AsyncConnection:
        """A connection that holds the lock. Without a transaction around it: one that stays open for an hour keeps the
        database from tidying up."""
        async with speaking():
            connection = await self._own.connect()
            got = False
            try:
                await connection.execution_options(isolation_level="AUTOCOMMIT")
                wanted = text("SELECT pg_try_advisory_lock(:key)")
                got = bool((await connection.execute(wanted, {"key": _key(book_id)})).scalar())
            finally:
                if not got:
                    await connection.invalidate()  # broken off half way it may have the lock: it must not be used again
                    await connection.close()
        if not got:
            raise _busy(book_id)
        return connection

    async def confirm(self, book_id: str) -> None:
        """Raise if our lock is lost: a broken connection ends the lock, and another process may have begun."""
        connection = self._mine.get(book_id)
        if connection is None:
            return
        try:
            await connection.execute(text("SELECT 1"))
        except (DBAPIError, OSError) as exc:
            raise StoreUnavailable(
                f"the database let go of {book_id!r} while it was being ingested; what is done is kept, start again"
            ) from exc

    async def taken(self, book_id: str) -> bool:
        """Whether another process holds the lock of a book now."""
        if not self._shared or book_id in self._mine:
            return False
        async with reading(self._engine) as connection:
            return (await connection.execute(_TAKEN, {"key": _key(book_id)})).first() is not None


async def _let_go(connection: AsyncConnection, book_id: str) -> None:
    try:
        await connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(book_id)})
    except SQLAlchemyError:
        await connection.invalidate()  # it is broken, and the lock went with it
    except BaseException:
        await connection.invalidate()  # cancelled half way: a pooled connection must not keep the lock
        raise
    finally:
        await connection.close()


def _key(book_id: str) -> int:
    """The lock's number; its highest bit stays clear, so that both halves of it can be put together again."""
    return int.from_bytes(hashlib.sha256(f"lectern book\n{book_id}".encode()).digest()[:8]) >> 1


def _busy(book_id: str) -> Busy:
    return Busy(f"{book_id!r} is being ingested already; wait until that job has ended")
