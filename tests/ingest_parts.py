"""Ingestion with real parts (Qdrant Edge, SQLite) with the quick embedder, for ingestion tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import qdrant_edge
from sqlalchemy import select

from lectern.app.collections import OpenCollections
from lectern.domain.errors import ConfigError
from lectern.domain.jobs import Finished, IngestionJob, Mode
from lectern.domain.scope import ChunkFilter
from lectern.index.edge import EdgeIndex, engine_errors, open_edge_index
from lectern.index.edge import compile_filter as edge_filter
from lectern.index.layout import CHUNK_ID
from lectern.index.points import version_of
from lectern.index.schema import DENSE, LEXICAL, collection_name
from lectern.index.server import ServerIndex
from lectern.index.server import compile_filter as server_filter
from lectern.ingestion.ingest import IngestDeps, IngestRequest, ingest
from lectern.ingestion.replacing import recover_all, verify_all
from lectern.ports.index import ChunkIndex, Embedder, Serving
from lectern.reading.chunking import ReadingRules
from lectern.schemas.payload import to_payload
from lectern.store import tables
from lectern.store.database import open_database, sqlite_url
from lectern.store.ledger import SqlLedger
from lectern.store.locks import SqlBookLocks
from lectern.store.vectors import SqlVectorCache
from tests.doubles import WordEmbedder
from tests.qdrant import server_index

PRECISION = 1e-5  # single precision, normalised by one engine or the other
TIMES = {"created_at", "updated_at", "version", "embedded_at"}


@asynccontextmanager
async def open_ingest_parts(
    home: Path, embedder: Embedder | None = None, *, server: bool = False, url: str | None = None
) -> AsyncIterator[IngestDeps]:
    """Everything an ingestion works with, below this folder; what a kill left half done is completed first. With
    `server` the index is in the client's memory, or on the server at `url`."""
    home.mkdir(parents=True, exist_ok=True)
    embedder = embedder or WordEmbedder()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_database(sqlite_url(home / "lectern.db")))

        ledger = SqlLedger(engine)

        def open_index(name: str, dimensions: int | None):
            if server:
                return server_index(ledger.generations(name), embedder.dimensions, name, url=url)
            return open_edge_index(home / "index", name, dimensions, ledger.generations(name))

        def build(fingerprint: str) -> Embedder:
            raise ConfigError("it is switched off")

        name = collection_name("test", embedder.fingerprint)
        index = await stack.enter_async_context(open_index(name, embedder.dimensions))
        collections = OpenCollections(stack, Serving(embedder=embedder, index=index), open_index, build)
        locks = SqlBookLocks(engine)
        await recover_all(ledger, collections, locks)
        await verify_all(ledger, collections, locks)
        yield IngestDeps(
            ledger=ledger, collections=collections, vectors=SqlVectorCache(engine), rules=ReadingRules(), locks=locks
        )


async def run(
    ingest_deps: IngestDeps, folder: Path, mode: Mode = "incremental", *, replace: bool = True
) -> IngestionJob:
    """One whole ingestion."""
    request = IngestRequest(folder=folder, book_id="book", mode=mode, replace=replace)
    job: IngestionJob | None = None
    async for event in ingest(request, ingest_deps):
        if isinstance(event, Finished):
            job = event.job
    assert job is not None, "an ingestion ends with Finished"
    return job


def _near(first: list[float], second: list[float]) -> bool:
    same = len(first) == len(second)
    return same and all(abs(a - b) < PRECISION for a, b in zip(first, second, strict=True))


class StoredText(str):
    """A chunk as the index holds it: its payload as text, and beside it what it is found by. Two are equal when the
    payloads are, and vectors and words as nearly as single precision can tell."""

    __slots__ = ("dense", "words")
    dense: list[list[float]]
    words: dict[int, float]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StoredText)
            and str.__eq__(self, other)
            and self.words.keys() == other.words.keys()
            and _near(list(self.words.values()), [other.words[word] for word in self.words])
            and len(self.dense) == len(other.dense)
            and all(_near(vector, other_vector) for vector, other_vector in zip(self.dense, other.dense, strict=True))
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


async def content(ingest_deps: IngestDeps, book_id: str = "book") -> list[StoredText]:
    """What the index holds, vectors and words included, without the moments at which it got there."""
    index = ingest_deps.collections.current.index
    stored_chunks = await index.read(lambda view: view.chunks(ChunkFilter(book_id=book_id)))
    points = await _points(index, book_id)
    texts = []
    for stored_chunk in stored_chunks:
        payload = {k: v for k, v in to_payload(stored_chunk).items() if k not in TIMES}
        text = StoredText(json.dumps({"id": stored_chunk.chunk.id, **payload}, sort_keys=True))
        vectors = points[stored_chunk.chunk.id]
        text.dense = [list(window) for window in vectors[DENSE]]
        text.words = dict(zip(vectors[LEXICAL].indices, vectors[LEXICAL].values, strict=True))
        texts.append(text)
    return texts


async def _points(index: ChunkIndex, book_id: str) -> dict[str, Any]:
    """The vectors of every live point, by its chunk, as the engine itself gives them."""
    where = ChunkFilter(book_id=book_id)
    if isinstance(index, EdgeIndex):
        request = qdrant_edge.ScrollRequest(
            limit=100_000, filter=edge_filter(where), with_payload=False, with_vector=True
        )
        with engine_errors(index.collection):  # as the adapter itself reads
            return {str(record.id): record.vector for record in index._shard.scroll(request)[0]}
    assert isinstance(index, ServerIndex)
    records, _ = await index._client.scroll(
        index.collection, scroll_filter=server_filter(where), limit=100_000, with_vectors=True
    )
    lessons = await index._generations.live(book_id, [version_of(record)[0] for record in records])
    live = lessons.generations
    return {
        str((record.payload or {})[CHUNK_ID]): record.vector
        for record in records
        if live.get(version_of(record)[0]) == version_of(record)[1]
    }


async def term_counts(ingest_deps: IngestDeps, book_id: str = "book") -> tuple[int, dict[int, int]]:
    """How many chunks the ledger counts in the book, and in how many each term occurs."""
    lexicon, counts = tables.lexicons, tables.term_counts
    place = (lexicon.c.book_id == book_id) & (lexicon.c.collection == ingest_deps.collections.current.index.collection)
    query = select(counts.c.term, counts.c.chunks).join(lexicon, lexicon.c.number == counts.c.lexicon).where(place)
    ledger = ingest_deps.ledger
    assert isinstance(ledger, SqlLedger)
    async with ledger._engine.connect() as connection:
        total = (await connection.execute(select(lexicon.c.chunks).where(place))).scalar()
        return total or 0, {row.term: row.chunks for row in await connection.execute(query)}


async def counts_are_right(ingest_deps: IngestDeps, book_id: str = "book") -> tuple[int, dict[int, int]]:
    """The ledger counts what the index holds, and knows that it does; returns the counts."""
    index = ingest_deps.collections.current.index
    stored_chunks = await index.read(lambda view: view.chunks(ChunkFilter(book_id=book_id)))
    entry = await ingest_deps.ledger.book(book_id)
    counts = await term_counts(ingest_deps, book_id)
    if entry is not None and entry.collection_name == index.collection:
        # by the terms in the index itself: after a kill the book may have another language already than its chunks
        points = await _points(index, book_id)
        held = Counter(term for vectors in points.values() for term in vectors[LEXICAL].indices)
        assert counts == (len(stored_chunks), held)
        ledger = ingest_deps.ledger
        assert isinstance(ledger, SqlLedger)
        known = await ledger.generations(index.collection).counts(book_id, list(counts[1])[:100])
        assert known.complete
        assert known.chunks == len(stored_chunks)
        assert {term: counts[1][term] for term in known.by_term} == known.by_term
    return counts


async def agreement(ingest_deps: IngestDeps, book_id: str = "book") -> None:
    """Index and ledger name the same chunks."""
    stored_chunks = await ingest_deps.collections.current.index.read(
        lambda view: view.chunks(ChunkFilter(book_id=book_id))
    )
    records = await ingest_deps.ledger.records(book_id, ingest_deps.collections.current.index.collection)
    listed = [chunk for record in records.values() for chunk in record.chunk_ids]
    assert sorted(stored.chunk.id for stored in stored_chunks) == sorted(listed)
    assert len(listed) == len(set(listed))
