"""Conversations on PostgreSQL: the design's columns have the design's types, so that its own SQL runs on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.errors import BadInput
from lectern.domain.threads import ThreadEdit
from tests.databases import fresh_database
from tests.jobs.test_store import migrate
from tests.threads.test_store import FIRST_OWNER, SECOND_OWNER, Store, new_id

COLUMNS = text(
    "SELECT column_name, data_type, column_default FROM information_schema.columns "
    "WHERE table_name = 'conversation_threads'"
)


@pytest.fixture
async def store(tmp_path: Path, postgres_address: str) -> AsyncIterator[Store]:
    """Threads on PostgreSQL."""
    async with fresh_database("postgresql", tmp_path, postgres_address) as engine:
        yield Store(engine)


async def rows_of(engine: AsyncEngine, sql: str) -> list[tuple[object, ...]]:
    """The rows of a query that an operator writes."""
    async with engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(sql))]


async def test_the_columns_have_the_types_of_the_design(store: Store) -> None:
    """UUID, JSONB and timestamptz, with the defaults that the design gives them."""
    async with store.engine.connect() as connection:
        columns = {row.column_name: row for row in await connection.execute(COLUMNS)}
        key = await connection.execute(
            text(
                "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
                "AND a.attnum = ANY(i.indkey) WHERE i.indrelid = 'conversation_threads'::regclass AND i.indisprimary"
            )
        )

        assert set(key.scalars()) == {"thread_id", "owner"}
    assert columns["thread_id"].data_type == "uuid"
    assert (columns["metadata"].data_type, columns["metadata"].column_default) == ("jsonb", "'{}'::jsonb")
    for name in ("created_at", "updated_at"):
        assert columns[name].data_type == "timestamp with time zone"
        assert columns[name].column_default == "now()"


async def test_an_operator_may_query_threads_with_the_sql_of_the_design(store: Store) -> None:
    """By what is in the metadata, by an interval, and by a thread's id."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "What is a node?")
    await store.threads.edit(FIRST_OWNER, thread_id, ThreadEdit(metadata={"user_id": "user123", "tags": ["ros2"]}))
    found = f"SELECT thread_id::text FROM conversation_threads WHERE thread_id = '{thread_id}' AND "

    assert await rows_of(store.engine, found + "metadata->>'user_id' = 'user123'") == [(thread_id,)]
    assert await rows_of(store.engine, found + 'metadata @> \'{"tags": ["ros2"]}\'') == [(thread_id,)]
    assert await rows_of(store.engine, found + "updated_at > '2026-01-01'::timestamptz") == [(thread_id,)]
    assert await rows_of(store.engine, found + "updated_at < '2026-01-01'::timestamptz - interval '1 hour'") == []
    assert await rows_of(store.engine, found + "metadata->>'user_id' = 'another'") == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_threads_of_an_older_database_are_carried_over(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The migration keeps every value, and what belongs to a thread is still deleted with it."""
    address = request.getfixturevalue("postgres_address") if kind == "postgresql" else None
    async with fresh_database(kind, tmp_path, address) as engine:
        store, thread_id = Store(engine), new_id()
        await store.say(FIRST_OWNER, thread_id, "What is a node?", at=5)
        await store.say(SECOND_OWNER, thread_id, "What is a topic?")
        before = await store.threads.thread(FIRST_OWNER, thread_id)
        for step in ("0004", "head"):
            async with engine.begin() as connection:
                await connection.run_sync(migrate, step)

        assert await store.threads.thread(FIRST_OWNER, thread_id) == before
        await store.threads.delete(FIRST_OWNER, thread_id)
        assert len(await rows_of(engine, "SELECT 1 FROM messages")) == 2


async def test_metadata_that_jsonb_cannot_hold_does_not_stop_the_migration(store: Store) -> None:
    """A NUL character is replaced, and a damaged row becomes empty."""
    ids = [new_id(), new_id()]
    for thread_id in ids:
        await store.say(FIRST_OWNER, thread_id, "What is a node?")
    async with store.engine.begin() as connection:
        await connection.run_sync(migrate, "0004")
        for thread_id, body in zip(ids, ('{"path": "a\\u0000b \\\\u0000"}', "{broken"), strict=True):
            await connection.execute(
                text("UPDATE conversation_threads SET metadata = :body WHERE thread_id = :id"),
                {"body": body, "id": thread_id},
            )
        await connection.run_sync(migrate, "head")

    heads = [await store.threads.head(FIRST_OWNER, thread_id) for thread_id in ids]
    assert [dict(head.metadata) for head in heads if head] == [{"path": "a\ufffdb \\u0000"}, {}]


def test_metadata_without_nul() -> None:
    """Text that PostgreSQL cannot store is refused, wherever in the metadata it is."""
    for metadata in ({"a": "\x00"}, {"\x00": 1}, {"tags": [{"b": "x\x00"}]}):
        with pytest.raises(BadInput, match="NUL"):
            ThreadEdit(metadata=metadata)
