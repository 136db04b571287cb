"""A change that cannot be carried out, a collection that is gone, a book that is busy: none of them locks the home,
and each has a way out."""

from __future__ import annotations

import asyncio
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event, update

from lectern.domain import failpoints
from lectern.domain.chunks import Change, IndexedChunk
from lectern.domain.errors import IndexDamaged, ProviderError
from lectern.domain.jobs import Intent
from lectern.domain.scope import ChunkFilter
from lectern.index.edge import EdgeIndex
from lectern.ingestion.doctor import Finding, examine
from lectern.ingestion.ingest import IngestRequest, Workshop, ingest
from lectern.ingestion.replacing import remove
from lectern.store.tables import intents
from tests.books import Author
from tests.doubles import WordEmbedder
from tests.ingestion.test_doctor import held, kinds, tamper
from tests.ingestion.test_ingest import FailingEmbedder, OtherEmbedder
from tests.workshop import agreement, content, run, workshop


class Broke(Exception):
    """What a test's engine raises."""


@pytest.fixture(autouse=True)
def _nobody_listens_afterwards():
    yield
    failpoints.listen(None)


def breaking(name: str) -> Callable[[str], None]:
    """A listener that breaks the work off at an instant."""

    def listener(reached: str) -> None:
        if reached == name:
            raise Broke(name)

    return listener


async def leave_half_done(shop: Workshop, author: Author, instant: str = "index.put") -> None:
    """An ingestion that fails in the middle of a replacement, and leaves its intent."""
    failpoints.listen(breaking(instant))
    with pytest.raises(Broke):
        await run(shop, author.folder)
    failpoints.listen(None)
    assert await shop.ledger.unsettled()


async def other_book(shop: Workshop, folder: Path) -> list[str]:
    """A second book, ingested; what it holds."""
    async for _ in ingest(IngestRequest(folder=folder, book_id="other"), shop):
        pass
    return await content(shop, "other")


async def spoil_intents(shop: Workshop, body: bytes) -> None:
    """What is written down becomes something that this version cannot read."""
    async with shop.ledger._engine.begin() as connection:
        await connection.execute(update(intents).values(body=body))


async def findings(shop: Workshop, *, mend: bool = False) -> list[tuple[str, str | None, bool]]:
    """What the doctor says, of whom, and whether it was mended."""
    return [(one.kind, one.book_id, one.mended) async for one in examine(shop, mend=mend)]


@pytest.mark.parametrize("body", [b"no zlib", zlib.compress(b'[{"put": [{"novel": 1}]}]'), zlib.compress(b'"x"')])
async def test_a_change_that_cannot_be_read_keeps_nobody_else_out(tmp_path: Path, body: bytes) -> None:
    """The home opens, the other book is served, its own says what to do, and the doctor mends it from the folder."""
    author, other = Author(tmp_path / "book", 1), Author(tmp_path / "other", 2)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        theirs = await other_book(shop, other.folder)
        author._change_a_line()
        author._add()
        await leave_half_done(shop, author)
        await spoil_intents(shop, body)

    async with workshop(tmp_path / "home") as shop:
        entries = {entry.manifest.book_id: entry for entry in await shop.ledger.books()}
        await shop.shelf.stand(entries["other"])
        assert await content(shop, "other") == theirs
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await shop.shelf.stand(entries["book"])
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await run(shop, author.folder)
        assert ("stuck change", "book", False) in await findings(shop)

        assert ("stuck change", "book", True) in await findings(shop, mend=True)
        assert await findings(shop) == []
        await shop.shelf.stand(entries["book"])
        await agreement(shop)
        ours = await content(shop)
    async with workshop(tmp_path / "fresh") as shop:
        await run(shop, author.folder)
        assert await content(shop) == ours


async def test_a_change_that_the_engine_refuses_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the engine raises while a change is carried out again, the home opens and the rest is served."""
    author, other = Author(tmp_path / "book", 3), Author(tmp_path / "other", 4)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        await other_book(shop, other.folder)
        author._change_a_line()
        await leave_half_done(shop, author)
    real = EdgeIndex._write

    async def refusing(self: EdgeIndex, change: Change) -> None:
        if change.put:
            raise TypeError("the engine does not take this")
        await real(self, change)

    monkeypatch.setattr(EdgeIndex, "_write", refusing)
    async with workshop(tmp_path / "home") as shop:
        entry = await shop.ledger.book("other")
        assert entry is not None
        await shop.shelf.stand(entry)
        assert ("stuck change", "book", False) in await findings(shop, mend=True)  # the engine still refuses
        assert await shop.ledger.unsettled()
    monkeypatch.setattr(EdgeIndex, "_write", real)
    async with workshop(tmp_path / "home") as shop:
        assert await findings(shop) == []  # carried out when the home was opened


async def test_the_doctor_leaves_a_first_ingestion_alone(tmp_path: Path) -> None:
    """A book that is being ingested for the first time is passed over, and said to be; the ingestion completes."""
    author = Author(tmp_path / "book", 5)
    async with workshop(tmp_path / "home") as shop:
        seen: list[Finding] = []
        async for event_ in ingest(IngestRequest(folder=author.folder, book_id="book"), shop):
            if event_.kind != "finished":
                seen += [one async for one in examine(shop, mend=True)]

        assert {(one.kind, one.mended) for one in seen} == {("not examined", False)}
        assert all("being ingested" in one.detail for one in seen)
        assert await content(shop)
        assert await kinds(shop) == []


async def test_a_book_that_comes_while_the_doctor_looks_is_not_taken_for_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the ledger did not know when the doctor began, but knows when it gets there, is left alone."""
    author = Author(tmp_path / "book", 6)
    async with workshop(tmp_path / "home") as shop:
        real, begun = shop.ledger.books, []

        async def books():
            found = await real()
            if not begun:
                begun.append(True)
                await run(shop, author.folder)
            return found

        monkeypatch.setattr(shop.ledger, "books", books)
        assert await kinds(shop, mend=True) == []
        assert await content(shop)


async def test_a_removed_book_does_not_come_back(tmp_path: Path) -> None:
    """A failed ingestion, then a removal, then a restart: nothing of the book is left anywhere."""
    for instant in ("ledger.intended", "index.put", "index.changed", "index.flushed", "ledger.settled"):
        author = Author(tmp_path / instant / "book", 7)
        async with workshop(tmp_path / instant / "home") as shop:
            await run(shop, author.folder)
            author._change_a_line()
            author._add()
            await leave_half_done(shop, author, instant)
            entry = await shop.ledger.book("book")
            assert entry is not None
            await remove(shop.ledger, shop.shelf, entry)
        async with workshop(tmp_path / instant / "home") as shop:
            assert await shop.ledger.unsettled() == []
            assert await shop.ledger.collections("book") == ()
            assert await content(shop) == []
            assert await kinds(shop) == []


async def test_a_book_whose_change_is_stuck_can_be_removed(tmp_path: Path) -> None:
    """Removing needs nothing of what was written down."""
    author = Author(tmp_path / "book", 8)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        author._change_a_line()
        await leave_half_done(shop, author)
        await spoil_intents(shop, b"no zlib")
        entry = await shop.ledger.book("book")
        assert entry is not None
        await remove(shop.ledger, shop.shelf, entry)

        assert await shop.ledger.unsettled() == []
        assert await kinds(shop) == []


@pytest.mark.parametrize("harm", ["lose", "damage"])
@pytest.mark.parametrize("way", ["ingest", "remove", "doctor"])
async def test_a_lost_collection_of_an_earlier_embedder_stands_in_nobodys_way(
    tmp_path: Path, harm: str, way: str
) -> None:
    """Ingesting, removing and mending all work on, and afterwards nothing names the lost collection."""
    author = Author(tmp_path / "book", 9)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        author._change_a_line()
        await leave_half_done(shop, author)  # a change that nobody can carry out any more
        old = shop.shelf.current.index.collection
    lose = tmp_path / "home" / "index" / old
    if harm == "lose":
        shutil.rmtree(lose)
    else:
        (lose / "edge_config.json").write_text("{", encoding="utf-8")

    async with workshop(tmp_path / "home", OtherEmbedder()) as shop:
        entry = await shop.ledger.book("book")
        assert entry is not None
        if way == "remove":
            await remove(shop.ledger, shop.shelf, entry)
        else:
            if way == "doctor":
                first = [one async for one in examine(shop, mend=True)]
                assert any(one.book_id == "book" and not one.mended for one in first)
                assert any("lectern ingest" in one.detail for one in first)
            await run(shop, author.folder)
            assert await content(shop)

        assert old not in await shop.ledger.collections("book")
        assert await shop.ledger.unsettled() == []
        assert await kinds(shop) == []


async def test_a_left_over_in_a_lost_collection_is_mended(tmp_path: Path) -> None:
    """Rows of an earlier embedder's collection that is gone are dropped; the others are examined all the same."""
    author = Author(tmp_path / "book", 10)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        records = await shop.ledger.records("book", shop.shelf.current.index.collection)
        gone = await shop.ledger.intend("book", "test-gone-1", [])
        [unsettled] = await shop.ledger.unsettled()
        rows = Intent(change=Change(put=(), drop=(), language="en"), records=tuple(records.values()), retired=())
        await shop.ledger.settle(replace(unsettled, intents=(rows,)))
        await shop.ledger.forget(gone)
        before = await content(shop)

        assert await findings(shop) == [("left-over collection", "book", False)]
        assert await findings(shop, mend=True) == [("left-over collection", "book", True)]
        assert await findings(shop) == []
        assert await content(shop) == before


async def test_a_rebuild_that_got_stuck_is_begun_anew(tmp_path: Path) -> None:
    """Readers stay with the old embedder's collection meanwhile; the doctor clears the way, the next run rebuilds."""
    author = Author(tmp_path / "book", 21)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        before = await content(shop)
    async with workshop(tmp_path / "home", OtherEmbedder()) as shop:
        await leave_half_done(shop, author)
        await spoil_intents(shop, b"no zlib")
    async with workshop(tmp_path / "home") as shop:
        entry = await shop.ledger.book("book")
        assert entry is not None
        await shop.shelf.stand(entry)
        assert await content(shop) == before
    async with workshop(tmp_path / "home", OtherEmbedder()) as shop:
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await run(shop, author.folder)
        assert await findings(shop, mend=True) == [("stuck change", "book", True)]
        await run(shop, author.folder)
        assert len(await content(shop)) == len(before)
        assert await findings(shop) == []


async def test_an_index_that_cannot_list_its_books_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor goes on with the books that the ledger knows."""
    author = Author(tmp_path / "book", 22)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)

        async def book_ids(self: object) -> None:
            raise IndexDamaged("it cannot be read")

        monkeypatch.setattr("lectern.index.edge.EdgeView.book_ids", book_ids)
        assert await findings(shop, mend=True) == [("not examined", None, False)]


async def test_one_books_trouble_does_not_end_the_examination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A book that cannot be examined is a finding, and the next one is examined."""
    author, other = Author(tmp_path / "book", 11), Author(tmp_path / "other", 12)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        await other_book(shop, other.folder)
        real = shop.ledger.records

        async def records(book_id: str, collection: str):
            if book_id == "book":
                raise IndexDamaged("it cannot be read")
            return await real(book_id, collection)

        monkeypatch.setattr(shop.ledger, "records", records)
        stranger = (await held(shop))[0]
        ghost = replace(stranger.chunk, book_id="other", id="00000000-0000-5000-8000-000000000001")
        await tamper(shop, put=(IndexedChunk(stored=replace(stranger, chunk=ghost), vectors=([1.0] * 32,)),))

        assert await findings(shop, mend=True) == [("not examined", "book", False), ("orphan chunks", "other", True)]


async def test_a_provider_that_is_down_costs_the_doctor_no_lesson(tmp_path: Path) -> None:
    """What is damaged is replaced in place: while it cannot be embedded again, everything that was there stays."""
    author = Author(tmp_path / "book", 13)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        first, second, *_ = await held(shop)
        changed = replace(second, chunk=replace(second.chunk, page_title="Changed"))
        await tamper(shop, put=(IndexedChunk(stored=changed, vectors=([1.0] * 32,)),), drop=(first.chunk.id,))
        await shop.vectors.prune(set())
        before = await content(shop)
    async with workshop(tmp_path / "home", FailingEmbedder()) as shop:
        records = await shop.ledger.records("book", shop.shelf.current.index.collection)
        found = [one async for one in examine(shop, mend=True)]

        assert {(one.kind, one.mended) for one in found} == {("damaged lesson", False)}
        assert all("is down" in one.detail for one in found)
        assert await content(shop) == before
        assert await shop.ledger.records("book", shop.shelf.current.index.collection) == records
    async with workshop(tmp_path / "home") as shop:
        assert set(await kinds(shop, mend=True)) == {"damaged lesson"}
        assert await kinds(shop) == []


async def test_vectors_of_a_book_that_is_not_right_are_kept(tmp_path: Path) -> None:
    """A lost chunk's vector looks unused; pruned, the lesson would have to be embedded again."""
    author = Author(tmp_path / "book", 14)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        first, *_ = await held(shop)
        await tamper(shop, drop=(first.chunk.id,))
        away = author.folder.rename(tmp_path / "away")
        assert await findings(shop, mend=True) == [("damaged lesson", "book", False)]
        away.rename(author.folder)
        embedder = shop.shelf.current.embedder
        assert isinstance(embedder, WordEmbedder)
        embedder.sent.clear()

        assert await findings(shop, mend=True) == [("damaged lesson", "book", True)]
        assert embedder.sent == []


async def test_an_emptied_folder_is_no_reason_to_take_lessons_away(tmp_path: Path) -> None:
    """A mount that is not there looks like an empty book; mending must not make it one."""
    author = Author(tmp_path / "book", 15)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        first, *_ = await held(shop)
        await tamper(shop, drop=(first.chunk.id,))
        before = await content(shop)
        shutil.rmtree(author.folder)
        author.folder.mkdir()

        assert await findings(shop, mend=True) == [("damaged lesson", "book", False)]
        assert await content(shop) == before


@pytest.mark.parametrize("deed", ["remove", "save", "settle"])
async def test_a_write_that_is_cancelled_is_not_remembered_wrongly(tmp_path: Path, deed: str) -> None:
    """The database may have committed although the caller was cancelled: the books are read again, not remembered."""
    author = Author(tmp_path / "book", 16)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        entry = await shop.ledger.book("book")
        assert entry is not None
        collection = entry.collection_name
        names = tuple(await shop.ledger.records("book", collection))
        engine = shop.ledger._engine.sync_engine
        number = await shop.ledger.intend("book", collection, [])
        [work] = await shop.ledger.unsettled()
        assert work.number == number
        gone = Intent(change=Change(put=(), drop=(), language="en"), records=(), retired=names)
        deeds = {
            "remove": lambda: shop.ledger.remove_book("book"),
            "save": lambda: shop.ledger.save_book(replace(entry, source="/elsewhere")),
            "settle": lambda: shop.ledger.settle(replace(work, intents=(gone,))),
        }
        await shop.ledger.books()  # remembered
        task = asyncio.ensure_future(deeds[deed]())
        event.listen(engine, "commit", lambda _: task.cancel(), once=True)
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await shop.ledger.books() == await shop.ledger._books()


async def test_a_reader_does_not_remember_what_a_writer_just_changed(tmp_path: Path) -> None:
    """Books that were being read while one was saved are not kept for the next reader."""
    author = Author(tmp_path / "book", 17)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        entry = await shop.ledger.book("book")
        assert entry is not None
        for _ in range(20):
            shop.ledger._known = None
            await asyncio.gather(shop.ledger.books(), shop.ledger.save_book(replace(entry, source="/elsewhere")))
            assert await shop.ledger.books() == await shop.ledger._books()
            await shop.ledger.save_book(entry)


async def test_a_book_of_another_schema_opens_and_can_be_recreated(tmp_path: Path) -> None:
    """Chunks of a shape this version does not read: the home opens, and the advised command works, on both engines."""
    from lectern.schemas import payload

    for server in (False, True):
        author = Author(tmp_path / str(server) / "book", 18)
        async with workshop(tmp_path / str(server) / "home", server=server) as shop:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(payload, "SCHEMA_VERSION", 99)
                await run(shop, author.folder)
            entry = await shop.ledger.book("book")
            assert entry is not None
            where = ChunkFilter(book_id="book")
            index = shop.shelf.current.index
            assert await index.read(lambda view, where=where: view.count(where)) == entry.total_chunks
            await shop.shelf.verify(entry)
            [one] = [one async for one in examine(shop, mend=True)]
            assert (one.kind, one.mended, "--mode recreate" in one.detail) == ("not examined", False, True)

            await run(shop, author.folder, "recreate")
            assert await kinds(shop) == []
            assert len(await content(shop)) == entry.total_chunks


async def test_a_book_of_another_schema_can_be_removed(tmp_path: Path) -> None:
    """Nothing has to be read to take a book out."""
    from lectern.schemas import payload

    for server in (False, True):
        author = Author(tmp_path / str(server) / "book", 19)
        async with workshop(tmp_path / str(server) / "home", server=server) as shop:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(payload, "SCHEMA_VERSION", 99)
                await run(shop, author.folder)
            entry = await shop.ledger.book("book")
            assert entry is not None
            await remove(shop.ledger, shop.shelf, entry)

            assert await kinds(shop) == []
            assert await content(shop) == []


@pytest.mark.parametrize("trouble", ["IndexMismatch", "Busy", "ProviderError"])
async def test_a_book_that_cannot_be_verified_is_not_sound(
    tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands in the way of counting, it is that book's trouble alone."""
    from lectern.domain import errors

    author = Author(tmp_path / "book", 20)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        entry = await shop.ledger.book("book")
        assert entry is not None
        raised = ProviderError("test", "x") if trouble == "ProviderError" else getattr(errors, trouble)("x")

        async def read(self: EdgeIndex, work: object) -> None:
            raise raised

        monkeypatch.setattr(EdgeIndex, "read", read)
        assert not await shop.shelf.verify(entry)
        with pytest.raises(IndexDamaged):
            await shop.shelf.stand(entry)
