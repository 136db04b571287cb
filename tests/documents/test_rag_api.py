"""The fourth design document, *RAG Agent API*: its examples, its rules, its SQL."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from lectern import views
from lectern.confidence.policies import policy_for
from lectern.schemas.chat import ChatResponse, ConfidenceMetrics, Source
from lectern.schemas.common import Response
from lectern.store.database import open_database
from tests.databases import new_postgres_database
from tests.documents.conftest import Asked
from tests.documents.running import names_after, read, send
from tests.making import chunk, hit, unit_vector

REQUEST = """
{
  "message": "How do ROS 2 nodes communicate?",
  "session_id": "550e8400-e29b-41d4-a716-446655440000",
  "stream": false,
  "top_k": 5,
  "similarity_threshold": 0.7
}
"""
RESPONSE = {
    "response": "ROS 2 nodes communicate through a publish-subscribe mechanism using topics. Nodes can publish messages"
    " to topics and subscribe to receive messages from topics they're interested in.",
    "confidence": 0.87,
    "sources": [
        {
            "chunk_text": "ROS 2 nodes use a distributed publish-subscribe architecture...",
            "similarity_score": 0.92,
            "chapter": "Chapter 3: Robot Operating System 2",
            "section": "3.2 ROS 2 Communication Patterns",
            "url": "https://example.com/textbook/chapter3#section3-2",
            "chunk_index": 15,
        }
    ],
    "session_id": "550e8400-e29b-41d4-a716-446655440000",
    "timestamp": "2025-12-17T14:23:45.123Z",
    "confidence_level": "high",
    "should_answer": True,
}
METRICS = {
    "average_similarity": 0.87,
    "min_similarity": 0.78,
    "max_similarity": 0.94,
    "num_chunks": 5,
    "chunk_diversity": 0.23,
    "confidence_level": "high",
    "should_answer": True,
}
METADATA = {"user_id": "user123", "tags": ["ros2", "urdf", "robotics"]}
LEVELS = """
if average_similarity >= 0.85 and num_chunks >= 5:
    confidence_level = "high"
    should_answer = True
elif average_similarity >= 0.75 and num_chunks >= 3:
    confidence_level = "medium"
    should_answer = True
elif average_similarity >= 0.60 and num_chunks >= 2:
    confidence_level = "low"
    should_answer = True  # Answer with disclaimer
else:
    confidence_level = "insufficient"
    should_answer = False  # Refuse to answer
"""
DIVERSITY = """
# Compute pairwise cosine similarities between all chunk embeddings
pairwise_sims = []
for i in range(len(embeddings)):
    for j in range(i+1, len(embeddings)):
        sim = cosine_similarity(embeddings[i], embeddings[j])
        pairwise_sims.append(sim)

# Diversity = 1 - average pairwise similarity
chunk_diversity = 1.0 - mean(pairwise_sims) if pairwise_sims else 0.0
"""
TABLE = """
CREATE TABLE conversation_threads (
    thread_id UUID PRIMARY KEY,
    messages JSONB NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    updated_at TIMESTAMPTZ NOT NULL DEFAULT NOW(),
    topic_summary TEXT,
    metadata JSONB DEFAULT '{}'::jsonb
);

CREATE INDEX idx_threads_updated ON conversation_threads(updated_at DESC);
CREATE INDEX idx_threads_created ON conversation_threads(created_at DESC);
"""
COLUMNS = """
SELECT column_name, data_type, column_default FROM information_schema.columns
WHERE table_name = 'conversation_threads' AND table_schema =
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'conversation_threads' AND schemaname = "


def test_its_request_gets_its_response(server: str) -> None:
    """Every field of its response and of its source, of the same types; and its rules hold between them."""
    response = send(server, "/chat/run", REQUEST)
    body = response.json()

    assert response.status_code == 200
    assert RESPONSE.keys() <= body.keys()
    assert {name: type(body[name]) for name in RESPONSE} == {name: type(value) for name, value in RESPONSE.items()}
    assert body["session_id"] == RESPONSE["session_id"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])
    assert (body["should_answer"], body["confidence_level"]) == (True, body["metrics"]["confidence_level"])
    assert body["sources"]
    metrics = body["metrics"]
    assert metrics.keys() >= METRICS.keys()
    assert 0.7 <= metrics["min_similarity"] <= metrics["average_similarity"] <= metrics["max_similarity"] <= 1
    for source in body["sources"]:
        assert len(source["chunk_text"]) <= 500
        assert 0.7 <= source["similarity_score"] <= 1


def fields_are_valid(kind: type[Response], example: dict[str, Any]) -> bool:
    """Whether a class takes each value of an example in the field of that name."""
    for name, value in example.items():
        if isinstance(value, list):
            continue
        TypeAdapter(kind.model_fields[name].annotation).validate_python(value)
    return True


def test_its_examples_fit_the_shapes() -> None:
    """Each value of its printed answers is one that a field of that name takes."""
    assert fields_are_valid(ChatResponse, RESPONSE)
    assert fields_are_valid(Source, RESPONSE["sources"][0])  # type: ignore[index]  # a list of one
    assert fields_are_valid(ConfidenceMetrics, METRICS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": " \n "},
        {"message": "x" * 1001},
        {"session_id": "550e8400-e29b-11d4-a716-446655440000"},
        {"top_k": 0},
        {"top_k": 11},
        {"similarity_threshold": 1.01},
        {"similarity_threshold": -0.01},
    ],
)
def test_its_limits_are_the_limits(server: str, wrong: dict[str, Any]) -> None:
    """What it rules out is refused, and the field is named."""
    response = send(server, "/chat/run", {"message": "What is URDF?", **wrong})

    assert response.status_code == 422
    assert response.json()["field"] in wrong


def test_its_thread_is_a_thread(server: str) -> None:
    """Its dialogue with its metadata reads as it prints it, with its threshold, which these passages have as relevances
    and not as cosines; the second question is about the first one's subject."""
    session = str(uuid.uuid4())
    for message in ("What is URDF?", "Can you give an example?"):
        asked = {"message": message, "session_id": session, "metadata": METADATA, "similarity_threshold": 0.7}
        send(server, "/chat/run", asked)
    thread = read(server, f"/threads/{session}")

    assert thread["thread_id"] == session
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant"] * 2
    assert "Unified Robot Description Format" in thread["messages"][1]["content"]
    assert "```xml" in thread["messages"][3]["content"]
    assert thread["messages"][1]["confidence"] > 0.6
    assert thread["created_at"] <= thread["updated_at"]
    assert thread["metadata"] == METADATA
    assert thread["topic_summary"] is None


@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_its_rules_give_the_levels(scores: list[float]) -> None:
    """With the policy `thresholds`, its table and ours agree on any scores, and on whether to answer."""
    hits = [replace(hit(chunk(f"text {number}")), relevance=score) for number, score in enumerate(scores)]
    metrics = policy_for("thresholds", "local/all-MiniLM-L6-v2-int8/384").measure("?", hits, hits)
    named = names_after(LEVELS, average_similarity=metrics.average_similarity, num_chunks=metrics.num_chunks)

    assert (metrics.confidence_level, metrics.should_answer) == (named["confidence_level"], named["should_answer"])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_its_code_gives_the_diversity(count: int) -> None:
    """Of the chunks' vectors; with a single one it is 0."""
    hits = [replace(hit(chunk(f"text {number}")), windows=(unit_vector(str(number)),)) for number in range(count)]
    metrics = policy_for("thresholds", "local/all-MiniLM-L6-v2-int8/384").measure("?", hits, hits)
    named = names_after(DIVERSITY, embeddings=[list(one.windows[0]) for one in hits])

    assert metrics.chunk_diversity == pytest.approx(min(max(named["chunk_diversity"], 0), 1))


def test_its_retrieval_result_is_a_view(asked: Asked) -> None:
    """Lists of one length, their mean, no text twice, and its condition on the context under its own policy."""
    policy = policy_for("thresholds", asked.found.where.book_id)
    result = views.retrieval_result(asked.found, policy.measure("?", asked.found.hits, asked.found.hits))

    assert len(result.chunks) == len(result.scores) == len(result.metadata) == 5
    assert result.average_score == pytest.approx(sum(result.scores) / 5)
    assert result.has_sufficient_context == (result.average_score >= 0.75 and len(result.chunks) >= 3)
    assert len({metadata.content_hash for metadata in result.metadata}) == 5
    assert len(result.query_embedding) == 384


async def rows_of(engine: AsyncEngine, sql: str) -> set[tuple[object, ...]]:
    """The rows of a query."""
    async with engine.connect() as connection:
        return {tuple(row) for row in await connection.execute(text(sql))}


async def test_its_table_is_the_table(postgres_address: str) -> None:
    """Its SQL run beside ours makes columns of the same names, types and defaults, and the same indexes; only the
    messages are rows of a table of their own."""
    url = await new_postgres_database(postgres_address)
    async with open_database(url):
        pass
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE SCHEMA printed"))
        for statement in ("SET LOCAL search_path TO printed", *filter(str.strip, TABLE.split(";"))):
            await connection.execute(text(statement))
    printed, ours = [await rows_of(engine, f"{COLUMNS}'{schema}'") for schema in ("printed", "public")]
    indexes = [
        {
            (name, definition.replace(f"{schema}.", ""))
            for name, definition in await rows_of(engine, INDEXES + f"'{schema}'")
        }
        for schema in ("printed", "public")
    ]
    await engine.dispose()

    assert printed - ours == {("messages", "jsonb", None)}
    assert {row for row in indexes[0] if row[0].startswith("idx_")} <= indexes[1]
