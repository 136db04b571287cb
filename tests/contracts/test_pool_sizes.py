"""How many connections a process opens is what the operator set."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import event, text

from lectern.store.database import open_database, reading
from tests.databases import new_postgres_database

OPEN_CONNECTIONS = text(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
)


async def test_a_process_opens_no_more_connections_to_postgresql_than_it_may(postgres_address: str) -> None:
    """Twenty queries at once share six connections, all are answered, and afterwards two connections stay open.

    The server lists a connection for a moment after its client has closed it, so what was closed before is not counted.
    """
    closed: set[int] = set()
    open_at_once: list[int] = []
    holders = 0
    six_hold_one = asyncio.Event()

    def note_close(connection: Any, _: Any) -> None:
        closed.add(connection.driver_connection.get_server_pid())

    async with open_database(await new_postgres_database(postgres_address), 6) as engine:
        event.listen(engine.sync_engine, "close", note_close)

        async def query() -> None:
            nonlocal holders
            async with reading(engine) as connection:
                holders += 1
                if holders == 6:
                    six_hold_one.set()
                await six_hold_one.wait()
                closed_before = set(closed)
                listed = set((await connection.execute(OPEN_CONNECTIONS)).scalars())
                open_at_once.append(len(listed - closed_before))
                await connection.execute(text("SELECT pg_sleep(0.05)"))

        await asyncio.gather(*(query() for _ in range(20)))
        assert len(open_at_once) == 20
        assert max(open_at_once) == 6

        async with reading(engine) as connection:
            listed = set((await connection.execute(OPEN_CONNECTIONS)).scalars())
        assert len(listed - closed) == 2
