"""The first design document, *RAG Agent Backend*: its code gives what Lectern stores, its rules hold on the sample
book."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from qdrant_client import models

from lectern.domain.books import LAYERS, LEVELS
from lectern.index.nodes import connect
from lectern.index.schema import INTEGER_FIELDS, KEYWORD_FIELDS, TENANT_FIELD
from lectern.schemas.payload import to_payload
from tests.conftest import SAMPLE_BOOK
from tests.contracts.test_index import Book
from tests.documents.running import chunks_of, names_after, read, send
from tests.making import DIMENSIONS, chunk, indexed
from tests.qdrant import server_index
from tests.qdrant_server import QdrantServer
from tests.served import lectern

BOOK = "physical-ai-robotics"
CHUNK_ID = """
# Deterministic UUID from content hash
id_string = f"{book_id}:{module}:{chapter}:{lesson}:{content_hash[:16]}"
namespace = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
chunk_id = str(uuid.uuid5(namespace, id_string))
"""
PARENT_ID = """
# Deterministic UUID for parent document
id_string = f"{book_id}:{module}:{chapter}:{lesson}:parent"
namespace = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
parent_id = str(uuid.uuid5(namespace, id_string))
"""
OPERATIONS = '''
def get_changed_files(current_files: dict[str, str]) -> tuple[list, list, list]:
    """
    Compare current file hashes against stored state.

    Returns: (new_files, modified_files, deleted_files)
    """
    new_files = [path for path in current_files if path not in records]
    modified_files = [
        path for path in current_files
        if path in records and records[path].file_hash != current_files[path]
    ]
    deleted_files = [path for path in records if path not in current_files]
    return new_files, modified_files, deleted_files

def get_chunks_to_delete(files: list[str]) -> list[str]:
    """Get all chunk IDs associated with given files."""
    return [
        chunk_id
        for path in files if path in records
        for chunk_id in records[path].chunk_ids
    ]
'''
TYPES = """
ModuleName = Literal["ros2", "gazebo", "isaac", "vla"]
ProficiencyLevel = Literal["A1", "A2", "B1", "B2", "C1", "C2"]
TeachingLayer = Literal["L1", "L2", "L3", "L4"]
HardwareTier = Literal[1, 2, 3, 4]
IngestionMode = Literal["incremental", "full", "recreate"]
JobStatus = Literal["queued", "running", "completed", "failed"]
"""
PAYLOAD = """
book_id module chapter lesson hardware_tier proficiency_level layer parent_doc_id content_hash source_file_hash text
section_title source_file chunk_index total_chunks prev_chunk_id next_chunk_id word_count token_count version created_at
updated_at
"""
INDEXED = """
book_id module chapter lesson hardware_tier proficiency_level layer parent_doc_id content_hash source_file_hash
"""


@pytest.fixture(scope="module")
def chunks(server: str) -> list[dict[str, Any]]:
    """Every stored chunk of the sample book."""
    return list(chunks_of(server, BOOK))


def test_its_code_gives_the_ids(chunks: list[dict[str, Any]]) -> None:
    """Of each chunk and of each lesson, from what the payload says of their place and text."""
    for stored in chunks:
        payload = stored["payload"]
        assert payload["content_hash"] == hashlib.sha256(payload["text"].encode()).hexdigest()
        assert names_after(CHUNK_ID, **payload)["chunk_id"] == stored["id"]
        assert names_after(PARENT_ID, **payload)["parent_id"] == payload["parent_doc_id"]


def test_its_invariants_hold(chunks: list[dict[str, Any]]) -> None:
    """Sizes, ranges, types and the chain of each lesson."""
    types = names_after(TYPES)
    by_id = {stored["id"]: stored["payload"] for stored in chunks}
    for payload in by_id.values():
        assert payload["text"] == payload["text"].strip()
        assert len(payload["text"]) == payload["char_count"] >= 10
        assert payload["token_count"] == round(payload["word_count"] * 1.3) >= 1
        assert (0 <= payload["chapter"] <= 20, 0 <= payload["lesson"] <= 15) == (True, True)
        assert payload["module"] in {*types["ModuleName"].__args__, "main"}
        assert payload["hardware_tier"] in types["HardwareTier"].__args__
        assert 0 <= payload["chunk_index"] < payload["total_chunks"]
        assert (payload["prev_chunk_id"] is None) == (payload["chunk_index"] == 0)
        assert (payload["next_chunk_id"] is None) == (payload["chunk_index"] == payload["total_chunks"] - 1)
        if payload["prev_chunk_id"]:
            before = by_id[payload["prev_chunk_id"]]
            assert by_id[before["next_chunk_id"]] is payload
            assert before["parent_doc_id"] == payload["parent_doc_id"]
    assert types["ProficiencyLevel"].__args__ == LEVELS
    assert types["TeachingLayer"].__args__ == LAYERS


def test_its_payload_is_the_payload() -> None:
    """Every field is stored, and those that it marks are indexed, the book as the tenant."""
    assert set(PAYLOAD.split()) <= to_payload(indexed(chunk("A text of ten letters.")).stored).keys()
    assert {TENANT_FIELD, *KEYWORD_FIELDS, *INTEGER_FIELDS} == set(INDEXED.split())


async def test_its_indexes_are_on_a_server(real_qdrant: QdrantServer) -> None:
    """A real Qdrant server has an index on each field that the document marks, of its type, the book as the tenant."""
    client, name = connect(real_qdrant.url, None), f"printed-{uuid.uuid4().hex}"
    async with server_index(Book(), DIMENSIONS, name, client=client):
        fields = (await client.get_collection(name)).payload_schema

    assert set(INDEXED.split()) <= fields.keys()
    numbers = {name for name in INDEXED.split() if fields[name].data_type == models.PayloadSchemaType.INTEGER}
    assert numbers == {"chapter", "lesson", "hardware_tier"}
    tenant = fields["book_id"].params
    assert isinstance(tenant, models.KeywordIndexParams)
    assert tenant.is_tenant
    assert "chunk_id" in fields  # the points' ids are others on a server


def test_its_operations_say_what_a_plan_says(sample_home: Path, server: str, tmp_path: Path) -> None:
    """Its two functions, on the state of the book as it is read, find the changes that a dry run finds."""
    state = read(server, f"/books/{BOOK}/state")
    records = {path: SimpleNamespace(**record) for path, record in state["records"].items()}
    operations = names_after(OPERATIONS, records=records)
    shutil.copytree(sample_home, tmp_path / "home")
    folder = shutil.copytree(SAMPLE_BOOK, tmp_path / "book")
    (folder / "docs/intro.md").write_text("# Welcome\n\nThis page was changed by its author.\n", encoding="utf-8")
    (folder / "docs/module-1-ros2/README.md").unlink()
    (folder / "docs/module-4-vla/new.md").write_text("# New\n\nThis page is new in the book.\n", encoding="utf-8")
    paths = [path for path in folder.rglob("*.md*") if path.suffix in {".md", ".mdx"}]
    hashes = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    planned = lectern("ingest", str(folder), "--dry-run", "--json", home=tmp_path / "home")
    plan = json.loads(planned.stdout.splitlines()[-1])

    assert state["total_chunks"] == sum(record.chunk_count for record in records.values())
    assert operations["get_changed_files"](hashes) == (plan["new"], plan["modified"], plan["deleted"])
    assert plan["modified"] == ["docs/intro.md"]
    stored = {stored["id"] for stored in chunks_of(server, BOOK)}
    assert set(operations["get_chunks_to_delete"](list(records))) == stored


@pytest.mark.parametrize(
    ("filters", "holds"),
    [
        ({"hardware_tier_filter": 2}, lambda result: result["hardware_tier"] <= 2),
        ({"module_filter": "ros2"}, lambda result: result["module"] == "ros2"),
        ({"chapter_min": 3, "chapter_max": 4}, lambda result: 3 <= result["chapter"] <= 4),
        ({"lesson_filter": 1}, lambda result: result["lesson"] == 1),
        ({"proficiency_levels": ["A2", "B1"]}, lambda result: result["proficiency_level"] in {"A2", "B1"}),
        ({"layer_filter": "L2"}, lambda result: result["layer"] == "L2"),
    ],
)
def test_its_filters_filter(server: str, filters: dict[str, Any], holds: Any) -> None:
    """Under its names; results come by score, and the response says what was applied."""
    body = send(server, "/search", {"text": "robot", "book_id": BOOK, "limit": 20, **filters}).json()

    assert body["results"]
    assert all(map(holds, body["results"]))
    scores = [result["score"] for result in body["results"]]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] <= scores[0] <= 1
    assert body["total_found"] >= len(scores)
    assert filters.items() <= body["filters"].items()


def test_its_job_is_the_job(server: str) -> None:
    """A completed one has its times, and its files add up."""
    job = read(server, "/ingestions/1")

    assert job["status"] in names_after(TYPES)["JobStatus"].__args__
    assert job["mode"] in names_after(TYPES)["IngestionMode"].__args__
    assert job["started_at"] <= job["completed_at"]
    assert isinstance(job["duration_seconds"], int)
    assert job["files_processed"] + job["files_skipped"] == job["files_discovered"]
