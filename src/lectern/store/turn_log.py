"""The turn log: every attempt at a turn, written before it begins. An attempt that failed, was cancelled or was killed
leaves its question here and nothing in the conversation."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Row, bindparam, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.clock import utc_now
from lectern.domain.errors import Conflict
from lectern.domain.threads import Run, RunState
from lectern.store.database import NOTE_OPTION, reading, transaction
from lectern.store.keys import belongs, refuse_revoked
from lectern.store.leases import live
from lectern.store.tables import leases, turn_log
from lectern.store.turn_bodies import storable

# Built once, because every turn needs them.
_INSERT_RUN = insert(turn_log)
_SET_REPLIED = (
    update(turn_log)
    .where(turn_log.c.run_id == bindparam("of_run"), turn_log.c.state == "running")
    .values(state="replied", ended_at=bindparam("ended_at"))
)


class SqlTurnLog:
    """The turn log in the SQL database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine.execution_options(**{NOTE_OPTION: True})
        self._shared = engine.dialect.name != "sqlite"

    @property
    def shared(self) -> bool:
        """Whether other processes may end the runs of this one."""
        return self._shared

    async def begin(self, run: Run) -> bool:
        """Store an attempt; False if it already has its reply. An attempt that ended without a reply may be repeated,
        and so may one that a dead process left: the caller holds the thread's lease, so no other process runs it."""
        values = {
            "owner": run.owner,
            "thread_id": run.thread_id,
            "question": storable(run.question),
            "state": "running",
            "error": None,
            "digest": run.digest,
            "begun_at": run.begun_at,
            "ended_at": None,
        }
        try:
            async with transaction(self._engine) as connection:
                await refuse_revoked(connection, run.owner)
                await connection.execute(_INSERT_RUN, {"run_id": run.run_id, **values})
        except IntegrityError:
            may_restart = (turn_log.c.state != "replied") & (turn_log.c.thread_id == run.thread_id)
            async with transaction(self._engine) as connection:
                await refuse_revoked(connection, run.owner)
                restart = update(turn_log).where(turn_log.c.run_id == run.run_id, may_restart).values(**values)
                return bool((await connection.execute(restart)).rowcount)
        return True

    async def end(self, run_id: str, state: RunState, error: str | None = None) -> None:
        """Note that the attempt ended without a reply; an attempt that has its reply is not changed."""
        async with transaction(self._engine) as connection:
            running = (turn_log.c.run_id == run_id) & (turn_log.c.state == "running")
            await connection.execute(
                update(turn_log).where(running).values(state=state, error=error, ended_at=utc_now())
            )

    async def end_all_of(self, owner: str, error: str) -> None:
        """Cancel every attempt of an owner and of its readers; the process that runs one notices within about a
        second."""
        running = belongs(turn_log.c.owner, owner) & (turn_log.c.state == "running")
        values = {"state": "cancelled", "error": error, "ended_at": utc_now()}
        async with transaction(self._engine) as connection:
            await connection.execute(update(turn_log).where(running).values(**values))

    async def ended_elsewhere(self, run_ids: Collection[str]) -> frozenset[str]:
        """The attempts among these that another process ended: cancelled, interrupted, or deleted with their thread."""
        states = ("running", "replied", "error")  # only the process that runs an attempt writes these
        query = select(turn_log.c.run_id).where(turn_log.c.run_id.in_(run_ids), turn_log.c.state.in_(states))
        async with reading(self._engine) as connection:
            return frozenset(run_ids) - set((await connection.execute(query)).scalars())

    async def run(self, owner: str, run_id: str) -> Run | None:
        """An attempt of this owner."""
        query = select(turn_log).where(turn_log.c.run_id == run_id, turn_log.c.owner == owner)
        async with reading(self._engine) as connection:
            row = (await connection.execute(query)).first()
            if row is None:
                return None
            dead = row.state == "running" and self._shared and not await _has_lease(connection, run_id)
        return _run(row, "interrupted") if dead else _run(row, row.state)

    async def sweep(self) -> int:
        """At the start of a process: mark attempts that no process runs any more as interrupted; returns how many."""
        dead = turn_log.c.state == "running"
        if self._shared:
            dead &= ~exists().where(leases.c.run_id == turn_log.c.run_id, live())
        async with transaction(self._engine) as connection:
            result = await connection.execute(
                update(turn_log).where(dead).values(state="interrupted", error="the process ended", ended_at=utc_now())
            )
        return result.rowcount

    async def purge(self, before: str) -> None:
        """Delete attempts that ended before a moment."""
        async with transaction(self._engine) as connection:
            await connection.execute(delete(turn_log).where(turn_log.c.ended_at < before))


async def settle(connection: AsyncConnection, run_id: str) -> None:
    """Within the transaction that stores a turn: note that the attempt has its reply, unless it was cancelled in the
    meantime."""
    result = await connection.execute(_SET_REPLIED, {"of_run": run_id, "ended_at": utc_now()})
    if not result.rowcount:
        raise Conflict("the run was cancelled while the answer was being made; nothing was kept")


async def _has_lease(connection: AsyncConnection, run_id: str) -> bool:
    query = select(leases.c.run_id).where(leases.c.run_id == run_id, live())
    return (await connection.execute(query)).first() is not None


def _run(row: Row[tuple[object, ...]], state: RunState) -> Run:
    return Run(
        run_id=row.run_id,
        owner=row.owner,
        thread_id=row.thread_id,
        question=row.question,
        state=state,
        error=row.error,
        digest=row.digest,
        begun_at=row.begun_at,
        ended_at=row.ended_at,
    )
