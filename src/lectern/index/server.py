"""The index on a Qdrant server or cluster, for many processes.

A server offers no lock and no transaction, so a lesson's new version is stored beside its old one. Points carry their
generation, the ledger says in one commit which generation is live, and only then is the old one removed. A reader
ignores points that are not live. If a replacement was committed during a read, the read is repeated, so that no
response mixes two versions.

Exceptions of the Qdrant client become errors of Lectern in this module.

A circuit breaker protects against a server that does not answer: after a few failures in a row, requests fail at once.
Every few seconds one request is let through. When it succeeds, all requests are.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from lectern.domain.chunks import Change, ChunkId, IndexedChunk, StampedChunk, Vector
from lectern.domain.errors import (
    Busy,
    ConfigError,
    IndexDamaged,
    IndexMismatch,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    RateLimited,
)
from lectern.domain.evidence import Candidate
from lectern.domain.failpoints import reached
from lectern.domain.scope import ChunkFilter
from lectern.index import lexical, schema
from lectern.index.schema import AnyOf, ChunkRef, Condition, Equals, Scores, Within, candidates, conditions_of
from lectern.ports.index import Commit, Generations
from lectern.schemas.payload import from_payload, to_payload

T = TypeVar("T")

PROVIDER = "qdrant"
BAD_REQUEST, SERVER_ERROR = 400, 500
PAGE_SIZE = 512
MAX_BOOKS = 100_000
CHUNK_ID = "chunk_id"
GENERATION = "generation"
PARENT = "parent_doc_id"

P = TypeVar("P", models.ScoredPoint, models.Record)
MAX_FAILURES = 3  # in a row
RETRY_SECONDS = 5.0  # between two attempts; a 503 tells clients to wait as long
POINTS_PER_REQUEST = 64
TIMEOUT_SECONDS = 20
MAX_ATTEMPTS = 10  # of a read that replacements interrupt, and of a deletion


@contextmanager
def client_errors() -> Iterator[None]:
    """Turn an exception of the client into an error of Lectern that says what to do."""
    try:
        yield
    except ResourceExhaustedResponse as exc:
        raise RateLimited(PROVIDER, float(exc.retry_after_s)) from exc
    except UnexpectedResponse as exc:
        status = exc.status_code or SERVER_ERROR
        if BAD_REQUEST <= status < SERVER_ERROR:
            raise ProviderRefused(PROVIDER, f"refused ({status}); check QDRANT_URL and QDRANT_API_KEY") from exc
        raise ProviderError(PROVIDER, f"failed ({status}); try again") from exc
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:  # the client does not catch these
        raise ProviderError(PROVIDER, "gave an answer that cannot be read; check that QDRANT_URL is a Qdrant") from exc
    except ResponseHandlingException as exc:
        if isinstance(exc.source, httpx.TimeoutException):
            raise ProviderTimeout(PROVIDER, "did not answer in time; try again") from exc
        raise ProviderError(PROVIDER, "could not be reached; check QDRANT_URL and that the server runs") from exc


@dataclass(slots=True)
class ServerView:
    """Reads from the collection for one response."""

    client: AsyncQdrantClient
    collection: str
    generations: Generations
    epochs: dict[str, int]

    async def is_current(self) -> bool:
        """Whether no replacement was committed since this view first read from each book."""
        return all([await self.generations.epoch(book_id) == epoch for book_id, epoch in self.epochs.items()])

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the nearest chunks by cosine and the best by BM25, each with both scores."""
        terms = lexical.query_terms(text, language)
        # Without its own corpus a book's scores would change with every other book, and never change back.
        corpus = models.IdfCorpusParams(corpus=compile_filter(ChunkFilter(book_id=where.book_id)))
        refs: dict[str, ChunkRef] = {}

        async def vector_scores(ids: Collection[str] | None) -> Scores:
            exact = models.SearchParams(exact=True)  # as in the embedded index, so that both rank alike
            return _scores(await self._query([vector], schema.DENSE, exact, where, ids, limit), refs)

        async def word_scores(ids: Collection[str] | None) -> Scores:
            if not terms.indices:
                return {}
            query = models.SparseVector(indices=terms.indices, values=terms.values)
            params = models.SearchParams(idf=corpus)
            return _scores(await self._query(query, schema.LEXICAL, params, where, ids, limit), refs)

        return await candidates(vector_scores, word_scores, lambda _: refs)

    async def _query(
        self,
        query: list[Vector] | models.SparseVector,
        using: str,
        params: models.SearchParams,
        where: ChunkFilter,
        ids: Collection[str] | None,
        limit: int,
    ) -> list[models.ScoredPoint]:
        await self._note_epoch(where.book_id)
        id_condition = () if ids is None else (models.HasIdCondition(has_id=sorted(ids)),)
        with client_errors():
            response = await self.client.query_points(
                self.collection,
                query=query,
                using=using,
                query_filter=compile_filter(where, *id_condition),
                search_params=params,
                limit=limit if ids is None else len(ids),
                with_payload=[CHUNK_ID, GENERATION, PARENT, schema.HASH_FIELD],
            )
        return await self._live(where.book_id, response.points)

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index."""
        await self._note_epoch(where.book_id)
        points = await scroll(self.client, self.collection, compile_filter(where))
        chunks = [stored_of(point) for point in await self._live(where.book_id, points)]
        return sorted(chunks, key=lambda stored: (stored.chunk.source_file, stored.chunk.chunk_index))

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """The chunks of this book among these ids."""
        points = await self._by_ids(book_id, ids, with_vectors=False)
        return {stored.chunk.id: stored for stored in map(stored_of, points)}

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The chunks of this book among these ids, each with its dense vectors."""
        points = await self._by_ids(book_id, ids, with_vectors=True)
        chunks = [IndexedChunk(stored=stored_of(point), vectors=_dense_of(point)) for point in points]
        return {indexed.stored.chunk.id: indexed for indexed in chunks}

    async def count(self, where: ChunkFilter) -> int:
        """How many live chunks are in scope. Only their generation is read, so payloads of an older format are counted
        too."""
        await self._note_epoch(where.book_id)
        points = await scroll(self.client, self.collection, compile_filter(where), payload=[PARENT, GENERATION])
        return len(await self._live(where.book_id, points))

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here."""
        with client_errors():
            facet = await self.client.facet(self.collection, schema.TENANT_FIELD, limit=MAX_BOOKS, exact=True)
        return frozenset(str(hit.value) for hit in facet.hits if hit.count)

    async def _by_ids(self, book_id: str, ids: Sequence[str], *, with_vectors: bool) -> list[models.Record]:
        await self._note_epoch(book_id)
        records: list[models.Record] = []
        for start in range(0, len(ids), PAGE_SIZE):
            any_of = models.MatchAny(any=list(ids[start : start + PAGE_SIZE]))
            scope = compile_filter(ChunkFilter(book_id=book_id), models.FieldCondition(key=CHUNK_ID, match=any_of))
            records += await scroll(self.client, self.collection, scope, with_vectors=with_vectors)
        return await self._live(book_id, records)

    async def _note_epoch(self, book_id: str) -> None:
        if book_id not in self.epochs:
            self.epochs[book_id] = await self.generations.epoch(book_id)

    async def _live(self, book_id: str, points: Sequence[P]) -> list[P]:
        """The points whose generation is live."""
        parents = sorted({str(_payload(point)[PARENT]) for point in points})
        generations = await self.generations.live(book_id, parents)
        return [point for point in points if generations.get(_payload(point)[PARENT]) == _payload(point)[GENERATION]]


def compile_filter(where: ChunkFilter, *more: models.Condition) -> models.Filter:
    """The filter in the server's form, narrowed by further conditions."""
    return models.Filter(must=[*(_translate(condition) for condition in conditions_of(where)), *more])


def _translate(condition: Condition) -> models.FieldCondition:
    match condition:
        case Equals(key, value):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))
        case AnyOf(key, values):
            return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        case Within(key, low, high):
            return models.FieldCondition(key=key, range=models.Range(gte=low, lte=high))


def _payload(point: models.ScoredPoint | models.Record) -> dict[str, Any]:
    return point.payload or {}


def stored_of(point: models.ScoredPoint | models.Record) -> StampedChunk:
    """The chunk behind a point."""
    return from_payload(_payload(point).get(CHUNK_ID), point.payload)


def _scores(points: Sequence[models.ScoredPoint], refs: dict[str, ChunkRef]) -> Scores:
    """The scores of the points; the ids and hashes of their chunks are added to `refs`."""
    for point in points:
        payload = _payload(point)
        refs[str(point.id)] = (ChunkId(str(payload[CHUNK_ID])), str(payload[schema.HASH_FIELD]))
    return {str(point.id): point.score for point in points}


def generation_of(point: models.Record) -> tuple[str, int]:
    """The lesson that a point belongs to, and its generation."""
    return str(_payload(point)[PARENT]), int(_payload(point)[GENERATION])


def _dense_of(point: models.Record) -> tuple[Vector, ...]:
    vectors: Any = point.vector
    return tuple(list(window) for window in vectors[schema.DENSE])


async def scroll(
    client: AsyncQdrantClient,
    collection: str,
    scope: models.Filter,
    *,
    with_vectors: bool = False,
    payload: bool | list[str] = True,
) -> list[models.Record]:
    """Every point that matches the filter, with all, some or none of its payload."""
    points: list[models.Record] = []
    offset: Any = None
    while True:
        with client_errors():
            records, offset = await client.scroll(
                collection,
                scroll_filter=scope,
                limit=PAGE_SIZE,
                offset=offset,
                with_payload=payload,
                with_vectors=[schema.DENSE] if with_vectors else False,
            )
        points += records
        if offset is None:
            return points


class CircuitBreaker:
    """Lets requests pass while the server answers; after failures in a row it refuses them at once for a while."""

    def __init__(self, provider: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider, self._clock = provider, clock
        self._failures = 0
        self._refuse_until = 0.0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Let one request pass; raise at once if the last ones failed."""
        if self._failures >= MAX_FAILURES:
            if self._clock() < self._refuse_until:
                raise ProviderError(self._provider, "does not answer, and was asked a moment ago; try again soon")
            self._refuse_until = self._clock() + RETRY_SECONDS  # this request is the attempt; others keep failing
        try:
            yield
        except ProviderError as exc:
            if exc.retryable:
                self._failures += 1
                self._refuse_until = self._clock() + RETRY_SECONDS
            raise
        self._failures = 0


class ServerIndex:
    """Chunks in a collection of a Qdrant server."""

    def __init__(self, client: AsyncQdrantClient, collection: str, generations: Generations) -> None:
        self._client = client
        self._generations = generations
        self._breaker = CircuitBreaker("qdrant")
        self.collection = collection

    async def read(self, work: Callable[[ServerView], Awaitable[T]]) -> T:
        """Run `work`, and run it again if a replacement was committed in between."""
        for _ in range(MAX_ATTEMPTS):
            view = ServerView(self._client, self.collection, self._generations, {})
            with self._breaker.request():  # readers do not wait for a server that is down
                result = await work(view)
            if await view.is_current():
                return result
        raise Busy("the book is being replaced faster than it can be read; try again in a moment")

    async def check_room(self) -> None:
        """Nothing: the server looks after its own disk."""

    async def replace(self, book_id: str, generation: int, changes: Sequence[Change], commit: Commit) -> None:
        """Store the new version beside the old, commit, remove the old."""
        for chunk in (indexed.stored.chunk for change in changes for indexed in change.put):
            if chunk.book_id != book_id:
                raise ValueError(f"a chunk of {chunk.book_id!r} among those of {book_id!r}")
        points = [to_point(indexed, change.language, generation) for change in changes for indexed in change.put]
        for start in range(0, len(points), POINTS_PER_REQUEST):
            with client_errors():
                await self._client.upsert(self.collection, points[start : start + POINTS_PER_REQUEST], wait=True)
            reached("index.put")
        await commit()
        reached("index.before-drop")
        await self._remove_older(book_id, generation, changes)
        reached("index.changed")

    async def remnants(self, book_id: str, pending: AbstractSet[int], *, drop: bool) -> int:
        """Points of a generation that is neither live nor pending: an old copy of the ledger or the server was
        restored."""
        scope = compile_filter(ChunkFilter(book_id=book_id))
        points = await scroll(self._client, self.collection, scope, payload=[PARENT, GENERATION])
        parents = sorted({generation_of(point)[0] for point in points})
        live = await self._generations.live(book_id, parents)
        dead = []
        for point in points:
            parent, generation = generation_of(point)
            if live.get(parent) != generation and generation not in pending:
                dead.append(point.id)
        for start in range(0, len(dead) if drop else 0, POINTS_PER_REQUEST):
            with client_errors():
                batch = models.PointIdsList(points=dead[start : start + POINTS_PER_REQUEST])
                await self._client.delete(self.collection, batch, wait=True)
        return len(dead)

    async def _remove_older(self, book_id: str, generation: int, changes: Sequence[Change]) -> None:
        """Delete the older generations by explicit ids, and look for more until none is left: a delete by filter has
        missed points."""
        parents = sorted({indexed.stored.chunk.parent_doc_id for change in changes for indexed in change.put})
        dropped = sorted({chunk for change in changes for chunk in change.drop})
        older = models.FieldCondition(key=GENERATION, range=models.Range(lt=generation))
        of_changes = models.Filter(
            should=[
                models.FieldCondition(key=PARENT, match=models.MatchAny(any=parents)),
                models.FieldCondition(key=CHUNK_ID, match=models.MatchAny(any=dropped)),
            ]
        )
        scope = compile_filter(ChunkFilter(book_id=book_id), older, of_changes)
        for _ in range(MAX_ATTEMPTS):
            stale = [point.id for point in await scroll(self._client, self.collection, scope, payload=False)]
            if not stale:
                return
            with client_errors():
                await self._client.delete(self.collection, models.PointIdsList(points=stale), wait=True)
        raise ProviderError("qdrant", f"{len(stale)} outdated points could not be deleted; run: lectern doctor")


def to_point(indexed: IndexedChunk, language: str, generation: int) -> models.PointStruct:
    """A chunk of one generation as a point. Two generations of a chunk can exist at the same time."""
    chunk = indexed.stored.chunk
    terms = lexical.passage_terms(chunk.trail, chunk.text, language)
    return models.PointStruct(
        id=str(uuid.uuid5(uuid.UUID(chunk.id), str(generation))),
        vector={
            schema.DENSE: [list(vector) for vector in indexed.vectors],
            schema.LEXICAL: models.SparseVector(indices=terms.indices, values=terms.values),
        },
        payload={**to_payload(indexed.stored), CHUNK_ID: chunk.id, GENERATION: generation},
    )


@asynccontextmanager
async def open_server_index(
    client: AsyncQdrantClient, collection: str, dimensions: int | None, generations: Generations
) -> AsyncIterator[ServerIndex]:
    """The collection on the server, created on first use if dimensions are given; the client is closed at the end."""
    try:
        with client_errors():
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
    """A client for a server; it sends nothing yet."""
    try:
        return AsyncQdrantClient(url=url, api_key=api_key, timeout=TIMEOUT_SECONDS, check_compatibility=False)
    except ValueError as exc:
        raise ConfigError(f"QDRANT_URL: {url!r} is no address ({exc})") from exc


async def _check(client: AsyncQdrantClient, collection: str, dimensions: int | None) -> None:
    vectors: Any = (await client.get_collection(collection)).config.params.vectors
    dense = vectors.get(schema.DENSE) if isinstance(vectors, dict) else None
    if dense is None or (dimensions is not None and dense.size != dimensions):
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
