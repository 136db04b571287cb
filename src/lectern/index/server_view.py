"""One response's view of a Qdrant collection: only the live generation of each lesson, and the knowledge whether it
changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from qdrant_client import AsyncQdrantClient, models

from lectern.domain.chunks import ChunkId, StampedChunk
from lectern.domain.evidence import Candidate
from lectern.domain.filters import ChunkFilter
from lectern.index import lexical, schema
from lectern.index.candidates import Named, Scores, candidates
from lectern.index.conditions import AnyOf, Condition, Equals, Within, conditions_of
from lectern.index.server_errors import speaking_lectern
from lectern.ports import Generations, IndexedChunk, Vector

PAGE = 512
MOST_BOOKS = 100_000
CHUNK_ID = "chunk_id"
GENERATION = "generation"
PARENT = "parent_doc_id"

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
        # Without its own corpus a book's scores would change with every other book, and never change back.
        corpus = models.IdfCorpusParams(corpus=compile_filter(ChunkFilter(book_id=where.book_id)))

        named: dict[str, Named] = {}

        async def near(ids: Collection[str] | None) -> Scores:
            exact = models.SearchParams(exact=True)  # as the embedded index asks: the same ranking on both
            return _scores(await self._query([vector], schema.DENSE, exact, where, ids, limit), named)

        async def worded(ids: Collection[str] | None) -> Scores:
            if not terms.indices:
                return {}
            query = models.SparseVector(indices=terms.indices, values=terms.values)
            params = models.SearchParams(idf=corpus)
            return _scores(await self._query(query, schema.LEXICAL, params, where, ids, limit), named)

        return await candidates(near, worded, lambda _: named)

    async def _query(  # what a query is made of
        self,
        query: list[Vector] | models.SparseVector,
        using: str,
        params: models.SearchParams,
        where: ChunkFilter,
        ids: Collection[str] | None,
        limit: int,
    ) -> list[models.ScoredPoint]:
        await self._begin(where.book_id)
        some = () if ids is None else (models.HasIdCondition(has_id=sorted(ids)),)
        with speaking_lectern():
            response = await self.client.query_points(
                self.collection,
                query=query,
                using=using,
                query_filter=compile_filter(where, *some),
                search_params=params,
                limit=limit if ids is None else len(ids),
                with_payload=[CHUNK_ID, GENERATION, PARENT, schema.TEXT_FIELD],
            )
        return await self._alive(where.book_id, response.points)

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index."""
        await self._begin(where.book_id)
        points = await scroll(self.client, self.collection, compile_filter(where))
        found = [stored_of(point) for point in await self._alive(where.book_id, points)]
        return sorted(found, key=lambda stored: (stored.chunk.source_file, stored.chunk.chunk_index))

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """Those of `ids` that this book has."""
        points = await self._by_ids(book_id, ids, with_vectors=False)
        return {stored.chunk.id: stored for stored in map(stored_of, points)}

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The same, each with its dense vectors."""
        points = await self._by_ids(book_id, ids, with_vectors=True)
        found = [IndexedChunk(stored=stored_of(point), vectors=_dense_of(point)) for point in points]
        return {one.stored.chunk.id: one for one in found}

    async def count(self, where: ChunkFilter) -> int:
        """How many live chunks are in scope; of what they hold only the version is read, whatever their shape."""
        await self._begin(where.book_id)
        points = await scroll(self.client, self.collection, compile_filter(where), payload=[PARENT, GENERATION])
        return len(await self._alive(where.book_id, points))

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
            found += await scroll(self.client, self.collection, scope, with_vectors=with_vectors)
        return await self._alive(book_id, found)

    async def _begin(self, book_id: str) -> None:
        if book_id not in self.epochs:
            self.epochs[book_id] = await self.generations.epoch(book_id)

    async def _alive(self, book_id: str, points: Sequence[P]) -> list[P]:
        """Without those of a version that is coming or going."""
        parents = sorted({str(_payload(point)[PARENT]) for point in points})
        live = await self.generations.live(book_id, parents)
        return [point for point in points if live.get(_payload(point)[PARENT]) == _payload(point)[GENERATION]]


def compile_filter(where: ChunkFilter, *more: models.Condition) -> models.Filter:
    """The filter in the server's words, perhaps narrowed further."""
    return models.Filter(must=[*(_translate(one) for one in conditions_of(where)), *more])


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
    return schema.from_payload(_payload(point).get(CHUNK_ID), point.payload)


def _scores(points: Sequence[models.ScoredPoint], named: dict[str, Named]) -> Scores:
    """The points' scores; on the way it is noted which chunks they are."""
    for point in points:
        payload = _payload(point)
        named[str(point.id)] = (ChunkId(str(payload[CHUNK_ID])), str(payload[schema.TEXT_FIELD]))
    return {str(point.id): point.score for point in points}


def generation_of(point: models.Record) -> tuple[str, int]:
    """The lesson that a point belongs to, and of which of its versions it is."""
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
    """Every point that the filter lets through, with all, some or none of its payload."""
    found: list[models.Record] = []
    offset: Any = None
    while True:
        with speaking_lectern():
            records, offset = await client.scroll(
                collection,
                scroll_filter=scope,
                limit=PAGE,
                offset=offset,
                with_payload=payload,
                with_vectors=[schema.DENSE] if with_vectors else False,
            )
        found += records
        if offset is None:
            return found
