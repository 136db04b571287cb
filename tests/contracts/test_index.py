"""What every index adapter promises; each adapter inherits the suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import qdrant_edge
from qdrant_client import AsyncQdrantClient, models

from lectern.domain.chunks import Change, IndexedChunk, SectionMark
from lectern.domain.errors import IndexDamaged, IndexMismatch
from lectern.domain.scope import ChunkFilter
from lectern.index.edge import PLAIN_FILE, READY_FILE, open_edge_index
from lectern.index.lexical import passage_terms
from lectern.index.nodes import connect
from lectern.index.schema import LEXICAL
from lectern.index.server import open_server_index
from lectern.ports.index import ChunkIndex, CountedChunk, IndexView, LiveLessons, TermCounts
from tests.making import DIMENSIONS, chunk, indexed, place, unit_vector
from tests.qdrant import server_index
from tests.qdrant_server import QdrantServer

BOOK = ChunkFilter(book_id="book")


class Book:
    """The little of a ledger that an index needs: which generation of a lesson is live, and how often terms occur."""

    def __init__(self) -> None:
        self.number = 0
        self.alive: dict[tuple[str, str], int] = {}
        self.chunks: dict[tuple[str, str], tuple[str, frozenset[int]]] = {}  # lesson and terms of every live chunk

    def commit(self, book_id: str, generation: int, changes: Sequence[Change]) -> None:
        """Make a generation live."""
        self.number = generation
        for change in changes:
            for dropped in change.drop:
                self.chunks.pop((book_id, dropped), None)
            for stored in (indexed_chunk.stored for indexed_chunk in change.put):
                terms = passage_terms(stored.chunk.trail, stored.chunk.text, change.language).indices
                self.chunks[book_id, stored.chunk.id] = stored.chunk.parent_doc_id, frozenset(terms)
                self.alive[book_id, stored.chunk.parent_doc_id] = generation

    async def epoch(self, book_id: str) -> int:
        """Changes with every commit."""
        return self.number

    async def live(self, book_id: str, parents: Sequence[str]) -> LiveLessons:
        """The generation of each lesson."""
        generations = {parent: self.alive[book_id, parent] for parent in parents if (book_id, parent) in self.alive}
        return LiveLessons(epoch=self.number, generations=generations)

    async def chunk_counts(self, book_id: str) -> tuple[int, dict[int, int]]:
        """How many chunks each generation has."""
        generations = (self.alive[book, parent] for (book, _), (parent, _) in self.chunks.items() if book == book_id)
        return self.number, dict(Counter(generations))

    async def counts(self, book_id: str, terms: Sequence[int]) -> TermCounts:
        """In how many chunks the terms occur."""
        in_book = [chunk_terms for (book, _), (_, chunk_terms) in self.chunks.items() if book == book_id]
        by_term = {term: sum(term in chunk_terms for chunk_terms in in_book) for term in terms}
        return TermCounts(epoch=self.number, complete=True, chunks=len(in_book), by_term=by_term)

    async def recount(self, book_id: str, epoch: int, chunks: Iterable[CountedChunk]) -> None:
        """Never needed: every commit counts."""
        raise AssertionError("the counts are complete")


LEDGER = Book()


@pytest.fixture(autouse=True)
def _new_ledger() -> None:
    """Every test begins with an index that is empty, and a ledger that knows it."""
    LEDGER.__init__()  # type: ignore[misc]  # the tests' indexes keep this very object


async def store(
    index: ChunkIndex,
    book_id: str,
    chunks: list[IndexedChunk],
    drop: list[str],
    language: str,
    ledger: Book = LEDGER,
) -> None:
    """Change the index as an ingestion does."""
    generation, change = ledger.number + 1, Change(put=tuple(chunks), drop=tuple(drop), language=language)

    async def commit() -> None:
        ledger.commit(book_id, generation, [change])

    await index.replace(book_id, generation, [change], commit)


@asynccontextmanager
async def reading(index: ChunkIndex) -> AsyncIterator[IndexView]:
    """A view, for tests that read step by step."""
    views: list[IndexView] = []

    async def work(view: IndexView) -> None:
        views.append(view)

    await index.read(work)
    yield views[0]


class ChunkIndexContract:
    """Put, find, filter, drop; a book sees only itself."""

    async def test_what_was_put_comes_back_whole(self, index: ChunkIndex) -> None:
        """Every field of a chunk survives the way into the index and back."""
        indexed_chunk = indexed(chunk("Nodes talk over topics."))
        await store(index, "book", [indexed_chunk], [], "en")

        async with reading(index) as view:
            assert await view.chunks(BOOK) == [indexed_chunk.stored]
            assert await view.by_ids("book", [indexed_chunk.stored.chunk.id]) == {
                indexed_chunk.stored.chunk.id: indexed_chunk.stored
            }
            [again] = (await view.with_vectors("book", [indexed_chunk.stored.chunk.id])).values()
        assert again.stored == indexed_chunk.stored
        assert again.vectors[0] == pytest.approx(indexed_chunk.vectors[0], abs=1e-6)

    async def test_where_sections_begin_comes_back(self, index: ChunkIndex) -> None:
        """The marks inside a chunk survive, too."""
        marks = (SectionMark(at=0, title="A", url="/p#a"), SectionMark(at=9, title="B", url="/p#b"))
        indexed_chunk = indexed(chunk("## A\n\nx\n\n## B\n\ny", sections=marks))
        await store(index, "book", [indexed_chunk], [], "en")

        async with reading(index) as view:
            assert await view.chunks(BOOK) == [indexed_chunk.stored]

    async def test_putting_twice_is_putting_once(self, index: ChunkIndex) -> None:
        """A repeated apply, as after a crash, changes nothing."""
        indexed_chunk = indexed(chunk("Nodes talk over topics."))
        for _ in range(2):
            await store(index, "book", [indexed_chunk], ["00000000-0000-5000-8000-000000000000"], "en")

        async with reading(index) as view:
            assert await view.count(BOOK) == 1

    async def test_a_dropped_chunk_is_gone(self, index: ChunkIndex) -> None:
        """After a drop neither search nor listing nor look-up shows it."""
        indexed_chunk = indexed(chunk("Nodes talk over topics."))
        await store(index, "book", [indexed_chunk], [], "en")
        await store(index, "book", [], [indexed_chunk.stored.chunk.id], "en")

        async with reading(index) as view:
            assert await view.find(indexed_chunk.vectors[0], "nodes topics", language="en", where=BOOK, limit=5) == []
            assert await view.by_ids("book", [indexed_chunk.stored.chunk.id]) == {}

    async def test_both_scores_come_with_every_candidate(self, index: ChunkIndex) -> None:
        """A chunk found by its words has its cosine too, and one found by its vector its BM25 score."""
        worded, near = chunk("The gripper closes."), chunk("Something else entirely.")
        axis = [1.0] + [0.0] * (DIMENSIONS - 1)
        away = [0.0, 1.0] + [0.0] * (DIMENSIONS - 2)
        await store(index, "book", [indexed(worded, away), indexed(near, axis)], [], "en")

        async with reading(index) as view:
            results = await view.find(axis, "gripper", language="en", where=BOOK, limit=1)

        scores = {candidate.id: (candidate.cosine, candidate.bm25) for candidate in results}
        assert scores[near.id] == (pytest.approx(1, abs=1e-6), 0)
        assert scores[worded.id][0] == pytest.approx(0, abs=1e-6)
        assert scores[worded.id][1] > 0

    async def test_a_chunk_is_as_near_as_its_nearest_window(self, index: ChunkIndex) -> None:
        """Of several windows the best counts."""
        axis = [1.0] + [0.0] * (DIMENSIONS - 1)
        away = [0.0, 1.0] + [0.0] * (DIMENSIONS - 2)
        await store(index, "book", [indexed(chunk("A long chunk of text."), away, axis)], [], "en")

        async with reading(index) as view:
            [candidate] = await view.find(axis, "zzz", language="en", where=BOOK, limit=5)

        assert candidate.cosine == pytest.approx(1, abs=1e-6)

    async def test_no_read_shows_another_book(self, index: ChunkIndex) -> None:
        """Search, listing, look-up, vectors and count: a foreign chunk behaves as if it did not exist."""
        theirs = indexed(chunk("Secret of the other book.", place("other")))
        await store(index, "other", [theirs], [], "en")

        async with reading(index) as view:
            assert await view.find(theirs.vectors[0], "secret", language="en", where=BOOK, limit=5) == []
            assert await view.chunks(BOOK) == []
            assert await view.by_ids("book", [theirs.stored.chunk.id]) == {}
            assert await view.with_vectors("book", [theirs.stored.chunk.id]) == {}
            assert await view.count(BOOK) == 0

    async def test_another_book_changes_no_score(self, index: ChunkIndex) -> None:
        """BM25 counts rarity within the book alone: ingesting and removing another leaves every score as it was."""
        own_chunks = [indexed(chunk(f"The gripper number {n} closes.")) for n in range(5)]
        theirs = [indexed(chunk(f"Gripper gripper {n}.", place("other"))) for n in range(50)]
        await store(index, "book", own_chunks, [], "en")
        query = unit_vector("gripper")

        async def scores() -> dict[str, float]:
            async with reading(index) as view:
                results = await view.find(query, "gripper", language="en", where=BOOK, limit=10)
            return {candidate.id: candidate.bm25 for candidate in results}

        before = await scores()
        await store(index, "other", theirs, [], "en")
        during = await scores()
        await store(index, "other", [], [indexed_chunk.stored.chunk.id for indexed_chunk in theirs], "en")

        assert before == during == await scores()

    async def test_filters_narrow_the_scope(self, index: ChunkIndex) -> None:
        """Tier is at most, chapters are a range, levels are any-of, everything else is equal, all at once."""
        indexed_chunks = [
            indexed(chunk(f"Chunk {n}.", place(chapter=n, lesson=n % 3, module="mn"[n % 2]), hardware_tier=1 + n % 4))
            for n in range(8)
        ]
        await store(index, "book", indexed_chunks, [], "en")

        async def chapters(**conditions: object) -> list[int]:
            async with reading(index) as view:
                matching = await view.chunks(ChunkFilter(book_id="book", **conditions))  # type: ignore[arg-type]  # fields by name
            return sorted(stored.chunk.chapter for stored in matching)

        assert await chapters(max_tier=2) == [0, 1, 4, 5]
        assert await chapters(module="n") == [1, 3, 5, 7]
        assert await chapters(chapter_min=2, chapter_max=4) == [2, 3, 4]
        assert await chapters(lesson=0) == [0, 3, 6]
        assert await chapters(levels=frozenset({"A2", "C1"})) == list(range(8))
        assert await chapters(levels=frozenset({"C1"})) == []
        assert await chapters(layer="L2") == []
        assert await chapters(module="n", max_tier=2, chapter_min=2) == [5]
        assert await chapters(parent_doc_id=indexed_chunks[3].stored.chunk.parent_doc_id) == [3]

    async def test_a_foreign_chunk_cannot_be_put_into_a_book(self, index: ChunkIndex) -> None:
        """A chunk goes only where its own book is named."""
        with pytest.raises(ValueError, match="other"):
            await store(index, "book", [indexed(chunk("Text here.", place("other")))], [], "en")

    @pytest.mark.parametrize("language", ["en", "de", "ur", "zh", "th"])
    async def test_every_language_can_be_searched(self, index: ChunkIndex, language: str) -> None:
        """Known to the stemmer or not, a book's own words find it."""
        texts = {
            "en": "robots walk",
            "de": "Roboter laufen",
            "ur": "روبوٹ چلتا ہے",
            "zh": "机器人在走路",
            "th": "หุ่นยนต์เดิน",
        }
        indexed_chunk = indexed(chunk(f"{texts[language]} 2024."))
        await store(index, "book", [indexed_chunk], [], language)

        async with reading(index) as view:
            [candidate] = await view.find(
                unit_vector("x"), texts[language].split()[0], language=language, where=BOOK, limit=3
            )
        assert candidate.bm25 > 0

    async def test_a_word_is_found_in_a_script_without_gaps(self, index: ChunkIndex) -> None:
        """Among the characters before and after it; a sentence without the word is not found."""
        tea, dog = (
            indexed(chunk(text, place(lesson=n))) for n, text in enumerate(("急須の茶渋は重曹で落とす。", "犬が走る。"))
        )
        await store(index, "book", [tea, dog], [], "ja")

        async with reading(index) as view:
            hits = await view.find(unit_vector("x"), "茶渋を洗う", language="ja", where=BOOK, limit=3)
        assert [hit.id for hit in hits if hit.bm25 > 0] == [tea.stored.chunk.id]


class TestEdgeIndex(ChunkIndexContract):
    """Qdrant Edge, in process."""

    @pytest.fixture
    async def index(self, tmp_path: Path) -> AsyncIterator[ChunkIndex]:
        """An empty index."""
        async with open_edge_index(tmp_path, "test", DIMENSIONS, LEDGER) as index:
            yield index

    async def test_what_was_put_is_there_after_reopening(self, tmp_path: Path) -> None:
        """The index is on disk."""
        indexed_chunk = indexed(chunk("Nodes talk over topics."))
        async with open_edge_index(tmp_path, "kept", DIMENSIONS, LEDGER) as index:
            await store(index, "book", [indexed_chunk], [], "en")

        async with open_edge_index(tmp_path, "kept", DIMENSIONS, LEDGER) as index, reading(index) as view:
            assert await view.chunks(BOOK) == [indexed_chunk.stored]

    async def test_damaged_files_are_an_error_with_advice(self, tmp_path: Path) -> None:
        """An index that does not load is never mistaken for an empty one."""
        async with open_edge_index(tmp_path, "hurt", DIMENSIONS, LEDGER):
            pass
        (tmp_path / "hurt" / "edge_config.json").write_text("{", encoding="utf-8")

        with pytest.raises(IndexDamaged, match="doctor --mend"):
            async with open_edge_index(tmp_path, "hurt", DIMENSIONS, LEDGER):
                pass

    async def test_an_interrupted_creation_is_begun_again(self, tmp_path: Path) -> None:
        """A folder whose creation was killed holds nothing and does no harm."""
        async with open_edge_index(tmp_path, "half", DIMENSIONS, LEDGER):
            pass
        (tmp_path / "half" / READY_FILE).unlink()

        async with open_edge_index(tmp_path, "half", DIMENSIONS, LEDGER) as index, reading(index) as view:
            assert await view.count(BOOK) == 0

    async def test_a_shard_of_an_older_version_gives_the_same_scores(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It was made to weigh terms by itself; it is neither made anew nor does it weigh them twice."""
        chunks = [indexed(chunk(f"The gripper {'closes ' * n}.", place(lesson=n))) for n in range(5)]
        chunks += [indexed(chunk(f"Nothing of that, {n}.", place(lesson=10 + n))) for n in range(20)]

        async def scores(index: ChunkIndex) -> dict[str, float]:
            await store(index, "book", chunks, [], "en")
            async with reading(index) as view:
                found = await view.find(unit_vector("x"), "gripper closes", language="en", where=BOOK, limit=5)
            return {candidate.id: candidate.bm25 for candidate in found}

        async with open_edge_index(tmp_path, "new", DIMENSIONS, LEDGER) as index:
            expected = await scores(index)
        idf = qdrant_edge.EdgeSparseVectorParams(modifier=qdrant_edge.Modifier.Idf)
        monkeypatch.setattr(qdrant_edge, "EdgeSparseVectorParams", lambda: idf)
        async with open_edge_index(tmp_path, "old", DIMENSIONS, LEDGER):
            (tmp_path / "old" / PLAIN_FILE).unlink()
        async with open_edge_index(tmp_path, "old", DIMENSIONS, LEDGER) as index:
            assert await scores(index) == pytest.approx(expected, abs=1e-6)
        assert max(expected.values()) > 1

    async def test_a_payload_of_another_shape_is_never_half_read(self, tmp_path: Path) -> None:
        """An older schema is named, with the command that rebuilds."""
        from lectern.schemas import payload

        with pytest.raises(IndexMismatch, match="recreate"):
            payload.from_payload("x", {"text": "t", "schema_version": 0})

    async def test_a_payload_of_the_version_before_is_completed(self) -> None:
        """An index that an older Lectern wrote goes on serving; it only knows of no sections inside a chunk."""
        from lectern.schemas import payload

        stored = indexed(chunk("Nodes talk over topics.")).stored
        old = payload.to_payload(stored) | {"schema_version": 1}
        del old["sections"]

        assert payload.from_payload(stored.chunk.id, old) == stored


class TestServerIndex(ChunkIndexContract):
    """A real server where its program is there, else the client's in-memory mode."""

    @pytest.fixture
    async def index(self, qdrant_url: str | None) -> AsyncIterator[ChunkIndex]:
        """An empty collection."""
        async with server_index(LEDGER, DIMENSIONS, url=qdrant_url) as index:
            yield index

    async def test_a_collection_of_another_size_is_refused(self) -> None:
        """A collection that Lectern did not make for this embedder is left alone."""
        client = AsyncQdrantClient(":memory:")
        await client.create_collection("taken", vectors_config={})

        with pytest.raises(IndexMismatch, match="QDRANT_COLLECTION_NAME"):
            async with open_server_index(client, "taken", DIMENSIONS, LEDGER):
                pass

    async def test_a_collection_of_an_older_version_gives_the_same_scores(
        self, index: ChunkIndex, real_qdrant: QdrantServer
    ) -> None:
        """It was made to weigh terms by itself; opening it makes it take the weights as they come."""
        chunks = [indexed(chunk(f"The gripper {'closes ' * n}.", place(lesson=n))) for n in range(5)]
        chunks += [indexed(chunk(f"Nothing of that, {n}.", place(lesson=10 + n))) for n in range(20)]

        async def scores(index: ChunkIndex) -> dict[str, float]:
            async with reading(index) as view:
                found = await view.find(unit_vector("x"), "gripper closes", language="en", where=BOOK, limit=5)
            return {candidate.id: candidate.bm25 for candidate in found}

        await store(index, "book", chunks, [], "en")
        expected = await scores(index)
        client = connect(real_qdrant.url, None)
        async with server_index(LEDGER, DIMENSIONS, "older", client=client) as old:
            await store(old, "book", chunks, [], "en")
            idf = {LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)}
            await client.update_collection("older", sparse_vectors_config=idf)
            assert await scores(old) != pytest.approx(expected, abs=1e-6)  # the server weighs them once more
            async with open_server_index(connect(real_qdrant.url, None), "older", DIMENSIONS, LEDGER) as opened:
                assert await scores(opened) == pytest.approx(expected, abs=1e-6)

    async def test_a_version_that_is_not_live_is_not_seen(self, index: ChunkIndex) -> None:
        """Until the ledger commits, readers see the old version, whole."""
        old, new = indexed(chunk("The old text here.")), indexed(chunk("The new text here."))
        await store(index, "book", [old], [], "en")
        snapshots: list[list[str]] = []

        async def look() -> None:
            async with reading(index) as view:
                snapshots.append([stored.chunk.text for stored in await view.chunks(BOOK)])

        async def commit() -> None:
            await look()
            LEDGER.commit("book", LEDGER.number + 1, [change])
            await look()

        change = Change(put=(new,), drop=(old.stored.chunk.id,), language="en")
        await index.replace("book", LEDGER.number + 1, [change], commit)
        await look()

        assert snapshots == [["The old text here."], ["The new text here."], ["The new text here."]]

    async def test_a_count_is_true_while_versions_stand_side_by_side(self, index: ChunkIndex) -> None:
        """Before, at and after a commit the count is that of the live version, whatever else the server holds, and a
        lesson of a restored copy is not counted, though the number of points is right."""
        old = [indexed(chunk(f"Old text {n}.", place(lesson=n), hardware_tier=1 + n % 2)) for n in range(6)]
        new = [indexed(chunk(f"New text {n}.", place(lesson=1), chunk_index=n)) for n in range(3)]
        await store(index, "book", old, [], "en")
        low_tier = ChunkFilter(book_id="book", max_tier=1)
        counts: list[tuple[int, int]] = []

        async def count() -> None:
            async def work(view: IndexView) -> tuple[int, int]:
                return await view.count(BOOK), await view.count(low_tier)

            counts.append(await index.read(work))

        async def commit() -> None:
            await count()
            LEDGER.commit("book", LEDGER.number + 1, [change])
            await count()

        change = Change(put=tuple(new), drop=(old[1].stored.chunk.id,), language="en")
        await index.replace("book", LEDGER.number + 1, [change], commit)
        await count()
        assert counts == [(6, 3), (8, 6), (8, 6)]

        LEDGER.alive.pop(("book", old[0].stored.chunk.parent_doc_id))  # an older server: one lesson's points are dead
        gone = LEDGER.chunks.pop(("book", old[0].stored.chunk.id))
        LEDGER.chunks["book", "lost"] = ("lost lesson", gone[1])  # and another's are not there
        LEDGER.alive["book", "lost lesson"] = LEDGER.number
        await count()
        assert counts[-1] == (7, 5)

    async def test_more_is_asked_for_where_versions_that_are_not_live_are_among_the_best(
        self, index: ChunkIndex
    ) -> None:
        """While a lesson is being replaced, its coming version takes no place from what readers may see."""
        visible = [indexed(chunk(f"Robot number {n}.", place(lesson=n)), unit_vector(f"v{n}")) for n in range(8)]
        coming = [indexed(chunk(f"Robot robot robot {n}.", place(lesson=9)), unit_vector("v0")) for n in range(12)]
        await store(index, "book", visible, [], "en")
        found: list[int] = []

        async def commit() -> None:
            async with reading(index) as view:
                candidates = await view.find(unit_vector("v0"), "robot", language="en", where=BOOK, limit=8)
            found.append(len({candidate.id for candidate in candidates}))
            raise RuntimeError("not committed")

        change = Change(put=tuple(coming), drop=(), language="en")
        with pytest.raises(RuntimeError):
            await index.replace("book", LEDGER.number + 1, [change], commit)

        assert found == [8]

    async def test_a_read_that_was_disturbed_is_done_again(self, index: ChunkIndex) -> None:
        """No response is made of two versions: a replacement committed in between begins it anew."""
        await store(index, "book", [indexed(chunk("The first text."))], [], "en")
        tries = 0

        async def work(view: IndexView) -> list[str]:
            nonlocal tries
            tries += 1
            await view.count(BOOK)
            if tries == 1:
                await store(index, "book", [indexed(chunk("The second text."))], [], "en")
            return [stored.chunk.text for stored in await view.chunks(BOOK)]

        assert await index.read(work) == ["The second text."]
        assert tries == 2

    async def test_points_that_are_neither_live_nor_coming_are_found(self, index: ChunkIndex) -> None:
        """What a restored copy left behind is counted, spared while it is about to be live, and dropped on demand."""
        visible, dead = indexed(chunk("Readers see this.")), indexed(chunk("Nobody sees this.", place(lesson=2)))
        await store(index, "book", [visible], [], "en")

        async def never() -> None:
            """The ledger was not told."""

        await index.replace("book", 10_000, [Change(put=(dead,), drop=(), language="en")], never)

        assert await index.remnants("book", {10_000}, drop=True) == 0
        assert await index.remnants("book", set(), drop=False) == 1
        assert await index.remnants("book", set(), drop=True) == 1
        assert await index.remnants("book", set(), drop=True) == 0
        async with reading(index) as view:
            assert await view.chunks(BOOK) == [visible.stored]
