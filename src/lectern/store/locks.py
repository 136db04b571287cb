"""Locks on books. Within a process a set holds them. On PostgreSQL a lease holds them among processes: a row with a
token, which the holder renews. A lease ends in two ways. If the holder is killed, its connection ends, and with it an
advisory lock of its own: the lease is free at once. If the holder is frozen or unplugged, it stops renewing, and the
lease is free after `LEASE_SECONDS` by the database's clock.

A holder may find out late that it has lost its lease, so every transaction that changes a book or its job reads the
token again (`check`). The row stays locked until the transaction ends: whoever takes the book over finds everything
that was stored before, and nothing of the former holder comes after it.
"""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from sqlalchemy import Boolean, ColumnElement, Float, delete, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.expression import literal_column

from lectern.domain.errors import Busy, StoreUnavailable, TakenOver
from lectern.store.database import reading, report_outages, timeouts
from lectern.store.tables import book_leases

LEASE_SECONDS = 25.0  # a server looks for orphans every ten seconds: together well below a minute
RENEWALS = 5  # within the time of a lease, so that a busy machine may miss some
KEY_BITS = 63  # of an advisory lock's number; the highest of 64 is its sign
Fence = Callable[[AsyncConnection, str], Awaitable[None]]  # within a transaction that changes something of a book

# The database's clock: processes may disagree about the time, a lease must not.
_NOW: ColumnElement[float] = literal_column("extract(epoch from clock_timestamp())::float8", Float(53))
# The holder renewed the lease recently, and its connection is alive. An advisory lock is one 64-bit number; `pg_locks`
# shows it in two halves.
_IS_HELD: ColumnElement[bool] = literal_column(
    "(book_leases.until >= extract(epoch from clock_timestamp())::float8 AND EXISTS ("
    "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND (classid::bigint << 32 | objid::bigint) = book_leases.lock_key))",
    Boolean,
)


async def no_fence(_: AsyncConnection, __: str) -> None:
    """For a database that one process has to itself."""


@dataclass(slots=True)
class _Lease:
    """A lease that this process holds, or has lost without knowing."""

    book_id: str
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    connection: AsyncConnection | None = None  # while it lives, so does the advisory lock

    @property
    def is_own(self) -> ColumnElement[bool]:
        return (book_leases.c.book_id == self.book_id) & (book_leases.c.token == self.token)


class SqlBookLocks:
    """One job per book at a time."""

    def __init__(self, engine: AsyncEngine, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._engine = engine
        self._shared = engine.dialect.name != "sqlite"  # SQLite has one process, so the set is all there is
        self._lease_seconds = lease_seconds
        # Not from the pool: a queue of jobs would leave no connection for readers.
        self._lock_engine = (
            create_async_engine(engine.url, poolclass=NullPool, connect_args=timeouts(), isolation_level="AUTOCOMMIT")
            if self._shared
            else engine
        )
        self._leases: dict[str, _Lease] = {}

    @property
    def holds_any(self) -> bool:
        """Whether this process holds the lock of any book."""
        return bool(self._leases)

    @asynccontextmanager
    async def hold(self, book_id: str) -> AsyncIterator[None]:
        """Hold the lock of a book while the block runs; Busy if another holds it."""
        if book_id in self._leases:
            raise _busy(book_id)
        lease = self._leases[book_id] = _Lease(book_id)
        try:
            if not self._shared:
                yield
                return
            await self._take(lease)
            renewing = asyncio.create_task(self._renew_periodically(lease), name=f"lease of {book_id}")
            try:
                yield
            finally:
                renewing.cancel()
                await asyncio.wait([renewing])
                await _release(lease)
        finally:
            del self._leases[book_id]

    async def confirm(self, book_id: str) -> None:
        """Raise if our lock is lost: another process works on the book now."""
        if self._shared and book_id in self._leases:
            async with reading(self._engine) as connection:
                await self.check(connection, book_id)

    async def check(self, connection: AsyncConnection, book_id: str) -> None:
        """Within a transaction that changes something of a book: raise if this process held its lock and lost it.
        Nobody can take the book over until the transaction ends."""
        lease = self._leases.get(book_id)
        if not self._shared or lease is None:
            return
        token = select(book_leases.c.token).where(book_leases.c.book_id == book_id).with_for_update(read=True)
        if (await connection.execute(token)).scalar() != lease.token:
            raise TakenOver(
                f"another server has taken over the work on {book_id!r}, because this one was not heard of in time; "
                "what was finished is kept, and it goes on there"
            )

    async def is_locked_elsewhere(self, book_id: str) -> bool:
        """Whether another process holds the lock of a book now."""
        if not self._shared or book_id in self._leases:
            return False
        return await self._is_leased(book_id)

    async def _is_leased(self, book_id: str) -> bool:
        query = select(book_leases.c.token).where(book_leases.c.book_id == book_id, _IS_HELD)
        async with reading(self._engine) as connection:
            return (await connection.execute(query)).first() is not None

    async def _take(self, lease: _Lease) -> None:
        if await self._is_leased(lease.book_id):  # a connection for nothing would be opened
            raise _busy(lease.book_id)
        taking = insert(book_leases).values(book_id=lease.book_id, token=lease.token, until=self._until())

        async def take(connection: AsyncConnection, key: int) -> bool:
            statement = taking.values(lock_key=key)
            new = {name: statement.excluded[name] for name in ("token", "lock_key", "until")}
            statement = statement.on_conflict_do_update(index_elements=["book_id"], set_=new, where=~_IS_HELD)
            return (await connection.execute(statement.returning(book_leases.c.token))).first() is not None

        async with report_outages():
            if not await self._connect(lease, take):
                raise _busy(lease.book_id)

    async def _renew_periodically(self, lease: _Lease) -> None:
        """Renew the lease until it is lost. If the connection breaks, another one gets a lock."""
        while True:
            await asyncio.sleep(self._lease_seconds / RENEWALS)
            try:
                async with report_outages():
                    renewed = await self._renew(lease)
            except StoreUnavailable:
                continue  # the next try may succeed; if none does, whoever takes the book over is safe from this one
            if not renewed:
                return  # `check` will say so

    async def _renew(self, lease: _Lease) -> bool:
        renewal = update(book_leases).where(lease.is_own).values(until=self._until())
        if lease.connection is not None:
            try:
                return bool((await lease.connection.execute(renewal)).rowcount)
            except BaseException:
                await _give_up(lease)
                raise

        async def renew(connection: AsyncConnection, key: int) -> bool:
            return bool((await connection.execute(renewal.values(lock_key=key))).rowcount)

        return await self._connect(lease, renew)

    async def _connect(self, lease: _Lease, write: Callable[[AsyncConnection, int], Awaitable[bool]]) -> bool:
        """Write the row on a new connection that holds an advisory lock of its own; keep the connection if the row was
        written. It has no transaction: one that stays open for an hour would keep the database from cleaning up."""
        key = secrets.randbits(KEY_BITS)
        lease.connection = await self._lock_engine.connect()
        written = False
        try:
            await lease.connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": key})
            written = await write(lease.connection, key)
        finally:
            if not written:
                await _give_up(lease)
        return written

    def _until(self) -> ColumnElement[float]:
        return _NOW + self._lease_seconds


async def _release(lease: _Lease) -> None:
    """End the lease, unless another process has it by now."""
    if lease.connection is None:
        return
    try:
        await lease.connection.execute(delete(book_leases).where(lease.is_own))
        await lease.connection.close()
    except (SQLAlchemyError, OSError):  # the connection is broken, which ended the lease
        await _give_up(lease)
    except BaseException:
        await _give_up(lease)
        raise


async def _give_up(lease: _Lease) -> None:
    """Break the connection, and with it the advisory lock: it may be in the middle of a statement."""
    connection, lease.connection = lease.connection, None
    if connection is not None:
        await connection.invalidate()
        await connection.close()


def _busy(book_id: str) -> Busy:
    """Another process may hold the lock, so the reason is not known here."""
    return Busy(f"{book_id!r} is being ingested, calibrated, examined or removed; try again when that has ended")
