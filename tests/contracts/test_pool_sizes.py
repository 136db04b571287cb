"""How many connections a process opens is what the operator set."""

from __future__ import annotations

import asyncio

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.store.database import open_database, reading
from tests.databases import new_postgres_database

OPEN_CONNECTIONS = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")


async def _open_connections(engine: AsyncEngine) -> int:
    async with reading(engine) as connection:
        return int((await connection.execute(OPEN_CONNECTIONS)).scalar() or 0)


async def test_a_process_opens_no_more_connections_to_postgresql_than_it_may(postgres_address: str) -> None:
    """Twenty queries at once share six connections, all are answered, and afterwards two connections stay open."""
    most: list[int] = []
    async with open_database(await new_postgres_database(postgres_address), 6) as engine:

        async def query() -> None:
            async with reading(engine) as connection:
                most.append(int((await connection.execute(OPEN_CONNECTIONS)).scalar() or 0))
                await connection.execute(text("SELECT pg_sleep(0.05)"))

        await asyncio.gather(*(query() for _ in range(20)))

        assert len(most) == 20
        assert max(most) == 6
        assert await _open_connections(engine) == 2
