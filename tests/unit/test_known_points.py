"""What a process remembers of the points that its searches found, so that the server need not read them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from qdrant_client import models

from lectern.domain.chunks import Change
from lectern.index import points
from lectern.index.points import REF_FIELDS, KnownPoints, to_point
from tests.contracts.test_index import BOOK, Book, store
from tests.making import DIMENSIONS, chunk, indexed, unit_vector
from tests.qdrant import MemoryClient, server_index

TEXTS = [f"Robot {number} turns its head." for number in range(5)]
RECORDS = [
    models.Record(id=point.id, payload=point.payload, vector=point.vector)
    for point in (to_point(indexed(chunk(text)), "en", 1) for text in TEXTS)
]
IDS = [str(record.id) for record in RECORDS]


def bare(records: Sequence[models.Record]) -> list[models.Record]:
    """The points as a search finds them that asks for no payload."""
    return [models.Record(id=record.id) for record in records]


async def read(ids: Sequence[str]) -> list[models.Record]:
    """The points as the server has them."""
    return [record for record in RECORDS if record.id in ids]


async def read_nothing(_: Sequence[str]) -> list[models.Record]:
    """A server that must not be asked."""
    raise AssertionError


async def test_a_payload_is_asked_for_until_everything_found_was_known() -> None:
    """Then it is not, and a new point is read by its id; after it, the payload is asked for again."""
    known = KnownPoints()
    assert known.fields == REF_FIELDS
    first = await known.refs(RECORDS[:4], read_nothing)
    assert known.fields == REF_FIELDS
    assert await known.refs(RECORDS[:4], read_nothing) == first
    assert known.fields is False
    assert await known.refs(bare(RECORDS[:4]), read_nothing) == first
    more = await known.refs(bare(RECORDS), read)
    assert list(more) == IDS
    assert [ref.chunk[0] for ref in more.values()] == [chunk(text).id for text in TEXTS]
    assert known.fields == REF_FIELDS


async def test_a_point_that_is_gone_has_neither_ref_nor_chunk() -> None:
    """It was removed after the search; the others are there."""

    async def read_others(ids: Sequence[str]) -> list[models.Record]:
        return [record for record in await read(ids) if record.id != IDS[0]]

    known = KnownPoints()
    assert list(await known.refs(bare(RECORDS), read_others)) == IDS[1:]
    assert list(await known.chunks(IDS, read_others)) == IDS[1:]


async def test_what_one_search_knows_is_not_lost_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so much is kept. A search that makes room while another one reads takes nothing from it."""
    monkeypatch.setattr(points, "MAX_REFS", 3)
    monkeypatch.setattr(points, "MAX_CHUNKS", 3)
    known = KnownPoints()
    await known.refs(RECORDS[:2], read_nothing)
    await known.chunks(IDS[:2], read)

    async def read_while_another_searches(ids: Sequence[str]) -> list[models.Record]:
        await known.refs(RECORDS[3:], read_nothing)
        await known.chunks(IDS[3:], read)
        return await read(ids)

    assert set(await known.refs(bare(RECORDS[:3]), read_while_another_searches)) == set(IDS[:3])
    assert set(await known.chunks(IDS[:3], read_while_another_searches)) == set(IDS[:3])


async def test_a_new_version_is_found_where_the_old_one_was_known() -> None:
    """A lesson is replaced after its points were known: its new chunk is found, the old one is not."""
    ledger = Book()
    old, new = chunk("The robot sleeps."), chunk("The robot wakes.")
    async with server_index(ledger, DIMENSIONS) as index:

        async def found() -> list[str]:
            candidates = await index.read(
                lambda view: view.find(unit_vector("x"), "robot", language="en", where=BOOK, limit=5)
            )
            return [candidate.id for candidate in candidates]

        await store(index, "book", [indexed(old)], [], "en", ledger)
        assert [await found() for _ in range(3)] == [[old.id]] * 3
        change = Change(put=(indexed(new),), drop=(old.id,), language="en")

        async def commit() -> None:
            ledger.commit("book", 2, [change])
            assert await found() == [new.id]  # the old point is still there

        await index.replace("book", 2, [change], commit)
        assert await found() == [new.id]


async def test_a_copy_that_lags_behind_takes_nothing_from_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A point that the search found, and whose payload cannot be read yet, is not taken for one of an old version: the
    read is repeated."""
    lags = 3

    class Lagging(MemoryClient):
        async def retrieve(self, *args: Any, **kwargs: Any) -> list[models.Record]:
            nonlocal lags
            lags -= 1
            return [] if lags >= 0 else await super().retrieve(*args, **kwargs)

    # as if other searches that find only known points came in between
    monkeypatch.setattr(KnownPoints, "fields", False)
    ledger, here = Book(), chunk("The robot sleeps.")
    async with server_index(ledger, DIMENSIONS, client=Lagging(":memory:")) as index:
        await store(index, "book", [indexed(here)], [], "en", ledger)
        candidates = await index.read(
            lambda view: view.find(unit_vector("x"), "robot", language="en", where=BOOK, limit=5)
        )
    assert [candidate.id for candidate in candidates] == [here.id]
