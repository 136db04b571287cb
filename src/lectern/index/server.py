"""The index on a Qdrant server or cluster, for many processes.

A server offers no lock and no transaction, so a lesson's new version is put beside its old one: points carry their
generation, the ledger says in one commit which is live, and only then is the old one removed. A reader drops what is
not live. If a replacement was committed while it read, it reads again, so that no response is made of two versions.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from lectern.domain.errors import Busy, ConfigError, IndexDamaged, IndexMismatch, ProviderError
from lectern.domain.failpoints import reached
from lectern.domain.filters import ChunkFilter
from lectern.index import lexical, schema
from lectern.index.breaker import Breaker
from lectern.index.server_errors import speaking_lectern
from lectern.index.server_view import CHUNK_ID, GENERATION, PARENT, ServerView, compile_filter, generation_of, scroll
from lectern.ports import Change, Commit, Generations, IndexedChunk, T

BATCH = 64
TIMEOUT = 20  # seconds
ATTEMPTS = 10  # reads that a replacement may disturb before the reader is asked to come back


class ServerIndex:
    """Chunks in a collection of a Qdrant server."""

    def __init__(self, client: AsyncQdrantClient, collection: str, generations: Generations) -> None:
        self._client = client
        self._generations = generations
        self._breaker = Breaker("qdrant")
        self.collection = collection

    async def read(self, work: Callable[[ServerView], Awaitable[T]]) -> T:
        """Do `work`, again and again if a replacement comes in between."""
        for _ in range(ATTEMPTS):
            view = ServerView(self._client, self.collection, self._generations, {})
            with self._breaker.passing():  # readers do not queue up before a server that is down
                result = await work(view)
            if await view.undisturbed():
                return result
        raise Busy("the book is being replaced faster than it can be read; try again in a moment")

    async def replace(self, book_id: str, generation: int, changes: Sequence[Change], commit: Commit) -> None:
        """Put the new version beside the old, commit, remove the old."""
        for chunk in (indexed.stored.chunk for change in changes for indexed in change.put):
            if chunk.book_id != book_id:
                raise ValueError(f"a chunk of {chunk.book_id!r} among those of {book_id!r}")
        points = [to_point(one, change.language, generation) for change in changes for one in change.put]
        for start in range(0, len(points), BATCH):
            with speaking_lectern():
                await self._client.upsert(self.collection, points[start : start + BATCH], wait=True)
            reached("index.put")
        await commit()
        reached("index.before-drop")
        await self._remove_older(book_id, generation, changes)
        reached("index.changed")

    async def remnants(self, book_id: str, pending: AbstractSet[int], *, drop: bool) -> int:
        """Points of a generation that is neither live nor about to be: an old copy of ledger or server was restored."""
        scope = compile_filter(ChunkFilter(book_id=book_id))
        points = await scroll(self._client, self.collection, scope, payload=[PARENT, GENERATION])
        parents = sorted({generation_of(point)[0] for point in points})
        live = await self._generations.live(book_id, parents)
        dead = []
        for point in points:
            parent, generation = generation_of(point)
            if live.get(parent) != generation and generation not in pending:
                dead.append(point.id)
        for start in range(0, len(dead) if drop else 0, BATCH):
            with speaking_lectern():
                some = models.PointIdsList(points=dead[start : start + BATCH])
                await self._client.delete(self.collection, some, wait=True)
        return len(dead)

    async def _remove_older(self, book_id: str, generation: int, changes: Sequence[Change]) -> None:
        """By explicit ids, and looked up again: a delete by filter was seen to miss points."""
        parents = sorted({one.stored.chunk.parent_doc_id for change in changes for one in change.put})
        gone = sorted({chunk for change in changes for chunk in change.drop})
        older = models.FieldCondition(key=GENERATION, range=models.Range(lt=generation))
        stood_there = models.Filter(
            should=[
                models.FieldCondition(key=PARENT, match=models.MatchAny(any=parents)),
                models.FieldCondition(key=CHUNK_ID, match=models.MatchAny(any=gone)),
            ]
        )
        scope = compile_filter(ChunkFilter(book_id=book_id), older, stood_there)
        for _ in range(ATTEMPTS):
            stale = [point.id for point in await scroll(self._client, self.collection, scope, payload=False)]
            if not stale:
                return
            with speaking_lectern():
                await self._client.delete(self.collection, models.PointIdsList(points=stale), wait=True)
        raise ProviderError("qdrant", f"{len(stale)} outdated points could not be deleted; run: lectern doctor")


def to_point(indexed: IndexedChunk, language: str, generation: int) -> models.PointStruct:
    """A chunk of one generation; two generations of it can stand beside each other."""
    chunk = indexed.stored.chunk
    terms = lexical.passage_terms(chunk.trail, chunk.text, language)
    return models.PointStruct(
        id=str(uuid.uuid5(uuid.UUID(chunk.id), str(generation))),
        vector={
            schema.DENSE: [list(vector) for vector in indexed.vectors],
            schema.LEXICAL: models.SparseVector(indices=terms.indices, values=terms.values),
        },
        payload={**schema.to_payload(indexed.stored), CHUNK_ID: chunk.id, GENERATION: generation},
    )


@asynccontextmanager
async def open_server_index(
    client: AsyncQdrantClient, collection: str, dimensions: int | None, generations: Generations
) -> AsyncIterator[ServerIndex]:
    """The collection on the server, created on first use if dimensions are given; the client is closed at the end."""
    try:
        with speaking_lectern():
            if await client.collection_exists(collection):
                await _check(client, collection, dimensions)
            elif dimensions is None:
                raise IndexDamaged(f"the collection {collection!r} is not on the server; run: lectern doctor --mend")
            else:
                await _create(client, collection, dimensions)
        yield ServerIndex(client, collection, generations)
    finally:
        await client.close()


def connect(url: str, api_key: str | None) -> AsyncQdrantClient:
    """A client for a server; nothing is sent yet."""
    try:
        return AsyncQdrantClient(url=url, api_key=api_key, timeout=TIMEOUT, check_compatibility=False)
    except ValueError as exc:
        raise ConfigError(f"QDRANT_URL: {url!r} is no address ({exc})") from exc


async def _check(client: AsyncQdrantClient, collection: str, dimensions: int | None) -> None:
    vectors: Any = (await client.get_collection(collection)).config.params.vectors
    found = vectors.get(schema.DENSE) if isinstance(vectors, dict) else None
    if found is None or (dimensions is not None and found.size != dimensions):
        raise IndexMismatch(
            f"the collection {collection!r} on the server was not made by Lectern for {dimensions} dimensions; "
            "set QDRANT_COLLECTION_NAME to another name"
        )


async def _create(client: AsyncQdrantClient, collection: str, dimensions: int) -> None:
    windows = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    dense = models.VectorParams(size=dimensions, distance=models.Distance.COSINE, multivector_config=windows)
    sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
    await client.create_collection(
        collection, vectors_config={schema.DENSE: dense}, sparse_vectors_config={schema.LEXICAL: sparse}
    )
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    await client.create_payload_index(collection, schema.TENANT_FIELD, field_schema=tenant)
    for name in (*schema.KEYWORD_FIELDS, CHUNK_ID):
        await client.create_payload_index(collection, name, field_schema=models.PayloadSchemaType.KEYWORD)
    for name in (*schema.INTEGER_FIELDS, GENERATION):
        await client.create_payload_index(collection, name, field_schema=models.PayloadSchemaType.INTEGER)
