"""Twin backends get the same random book and the same random question, and must agree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lectern.domain.chunks import Change, IndexedChunk
from lectern.domain.evidence import Candidate
from lectern.domain.scope import ChunkFilter
from lectern.index.edge import open_edge_index
from lectern.ports.index import ChunkIndex, LiveLessons
from lectern.retrieval.search import MIN_CANDIDATES, rank
from tests.contracts.test_index import Book
from tests.making import DIMENSIONS, chunk, indexed, place, unit_vector
from tests.qdrant import ShardedClient, server_index

WORDS = "robot sensor node topic cmd_vel frame camera lidar motor torque gripper planner map filter noise".split()
TIE = 1e-5  # scores this close may swap places; membership may not change
BOOKS = ("one", "two")


def random_chunks(chance: random.Random, book_id: str, size: int) -> list[IndexedChunk]:
    """Chunks of all places, tiers, levels and layers."""
    indexed_chunks = []
    for n in range(size):
        where = place(book_id, chance.choice("abc"), chance.randint(0, 6), chance.randint(0, 3))
        text = " ".join(chance.choice(WORDS) for _ in range(chance.randint(3, 12))) + f" {n}"
        new_chunk = chunk(
            text,
            where,
            hardware_tier=chance.randint(1, 4),
            proficiency_level=chance.choice(["A1", "A2", "B1", "B2", "C1", "C2"]),
            layer=chance.choice(["L1", "L2", "L3", "L4"]),
        )
        windows = [unit_vector(f"{text}{w}") for w in range(chance.randint(1, 3))]
        indexed_chunks.append(indexed(new_chunk, *windows))
    return indexed_chunks


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


def matches(where: ChunkFilter, indexed_chunk: IndexedChunk) -> bool:
    """The filter, written a third time: what both engines must mean by it."""
    candidate_chunk = indexed_chunk.stored.chunk
    return (
        candidate_chunk.book_id == where.book_id
        and candidate_chunk.hardware_tier <= where.max_tier
        and (where.module is None or candidate_chunk.module == where.module)
        and (where.chapter_min is None or candidate_chunk.chapter >= where.chapter_min)
        and (where.chapter_max is None or candidate_chunk.chapter <= where.chapter_max)
        and (where.lesson is None or candidate_chunk.lesson == where.lesson)
        and (where.levels is None or candidate_chunk.proficiency_level in where.levels)
        and (where.layer is None or candidate_chunk.layer == where.layer)
        and (where.parent_doc_id is None or candidate_chunk.parent_doc_id == where.parent_doc_id)
    )


@dataclass(frozen=True)
class Arrangement:
    """How the chunks lie on the server."""

    books: tuple[str, ...] = BOOKS
    shards: int = 1


ARRANGEMENTS = {
    "alone": Arrangement(books=("one",)),
    "beside other books": Arrangement(books=("one", "two", "three", "four")),
    "on three shards": Arrangement(books=("one", "two", "three"), shards=3),
}


@asynccontextmanager
async def twins(
    folder: Path, everything: Sequence[IndexedChunk], url: str | None, arrangement: Arrangement | None = None
):
    """An Edge and a server index with the same chunks."""
    ledger, arrangement = Book(), arrangement or Arrangement()
    client = None
    if arrangement.shards > 1:
        if url is None:
            pytest.skip("shards need a real Qdrant server, whose program is not here")
        client = ShardedClient(url=url, check_compatibility=False)
    async with (
        open_edge_index(folder, "twin", DIMENSIONS, ledger) as edge,
        server_index(ledger, DIMENSIONS, url=url, client=client) as server,
    ):
        for number, book_id in enumerate(arrangement.books, start=1):
            book_chunks = tuple(
                indexed_chunk for indexed_chunk in everything if indexed_chunk.stored.chunk.book_id == book_id
            )
            change = Change(put=book_chunks, drop=(), language="en")

            async def commit(change: Change = change, number: int = number, book: str = book_id) -> None:
                ledger.commit(book, number, [change])

            await edge.replace(book_id, number, [change], commit)
            await server.replace(book_id, number, [change], commit)
        yield edge, server


async def found_in(
    index: ChunkIndex, vector: list[float], text: str, where: ChunkFilter, limit: int = 10
) -> list[Candidate]:
    """One question to one index."""
    return await index.read(lambda view: view.find(vector, text, language="en", where=where, limit=limit))


@pytest.mark.parametrize("name", ARRANGEMENTS)
async def test_edge_and_server_agree(tmp_path: Path, name: str, qdrant_url: str | None) -> None:
    """200 random questions with random filters: the same chunks with the same scores in the same order, whatever other
    books are there and however many shards."""
    chance, arrangement = random.Random(11), ARRANGEMENTS[name]
    everything = [part for book_id in arrangement.books for part in random_chunks(chance, book_id, 150)]
    async with twins(tmp_path, everything, qdrant_url, arrangement) as (edge, server):
        for n in range(200):
            where, vector = random_filter(chance), unit_vector(f"question {n}")
            text = " ".join(chance.choice(WORDS) for _ in range(3))
            edge_hits, theirs = [await found_in(index, vector, text, where, MIN_CANDIDATES) for index in (edge, server)]

            assert_same(edge_hits, theirs)
            assert_same_order(edge_hits, theirs)


def assert_same_order(edge_hits: list[Candidate], theirs: list[Candidate]) -> None:
    """The same top ten; only results whose scores tie may have changed places."""
    first, second = (rank(side, "hybrid")[:10] for side in (edge_hits, theirs))
    assert len(first) == len(second)
    for own, other in zip(first, second, strict=True):
        assert own.candidate.id == other.candidate.id or own.score == pytest.approx(other.score, abs=TIE)


def assert_same(edge_hits: list[Candidate], theirs: list[Candidate]) -> None:
    """Scores agree; what only one side proposes ties, in one of its scores, with the least that the other proposes."""
    edge_by_id, right = ({candidate.id: candidate for candidate in side} for side in (edge_hits, theirs))
    for chunk_id in edge_by_id.keys() & right.keys():
        assert edge_by_id[chunk_id].cosine == pytest.approx(right[chunk_id].cosine, abs=TIE)
        assert edge_by_id[chunk_id].bm25 == pytest.approx(right[chunk_id].bm25, abs=1e-3)
    for checked_hits, other_hits in ((edge_by_id, right), (right, edge_by_id)):
        for chunk_id in checked_hits.keys() - other_hits.keys():
            assert other_hits, "one side found nothing"
            candidate = checked_hits[chunk_id]
            close_words = any(abs(candidate.bm25 - rival.bm25) < 1e-3 for rival in other_hits.values())
            close_meaning = any(abs(candidate.cosine - rival.cosine) < TIE for rival in other_hits.values())
            assert close_words or close_meaning


def test_a_difference_would_be_noticed() -> None:
    """The comparison can fail: a side that finds nothing, or something else, does not agree."""
    edge_chunk, server_chunk = (
        Candidate(id=chunk(text).id, content_hash=text, cosine=cosine, bm25=bm25)
        for text, cosine, bm25 in (("first text", 0.9, 3.0), ("second text", 0.1, 1.0))
    )
    for pair in (([edge_chunk], []), ([], [edge_chunk]), ([edge_chunk], [server_chunk])):
        with pytest.raises(AssertionError):
            assert_same(*pair)


class Guard:
    """Asks an index in every way there is, with random filters, and knows what may be shown."""

    def __init__(self, index: ChunkIndex, everything: Sequence[IndexedChunk], chance: random.Random) -> None:
        self.index = index
        self.everything = {indexed_chunk.stored.chunk.id: indexed_chunk for indexed_chunk in everything}
        self.chance = chance
        self.parents = sorted({indexed_chunk.stored.chunk.parent_doc_id for indexed_chunk in everything})
        self.shown = 0

    async def ask_often(self, times: int) -> None:
        """So many questions."""
        for _ in range(times):
            await self.ask()

    async def ask(self) -> None:
        """One question, by one of the five ways."""
        where = random_filter(self.chance, self.parents)
        expected = {name for name, indexed_chunk in self.everything.items() if matches(where, indexed_chunk)}
        way = self.chance.choice([self._find, self._find, self._find, self._chunks, self._count, self._ids])
        await way(where, expected)

    async def _find(self, where: ChunkFilter, expected: set[str]) -> None:
        vector, text = unit_vector(str(self.chance.randint(0, 49))), self.chance.choice(WORDS)
        hits = {candidate.id for candidate in await found_in(self.index, vector, text, where)}
        assert hits <= expected
        assert len(hits) >= min(10, len(expected))  # and what may be shown is
        self.shown += len(hits)

    async def _chunks(self, where: ChunkFilter, expected: set[str]) -> None:
        listed = await self.index.read(lambda view: view.chunks(where))
        assert {stored.chunk.id for stored in listed} == expected

    async def _count(self, where: ChunkFilter, expected: set[str]) -> None:
        assert await self.index.read(lambda view: view.count(where)) == len(expected)

    async def _ids(self, where: ChunkFilter, expected: set[str]) -> None:
        """Ids of both books, as a careless or a curious caller would ask: only this book's are known."""
        requested = self.chance.sample(sorted(self.everything), 8)
        expected_ids = {name for name in requested if self.everything[name].stored.chunk.book_id == where.book_id}
        results = await self.index.read(lambda view: view.by_ids(where.book_id, requested))
        assert {name: stored_chunk.chunk.book_id for name, stored_chunk in results.items()} == dict.fromkeys(
            expected_ids, where.book_id
        )
        with_vectors = await self.index.read(lambda view: view.with_vectors(where.book_id, requested))
        assert with_vectors.keys() == expected_ids
        for name, indexed_chunk in with_vectors.items():
            assert len(indexed_chunk.vectors) == len(self.everything[name].vectors)


async def test_no_filter_ever_shows_a_foreign_chunk(tmp_path: Path, qdrant_url: str | None) -> None:
    """20,000 random filters on the embedded index, 2,000 on the server, by listing, search, count and look-up:
    exactly what the filter says, never another book's."""
    chance = random.Random(5)
    everything = [indexed_chunk for book_id in BOOKS for indexed_chunk in random_chunks(chance, book_id, 60)]
    async with twins(tmp_path, everything, qdrant_url) as (edge, server):
        for index, times in ((edge, 20_000), (server, 2_000)):
            guard = Guard(index, everything, chance)
            await guard.ask_often(times)

            assert guard.shown > times


async def test_a_leak_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qdrant_url: str | None) -> None:
    """The guard can fail: adapters that forget the book, or the lesson, are caught within a few hundred questions. On a
    server the ledger is asked within the book too, so it has to forget the book as well."""
    from lectern.index import edge as embedded
    from lectern.index import server as server_view
    from lectern.index.schema import conditions_of

    async def live_anywhere(ledger: Book, _book_id: str, parents: Sequence[str]) -> LiveLessons:
        generations = {parent: number for (_, parent), number in ledger.alive.items() if parent in parents}
        return LiveLessons(epoch=ledger.number, generations=generations)

    monkeypatch.setattr(Book, "live", live_anywhere)
    chance = random.Random(6)
    everything = [indexed_chunk for book_id in BOOKS for indexed_chunk in random_chunks(chance, book_id, 60)]
    async with twins(tmp_path, everything, qdrant_url) as (edge, server):
        for index, module in ((edge, embedded), (server, server_view)):
            for forgotten in ("book_id", "parent_doc_id", "module", "layer"):

                def forgetful(where: ChunkFilter, forgotten: str = forgotten) -> list:
                    return [condition for condition in conditions_of(where) if condition.key != forgotten]

                monkeypatch.setattr(module, "conditions_of", forgetful)
                guard = Guard(index, everything, chance)
                with pytest.raises(AssertionError):
                    await guard.ask_often(400)
                monkeypatch.setattr(module, "conditions_of", conditions_of)
