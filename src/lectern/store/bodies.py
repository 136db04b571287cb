"""Values as the database stores them: JSON, compressed if large, and vectors as float32 bytes. Never pickle: anybody
who can write to the file could have changed it."""

from __future__ import annotations

import base64
import dataclasses
import json
import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Any

from lectern.domain.books import Defaults, LessonPlace, Manifest, ModuleInfo
from lectern.domain.chunks import Change, Chunk, IndexedChunk, SectionMark, Stamp, StampedChunk, Vector
from lectern.domain.jobs import IngestionRecord, Intent


def vector_to_bytes(vector: Vector) -> bytes:
    """Little-endian float32."""
    packed = array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def vector_from_bytes(body: bytes) -> Vector:
    """The vector behind those bytes."""
    packed = array("f")
    packed.frombytes(body)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tolist()


def manifest_to_json(manifest: Manifest) -> str:
    """A manifest as one JSON object. If modules have no other names, that field is left out: a server of an older
    version, on the same database during an upgrade, does not know it."""
    fields = dataclasses.asdict(manifest)
    if not manifest.module_aliases:
        del fields["module_aliases"]
    return json.dumps(fields, ensure_ascii=False, sort_keys=True)


def manifest_from_json(body: str) -> Manifest:
    """The manifest behind that JSON; fields of a newer version are left out."""
    names = {field.name for field in dataclasses.fields(Manifest)}
    fields: dict[str, Any] = {name: value for name, value in json.loads(body).items() if name in names}
    fields["exclude"] = tuple(fields["exclude"])
    fields["modules"] = tuple(ModuleInfo(**module) for module in fields["modules"])
    fields["module_aliases"] = tuple((alias, slug) for alias, slug in fields.get("module_aliases", ()))
    fields["defaults"] = Defaults(**fields["defaults"])
    return Manifest(**fields)


def intents_to_bytes(intents: Sequence[Intent]) -> bytes:
    """Intents, complete enough to be applied again."""
    body = [
        {
            "put": [_indexed_to_json(indexed) for indexed in intent.change.put],
            "drop": list(intent.change.drop),
            "language": intent.change.language,
            "records": [dataclasses.asdict(record) for record in intent.records],
            "retired": list(intent.retired),
        }
        for intent in intents
    ]
    return zlib.compress(json.dumps(body).encode(), level=1)


def intents_from_bytes(body: bytes) -> tuple[Intent, ...]:
    """The intents behind those bytes."""
    return tuple(
        Intent(
            change=Change(
                put=tuple(_indexed_from_json(indexed) for indexed in intent["put"]),
                drop=tuple(intent["drop"]),
                language=intent["language"],
            ),
            records=tuple(_record_from_json(record) for record in intent["records"]),
            retired=tuple(intent["retired"]),
        )
        for intent in json.loads(zlib.decompress(body))
    )


def _indexed_to_json(indexed: IndexedChunk) -> dict[str, Any]:
    vectors = [base64.b64encode(vector_to_bytes(vector)).decode() for vector in indexed.vectors]
    return {**dataclasses.asdict(indexed.stored), "vectors": vectors}


def _indexed_from_json(body: dict[str, Any]) -> IndexedChunk:
    sections = [SectionMark(**mark) for mark in body["chunk"].get("sections", [])]  # an older version stored none
    chunk = {**body["chunk"], "trail": tuple(body["chunk"]["trail"]), "sections": tuple(sections)}
    stored = StampedChunk(chunk=Chunk(**chunk), stamp=Stamp(**body["stamp"]))
    return IndexedChunk(
        stored=stored, vectors=tuple(vector_from_bytes(base64.b64decode(vector)) for vector in body["vectors"])
    )


def _record_from_json(body: dict[str, Any]) -> IngestionRecord:
    terms = body.get("terms")  # an older version stored none
    fields = {
        "place": LessonPlace(**body["place"]),
        "chunk_ids": tuple(body["chunk_ids"]),
        "terms": None if terms is None else {int(term): count for term, count in terms.items()},
    }
    return IngestionRecord(**{**body, **fields})
