"""The vector cache: a text whose vector is stored is not embedded again by the same embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.chunks import Vector
from lectern.domain.failpoints import reached
from lectern.store.bodies import vector_from_bytes, vector_to_bytes
from lectern.store.database import reading, transaction
from lectern.store.tables import vectors

MAX_VARIABLES = 500  # SQLite limits the variables of one statement


class SqlVectorCache:
    """Vectors by key in the SQL database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def vectors(self, keys: Sequence[str]) -> dict[str, Vector]:
        """The known vectors among these keys."""
        hits: dict[str, Vector] = {}
        async with reading(self._engine) as connection:
            for start in range(0, len(keys), MAX_VARIABLES):
                query = select(vectors).where(vectors.c.key.in_(keys[start : start + MAX_VARIABLES]))
                for row in await connection.execute(query):
                    hits[row.key] = vector_from_bytes(row.vector)
        return hits

    async def remember(self, fresh: Mapping[str, Vector]) -> None:
        """Store these vectors by their keys; a key that is stored already gets the new vector."""
        keys = list(fresh)
        rows = [{"key": key, "vector": vector_to_bytes(vector)} for key, vector in fresh.items()]
        if not rows:
            return
        async with transaction(self._engine) as connection:
            for start in range(0, len(keys), MAX_VARIABLES):
                await connection.execute(delete(vectors).where(vectors.c.key.in_(keys[start : start + MAX_VARIABLES])))
            await connection.execute(insert(vectors), rows)
            reached("vectors.before-remember")
        reached("vectors.remembered")

    async def prune(self, needed_keys: AbstractSet[str]) -> int:
        """Delete every vector but these; returns how many were deleted."""
        async with transaction(self._engine) as connection:
            keys = (await connection.execute(select(vectors.c.key))).scalars().all()
            unused = [key for key in keys if key not in needed_keys]
            for start in range(0, len(unused), MAX_VARIABLES):
                await connection.execute(
                    delete(vectors).where(vectors.c.key.in_(unused[start : start + MAX_VARIABLES]))
                )
        return len(unused)
