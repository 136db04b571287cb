"""A Qdrant for tests: the client's in-memory mode, or a real server where LECTERN_TEST_QDRANT_URL names one."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from qdrant_client import AsyncQdrantClient

from lectern.index.server import ServerIndex, open_server_index
from lectern.ports.index import Generations
from tests.conftest import TEST_QDRANT_URL


@asynccontextmanager
async def server_index(
    generations: Generations, dimensions: int, name: str | None = None
) -> AsyncIterator[ServerIndex]:
    """An empty collection of its own, removed at the end."""
    client = AsyncQdrantClient(url=TEST_QDRANT_URL) if TEST_QDRANT_URL else AsyncQdrantClient(":memory:")
    name = name or f"test-{uuid.uuid4().hex}"
    async with open_server_index(client, name, dimensions, generations) as index:
        try:
            yield index
        finally:
            await client.delete_collection(name)
