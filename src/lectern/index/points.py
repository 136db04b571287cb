"""Points of a Qdrant server: a chunk as a point and back, and what this process has read of points.

A point is one chunk in one generation of its lesson, and its id says which. So what was read of a point stays true, and
the server need not read it again: to look up the payloads of what it found takes it as long as to find it.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from qdrant_client import models

from lectern.domain.chunks import ChunkId, IndexedChunk, StampedChunk, Vector
from lectern.index import lexical, schema
from lectern.index.layout import CHUNK_ID, GENERATION
from lectern.index.schema import ChunkRef
from lectern.schemas.payload import from_payload, to_payload

PARENT = "parent_doc_id"
REF_FIELDS = [CHUNK_ID, GENERATION, PARENT, schema.HASH_FIELD]
MAX_REFS = 20_000  # 10 MB
MAX_CHUNKS = 500  # with their vectors, 40 KB each or more
Point = models.ScoredPoint | models.Record
Version = tuple[str, int]  # a lesson and its generation
ReadPoints = Callable[[Sequence[str]], Awaitable[Sequence[models.Record]]]


class PointRef(NamedTuple):
    """All that ranking needs of a point."""

    chunk: ChunkRef
    version: Version


class KnownPoints:
    """What was read of points, by their ids."""

    def __init__(self) -> None:
        self._refs: dict[str, PointRef] = {}
        self._chunks: dict[str, IndexedChunk] = {}
        self._all_known = False

    @property
    def fields(self) -> list[str] | bool:
        """The payload that the next search should bring: none if the last one found only points that were known."""
        return False if self._all_known else REF_FIELDS

    async def refs(self, points: Sequence[Point], read: ReadPoints) -> Mapping[str, PointRef]:
        """The refs of points that a search found. One that came without its payload and is not known is read; if it is
        gone meanwhile, it has none."""
        refs = {point: self._refs[point] for point in (str(point.id) for point in points) if point in self._refs}
        new = [point for point in points if str(point.id) not in refs]
        self._all_known = not new
        if new and any(not point.payload for point in new):
            new = list(await read([str(point.id) for point in new]))
        if len(self._refs) + len(new) > MAX_REFS:
            self._refs = dict(refs)
        read_refs = {str(point.id): _ref_of(point) for point in new}
        self._refs |= read_refs
        return refs | read_refs

    async def chunks(self, points: Sequence[str], read: ReadPoints) -> Mapping[str, IndexedChunk]:
        """The chunks behind points, with their vectors; those that are not known are read. A point that is gone has
        none."""
        chunks = {point: self._chunks[point] for point in points if point in self._chunks}
        if len(chunks) < len(points):
            records = await read([point for point in points if point not in chunks])
            read_chunks = {str(record.id): indexed_of(record) for record in records}
            if len(self._chunks) + len(read_chunks) > MAX_CHUNKS:
                self._chunks = dict(chunks)
            self._chunks |= read_chunks
            chunks |= read_chunks
        return chunks


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


def stored_of(point: Point) -> StampedChunk:
    """The chunk behind a point."""
    return from_payload(_payload(point).get(CHUNK_ID), point.payload)


def indexed_of(point: models.Record) -> IndexedChunk:
    """The chunk behind a point, with its vectors."""
    return IndexedChunk(stored=stored_of(point), vectors=_dense_of(point))


def version_of(point: Point) -> Version:
    """The lesson that a point belongs to, and its generation."""
    return str(_payload(point)[PARENT]), int(_payload(point)[GENERATION])


def _ref_of(point: Point) -> PointRef:
    payload = _payload(point)
    chunk = ChunkId(str(payload[CHUNK_ID])), str(payload[schema.HASH_FIELD])
    return PointRef(chunk=chunk, version=version_of(point))


def _payload(point: Point) -> dict[str, Any]:
    return point.payload or {}


def _dense_of(point: models.Record) -> tuple[Vector, ...]:
    vectors: Any = point.vector
    return tuple(list(window) for window in vectors[schema.DENSE])
