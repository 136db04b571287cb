"""The index on a Qdrant server or cluster, for many processes.

A server offers no lock and no transaction, so a lesson's new version is put beside its old one: points carry their
generation, the ledger says in one commit which is live, and only then is the old one removed. A reader drops what is
not live. If a replacement was committed while it read, it reads again, so that no response is made of two versions.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import qdrant_edge
from qdrant_client import AsyncQdrantClient, models

from lectern.domain.chunks import StampedChunk
from lectern.domain.errors import Busy, ConfigError, IndexMismatch, ProviderError
from lectern.domain.evidence import Candidate
from lectern.domain.failpoints import reached
from lectern.domain.filters import ChunkFilter
from lectern.index import lexical, schema
from lectern.index.server_errors import speaking_lectern
from lectern.ports import Change, Commit, Generations, IndexedChunk, T, Vector

BATCH = 64
PAGE = 512
MOST_BOOKS = 100_000
TIMEOUT = 20  # seconds
ATTEMPTS = 10  # reads that a replacement may disturb before the reader is asked to come back
CHUNK_ID = "chunk_id"
GENERATION = "generation"

P = TypeVar("P", models.ScoredPoint, models.Record)


@dataclass(slots=True)
class ServerView:
    """The collection as it stands for one response."""

    client: AsyncQdrantClient
    collection: str
    generations: Generations
    epochs: dict[str, int]

    async def undisturbed(self) -> bool:
        """Whether no replacement was committed since this view first looked at each book."""
        return all([await self.generations.epoch(book_id) == epoch for book_id, epoch in self.epochs.items()])

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the nearest by cosine and the best by BM25, each with both scores."""
        terms = lexical.query_terms(text, language)
        scope = compile_filter(where)
        near = await self._dense(vector, scope, where.book_id, limit)
        worded = await self._lexical(terms, scope, where.book_id, limit)
        found = {point.id: point for point in (*near, *worded)}
        cosines = {point.id: point.score for point in near}
        bm25s = {point.id: point.score for point in worded}
        if missing := found.keys() - cosines.keys():
            more = await self._dense(vector, among(scope, missing), where.book_id, len(missing))
            cosines |= {point.id: point.score for point in more}
        if missing := found.keys() - bm25s.keys():
            more = await self._lexical(terms, among(scope, missing), where.book_id, len(missing))
            bm25s |= {point.id: point.score for point in more}
        return [
            Candidate(stored=_stored(point), cosine=cosines[point_id], bm25=bm25s.get(point_id, 0.0))
            for point_id, point in found.items()
        ]

    async def _dense(self, vector: Vector, scope: models.Filter, book_id: str, limit: int) -> list[models.ScoredPoint]:
        return await self._query([vector], schema.DENSE, scope, None, book_id, limit)

    async def _lexical(
        self, terms: qdrant_edge.SparseVector, scope: models.Filter, book_id: str, limit: int
    ) -> list[models.ScoredPoint]:
        if not terms.indices:
            return []
        # Without its own corpus a book's scores would change with every other book, and never change back.
        corpus = models.IdfCorpusParams(corpus=compile_filter(ChunkFilter(book_id=book_id)))
        query = models.SparseVector(indices=terms.indices, values=terms.values)
        return await self._query(query, schema.LEXICAL, scope, models.SearchParams(idf=corpus), book_id, limit)

    async def _query(  # what a query is made of
        self,
        query: list[Vector] | models.SparseVector,
        using: str,
        scope: models.Filter,
        params: models.SearchParams | None,
        book_id: str,
        limit: int,
    ) -> list[models.ScoredPoint]:
        await self._begin(book_id)
        with speaking_lectern():
            response = await self.client.query_points(
                self.collection,
                query=query,
                using=using,
                query_filter=scope,
                search_params=params,
                limit=limit,
                with_payload=True,
            )
        return await self._alive(book_id, response.points)

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index."""
        await self._begin(where.book_id)
        points = await _scroll(self.client, self.collection, compile_filter(where))
        found = [_stored(point) for point in await self._alive(where.book_id, points)]
        return sorted(found, key=lambda stored: (stored.chunk.source_file, stored.chunk.chunk_index))

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """Those of `ids` that this book has."""
        points = await self._by_ids(book_id, ids, with_vectors=False)
        return {stored.chunk.id: stored for stored in map(_stored, points)}

    async def vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, tuple[Vector, ...]]:
        """The dense vectors of those of `ids` that this book has."""
        points = await self._by_ids(book_id, ids, with_vectors=True)
        return {str(_payload(point)[CHUNK_ID]): _dense_of(point) for point in points}

    async def count(self, where: ChunkFilter) -> int:
        """How many live chunks are in scope."""
        return len(await self.chunks(where))

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here."""
        with speaking_lectern():
            facet = await self.client.facet(self.collection, schema.TENANT_FIELD, limit=MOST_BOOKS, exact=True)
        return frozenset(str(hit.value) for hit in facet.hits if hit.count)

    async def _by_ids(self, book_id: str, ids: Sequence[str], *, with_vectors: bool) -> list[models.Record]:
        await self._begin(book_id)
        found: list[models.Record] = []
        for start in range(0, len(ids), PAGE):
            any_of = models.MatchAny(any=list(ids[start : start + PAGE]))
            scope = compile_filter(ChunkFilter(book_id=book_id), models.FieldCondition(key=CHUNK_ID, match=any_of))
            found += await _scroll(self.client, self.collection, scope, with_vectors=with_vectors)
        return await self._alive(book_id, found)

    async def _begin(self, book_id: str) -> None:
        if book_id not in self.epochs:
            self.epochs[book_id] = await self.generations.epoch(book_id)

    async def _alive(self, book_id: str, points: Sequence[P]) -> list[P]:
        """Without those of a version that is coming or going."""
        parents = sorted({str(_payload(point)["parent_doc_id"]) for point in points})
        live = await self.generations.live(book_id, parents)
        return [point for point in points if live.get(_payload(point)["parent_doc_id"]) == _payload(point)[GENERATION]]


class ServerIndex:
    """Chunks in a collection of a Qdrant server."""

    def __init__(self, client: AsyncQdrantClient, collection: str, generations: Generations) -> None:
        self._client = client
        self._generations = generations
        self.collection = collection

    async def read(self, work: Callable[[ServerView], Awaitable[T]]) -> T:
        """Do `work`, again and again if a replacement comes in between."""
        for _ in range(ATTEMPTS):
            view = ServerView(self._client, self.collection, self._generations, {})
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

    async def _remove_older(self, book_id: str, generation: int, changes: Sequence[Change]) -> None:
        """By explicit ids, and looked up again: a delete by filter was seen to miss points."""
        parents = sorted({one.stored.chunk.parent_doc_id for change in changes for one in change.put})
        gone = sorted({chunk for change in changes for chunk in change.drop})
        older = models.FieldCondition(key=GENERATION, range=models.Range(lt=generation))
        stood_there = models.Filter(
            should=[
                models.FieldCondition(key="parent_doc_id", match=models.MatchAny(any=parents)),
                models.FieldCondition(key=CHUNK_ID, match=models.MatchAny(any=gone)),
            ]
        )
        scope = compile_filter(ChunkFilter(book_id=book_id), older, stood_there)
        for _ in range(ATTEMPTS):
            stale = [point.id for point in await _scroll(self._client, self.collection, scope)]
            if not stale:
                return
            with speaking_lectern():
                await self._client.delete(self.collection, models.PointIdsList(points=stale), wait=True)
        raise ProviderError("qdrant", f"{len(stale)} outdated points could not be deleted; run: lectern doctor")


def compile_filter(where: ChunkFilter, *more: models.FieldCondition | models.Filter) -> models.Filter:
    """The one place where a filter is built; its first condition is always the book."""
    must: list[Any] = [_equals(schema.TENANT_FIELD, where.book_id)]
    must.append(models.FieldCondition(key="hardware_tier", range=models.Range(lte=where.max_tier)))
    for key, value in (
        ("module", where.module),
        ("lesson", where.lesson),
        ("layer", where.layer),
        ("parent_doc_id", where.parent_doc_id),
    ):
        if value is not None:
            must.append(_equals(key, value))
    if where.chapter_min is not None or where.chapter_max is not None:
        chapters = models.Range(gte=where.chapter_min, lte=where.chapter_max)
        must.append(models.FieldCondition(key="chapter", range=chapters))
    if where.levels is not None:
        any_of = models.MatchAny(any=sorted(where.levels))
        must.append(models.FieldCondition(key="proficiency_level", match=any_of))
    return models.Filter(must=[*must, *more])


def among(scope: models.Filter, ids: set[Any]) -> models.Filter:
    """The same scope, narrowed to these points."""
    return models.Filter(must=[scope, models.HasIdCondition(has_id=sorted(ids))])


def _equals(key: str, value: str | int) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


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


def _payload(point: models.ScoredPoint | models.Record) -> dict[str, Any]:
    return point.payload or {}


def _stored(point: models.ScoredPoint | models.Record) -> StampedChunk:
    return schema.from_payload(_payload(point).get(CHUNK_ID), point.payload)


def _dense_of(point: models.Record) -> tuple[Vector, ...]:
    vectors: Any = point.vector
    return tuple(list(window) for window in vectors[schema.DENSE])


async def _scroll(
    client: AsyncQdrantClient, collection: str, scope: models.Filter, *, with_vectors: bool = False
) -> list[models.Record]:
    found: list[models.Record] = []
    offset: Any = None
    while True:
        with speaking_lectern():
            records, offset = await client.scroll(
                collection,
                scroll_filter=scope,
                limit=PAGE,
                offset=offset,
                with_payload=True,
                with_vectors=[schema.DENSE] if with_vectors else False,
            )
        found += records
        if offset is None:
            return found


@asynccontextmanager
async def open_server_index(
    client: AsyncQdrantClient, collection: str, dimensions: int | None, generations: Generations
) -> AsyncIterator[ServerIndex]:
    """The collection on the server, created on first use if dimensions are given; the client is closed at the end."""
    try:
        with speaking_lectern():
            if dimensions is None or await client.collection_exists(collection):
                await _check(client, collection, dimensions)
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
