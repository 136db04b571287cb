"""One turn at a time in a thread. Within a process, requests queue. Between processes, a lease in the database is held
while the turn runs, renewed at intervals, and checked again in the transaction that stores the turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from sqlalchemy import ColumnElement, Float, cast, delete, func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.errors import Busy, StoreUnavailable
from lectern.store.database import transaction
from lectern.store.tables import leases

LEASE_SECONDS = 15.0  # a lease ends after this time unless it is renewed
RENEW_SECONDS = 4.0
RETRY_SECONDS = 0.05  # between two attempts to get a lease

Name = tuple[str, str]  # owner and thread


class Leases:
    """Who may take a turn in which thread."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._shared = engine.dialect.name != "sqlite"  # SQLite has one process, so its queue is all there is
        self._queues: dict[Name, _Queue] = {}

    @asynccontextmanager
    async def hold(self, owner: str, thread_id: str, run_id: str, wait_seconds: float) -> AsyncIterator[None]:
        """Hold the turn of a thread while the block runs. Waiting longer than `wait_seconds` is an error."""
        name, end = (owner, thread_id), asyncio.get_running_loop().time() + wait_seconds
        queue = self._queues.setdefault(name, _Queue())
        queue.users += 1
        try:
            try:
                if queue.lock.locked():
                    async with asyncio.timeout_at(end):
                        await queue.lock.acquire()
                else:
                    await queue.lock.acquire()
            except TimeoutError:
                raise _busy(thread_id, wait_seconds) from None
            try:
                async with self._leased(name, run_id, end, wait_seconds):
                    yield
            finally:
                queue.lock.release()
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[name]

    async def confirm(self, connection: AsyncConnection, owner: str, thread_id: str, run_id: str) -> None:
        """Within the transaction that stores a turn: check that no other process has taken the thread over."""
        if not self._shared:
            return
        renewal = (
            update(leases).where(*_is(owner, thread_id), leases.c.run_id == run_id).values(until=_now() + LEASE_SECONDS)
        )
        if not (await connection.execute(renewal)).rowcount:
            raise Busy("the thread was taken over by another turn, because this one was not heard of; ask again")

    @asynccontextmanager
    async def _leased(self, name: Name, run_id: str, end: float, wait_seconds: float) -> AsyncIterator[None]:
        if not self._shared:
            yield
            return
        while not await self._take(name, run_id):
            if asyncio.get_running_loop().time() >= end:
                raise _busy(name[1], wait_seconds)
            await asyncio.sleep(RETRY_SECONDS)  # until the other process releases it
        renewing = asyncio.create_task(self._renew(name, run_id))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            async with transaction(self._engine) as connection:
                await connection.execute(delete(leases).where(*_is(*name), leases.c.run_id == run_id))

    async def _take(self, name: Name, run_id: str) -> bool:
        taking = insert(leases).values(owner=name[0], thread_id=name[1], run_id=run_id, until=_now() + LEASE_SECONDS)
        taking = taking.on_conflict_do_update(
            index_elements=["owner", "thread_id"],
            set_={"run_id": taking.excluded.run_id, "until": taking.excluded.until},
            where=leases.c.until < _now(),
        )
        async with transaction(self._engine) as connection:
            return (await connection.execute(taking.returning(leases.c.run_id))).first() is not None

    async def _renew(self, name: Name, run_id: str) -> None:
        renewal = update(leases).where(*_is(*name), leases.c.run_id == run_id).values(until=_now() + LEASE_SECONDS)
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            with suppress(StoreUnavailable):  # the next try may succeed; if none does, `confirm` will say so
                async with transaction(self._engine) as connection:
                    await connection.execute(renewal)


class _Queue:
    """Requests of this process that wait for one thread."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


def live() -> ColumnElement[bool]:
    """A condition on leases: the holder renewed it recently."""
    return leases.c.until >= _now()


def _now() -> ColumnElement[Any]:
    """The database's clock: processes may disagree about the time, the lease must not."""
    return cast(func.extract("epoch", func.clock_timestamp()), Float(53))


def _is(owner: str, thread_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return leases.c.owner == owner, leases.c.thread_id == thread_id


def _busy(thread_id: str, wait_seconds: float) -> Busy:
    return Busy(
        f"thread {thread_id} is still answering another question after {wait_seconds:g} s; ask again when it has"
    )
