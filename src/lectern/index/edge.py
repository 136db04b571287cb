"""The embedded index: Qdrant Edge in this process, one shard directory, one owner.

The engine has no transaction over several operations, so a replacement takes the same lock as a read: no reader sees
half of it. After a crash the ledger's intent is applied again. The engine holds the GIL while it works, so its calls
are made on the event loop (a thread would free nothing) and batches are short. It is never optimised while it serves:
unoptimised search is exact and fast enough up to 100,000 chunks, and optimising stops every thread.

Failures. The engine raises bare `Exception` for whatever goes wrong inside, and panics (which are not an `Exception`)
on files that it cannot read. `sound` turns both into a damaged index, with advice.

Syncing. The engine's own flush waits for the disk a hundred times with the GIL held: measured 20 ms on a quiet disk,
600 ms on a busy one. In a server a thread syncs the files instead, without the GIL. A killed process leaves what is in
the files, and the engine needs no more than that: 500 kills without a flush lost nothing. Only the engine's log grows
until the next flush, so a server still flushes now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

import qdrant_edge as qdrant

from lectern.domain.chunks import Change, ChunkId, IndexedChunk, StampedChunk, Vector
from lectern.domain.errors import IndexDamaged
from lectern.domain.evidence import Candidate
from lectern.domain.failpoints import reached
from lectern.domain.scope import ChunkFilter
from lectern.index import lexical, schema
from lectern.index.points import AnyOf, Condition, Equals, Named, Scores, Within, candidates, conditions_of
from lectern.ports.index import Commit
from lectern.schemas.payload import from_payload, to_payload

T = TypeVar("T")

PANIC = "PanicException"  # pyo3's, which cannot be imported by name
BATCH = 32  # points per engine call: a few milliseconds each, so that other tasks get their turn
PAGE = 512
MOST_BOOKS = 100_000
UNFLUSHED = 20_000  # points that a server writes between two flushes: about 100 MB of the engine's log
MOST_TEXTS = 200_000  # remembered content_hashes: about 40 MB

MOST_KNOWN = 300  # chunks with their vectors: 40 KB each with the local embedder, four times that with larger ones

PointId = int | UUID | str  # as the engine names it
Key = tuple[str, str]  # book and chunk: what one book has is never handed to a reader of another


@contextmanager
def sound(collection: str) -> Iterator[None]:
    """Turn a failure inside the engine into an error that says what to do; mistakes in calling it are not changed."""
    try:
        yield
    except BaseException as exc:
        if type(exc) is Exception or type(exc).__name__ == PANIC:
            raise IndexDamaged(
                f"the index {collection!r} cannot be read ({exc}). Remove its folder in LECTERN_HOME/index and run: "
                "lectern doctor --mend"
            ) from exc
        raise


def sync(folder: Path) -> None:
    """Write every file and folder below this one to the disk, including what is mapped into memory."""
    for root, _, files in os.walk(folder):
        for name in (*files, "."):
            with contextlib.suppress(FileNotFoundError):  # the engine is done with one of its own
                descriptor = os.open(Path(root, name), os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


class EdgeView:
    """The shard while no replacement is in progress."""

    def __init__(self, shard: qdrant.EdgeShard, texts: dict[str, str], known: dict[Key, IndexedChunk]) -> None:
        self._shard = shard
        self._texts = texts  # content_hashes read before; an id names one text for ever
        self._known = known  # chunks read since the last change

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the nearest by cosine and the best by BM25, each with both scores."""
        terms = lexical.query_terms(text, language)
        # Without its own corpus a book's scores would change with every other book, and never change back.
        corpus = qdrant.IdfParams(corpus=compile_filter(ChunkFilter(book_id=where.book_id)))

        async def near(ids: Collection[str] | None) -> Scores:
            query = qdrant.Query.Nearest(vector, using=schema.DENSE)
            return self._query(query, qdrant.SearchParams(exact=True), where, ids, limit)

        async def worded(ids: Collection[str] | None) -> Scores:
            if not terms.indices:
                return {}
            query = qdrant.Query.Nearest(terms, using=schema.LEXICAL)
            return self._query(query, qdrant.SearchParams(idf=corpus), where, ids, limit)

        return await candidates(near, worded, self._names)

    def _query(
        self,
        query: qdrant.Query,
        params: qdrant.SearchParams,
        where: ChunkFilter,
        ids: Collection[str] | None,
        limit: int,
    ) -> Scores:
        scope = compile_filter(where, ids)
        most = limit if ids is None else len(ids)
        request = qdrant.QueryRequest(limit=most, query=query, filter=scope, params=params, with_payload=False)
        return {str(point.id): point.score for point in self._shard.query(request)}

    def _names(self, points: Collection[str]) -> dict[str, Named]:
        """Ids and hashes of points. Reading a payload takes longer than finding the point, so they are cached."""
        if len(self._texts) > MOST_TEXTS:
            self._texts.clear()
        unknown: list[PointId] = [point for point in points if point not in self._texts]
        if unknown:
            for record in self._shard.retrieve(unknown, with_payload=[schema.TEXT_FIELD], with_vector=False):
                self._texts[str(record.id)] = str((record.payload or {})[schema.TEXT_FIELD])
        return {point: (ChunkId(point), self._texts[point]) for point in points}

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index."""
        scope, offset, found = compile_filter(where), None, list[StampedChunk]()
        while True:
            records, offset = self._shard.scroll(
                qdrant.ScrollRequest(offset=offset, limit=PAGE, filter=scope, with_payload=True)
            )
            found += [from_payload(record.id, record.payload) for record in records]
            await asyncio.sleep(0)  # a long book must not hold up who needs no index
            if offset is None:
                return sorted(found, key=lambda stored: (stored.chunk.source_file, stored.chunk.chunk_index))

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """The chunks of this book among these ids."""
        records = self._retrieve(book_id, ids, with_vector=False)
        return {str(record.id): from_payload(record.id, record.payload) for record in records}

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The chunks of this book among these ids, each with its dense vectors. They are cached: readers ask for the
        same chunks often, and reading takes as long as finding."""
        known = {name: self._known.get((book_id, name)) for name in ids}
        for record in self._retrieve(book_id, [name for name, one in known.items() if one is None], with_vector=True):
            read = IndexedChunk(stored=from_payload(record.id, record.payload), vectors=_dense_of(record))
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known[str(record.id)] = self._known[book_id, str(record.id)] = read
        return {name: one for name, one in known.items() if one is not None}

    def _retrieve(self, book_id: str, ids: Sequence[str], *, with_vector: bool) -> list[qdrant.Record]:
        """Look up ids that come from outside, within the book: the engine itself would return any book's point.
        `_names` reads by id too, but only points that a query filtered by book has just returned."""
        found: list[qdrant.Record] = []
        for start in range(0, len(ids), PAGE):
            page: list[PointId] = list(ids[start : start + PAGE])
            found += self._shard.retrieve(page, with_payload=True, with_vector=[schema.DENSE] if with_vector else False)
        return [record for record in found if (record.payload or {}).get(schema.TENANT_FIELD) == book_id]

    async def count(self, where: ChunkFilter) -> int:
        """How many chunks are in scope."""
        return self._shard.count(qdrant.CountRequest(filter=compile_filter(where), exact=True))

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here."""
        facet = qdrant.FacetRequest(key=schema.TENANT_FIELD, limit=MOST_BOOKS, exact=True)
        return frozenset(str(hit.value) for hit in self._shard.facet(facet).hits if hit.count)


class EdgeIndex:
    """Chunks in a Qdrant Edge shard."""

    def __init__(self, shard: qdrant.EdgeShard, collection: str, beside: Path | None = None) -> None:
        self._shard = shard
        self._beside = beside  # the shard's folder, where it is to be synced by a thread
        self._unflushed = 0
        self._lock = asyncio.Lock()
        self._texts: dict[str, str] = {}
        self._known: dict[Key, IndexedChunk] = {}
        self.collection = collection

    async def read(self, work: Callable[[EdgeView], Awaitable[T]]) -> T:
        """Run `work` on a view that no replacement disturbs."""
        async with self._lock:
            with sound(self.collection):
                return await work(EdgeView(self._shard, self._texts, self._known))

    async def replace(
        self, book_id: str, generation: int, changes: Sequence[Change], commit: Commit
    ) -> None:  # under the lock one version is enough
        """Apply changes durably and commit them to the ledger."""
        for chunk in (indexed.stored.chunk for change in changes for indexed in change.put):
            if chunk.book_id != book_id:
                raise ValueError(f"a chunk of {chunk.book_id!r} among those of {book_id!r}")
        for change in changes:
            await self._apply(change)
        reached("index.before-flush")
        await self._keep(sum(len(change.put) + len(change.drop) for change in changes))
        reached("index.flushed")
        await commit()

    async def remnants(self, book_id: str, pending: AbstractSet[int], *, drop: bool) -> int:
        """Always 0: a lesson has one version here, under the lock."""
        return 0

    async def _keep(self, points: int) -> None:
        """Make sure that what was written survives a power cut."""
        self._unflushed += points
        if self._beside is not None and self._unflushed < UNFLUSHED:
            await asyncio.to_thread(sync, self._beside)
            return
        with sound(self.collection):
            self._shard.flush()
        self._unflushed = 0

    async def _apply(self, change: Change) -> None:
        async with self._lock:
            self._known.clear()
            with sound(self.collection):
                await self._write(change)

    async def _write(self, change: Change) -> None:
        for start in range(0, len(change.put), BATCH):
            points = [to_point(indexed, change.language) for indexed in change.put[start : start + BATCH]]
            self._shard.update(qdrant.UpdateOperation.upsert_points(points))
            reached("index.put")
            await asyncio.sleep(0)  # what needs no index goes on meanwhile
        reached("index.before-drop")
        if change.drop:
            self._shard.update(qdrant.UpdateOperation.delete_points(list(change.drop)))
        reached("index.changed")

    def close(self) -> None:
        """Release the shard's directory."""
        self._shard.close()


def _dense_of(record: qdrant.Record) -> tuple[Vector, ...]:
    named = cast("dict[str, list[Vector]]", record.vector)  # this shard has named vectors, and dense ones are windows
    return tuple(named[schema.DENSE])


def compile_filter(where: ChunkFilter, ids: Collection[str] | None = None) -> qdrant.Filter:
    """The filter in the engine's form, narrowed to some points if ids are given."""
    must: list[qdrant.FieldCondition | qdrant.HasIdCondition] = [_translate(one) for one in conditions_of(where)]
    if ids is not None:
        must.append(qdrant.HasIdCondition(cast("set[int | UUID | str]", set(ids))))
    return qdrant.Filter(must=list(must))


def _translate(condition: Condition) -> qdrant.FieldCondition:
    match condition:
        case Equals(key, value):
            return qdrant.FieldCondition(key=key, match=qdrant.MatchValue(value))
        case AnyOf(key, values):
            return qdrant.FieldCondition(key=key, match=qdrant.MatchAny(list(values)))
        case Within(key, low, high):
            return qdrant.FieldCondition(key=key, range=qdrant.RangeFloat(gte=low, lte=high))


def to_point(indexed: IndexedChunk, language: str) -> qdrant.Point:
    """A chunk as the engine stores it."""
    chunk = indexed.stored.chunk
    vectors = {
        schema.DENSE: [list(vector) for vector in indexed.vectors],
        schema.LEXICAL: lexical.passage_terms(chunk.trail, chunk.text, language),
    }
    return qdrant.Point(chunk.id, vectors, to_payload(indexed.stored))  # type: ignore[arg-type]  # invariant dict


def _config(dimensions: int) -> qdrant.EdgeConfig:
    windows = qdrant.MultiVectorConfig(qdrant.MultiVectorComparator.MaxSim)  # a chunk is as near as its nearest window
    dense = qdrant.EdgeVectorParams(size=dimensions, distance=qdrant.Distance.Cosine, multivector_config=windows)
    sparse = qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)
    # A shard has one segment, which one thread searches; to hand that over to another took longer than the search.
    return qdrant.EdgeConfig(
        vectors={schema.DENSE: dense}, sparse_vectors={schema.LEXICAL: sparse}, max_search_threads=1
    )


def _create(path: Path, dimensions: int) -> qdrant.EdgeShard:
    path.mkdir(parents=True, exist_ok=True)
    shard = qdrant.EdgeShard.create(str(path), _config(dimensions))
    reached("index.created")
    tenant = qdrant.KeywordIndexParams(is_tenant=True)
    fields: list[tuple[str, qdrant.KeywordIndexParams | qdrant.PayloadSchemaType]] = [(schema.TENANT_FIELD, tenant)]
    fields += [(name, qdrant.PayloadSchemaType.Keyword) for name in schema.KEYWORD_FIELDS]
    fields += [(name, qdrant.PayloadSchemaType.Integer) for name in schema.INTEGER_FIELDS]
    for name, kind in fields:
        shard.update(qdrant.UpdateOperation.create_field_index(name, kind))
    shard.flush()
    reached("index.before-ready")
    (path / READY).touch()
    return shard


READY = "lectern-ready"  # written last: a directory without it is an interrupted creation and holds nothing


@asynccontextmanager
async def open_edge_index(
    folder: Path, collection: str, dimensions: int | None, *, serving: bool = False
) -> AsyncIterator[EdgeIndex]:
    """The collection's index below `folder`; created on first use if dimensions are given, closed on the way out.
    `serving`: others wait for this process while it writes."""
    path = folder / collection
    with sound(collection):
        if dimensions is None or (path / READY).exists():
            shard = qdrant.EdgeShard.load(str(path))
        else:
            _clear(path)
            shard = _create(path, dimensions)
    index = EdgeIndex(shard, collection, path if serving and os.name == "posix" else None)
    try:
        yield index
    finally:
        index.close()


def _clear(path: Path) -> None:
    import shutil

    if path.exists():
        shutil.rmtree(path)
