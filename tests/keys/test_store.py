"""Keys on both databases: one contract."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event, inspect, select, update
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.clock import days_ago, utc_now
from lectern.domain.errors import BadInput, Conflict, UnknownKey
from lectern.domain.keys import KeyRequest
from lectern.store.keys import CACHE_SECONDS, USE_NOTE_SECONDS, SqlKeys
from lectern.store.tables import api_keys, server_secrets
from tests.databases import fresh_database

WIDGET = KeyRequest(
    name="widget",
    kind="publishable",
    books=frozenset({"ros2"}),
    origins=frozenset({"https://a.example", "https://b.example"}),
)


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Now."""
        return self.now


@pytest.fixture(params=["sqlite", "postgresql"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    """Each database."""
    address = request.getfixturevalue("postgres_address") if request.param == "postgresql" else None
    async with fresh_database(request.param, tmp_path, address) as engine:
        yield engine


@pytest.fixture
def clock() -> Clock:
    """What a store believes the time is."""
    return Clock()


@pytest.fixture
def keys(engine: AsyncEngine, clock: Clock) -> SqlKeys:
    """The store."""
    return SqlKeys(engine, clock=clock)


async def test_a_key_opens_and_reads_back_as_it_was_made(keys: SqlKeys) -> None:
    """Everything but its text is kept, and its text opens it."""
    issued = await keys.create(replace(WIDGET, days=7))
    [listed] = await keys.list_keys()

    assert re.fullmatch(r"lp_[a-z0-9]{12}_[A-Za-z0-9]{32}", issued.text)
    assert listed == issued.key == await keys.verify(issued.text)
    assert (listed.kind, listed.books, listed.origins) == (WIDGET.kind, WIDGET.books, WIDGET.origins)
    assert listed.expires_at is not None
    assert listed.state(utc_now()) == "active"
    assert issued.text not in repr(issued)


async def test_no_column_holds_a_key(keys: SqlKeys, engine: AsyncEngine) -> None:
    """Neither the text nor its secret part is anywhere in the row, before and after a rotation."""
    first = await keys.create(KeyRequest(name="k"))
    second = await keys.rotate(first.key.key_id, grace=1)
    async with engine.connect() as connection:
        row = (await connection.execute(select(api_keys))).one()

    for text in (first.text, second.text):
        assert not [value for value in row if isinstance(value, str) and text.rpartition("_")[2] in value]


async def test_two_keys_have_nothing_in_common(keys: SqlKeys) -> None:
    """Ids, owners and texts are random."""
    issued_keys = [await keys.create(KeyRequest(name="same")) for _ in range(20)]

    assert len({issued.key.key_id for issued in issued_keys}) == len({issued.key.owner for issued in issued_keys}) == 20
    assert len({issued.text.rpartition("_")[2] for issued in issued_keys}) == 20


async def test_only_the_exact_text_opens(keys: SqlKeys) -> None:
    """Another secret, another kind, another id, more or less of it: nothing."""
    first_key, second_key = await keys.create(KeyRequest(name="a")), await keys.create(KeyRequest(name="b"))
    text, secret = first_key.text, first_key.text.rpartition("_")[2]
    crossed = f"lk_{second_key.key.key_id}_{secret}"
    flipped = text[:-1] + ("a" if text[-1] != "a" else "b")

    for wrong in (
        text.replace("lk_", "lp_"),
        text.upper(),
        text[:-1],
        text + "a",
        crossed,
        flipped,
        secret,
        "",
        "lk__",
    ):
        assert await keys.verify(wrong) is None
    assert await keys.verify(text) == first_key.key


async def test_an_expired_key_opens_nothing(keys: SqlKeys, engine: AsyncEngine, clock: Clock) -> None:
    """Once its moment has passed."""
    issued = await keys.create(KeyRequest(name="k", days=1))
    assert await keys.verify(issued.text)
    async with engine.begin() as connection:
        await connection.execute(update(api_keys).values(expires_at=days_ago(0.001)))
    clock.now += CACHE_SECONDS

    assert await keys.verify(issued.text) is None
    assert (await keys.list_keys())[0].state(utc_now()) == "expired"


async def test_a_revoked_key_opens_nothing_at_once(keys: SqlKeys) -> None:
    """In the process that revoked it there is no delay; a second time changes nothing, and the key stays refused."""
    issued = await keys.create(KeyRequest(name="k"))
    assert await keys.verify(issued.text)
    revoked_key = await keys.revoke(issued.key.key_id)

    assert await keys.verify(issued.text) is None
    assert await keys.revoke(issued.key.key_id) == revoked_key
    assert await keys.exist()


async def test_revocation_reaches_another_process_within_seconds(engine: AsyncEngine) -> None:
    """A second store has seen the key; it forgets it by itself within the five seconds that the docs promise."""
    clocked_keys, clock = SqlKeys(engine), Clock()
    theirs = SqlKeys(engine, clock=clock)
    issued = await clocked_keys.create(KeyRequest(name="k"))
    assert await theirs.verify(issued.text)
    await clocked_keys.revoke(issued.key.key_id)
    clock.now += 4.9

    assert await theirs.verify(issued.text) is None


async def test_what_was_read_is_believed_only_for_a_moment(engine: AsyncEngine) -> None:
    """The cache is there, or every request would ask the database; and it is short."""
    clocked_keys, clock = SqlKeys(engine), Clock()
    theirs = SqlKeys(engine, clock=clock)
    issued = await clocked_keys.create(KeyRequest(name="k"))
    assert await theirs.verify(issued.text)
    await clocked_keys.revoke(issued.key.key_id)

    assert CACHE_SECONDS < 5
    assert await theirs.verify(issued.text)
    clock.now += CACHE_SECONDS
    assert await theirs.verify(issued.text) is None


async def test_a_wrong_secret_costs_what_an_unknown_id_costs(keys: SqlKeys, engine: AsyncEngine) -> None:
    """Nobody learns by the time that passes whether a key with this id exists: the database is asked as often for both,
    also while a key is cached."""
    issued = await keys.create(KeyRequest(name="k"))
    assert await keys.verify(issued.text)
    kind, key_id, secret = issued.text.split("_")
    wrong = f"{kind}_{key_id}_{secret[::-1]}"
    unknown = f"{kind}_{key_id[::-1]}_{secret}"

    queries: list[str] = []
    event.listen(engine.sync_engine, "before_cursor_execute", lambda *parts: queries.append(parts[2]))
    asked: list[int] = []
    for text in (unknown, wrong, unknown, wrong, issued.text):
        queries.clear()
        await keys.verify(text)
        asked.append(sum(query.startswith("SELECT") for query in queries))
    assert asked == [1, 1, 1, 1, 0]


async def test_the_first_key_is_seen_by_another_process(engine: AsyncEngine) -> None:
    """A server that found no key looks again; one that found one need not."""
    clocked_keys, clock = SqlKeys(engine), Clock()
    theirs = SqlKeys(engine, clock=clock)
    assert not await theirs.exist()
    assert not await clocked_keys.exist()
    await clocked_keys.create(KeyRequest(name="k"))

    assert await clocked_keys.exist()
    clock.now += CACHE_SECONDS
    assert await theirs.exist()


async def test_rotation_keeps_the_owner_and_stops_the_old_text(keys: SqlKeys) -> None:
    """The id, the owner and the rights stay; the old text opens nothing from that moment."""
    first = await keys.create(WIDGET)
    assert await keys.verify(first.text)
    second = await keys.rotate(first.key.key_id)

    assert second.key == first.key
    assert await keys.verify(first.text) is None
    assert await keys.verify(second.text) == first.key


async def test_a_grace_lets_the_old_text_open_a_while(keys: SqlKeys, engine: AsyncEngine, clock: Clock) -> None:
    """Both open until the grace is over; only the last old text has one."""
    first = await keys.create(KeyRequest(name="k"))
    second = await keys.rotate(first.key.key_id, grace=1)
    assert await keys.verify(first.text) == await keys.verify(second.text) == first.key
    third = await keys.rotate(first.key.key_id, grace=1)
    assert await keys.verify(first.text) is None
    assert await keys.verify(second.text)
    async with engine.begin() as connection:
        await connection.execute(update(api_keys).values(old_until=days_ago(0.001)))
    clock.now += CACHE_SECONDS

    assert await keys.verify(second.text) is None
    assert await keys.verify(third.text)


async def test_a_revoked_key_has_no_grace(keys: SqlKeys) -> None:
    """Whatever text it ever had."""
    first = await keys.create(KeyRequest(name="k"))
    second = await keys.rotate(first.key.key_id, grace=10)
    await keys.revoke(first.key.key_id)

    assert await keys.verify(first.text) is await keys.verify(second.text) is None


async def test_what_cannot_be_rotated_says_why(keys: SqlKeys, engine: AsyncEngine) -> None:
    """An unknown id, a revoked key, an expired one without more time; with it, it opens again."""
    revoked_key, late = await keys.create(KeyRequest(name="a")), await keys.create(KeyRequest(name="b", days=1))
    await keys.revoke(revoked_key.key.key_id)
    async with engine.begin() as connection:
        is_late_key = api_keys.c.key_id == late.key.key_id
        await connection.execute(update(api_keys).where(is_late_key).values(expires_at=days_ago(1)))

    with pytest.raises(UnknownKey, match="lectern keys list"):
        await keys.rotate("nobody")
    with pytest.raises(UnknownKey):
        await keys.revoke("nobody")
    with pytest.raises(Conflict, match="revoked"):
        await keys.rotate(revoked_key.key.key_id)
    with pytest.raises(Conflict, match="--expires"):
        await keys.rotate(late.key.key_id)
    for wrong in (-1, 1e9, float("nan")):
        with pytest.raises(BadInput, match="grace"):
            await keys.rotate(late.key.key_id, grace=wrong)
    assert await keys.verify((await keys.rotate(late.key.key_id, days=2)).text)


async def test_use_is_noted_once_a_minute(keys: SqlKeys, engine: AsyncEngine, clock: Clock) -> None:
    """The first use is written, the next ones of that minute are not, by this process or by another."""
    issued = await keys.create(KeyRequest(name="k"))

    async def noted() -> str | None:
        return (await keys.list_keys())[0].last_used_at

    await keys.note_use(issued.key)
    first = await noted()
    async with engine.begin() as connection:
        await connection.execute(update(api_keys).values(last_used_at=days_ago(1)))
    old = await noted()
    await keys.note_use(issued.key)
    assert await noted() == old
    clock.now += USE_NOTE_SECONDS
    await keys.note_use(issued.key)
    again = await noted()
    clock.now += USE_NOTE_SECONDS  # this process forgot, but the database says that it was a moment ago
    await SqlKeys(engine).note_use(issued.key)

    assert first
    assert again
    assert again > first > (old or "")
    assert await noted() == again


async def test_origins_are_those_of_keys_that_open_something(keys: SqlKeys, clock: Clock) -> None:
    """A revoked key's pages are no longer listed."""
    first = await keys.create(WIDGET)
    await keys.create(replace(WIDGET, origins=frozenset({"https://c.example"})))
    await keys.create(KeyRequest(name="secret"))
    assert await keys.origins() == {"https://a.example", "https://b.example", "https://c.example"}
    await keys.revoke(first.key.key_id)

    assert await keys.origins() == {"https://c.example"}


async def test_a_server_secret_is_made_once_for_all_processes(engine: AsyncEngine) -> None:
    """Whoever comes first makes it; everybody has the same, and it is not short."""
    secrets = await asyncio.gather(*(SqlKeys(engine).server_secret("readers") for _ in range(5)))

    assert len(set(secrets)) == 1
    assert len(secrets[0]) == 32
    assert await SqlKeys(engine).server_secret("another") != secrets[0]


async def test_the_tables_are_those_of_the_migration(engine: AsyncEngine) -> None:
    """Column by column."""
    async with engine.connect() as connection:
        for table in (api_keys, server_secrets):
            name = table.name
            columns = await connection.run_sync(lambda sync, name=name: inspect(sync).get_columns(name))
            assert {(column["name"], column["nullable"]) for column in columns} == {
                (c.name, c.nullable) for c in table.columns
            }
