"""Feedback on turns, on both databases: one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from lectern.conversations.export import as_markdown
from lectern.domain.errors import BadInput, UnknownThread
from lectern.domain.threads import COMMENT_LENGTH, Feedback
from lectern.store.tables import archived_turns, turn_feedback
from tests.databases import fresh_database
from tests.threads.test_store import FIRST_OWNER, SECOND_OWNER, Store, moment, new_id

DOWN = Feedback(rating="down", reason="incomplete", comment="What about topics?")
UP = Feedback(rating="up")


@pytest.fixture(params=["sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """The store on each database."""
    address = request.getfixturevalue("postgres_address") if request.param == "postgresql" else None
    async with fresh_database(request.param, tmp_path, address) as engine:
        yield Store(engine)


async def count_of(store: Store, table: Any) -> int:
    """How many rows a table has."""
    async with store.engine.connect() as connection:
        return int((await connection.execute(select(func.count()).select_from(table))).scalar() or 0)


async def feedback_of(store: Store, thread_id: str) -> list[Feedback | None]:
    """The feedback on each turn of a thread."""
    return [turn.feedback for turn in await store.threads.turns(FIRST_OWNER, thread_id)]


async def test_feedback_is_read_with_its_turn_and_can_be_taken_back(store: Store) -> None:
    """The last word counts, each turn has its own, and None removes it; the conversation itself does not change."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "first")
    await store.say(FIRST_OWNER, thread_id, "second", at=5)
    before = await store.threads.head(FIRST_OWNER, thread_id)

    await store.threads.rate(FIRST_OWNER, thread_id, 2, UP)
    await store.threads.rate(FIRST_OWNER, thread_id, 2, DOWN)
    await store.threads.rate(FIRST_OWNER, thread_id, 1, UP)
    rated = await feedback_of(store, thread_id)
    await store.threads.rate(FIRST_OWNER, thread_id, 1, None)
    await store.threads.rate(FIRST_OWNER, thread_id, 1, None)

    assert rated == [UP, DOWN]
    assert await feedback_of(store, thread_id) == [None, DOWN]
    assert await store.threads.head(FIRST_OWNER, thread_id) == before


async def test_only_the_owner_rates_and_only_turns_that_exist(store: Store) -> None:
    """Another owner's thread is unknown, and a number beyond the thread's turns is refused."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "mine")

    with pytest.raises(UnknownThread):
        await store.threads.rate(SECOND_OWNER, thread_id, 1, UP)
    for number in (0, 2):
        with pytest.raises(BadInput) as refusal:
            await store.threads.rate(FIRST_OWNER, thread_id, number, UP)
        assert refusal.value.field == "turn"
    assert await count_of(store, turn_feedback) == 0


async def test_archiving_keeps_feedback_and_deleting_removes_it(store: Store) -> None:
    """An archived thread has its feedback and takes more; a deleted, purged or forgotten one leaves nothing."""
    archived, purged, forgotten = new_id(), new_id(), new_id()
    await store.say(FIRST_OWNER, archived, "old", at=100)
    await store.say(FIRST_OWNER, purged, "older", at=0)
    await store.say(SECOND_OWNER, forgotten, "other", at=100)
    await store.threads.rate(FIRST_OWNER, archived, 1, UP)
    await store.threads.rate(FIRST_OWNER, purged, 1, DOWN)
    await store.threads.rate(SECOND_OWNER, forgotten, 1, DOWN)

    await store.threads.archive_idle(moment(3600))
    assert await count_of(store, archived_turns) == 3
    assert await feedback_of(store, archived) == [UP]
    await store.threads.rate(FIRST_OWNER, archived, 1, DOWN)
    assert await feedback_of(store, archived) == [DOWN]

    await store.threads.purge(moment(50))
    await store.threads.forget(SECOND_OWNER)
    assert await count_of(store, turn_feedback) == 1
    await store.threads.delete(FIRST_OWNER, archived)
    assert await count_of(store, turn_feedback) == 0


async def test_an_export_in_markdown_has_the_feedback(store: Store) -> None:
    """One line below the turn, whatever the comment contains."""
    thread_id = new_id()
    await store.say(FIRST_OWNER, thread_id, "first")
    comment = "Two\nlines"
    await store.threads.rate(FIRST_OWNER, thread_id, 1, Feedback(rating="down", reason="hard_to_read", comment=comment))
    head = await store.threads.head(FIRST_OWNER, thread_id)
    assert head is not None

    text = as_markdown(head, await store.threads.turns(FIRST_OWNER, thread_id))

    assert "\nFeedback: thumb down (hard to read): Two lines\n" in text


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rating": "sideways"}, "rating"),
        ({"rating": "down", "reason": "boring"}, "reason"),
        ({"rating": "up", "reason": "wrong"}, "reason"),
        ({"rating": "down", "comment": "x" * (COMMENT_LENGTH + 1)}, "comment"),
        ({"rating": "down", "comment": "a\x00b"}, "comment"),
        ({"rating": "down", "comment": "\ud800"}, "comment"),
    ],
)
def test_feedback_that_cannot_be_stored_is_refused(fields: dict[str, Any], field: str) -> None:
    """Each part is checked before anything is written, and the error names the part."""
    with pytest.raises(BadInput) as refusal:
        Feedback(**fields)
    assert refusal.value.field == field
