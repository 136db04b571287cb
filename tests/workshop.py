"""A workshop on real parts (Qdrant Edge, SQLite) with the quick embedder, for ingestion tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from lectern.domain.errors import ConfigError
from lectern.domain.filters import ChunkFilter
from lectern.domain.jobs import Finished, IngestionJob, Mode
from lectern.index.edge import open_edge_index
from lectern.index.schema import collection_name, to_payload
from lectern.ingestion.ingest import IngestRequest, Workshop, ingest
from lectern.ingestion.replacing import recover, verify_all
from lectern.ports import Embedder, Stand
from lectern.reading.rules import ReadingRules
from lectern.records.database import open_database, sqlite_url
from lectern.records.ledger import SqlGenerations, SqlLedger
from lectern.records.vectors import SqlVectorCache
from lectern.stands import OpenShelf
from tests.doubles import WordEmbedder
from tests.qdrant import server_index

TIMES = {"created_at", "updated_at", "version", "embedded_at"}


@asynccontextmanager
async def workshop(home: Path, embedder: Embedder | None = None, *, server: bool = False) -> AsyncIterator[Workshop]:
    """Everything an ingestion works with, below this folder; what a kill left half done is completed first."""
    home.mkdir(parents=True, exist_ok=True)
    embedder = embedder or WordEmbedder()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_database(sqlite_url(home / "lectern.db")))

        def open_index(name: str, dimensions: int | None):
            if server:
                return server_index(SqlGenerations(engine, name), embedder.dimensions, name)
            return open_edge_index(home / "index", name, dimensions)

        def build(fingerprint: str) -> Embedder:
            raise ConfigError("it is switched off")

        name = collection_name("test", embedder.fingerprint)
        index = await stack.enter_async_context(open_index(name, embedder.dimensions))
        shelf = OpenShelf(stack, Stand(embedder=embedder, index=index), open_index, build)
        ledger = SqlLedger(engine)
        await recover(ledger, shelf)
        await verify_all(ledger, shelf)
        yield Workshop(ledger=ledger, shelf=shelf, vectors=SqlVectorCache(engine), rules=ReadingRules())


async def run(shop: Workshop, folder: Path, mode: Mode = "incremental", *, replace: bool = True) -> IngestionJob:
    """One whole ingestion."""
    request = IngestRequest(folder=folder, book_id="book", mode=mode, replace=replace)
    job: IngestionJob | None = None
    async for event in ingest(request, shop):
        if isinstance(event, Finished):
            job = event.job
    assert job is not None, "an ingestion ends with Finished"
    return job


async def content(shop: Workshop, book_id: str = "book") -> list[str]:
    """What the index holds, without the moments at which it got there."""
    held = await shop.shelf.current.index.read(lambda view: view.chunks(ChunkFilter(book_id=book_id)))
    return [
        json.dumps(
            {"id": stored.chunk.id, **{k: v for k, v in to_payload(stored).items() if k not in TIMES}}, sort_keys=True
        )
        for stored in held
    ]


async def agreement(shop: Workshop, book_id: str = "book") -> None:
    """Index and ledger name the same chunks."""
    held = await shop.shelf.current.index.read(lambda view: view.chunks(ChunkFilter(book_id=book_id)))
    records = await shop.ledger.records(book_id, shop.shelf.current.index.collection)
    listed = [chunk for record in records.values() for chunk in record.chunk_ids]
    assert sorted(stored.chunk.id for stored in held) == sorted(listed)
    assert len(listed) == len(set(listed))
