"""The payload of a point in Qdrant (the design's QdrantPayload): the fields of a stamped chunk, plus the version of
this format.

Reading is strict. A payload of an older version is completed if that is possible, until the next ingestion writes it
again. A payload of any other version, or with a field missing, is never read in part: the index must be rebuilt.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lectern.domain.chunks import Chunk, IncludedLines, SectionMark, Stamp, StampedChunk
from lectern.domain.errors import IndexMismatch

SCHEMA_VERSION = 3
_ADDED_FIELDS: dict[object, dict[str, Any]] = {  # fields that an older version lacks
    1: {"sections": [], "included": []},
    2: {"included": []},
}
_CHUNK_FIELDS = tuple(field.name for field in dataclasses.fields(Chunk) if field.name != "id")
_STAMP_FIELDS = tuple(field.name for field in dataclasses.fields(Stamp))


def to_payload(stored: StampedChunk) -> dict[str, Any]:
    """What is stored beside the vectors."""
    payload: dict[str, Any] = {name: getattr(stored.chunk, name) for name in _CHUNK_FIELDS}
    payload["trail"] = list(stored.chunk.trail)
    payload["sections"] = [dataclasses.asdict(mark) for mark in stored.chunk.sections]
    payload["included"] = [dataclasses.asdict(part) for part in stored.chunk.included]
    payload |= {name: getattr(stored.stamp, name) for name in _STAMP_FIELDS}
    payload["schema_version"] = SCHEMA_VERSION
    return payload


def from_payload(point_id: object, payload: Mapping[str, Any] | None) -> StampedChunk:
    """The chunk behind a point."""
    fields = dict(payload or {})
    version = fields.pop("schema_version", None)
    fields |= _ADDED_FIELDS.get(version, {})
    if version != SCHEMA_VERSION and version not in _ADDED_FIELDS:
        raise IndexMismatch(
            f"the index holds chunks of schema {version!r}, this version reads {SCHEMA_VERSION}; "
            "rebuild it with: lectern ingest PATH --mode recreate"
        )
    try:
        chunk = {name: fields[name] for name in _CHUNK_FIELDS}
        stamp = {name: fields[name] for name in _STAMP_FIELDS}
    except KeyError as exc:
        raise IndexMismatch(
            f"point {point_id} has no field {exc}; rebuild the book with: lectern ingest PATH --mode recreate"
        ) from exc
    chunk["trail"] = tuple(chunk["trail"])
    chunk["sections"] = tuple(SectionMark(**mark) for mark in chunk["sections"])
    chunk["included"] = tuple(IncludedLines(**part) for part in chunk["included"])
    return StampedChunk(chunk=Chunk(id=str(point_id), **chunk), stamp=Stamp(**stamp))  # type: ignore[arg-type]  # NewType of str
