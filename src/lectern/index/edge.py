"""The embedded index: Qdrant Edge in this process, one shard directory, one owner.

The engine has no transaction over several operations, so a replacement takes the same lock as a read: no reader sees
half of it. After a crash the ledger's intent is applied again. The engine holds the GIL while it works, so its calls
are made on the event loop (a thread would free nothing) and batches are short. It is never optimised while it serves:
unoptimised search is exact and fast enough up to 100,000 chunks (docs/benchmarks/scale.md), and optimising stops every
thread.

Failures. The engine raises a bare `Exception` when something fails inside it, and panics (which are not an `Exception`)
on files that it cannot read. `engine_errors` turns both into `IndexDamaged`, with advice, unless the machine is short
of something. A full disk would end the process without an exception, so `DiskRoom` checks before the engine writes.

Syncing. The engine's flush waits for the disk a hundred times with the GIL held: measured 20 ms on a quiet disk, 600 ms
on a busy one. In a server a thread syncs the files instead, without the GIL. The files are all that the engine needs
after a process was killed: 500 kills without a flush lost nothing (docs/decisions/0007-syncing.md). The engine's log
grows until the next flush, so a server still flushes from time to time.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

import qdrant_edge as qdrant

from lectern.domain.chunks import Change, Chunk, ChunkId, IndexedChunk, StampedChunk, Vector
from lectern.domain.errors import IndexDamaged, OutOfResources
from lectern.domain.evidence import Candidate
from lectern.domain.failpoints import reached
from lectern.domain.resources import shortage_of
from lectern.domain.scope import ChunkFilter
from lectern.index import lexical, schema
from lectern.index.disk_room import DiskRoom
from lectern.index.rarity import WeightedTerms, count_terms, current_counts, weigh
from lectern.index.schema import AnyOf, ChunkRef, Condition, Equals, Scores, Within, candidates, conditions_of
from lectern.ports.index import Commit, Lexicon
from lectern.schemas.payload import from_payload, to_payload

T = TypeVar("T")

PANIC_TYPE = "PanicException"  # pyo3's, which cannot be imported by name
UPSERT_BATCH = 32  # points per engine call: a few milliseconds each, so that other tasks can run
PAGE_SIZE = 512
MAX_BOOKS = 100_000
FLUSH_AFTER_POINTS = 20_000  # that a server has written since the last flush: about 100 MB of the engine's log
MAX_CACHED_HASHES = 200_000  # about 40 MB
MAX_CACHED_CHUNKS = 300  # with their vectors: 40 KB each with the local embedder, four times that with larger ones

EQUAL_WEIGHT = math.log(2)  # what a shard that weighs terms gives each term of a corpus of no chunks
PointId = int | UUID | str  # the types of ids that the engine takes
Key = tuple[str, str]  # book and chunk, so that a reader of one book never gets a chunk of another


@contextmanager
def engine_errors(collection: str) -> Iterator[None]:
    """Turn a failure inside the engine into an error that says what to do. Other exceptions pass unchanged."""
    try:
        yield
    except BaseException as exc:
        if type(exc) is not Exception and type(exc).__name__ != PANIC_TYPE:
            raise
        if shortage := shortage_of(exc):
            raise OutOfResources(f"the index {collection!r} cannot be used now: {shortage}") from exc
        raise IndexDamaged(
            f"the index {collection!r} cannot be read ({exc}). Move its folder in LECTERN_HOME/index to another place "
            "and run: lectern doctor --mend"
        ) from exc


def sync(folder: Path) -> None:
    """Write every file and folder below this one to the disk, including what is mapped into memory."""
    for root, _, files in os.walk(folder):
        for name in (*files, "."):
            with contextlib.suppress(FileNotFoundError):  # the engine may delete its own files
                descriptor = os.open(Path(root, name), os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


@dataclass(frozen=True, slots=True)
class WordSearch:
    """How a shard adds up the weights of a question's terms.

    Older shards were made to weigh terms by themselves, which cannot be changed. Asked to count in a corpus of no
    chunks, they give every term the same weight, the logarithm of 2.
    """

    weighs: bool  # the shard does

    def query(self, terms: WeightedTerms) -> tuple[qdrant.Query, qdrant.SearchParams]:
        """The query for weighted terms."""
        values, params = terms.values, qdrant.SearchParams()
        if self.weighs:
            nothing = qdrant.Filter(must=[qdrant.HasIdCondition(set())])
            params = qdrant.SearchParams(idf=qdrant.IdfParams(corpus=nothing))
            values = [value / EQUAL_WEIGHT for value in values]
        return qdrant.Query.Nearest(qdrant.SparseVector(terms.indices, values), using=schema.LEXICAL), params


class EdgeView:
    """Reads from the shard while no replacement is in progress."""

    def __init__(
        self,
        shard: qdrant.EdgeShard,
        words: WordSearch,
        lexicon: Lexicon,
        hashes: dict[str, str],
        cache: dict[Key, IndexedChunk],
    ) -> None:
        self._shard = shard
        self._words = words
        self._lexicon = lexicon
        self._hashes = hashes  # content_hashes by point; the text of an id never changes
        self._cache = cache  # chunks read since the last change

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the nearest chunks by cosine and the best by BM25, each with both scores."""
        words = lexical.query_terms(text, language)
        counts = await current_counts(words.indices, language, where.book_id, self._lexicon, self)
        terms = weigh(words, counts)

        async def vector_scores(ids: Collection[str] | None) -> Scores:
            query = qdrant.Query.Nearest(vector, using=schema.DENSE)
            return self._query(query, qdrant.SearchParams(exact=True), where, ids, limit)

        async def word_scores(ids: Collection[str] | None) -> Scores:
            if not terms.indices:
                return {}
            return self._query(*self._words.query(terms), where, ids, limit)

        return await candidates(vector_scores, word_scores, self._chunk_refs)

    def _query(
        self,
        query: qdrant.Query,
        params: qdrant.SearchParams,
        where: ChunkFilter,
        ids: Collection[str] | None,
        limit: int,
    ) -> Scores:
        scope = compile_filter(where, ids)
        max_points = limit if ids is None else len(ids)
        request = qdrant.QueryRequest(limit=max_points, query=query, filter=scope, params=params, with_payload=False)
        return {str(point.id): point.score for point in self._shard.query(request)}

    def _chunk_refs(self, points: Collection[str]) -> dict[str, ChunkRef]:
        """Ids and hashes of points. Hashes are cached, because reading a payload takes longer than finding the
        point."""
        if len(self._hashes) > MAX_CACHED_HASHES:
            self._hashes.clear()
        uncached: list[PointId] = [point for point in points if point not in self._hashes]
        if uncached:
            for record in self._shard.retrieve(uncached, with_payload=[schema.HASH_FIELD], with_vector=False):
                self._hashes[str(record.id)] = str((record.payload or {})[schema.HASH_FIELD])
        return {point: (ChunkId(point), self._hashes[point]) for point in points}

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index."""
        scope, offset, chunks = compile_filter(where), None, list[StampedChunk]()
        while True:
            records, offset = self._shard.scroll(
                qdrant.ScrollRequest(offset=offset, limit=PAGE_SIZE, filter=scope, with_payload=True)
            )
            chunks += [from_payload(record.id, record.payload) for record in records]
            await asyncio.sleep(0)  # a long book must not delay tasks that need no index
            if offset is None:
                return sorted(chunks, key=lambda stored: (stored.chunk.source_file, stored.chunk.chunk_index))

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """The chunks of this book among these ids."""
        records = self._retrieve(book_id, ids, with_vector=False)
        return {str(record.id): from_payload(record.id, record.payload) for record in records}

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The chunks of this book among these ids, each with its dense vectors. They are cached: the same chunks
        are read often, and reading takes as long as searching."""
        chunks = {name: self._cache.get((book_id, name)) for name in ids}
        missing = [name for name, chunk in chunks.items() if chunk is None]
        for record in self._retrieve(book_id, missing, with_vector=True):
            indexed = IndexedChunk(stored=from_payload(record.id, record.payload), vectors=_dense_of(record))
            if len(self._cache) >= MAX_CACHED_CHUNKS:
                self._cache.clear()
            chunks[str(record.id)] = self._cache[book_id, str(record.id)] = indexed
        return {name: chunk for name, chunk in chunks.items() if chunk is not None}

    def _retrieve(self, book_id: str, ids: Sequence[str], *, with_vector: bool) -> list[qdrant.Record]:
        """Look up ids that a caller gave, within the book: the engine itself returns the points of any book.
        `_chunk_refs` also reads by id, but only points from a query that was filtered by book."""
        records: list[qdrant.Record] = []
        for start in range(0, len(ids), PAGE_SIZE):
            page: list[PointId] = list(ids[start : start + PAGE_SIZE])
            records += self._shard.retrieve(
                page, with_payload=True, with_vector=[schema.DENSE] if with_vector else False
            )
        return [record for record in records if (record.payload or {}).get(schema.TENANT_FIELD) == book_id]

    async def count(self, where: ChunkFilter) -> int:
        """How many chunks are in scope."""
        return self._shard.count(qdrant.CountRequest(filter=compile_filter(where), exact=True))

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here."""
        facet = qdrant.FacetRequest(key=schema.TENANT_FIELD, limit=MAX_BOOKS, exact=True)
        return frozenset(str(hit.value) for hit in self._shard.facet(facet).hits if hit.count)


class EdgeIndex:
    """Chunks in a Qdrant Edge shard."""

    def __init__(  # one for each thing that it works with
        self,
        shard: qdrant.EdgeShard,
        collection: str,
        words: WordSearch,
        lexicon: Lexicon,
        room: DiskRoom,
        sync_folder: Path | None = None,
    ) -> None:
        self._shard = shard
        self._words = words
        self._lexicon = lexicon
        self._room = room
        self._sync_folder = sync_folder  # the shard's folder, if a thread syncs it
        self._unflushed_points = 0
        self._lock = asyncio.Lock()
        self._hashes: dict[str, str] = {}
        self._cache: dict[Key, IndexedChunk] = {}
        self.collection = collection

    async def read(self, work: Callable[[EdgeView], Awaitable[T]]) -> T:
        """Run `work` on a view; no replacement runs meanwhile."""
        async with self._lock:
            with engine_errors(self.collection):
                return await work(EdgeView(self._shard, self._words, self._lexicon, self._hashes, self._cache))

    def count_terms(self, chunks: Sequence[Chunk], language: str) -> dict[int, int]:
        """In how many of these chunks each term occurs, as this index finds them."""
        return count_terms(chunks, language)

    async def faults(self, *, mend: bool) -> list[str]:
        """None: it has no settings of its own."""
        return []

    async def check_room(self) -> None:
        """Raise if the disk has too little room for a batch."""
        await asyncio.to_thread(self._room.check)

    async def replace(self, book_id: str, generation: int, changes: Sequence[Change], commit: Commit) -> None:
        """Apply changes durably and commit them to the ledger. This index stores one version of a lesson, so the
        generation is not used."""
        for chunk in (indexed.stored.chunk for change in changes for indexed in change.put):
            if chunk.book_id != book_id:
                raise ValueError(f"a chunk of {chunk.book_id!r} among those of {book_id!r}")
        await self.check_room()
        for change in changes:
            await self._apply(change)
        reached("index.before-flush")
        await self._make_durable(sum(len(change.put) + len(change.drop) for change in changes))
        reached("index.flushed")
        await commit()

    async def remnants(self, book_id: str, pending: AbstractSet[int], *, drop: bool) -> int:
        """Always 0: this index stores one version of a lesson."""
        return 0

    async def _make_durable(self, points: int) -> None:
        """Make sure that the points written so far survive a power cut."""
        self._unflushed_points += points
        if self._sync_folder is not None and self._unflushed_points < FLUSH_AFTER_POINTS:
            await asyncio.to_thread(sync, self._sync_folder)
            return
        with engine_errors(self.collection):
            self._shard.flush()
        self._unflushed_points = 0

    async def _apply(self, change: Change) -> None:
        async with self._lock:
            self._cache.clear()
            with engine_errors(self.collection):
                await self._write(change)

    async def _write(self, change: Change) -> None:
        for start in range(0, len(change.put), UPSERT_BATCH):
            points = [to_point(indexed, change.language) for indexed in change.put[start : start + UPSERT_BATCH]]
            self._shard.update(qdrant.UpdateOperation.upsert_points(points))
            reached("index.put")
            await asyncio.sleep(0)  # so that tasks that need no index can run
        reached("index.before-drop")
        if change.drop:
            self._shard.update(qdrant.UpdateOperation.delete_points(list(change.drop)))
        reached("index.changed")

    def close(self) -> None:
        """Close the shard and release its folder."""
        self._shard.close()


def _dense_of(record: qdrant.Record) -> tuple[Vector, ...]:
    vectors = cast("dict[str, list[Vector]]", record.vector)  # by name; a chunk has a dense vector for each window
    return tuple(vectors[schema.DENSE])


def compile_filter(where: ChunkFilter, ids: Collection[str] | None = None) -> qdrant.Filter:
    """The filter in the engine's form, narrowed to these points if ids are given."""
    must: list[qdrant.FieldCondition | qdrant.HasIdCondition] = [
        _translate(condition) for condition in conditions_of(where)
    ]
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
    sparse = qdrant.EdgeSparseVectorParams()  # terms come weighted
    # A shard has one segment, which one thread searches. To start another thread took longer than the search.
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
    (path / PLAIN_FILE).touch()
    reached("index.before-ready")
    (path / READY_FILE).touch()
    return shard


READY_FILE = "lectern-ready"  # written last: a folder without it is from an interrupted creation and holds nothing
PLAIN_FILE = "lectern-plain"  # in a shard that adds up weights as they are; one without it was made to weigh terms


@asynccontextmanager
async def open_edge_index(
    folder: Path,
    collection: str,
    dimensions: int | None,
    lexicon: Lexicon,
    *,
    serving: bool = False,
    min_free: int | None = None,
) -> AsyncIterator[EdgeIndex]:
    """The collection's index below `folder`; created on first use if dimensions are given, closed at the end. With
    `serving`, a thread syncs the files, because readers wait while this process writes. `min_free` bytes of the disk
    must be left for a change."""
    path = folder / collection
    room = DiskRoom(path) if min_free is None else DiskRoom(path, min_free)
    with engine_errors(collection):
        if dimensions is None or (path / READY_FILE).exists():
            await asyncio.to_thread(room.check_opening, path)
            shard = qdrant.EdgeShard.load(str(path))
        else:
            _clear(path)
            room.check()
            shard = _create(path, dimensions)
    words = WordSearch(weighs=not (path / PLAIN_FILE).exists())
    index = EdgeIndex(shard, collection, words, lexicon, room, path if serving and os.name == "posix" else None)
    try:
        yield index
    finally:
        index.close()


def _clear(path: Path) -> None:
    import shutil

    if path.exists():
        shutil.rmtree(path)
