"""Collections for tests: on a real Qdrant server where there is one, else in the client's in-memory mode."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from lectern.index.layout import payload_schemas
from lectern.index.nodes import connect
from lectern.index.server import ServerIndex, open_server_index
from lectern.ports.index import Generations


class ShardedClient(AsyncQdrantClient):
    """A client whose collections have three shards."""

    async def create_collection(self, *args: Any, **kwargs: Any) -> bool:
        """Make the collection as it is asked for, on three shards."""
        return await super().create_collection(*args, **{**kwargs, "shard_number": 3})


class MemoryClient(AsyncQdrantClient):
    """The client's in-memory mode, which takes layout and payload indexes for granted."""

    async def get_collection(self, *args: Any, **kwargs: Any) -> models.CollectionInfo:
        """The collection as it was asked for."""
        info = await super().get_collection(*args, **kwargs)
        info.payload_schema = dict.fromkeys(payload_schemas(), models.PayloadIndexInfo(data_type="keyword", points=0))
        info.config.hnsw_config.m = 0
        return info

    async def cluster_status(self) -> models.ClusterStatus:
        """It is no cluster."""
        return models.ClusterStatusOneOf(status="disabled")


@asynccontextmanager
async def server_index(
    generations: Generations,
    dimensions: int,
    name: str | None = None,
    *,
    url: str | None = None,
    client: AsyncQdrantClient | None = None,
) -> AsyncIterator[ServerIndex]:
    """An empty collection of its own, removed at the end; in memory unless a server or a client is given."""
    client = client or (connect(url, None) if url else MemoryClient(":memory:"))
    name = name or f"test-{uuid.uuid4().hex}"
    async with open_server_index(client, name, dimensions, generations) as index:
        try:
            yield index
        finally:
            await client.delete_collection(name)
