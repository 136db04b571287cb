"""The index on a Qdrant server or cluster, for many processes.

A server offers no lock and no transaction, so a lesson's new version is stored beside its old one. Points carry their
generation, the ledger says in one commit which generation is live, and only then is the old one removed. A reader
ignores points that are not live. If a replacement was committed during a read, the read is repeated, so that no
response mixes two versions.

A circuit breaker protects against a server that does not answer: after a few failures in a row, requests fail at once.
Every few seconds one request is let through. When it succeeds, all requests are.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from qdrant_client import AsyncQdrantClient, models

from lectern.domain.chunks import Change, Chunk, IndexedChunk, StampedChunk, Vector
from lectern.domain.errors import Busy, IndexDamaged, ProviderError, ProviderFaulty
from lectern.domain.evidence import Candidate
from lectern.domain.failpoints import reached
from lectern.domain.scope import ChunkFilter
from lectern.index import layout as layouts
from lectern.index import lexical, schema
from lectern.index.layout import CHUNK_ID, GENERATION, Layout, search_params
from lectern.index.nodes import check_version, client_errors
from lectern.index.points import (
    PARENT,
    REF_FIELDS,
    KnownPoints,
    Point,
    Version,
    indexed_of,
    stored_of,
    to_point,
    version_of,
)
from lectern.index.rarity import WeightedTerms, count_terms, current_counts, weigh
from lectern.index.schema import AnyOf, Condition, Equals, Scores, Within, conditions_of
from lectern.ports.index import Commit, Generations

T = TypeVar("T")

MAX_BOOKS = 100_000
PAGE_SIZE = 512
MAX_SHARDS = 64
MAX_GENERATIONS = 100_000  # one for each batch of lessons that was ingested
Key = tuple[str, str]  # book and chunk

P = TypeVar("P", bound=Point)
MAX_FAILURES = 3  # in a row
RETRY_SECONDS = 5.0  # between two attempts; a 503 tells clients to wait as long
POINTS_PER_REQUEST = 64
EXACT = search_params(Layout(), chunks=0)
MAX_ATTEMPTS = 10  # of a read that replacements interrupt, and of a deletion


class ServerView:
    """Reads from the collection for one response.

    A response is of one version if the book's epoch was the same before the first read and after the last. The ledger
    gives the epoch together with what is needed anyway: the term counts before a search, the live lessons after it.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        generations: Generations,
        layout: Layout,
        known: KnownPoints,
    ) -> None:
        self._client = client
        self._collection = collection
        self._generations = generations
        self._layout = layout
        self._known = known
        self._first: dict[str, int] = {}  # the epoch of each book before it was read
        self._last: dict[str, int] = {}  # and after
        self._found: dict[Key, str] = {}  # the points of the chunks that were found
        self._lost = False  # a point that was live is gone

    @property
    def is_current(self) -> bool:
        """Whether no replacement was committed while this view read."""
        return not self._lost and self._first == self._last

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the nearest chunks by cosine and the best by BM25, each with both scores."""
        words = lexical.query_terms(text, language)
        counts = await current_counts(words.indices, language, where.book_id, self._generations, self)
        self._first.setdefault(where.book_id, counts.epoch)
        terms = weigh(words, counts)
        params = search_params(self._layout, counts.chunks)
        hidden = 0  # points of versions that are not live, for which more are asked for
        while True:
            searches = _searches(vector, terms, where, limit + hidden, params)
            searches[0].with_payload = self._known.fields
            with client_errors():
                near, *shared = await self._client.query_batch_points(self._collection, searches)
            refs = await self._known.refs(near.points, self._read_refs)
            versions = await self._live_versions(where.book_id, {ref.version for ref in refs.values()})
            live = [point for point in near.points if (ref := refs.get(str(point.id))) and ref.version in versions]
            if len(near.points) - len(live) <= hidden:
                break
            hidden = len(near.points) - len(live)
        # one that the search found and the read of its payload did not: it was removed, or a copy of it lags behind
        self._lost = self._lost or any(str(point.id) not in refs for point in near.points)
        if not live and counts.chunks and self.is_current:
            await self._check_that_it_holds(where.book_id)
        cosines = {str(point.id): point.score for point in live}
        bm25s = {str(point.id): point.score for response in shared for point in response.points}
        bm25s = {point: score for point, score in bm25s.items() if point in cosines}
        chosen = dict.fromkeys([*best(cosines, limit), *best(bm25s, limit)])
        chunks = {point: refs[point].chunk for point in chosen}
        self._found |= {(where.book_id, chunk_id): point for point, (chunk_id, _) in chunks.items()}
        return [
            # a point without a BM25 score shares no word
            Candidate(id=chunk_id, content_hash=content_hash, cosine=cosines[point], bm25=bm25s.get(point, 0.0))
            for point, (chunk_id, content_hash) in chunks.items()
        ]

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index."""
        await self._note_epoch(where.book_id)
        points = await scroll(self._client, self._collection, compile_filter(where))
        chunks = [stored_of(point) for point in await self._live(where.book_id, points)]
        return sorted(chunks, key=lambda stored: (stored.chunk.source_file, stored.chunk.chunk_index))

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """The chunks of this book among these ids."""
        points = await self._by_ids(book_id, ids, with_vectors=False)
        return {stored.chunk.id: stored for stored in map(stored_of, points)}

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The chunks of this book among these ids, each with its dense vectors. What was found is read by its point:
        if the point is still there, it is what was found."""
        if any((book_id, chunk_id) not in self._found for chunk_id in ids):
            chunks = map(indexed_of, await self._by_ids(book_id, ids, with_vectors=True))
            return {indexed.stored.chunk.id: indexed for indexed in chunks}
        points = {chunk_id: self._found[book_id, chunk_id] for chunk_id in ids}
        known = await self._known.chunks(list(points.values()), self._read_chunks)
        self._lost = self._lost or len(known) < len(points)
        return {chunk_id: known[point] for chunk_id, point in points.items() if point in known}

    async def count(self, where: ChunkFilter) -> int:
        """How many live chunks are in scope. The server counts, and no payload is read, so those of an older format are
        counted too.

        A generation that has as many points as the ledger says holds no others: points that are not live are of a
        replacement that is under way, and then both its generations differ. Only those are looked at one by one.
        """
        epoch, expected = await self._generations.chunk_counts(where.book_id)
        self._first.setdefault(where.book_id, epoch)
        counts = await self._counts_by_generation(where.book_id)
        sound = {generation for generation, count in counts.items() if count == expected.get(generation)}
        total = sum(counts[generation] for generation in sound)
        if sound and where != ChunkFilter(book_id=where.book_id):
            scope = compile_filter(where, _of_generations(sound))
            with client_errors():
                total = (await self._client.count(self._collection, count_filter=scope, exact=True)).count
        if counts.keys() == sound:
            self._last[where.book_id] = await self._generations.epoch(where.book_id)
            return total
        scope = compile_filter(where, _of_generations(counts.keys() - sound))
        points = await scroll(self._client, self._collection, scope, payload=[PARENT, GENERATION])
        return total + len(await self._live(where.book_id, points))

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here."""
        with client_errors():
            facet = await self._client.facet(self._collection, schema.TENANT_FIELD, limit=MAX_BOOKS, exact=True)
        return frozenset(str(hit.value) for hit in facet.hits if hit.count)

    async def _counts_by_generation(self, book_id: str) -> dict[int, int]:
        """How many points of the book have each generation, live or not."""
        scope = compile_book_filter(book_id)
        with client_errors():
            facet = await self._client.facet(
                self._collection, GENERATION, facet_filter=scope, limit=MAX_GENERATIONS, exact=True
            )
        return {int(hit.value): hit.count for hit in facet.hits if hit.count}

    async def _by_ids(self, book_id: str, ids: Sequence[str], *, with_vectors: bool) -> list[models.Record]:
        await self._note_epoch(book_id)
        records: list[models.Record] = []
        for start in range(0, len(ids), PAGE_SIZE):
            any_of = models.MatchAny(any=list(ids[start : start + PAGE_SIZE]))
            scope = compile_filter(ChunkFilter(book_id=book_id), models.FieldCondition(key=CHUNK_ID, match=any_of))
            records += await scroll(self._client, self._collection, scope, with_vectors=with_vectors)
        return await self._live(book_id, records)

    async def _check_that_it_holds(self, book_id: str) -> None:
        """Raise if the collection has no point of a book that has chunks: it was lost, or made anew by others."""
        with client_errors():
            count = (await self._client.count(self._collection, count_filter=compile_book_filter(book_id))).count
        if not count:
            raise IndexDamaged(f"the index holds nothing of {book_id!r}; run: lectern doctor --mend")

    async def _read_refs(self, points: Sequence[str]) -> list[models.Record]:
        with client_errors():
            return await self._client.retrieve(self._collection, points, with_payload=REF_FIELDS)

    async def _read_chunks(self, points: Sequence[str]) -> list[models.Record]:
        with client_errors():
            return await self._client.retrieve(self._collection, points, with_payload=True, with_vectors=[schema.DENSE])

    async def _note_epoch(self, book_id: str) -> None:
        if book_id not in self._first:
            self._first[book_id] = await self._generations.epoch(book_id)

    async def _live(self, book_id: str, points: Sequence[P]) -> list[P]:
        """The points whose generation is live."""
        versions = await self._live_versions(book_id, {version_of(point) for point in points})
        return [point for point in points if version_of(point) in versions]

    async def _live_versions(self, book_id: str, versions: AbstractSet[Version]) -> AbstractSet[Version]:
        """The versions among these that readers see."""
        lessons = await self._generations.live(book_id, sorted({parent for parent, _ in versions}))
        self._last[book_id] = lessons.epoch
        return versions & lessons.generations.items()


def _searches(
    vector: Vector, terms: WeightedTerms, where: ChunkFilter, limit: int, params: models.SearchParams
) -> list[models.QueryRequest]:
    """Two searches for one request: the cosine, and then the BM25 score, of every chunk that is among the best by
    either. Each shard proposes as many as it is asked for, so the answers may be longer."""
    scope = compile_filter(where)
    nearest = models.Prefetch(query=[vector], using=schema.DENSE, filter=scope, params=params, limit=limit)
    proposals = [nearest]
    if terms.indices:
        words = models.SparseVector(indices=terms.indices, values=terms.values)
        proposals.append(models.Prefetch(query=words, using=schema.LEXICAL, filter=scope, limit=limit))
    most = len(proposals) * limit * MAX_SHARDS
    searches = [
        models.QueryRequest(
            prefetch=proposals,
            query=[vector],
            using=schema.DENSE,
            params=EXACT,  # what was proposed, with the vectors as they are
            limit=most,
        )
    ]
    if terms.indices:
        searches.append(models.QueryRequest(prefetch=proposals, query=words, using=schema.LEXICAL, limit=most))
    return searches


def best(scores: Scores, limit: int) -> list[str]:
    """The points with the best scores; of equal ones, those with the lesser id."""
    return sorted(scores, key=lambda point: (-scores[point], point))[:limit]


def _of_generations(generations: Collection[int]) -> models.FieldCondition:
    return models.FieldCondition(key=GENERATION, match=models.MatchAny(any=sorted(generations)))


def compile_filter(where: ChunkFilter, *more: models.Condition) -> models.Filter:
    """The filter in the server's form, narrowed by further conditions."""
    return models.Filter(must=[*(_translate(condition) for condition in conditions_of(where)), *more])


def compile_book_filter(book_id: str) -> models.Filter:
    """Every point of a book, whatever its tier: an index reads it without looking at each point."""
    match = models.MatchValue(value=book_id)
    return models.Filter(must=[models.FieldCondition(key=schema.TENANT_FIELD, match=match)])


def _translate(condition: Condition) -> models.FieldCondition:
    match condition:
        case Equals(key, value):
            return models.FieldCondition(key=key, match=models.MatchValue(value=value))
        case AnyOf(key, values):
            return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))
        case Within(key, low, high):
            return models.FieldCondition(key=key, range=models.Range(gte=low, lte=high))


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

    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        generations: Generations,
        layout: Layout = Layout(),  # noqa: B008  # it is frozen
        *,
        unindexed: Sequence[str] = (),
    ) -> None:
        """`unindexed` are the fields whose payload index is missing: nothing is read until the doctor has made them."""
        self._client = client
        self._generations = generations
        self._layout = layout
        self._unindexed = list(unindexed)
        self._known = KnownPoints()
        self._breaker = CircuitBreaker("qdrant")
        self.collection = collection

    async def read(self, work: Callable[[ServerView], Awaitable[T]]) -> T:
        """Run `work`, and run it again if a replacement was committed in between."""
        if self._unindexed:
            raise IndexDamaged(
                f"the collection {self.collection!r} lacks the payload indexes of {', '.join(self._unindexed)}; run: "
                "lectern doctor --mend"
            )
        for _ in range(MAX_ATTEMPTS):
            view = ServerView(self._client, self.collection, self._generations, self._layout, self._known)
            with self._breaker.request():  # readers do not wait for a server that is down
                result = await work(view)
            if view.is_current:
                return result
        raise Busy("the book is being replaced faster than it can be read; try again in a moment")

    def count_terms(self, chunks: Sequence[Chunk], language: str) -> dict[int, int]:
        """In how many of these chunks each term occurs, as this index finds them."""
        return count_terms(chunks, language)

    async def faults(self, *, mend: bool) -> list[str]:
        """What of the collection is not as it is configured: payload indexes and layout."""
        with client_errors():
            missing = await layouts.missing_indexes(self._client, self.collection)
            faults = [f"the payload index of {name} is missing" for name in missing]
            faults += await layouts.differences(self._client, self.collection, self._layout)
            if mend and faults:
                await layouts.add_indexes(self._client, self.collection, missing)
                await layouts.mend(self._client, self.collection, self._layout)
        self._unindexed = [] if mend else missing
        return faults

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
        parents = sorted({version_of(point)[0] for point in points})
        live = (await self._generations.live(book_id, parents)).generations
        dead = []
        for point in points:
            parent, generation = version_of(point)
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
        raise ProviderFaulty("qdrant", f"{len(stale)} outdated points could not be deleted; run: lectern doctor")


@asynccontextmanager
async def open_server_index(
    client: AsyncQdrantClient,
    collection: str,
    dimensions: int | None,
    generations: Generations,
    layout: Layout = Layout(),  # noqa: B008  # it is frozen
) -> AsyncIterator[ServerIndex]:
    """The collection on the server, created on first use if dimensions are given; the client is closed at the end."""
    try:
        with client_errors():
            check_version((await client.info()).version)
            await layouts.check_nodes(client, layout)
            exists = await client.collection_exists(collection)
            if not exists and dimensions is None:
                raise IndexDamaged(f"the collection {collection!r} is not on the server; run: lectern doctor --mend")
            if not exists and dimensions is not None:
                await layouts.create(client, collection, dimensions, layout)
            missing = await layouts.check(client, collection, dimensions)
        yield ServerIndex(client, collection, generations, layout, unindexed=missing)
    finally:
        await client.close()
