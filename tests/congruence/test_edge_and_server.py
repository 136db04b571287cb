"""Twin backends get the same random book and the same random question, and must agree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lectern.domain.chunks import Change, IndexedChunk
from lectern.domain.evidence import Candidate
from lectern.domain.scope import ChunkFilter
from lectern.index.edge import open_edge_index
from lectern.ports.index import ChunkIndex
from tests.contracts.test_index import Book
from tests.making import DIMENSIONS, chunk, indexed, place, unit_vector
from tests.qdrant import server_index

WORDS = "robot sensor node topic cmd_vel frame camera lidar motor torque gripper planner map filter noise".split()
TIE = 1e-5  # scores this close may swap places; membership may not change
BOOKS = ("one", "two")


def random_chunks(chance: random.Random, book_id: str, size: int) -> list[IndexedChunk]:
    """Chunks of all places, tiers, levels and layers."""
    made = []
    for n in range(size):
        where = place(book_id, chance.choice("abc"), chance.randint(0, 6), chance.randint(0, 3))
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(3, 12))) + f" {n}"
        one = chunk(
            text,
            where,
            hardware_tier=chance.randint(1, 4),
            proficiency_level=chance.choice(["A1", "A2", "B1", "B2", "C1", "C2"]),
            layer=chance.choice(["L1", "L2", "L3", "L4"]),
        )
        windows = [unit_vector(f"{text}{w}") for w in range(chance.randint(1, 3))]
        made.append(indexed(one, *windows))
    return made


def random_filter(chance: random.Random, parents: Sequence[str] = ()) -> ChunkFilter:
    """Any combination of conditions, one of these lessons perhaps, of whichever book; always a book."""

    def maybe(value: object) -> object:
        return value if chance.random() < 0.3 else None

    low = chance.randint(0, 6)
    return ChunkFilter(
        book_id=chance.choice(BOOKS),
        max_tier=chance.randint(1, 4),
        module=maybe(chance.choice("abc")),
        chapter_min=maybe(low),
        chapter_max=maybe(low + chance.randint(0, 3)),
        lesson=maybe(chance.randint(0, 3)),
        levels=maybe(frozenset(chance.sample(["A1", "A2", "B1", "B2", "C1", "C2"], 3))),
        layer=maybe(chance.choice(["L1", "L2", "L3", "L4"])),
        parent_doc_id=chance.choice(parents) if parents and chance.random() < 0.2 else None,
    )


def matches(where: ChunkFilter, one: IndexedChunk) -> bool:
    """The filter, written a third time: what both engines must mean by it."""
    found = one.stored.chunk
    return (
        found.book_id == where.book_id
        and found.hardware_tier <= where.max_tier
        and (where.module is None or found.module == where.module)
        and (where.chapter_min is None or found.chapter >= where.chapter_min)
        and (where.chapter_max is None or found.chapter <= where.chapter_max)
        and (where.lesson is None or found.lesson == where.lesson)
        and (where.levels is None or found.proficiency_level in where.levels)
        and (where.layer is None or found.layer == where.layer)
        and (where.parent_doc_id is None or found.parent_doc_id == where.parent_doc_id)
    )


@asynccontextmanager
async def twins(folder: Path, everything: Sequence[IndexedChunk]):
    """An Edge and a server index with the same chunks."""
    ledger = Book()
    async with open_edge_index(folder, "twin", DIMENSIONS) as edge, server_index(ledger, DIMENSIONS) as server:
        for number, book_id in enumerate(BOOKS, start=1):
            mine = tuple(one for one in everything if one.stored.chunk.book_id == book_id)
            change = Change(put=mine, drop=(), language="en")

            async def commit(mine: tuple[IndexedChunk, ...] = mine, number: int = number, book: str = book_id) -> None:
                ledger.alive |= {(book, one.stored.chunk.parent_doc_id): number for one in mine}

            await edge.replace(book_id, number, [change], commit)
            await server.replace(book_id, number, [change], commit)
        yield edge, server


async def found_in(index: ChunkIndex, vector: list[float], text: str, where: ChunkFilter) -> list[Candidate]:
    """One question to one index."""
    return await index.read(lambda view: view.find(vector, text, language="en", where=where, limit=10))


async def test_edge_and_server_agree(tmp_path: Path) -> None:
    """200 random questions with random filters: the same chunks, the same scores."""
    chance = random.Random(11)
    everything = [one for book_id in BOOKS for one in random_chunks(chance, book_id, 150)]
    async with twins(tmp_path, everything) as (edge, server):
        for n in range(200):
            where, vector = random_filter(chance), unit_vector(f"question {n}")
            text = " ".join(chance.choice(WORDS) for _ in range(3))
            ours, theirs = [await found_in(index, vector, text, where) for index in (edge, server)]

            assert_same(ours, theirs)


def assert_same(ours: list[Candidate], theirs: list[Candidate]) -> None:
    """Scores agree; what only one side proposes ties, in one of its scores, with the least that the other proposes."""
    left, right = ({one.id: one for one in side} for side in (ours, theirs))
    for chunk_id in left.keys() & right.keys():
        assert left[chunk_id].cosine == pytest.approx(right[chunk_id].cosine, abs=TIE)
        assert left[chunk_id].bm25 == pytest.approx(right[chunk_id].bm25, abs=1e-3)
    for mine, others in ((left, right), (right, left)):
        for chunk_id in mine.keys() - others.keys():
            assert others, "one side found nothing"
            one = mine[chunk_id]
            close_words = any(abs(one.bm25 - other.bm25) < 1e-3 for other in others.values())
            close_meaning = any(abs(one.cosine - other.cosine) < TIE for other in others.values())
            assert close_words or close_meaning


def test_a_difference_would_be_noticed() -> None:
    """The comparison can fail: a side that finds nothing, or something else, does not agree."""
    one, other = (
        Candidate(id=chunk(text).id, content_hash=text, cosine=cosine, bm25=bm25)
        for text, cosine, bm25 in (("first text", 0.9, 3.0), ("second text", 0.1, 1.0))
    )
    for pair in (([one], []), ([], [one]), ([one], [other])):
        with pytest.raises(AssertionError):
            assert_same(*pair)


class Guard:
    """Asks an index in every way there is, with random filters, and knows what may be shown."""

    def __init__(self, index: ChunkIndex, everything: Sequence[IndexedChunk], chance: random.Random) -> None:
        self.index = index
        self.everything = {one.stored.chunk.id: one for one in everything}
        self.chance = chance
        self.parents = sorted({one.stored.chunk.parent_doc_id for one in everything})
        self.shown = 0

    async def ask_often(self, times: int) -> None:
        """So many questions."""
        for _ in range(times):
            await self.ask()

    async def ask(self) -> None:
        """One question, by one of the five ways."""
        where = random_filter(self.chance, self.parents)
        wanted = {name for name, one in self.everything.items() if matches(where, one)}
        way = self.chance.choice([self._find, self._find, self._find, self._chunks, self._count, self._ids])
        await way(where, wanted)

    async def _find(self, where: ChunkFilter, wanted: set[str]) -> None:
        vector, text = unit_vector(str(self.chance.randint(0, 49))), self.chance.choice(WORDS)
        hits = {one.id for one in await found_in(self.index, vector, text, where)}
        assert hits <= wanted
        assert len(hits) >= min(10, len(wanted))  # and what may be shown is
        self.shown += len(hits)

    async def _chunks(self, where: ChunkFilter, wanted: set[str]) -> None:
        listed = await self.index.read(lambda view: view.chunks(where))
        assert {stored.chunk.id for stored in listed} == wanted

    async def _count(self, where: ChunkFilter, wanted: set[str]) -> None:
        assert await self.index.read(lambda view: view.count(where)) == len(wanted)

    async def _ids(self, where: ChunkFilter, wanted: set[str]) -> None:
        """Ids of both books, as a careless or a curious caller would ask: only this book's are known."""
        asked = self.chance.sample(sorted(self.everything), 8)
        mine = {name for name in asked if self.everything[name].stored.chunk.book_id == where.book_id}
        found = await self.index.read(lambda view: view.by_ids(where.book_id, asked))
        assert {name: one.chunk.book_id for name, one in found.items()} == dict.fromkeys(mine, where.book_id)
        with_vectors = await self.index.read(lambda view: view.with_vectors(where.book_id, asked))
        assert with_vectors.keys() == mine
        for name, one in with_vectors.items():
            assert len(one.vectors) == len(self.everything[name].vectors)


async def test_no_filter_ever_shows_a_foreign_chunk(tmp_path: Path) -> None:
    """20,000 random filters on the embedded index, 2,000 on the server, by listing, search, count and look-up:
    exactly what the filter says, never another book's."""
    chance = random.Random(5)
    everything = [one for book_id in BOOKS for one in random_chunks(chance, book_id, 60)]
    async with twins(tmp_path, everything) as (edge, server):
        for index, times in ((edge, 20_000), (server, 2_000)):
            guard = Guard(index, everything, chance)
            await guard.ask_often(times)

            assert guard.shown > times


async def test_a_leak_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard can fail: adapters that forget the book, or the lesson, are caught within a few hundred questions."""
    from lectern.index import edge as embedded
    from lectern.index import server as server_view
    from lectern.index.schema import conditions_of

    chance = random.Random(6)
    everything = [one for book_id in BOOKS for one in random_chunks(chance, book_id, 60)]
    async with twins(tmp_path, everything) as (edge, server):
        for index, module in ((edge, embedded), (server, server_view)):
            for forgotten in ("book_id", "parent_doc_id", "module", "layer"):

                def forgetful(where: ChunkFilter, forgotten: str = forgotten) -> list:
                    return [one for one in conditions_of(where) if one.key != forgotten]

                monkeypatch.setattr(module, "conditions_of", forgetful)
                guard = Guard(index, everything, chance)
                with pytest.raises(AssertionError):
                    await guard.ask_often(400)
                monkeypatch.setattr(module, "conditions_of", conditions_of)
