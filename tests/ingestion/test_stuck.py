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
from lectern.ingestion.ingest import IngestDeps, IngestRequest, ingest
from lectern.ingestion.replacing import remove
from lectern.store.ledger import SqlLedger
from lectern.store.tables import intents
from tests.books import Author
from tests.doubles import WordEmbedder
from tests.ingest_parts import agreement, content, open_ingest_parts, run
from tests.ingestion.test_doctor import kinds, stored_chunks, tamper
from tests.ingestion.test_ingest import FailingEmbedder, OtherEmbedder


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


async def leave_half_done(ingest_deps: IngestDeps, author: Author, instant: str = "index.put") -> None:
    """An ingestion that fails in the middle of a replacement, and leaves its intent."""
    failpoints.listen(breaking(instant))
    with pytest.raises(Broke):
        await run(ingest_deps, author.folder)
    failpoints.listen(None)
    assert await ingest_deps.ledger.unsettled()


async def other_book(ingest_deps: IngestDeps, folder: Path) -> list[str]:
    """A second book, ingested; what it holds."""
    async for _ in ingest(IngestRequest(folder=folder, book_id="other"), ingest_deps):
        pass
    return await content(ingest_deps, "other")


async def spoil_intents(ingest_deps: IngestDeps, body: bytes) -> None:
    """What is written down becomes something that this version cannot read."""
    async with ingest_deps.ledger._engine.begin() as connection:
        await connection.execute(update(intents).values(body=body))


async def findings(ingest_deps: IngestDeps, *, mend: bool = False) -> list[tuple[str, str | None, bool]]:
    """What the doctor says, of whom, and whether it was mended."""
    return [(finding.kind, finding.book_id, finding.mended) async for finding in examine(ingest_deps, mend=mend)]


@pytest.mark.parametrize("body", [b"no zlib", zlib.compress(b'[{"put": [{"novel": 1}]}]'), zlib.compress(b'"x"')])
async def test_a_change_that_cannot_be_read_keeps_nobody_else_out(tmp_path: Path, body: bytes) -> None:
    """The home opens, the other book is served, its own says what to do, and the doctor mends it from the folder."""
    author, second_author = Author(tmp_path / "book", 1), Author(tmp_path / "other", 2)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        theirs = await other_book(ingest_deps, second_author.folder)
        author._change_a_line()
        author._add()
        await leave_half_done(ingest_deps, author)
        await spoil_intents(ingest_deps, body)

    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        entries = {entry.manifest.book_id: entry for entry in await ingest_deps.ledger.books()}
        await ingest_deps.collections.serving(entries["other"])
        assert await content(ingest_deps, "other") == theirs
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await ingest_deps.collections.serving(entries["book"])
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await run(ingest_deps, author.folder)
        assert ("stuck change", "book", False) in await findings(ingest_deps)

        assert ("stuck change", "book", True) in await findings(ingest_deps, mend=True)
        assert await findings(ingest_deps) == []
        await ingest_deps.collections.serving(entries["book"])
        await agreement(ingest_deps)
        actual = await content(ingest_deps)
    async with open_ingest_parts(tmp_path / "fresh") as ingest_deps:
        await run(ingest_deps, author.folder)
        assert await content(ingest_deps) == actual


async def test_a_change_that_the_engine_refuses_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the engine raises while a change is carried out again, the home opens and the rest is served."""
    author, second_author = Author(tmp_path / "book", 3), Author(tmp_path / "other", 4)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        await other_book(ingest_deps, second_author.folder)
        author._change_a_line()
        await leave_half_done(ingest_deps, author)
    real = EdgeIndex._write

    async def refusing(self: EdgeIndex, change: Change) -> None:
        if change.put:
            raise TypeError("the engine does not take this")
        await real(self, change)

    monkeypatch.setattr(EdgeIndex, "_write", refusing)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        entry = await ingest_deps.ledger.book("other")
        assert entry is not None
        await ingest_deps.collections.serving(entry)
        assert ("stuck change", "book", False) in await findings(ingest_deps, mend=True)  # the engine still refuses
        assert await ingest_deps.ledger.unsettled()
    monkeypatch.setattr(EdgeIndex, "_write", real)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        assert await findings(ingest_deps) == []  # carried out when the home was opened


async def test_the_doctor_leaves_a_first_ingestion_alone(tmp_path: Path) -> None:
    """A book that is being ingested for the first time is passed over, and said to be; the ingestion completes."""
    author = Author(tmp_path / "book", 5)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        all_findings: list[Finding] = []
        async for event_ in ingest(IngestRequest(folder=author.folder, book_id="book"), ingest_deps):
            if event_.kind != "finished":
                all_findings += [finding async for finding in examine(ingest_deps, mend=True)]

        assert {(finding.kind, finding.mended) for finding in all_findings} == {("not examined", False)}
        assert all("being ingested" in finding.detail for finding in all_findings)
        assert await content(ingest_deps)
        assert await kinds(ingest_deps) == []


async def test_a_book_that_comes_while_the_doctor_looks_is_not_taken_for_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the ledger did not know when the doctor began, but knows when it gets there, is left alone."""
    author = Author(tmp_path / "book", 6)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        real, calls = ingest_deps.ledger.books, []

        async def books():
            books = await real()
            if not calls:
                calls.append(True)
                await run(ingest_deps, author.folder)
            return books

        monkeypatch.setattr(ingest_deps.ledger, "books", books)
        assert await kinds(ingest_deps, mend=True) == []
        assert await content(ingest_deps)


async def test_a_removed_book_does_not_come_back(tmp_path: Path) -> None:
    """A failed ingestion, then a removal, then a restart: nothing of the book is left anywhere."""
    for instant in ("ledger.intended", "index.put", "index.changed", "index.flushed", "ledger.settled"):
        author = Author(tmp_path / instant / "book", 7)
        async with open_ingest_parts(tmp_path / instant / "home") as ingest_deps:
            await run(ingest_deps, author.folder)
            author._change_a_line()
            author._add()
            await leave_half_done(ingest_deps, author, instant)
            entry = await ingest_deps.ledger.book("book")
            assert entry is not None
            await remove(ingest_deps.ledger, ingest_deps.collections, entry)
        async with open_ingest_parts(tmp_path / instant / "home") as ingest_deps:
            assert await ingest_deps.ledger.unsettled() == []
            assert await ingest_deps.ledger.collections("book") == ()
            assert await content(ingest_deps) == []
            assert await kinds(ingest_deps) == []


async def test_a_book_whose_change_is_stuck_can_be_removed(tmp_path: Path) -> None:
    """Removing needs nothing of what was written down."""
    author = Author(tmp_path / "book", 8)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        author._change_a_line()
        await leave_half_done(ingest_deps, author)
        await spoil_intents(ingest_deps, b"no zlib")
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        await remove(ingest_deps.ledger, ingest_deps.collections, entry)

        assert await ingest_deps.ledger.unsettled() == []
        assert await kinds(ingest_deps) == []


@pytest.mark.parametrize("harm", ["lose", "damage"])
@pytest.mark.parametrize("way", ["ingest", "remove", "doctor"])
async def test_a_lost_collection_of_an_earlier_embedder_stands_in_nobodys_way(
    tmp_path: Path, harm: str, way: str
) -> None:
    """Ingesting, removing and mending all work on, and afterwards nothing names the lost collection."""
    author = Author(tmp_path / "book", 9)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        author._change_a_line()
        await leave_half_done(ingest_deps, author)  # a change that nobody can carry out any more
        old = ingest_deps.collections.current.index.collection
    lose = tmp_path / "home" / "index" / old
    if harm == "lose":
        shutil.rmtree(lose)
    else:
        (lose / "edge_config.json").write_text("{", encoding="utf-8")

    async with open_ingest_parts(tmp_path / "home", OtherEmbedder()) as ingest_deps:
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        if way == "remove":
            await remove(ingest_deps.ledger, ingest_deps.collections, entry)
        else:
            if way == "doctor":
                first = [finding async for finding in examine(ingest_deps, mend=True)]
                assert any(finding.book_id == "book" and not finding.mended for finding in first)
                assert any("lectern ingest" in finding.detail for finding in first)
            await run(ingest_deps, author.folder)
            assert await content(ingest_deps)

        assert old not in await ingest_deps.ledger.collections("book")
        assert await ingest_deps.ledger.unsettled() == []
        assert await kinds(ingest_deps) == []


async def test_a_left_over_in_a_lost_collection_is_mended(tmp_path: Path) -> None:
    """Rows of an earlier embedder's collection that is gone are dropped; the others are examined all the same."""
    author = Author(tmp_path / "book", 10)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        records = await ingest_deps.ledger.records("book", ingest_deps.collections.current.index.collection)
        intent_number = await ingest_deps.ledger.intend("book", "test-gone-1", [])
        [unsettled] = await ingest_deps.ledger.unsettled()
        rows = Intent(change=Change(put=(), drop=(), language="en"), records=tuple(records.values()), retired=())
        await ingest_deps.ledger.settle(replace(unsettled, intents=(rows,)))
        await ingest_deps.ledger.forget(intent_number)
        before = await content(ingest_deps)

        assert await findings(ingest_deps) == [("left-over collection", "book", False)]
        assert await findings(ingest_deps, mend=True) == [("left-over collection", "book", True)]
        assert await findings(ingest_deps) == []
        assert await content(ingest_deps) == before


async def test_a_rebuild_that_got_stuck_is_begun_anew(tmp_path: Path) -> None:
    """Readers stay with the old embedder's collection meanwhile; the doctor clears the way, the next run rebuilds."""
    author = Author(tmp_path / "book", 21)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)
    async with open_ingest_parts(tmp_path / "home", OtherEmbedder()) as ingest_deps:
        await leave_half_done(ingest_deps, author)
        await spoil_intents(ingest_deps, b"no zlib")
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        await ingest_deps.collections.serving(entry)
        assert await content(ingest_deps) == before
    async with open_ingest_parts(tmp_path / "home", OtherEmbedder()) as ingest_deps:
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await run(ingest_deps, author.folder)
        assert await findings(ingest_deps, mend=True) == [("stuck change", "book", True)]
        await run(ingest_deps, author.folder)
        assert len(await content(ingest_deps)) == len(before)
        assert await findings(ingest_deps) == []


async def test_an_index_that_cannot_list_its_books_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor goes on with the books that the ledger knows."""
    author = Author(tmp_path / "book", 22)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)

        async def book_ids(self: object) -> None:
            raise IndexDamaged("it cannot be read")

        monkeypatch.setattr("lectern.index.edge.EdgeView.book_ids", book_ids)
        assert await findings(ingest_deps, mend=True) == [("not examined", None, False)]


async def test_one_books_trouble_does_not_end_the_examination(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A book that cannot be examined is a finding, and the next one is examined."""
    author, second_author = Author(tmp_path / "book", 11), Author(tmp_path / "other", 12)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        await other_book(ingest_deps, second_author.folder)
        real = ingest_deps.ledger.records

        async def records(book_id: str, collection: str):
            if book_id == "book":
                raise IndexDamaged("it cannot be read")
            return await real(book_id, collection)

        monkeypatch.setattr(ingest_deps.ledger, "records", records)
        stranger = (await stored_chunks(ingest_deps))[0]
        ghost = replace(stranger.chunk, book_id="other", id="00000000-0000-5000-8000-000000000001")
        await tamper(ingest_deps, put=(IndexedChunk(stored=replace(stranger, chunk=ghost), vectors=([1.0] * 32,)),))

        assert await findings(ingest_deps, mend=True) == [
            ("not examined", "book", False),
            ("orphan chunks", "other", True),
        ]


async def test_a_provider_that_is_down_costs_the_doctor_no_lesson(tmp_path: Path) -> None:
    """What is damaged is replaced in place: while it cannot be embedded again, everything that was there stays."""
    author = Author(tmp_path / "book", 13)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        first, second, *_ = await stored_chunks(ingest_deps)
        changed_chunk = replace(second, chunk=replace(second.chunk, page_title="Changed"))
        await tamper(
            ingest_deps, put=(IndexedChunk(stored=changed_chunk, vectors=([1.0] * 32,)),), drop=(first.chunk.id,)
        )
        await ingest_deps.vectors.prune(set())
        before = await content(ingest_deps)
    async with open_ingest_parts(tmp_path / "home", FailingEmbedder()) as ingest_deps:
        records = await ingest_deps.ledger.records("book", ingest_deps.collections.current.index.collection)
        all_findings = [finding async for finding in examine(ingest_deps, mend=True)]

        assert {(finding.kind, finding.mended) for finding in all_findings} == {("damaged lesson", False)}
        assert all("is down" in finding.detail for finding in all_findings)
        assert await content(ingest_deps) == before
        assert await ingest_deps.ledger.records("book", ingest_deps.collections.current.index.collection) == records
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        assert set(await kinds(ingest_deps, mend=True)) == {"damaged lesson"}
        assert await kinds(ingest_deps) == []


async def test_vectors_of_a_book_that_is_not_right_are_kept(tmp_path: Path) -> None:
    """A lost chunk's vector looks unused; pruned, the lesson would have to be embedded again."""
    author = Author(tmp_path / "book", 14)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        first, *_ = await stored_chunks(ingest_deps)
        await tamper(ingest_deps, drop=(first.chunk.id,))
        away = author.folder.rename(tmp_path / "away")
        assert await findings(ingest_deps, mend=True) == [("damaged lesson", "book", False)]
        away.rename(author.folder)
        embedder = ingest_deps.collections.current.embedder
        assert isinstance(embedder, WordEmbedder)
        embedder.sent.clear()

        assert await findings(ingest_deps, mend=True) == [("damaged lesson", "book", True)]
        assert embedder.sent == []


async def test_an_emptied_folder_is_no_reason_to_take_lessons_away(tmp_path: Path) -> None:
    """A mount that is not there looks like an empty book; mending must not make it one."""
    author = Author(tmp_path / "book", 15)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        first, *_ = await stored_chunks(ingest_deps)
        await tamper(ingest_deps, drop=(first.chunk.id,))
        before = await content(ingest_deps)
        shutil.rmtree(author.folder)
        author.folder.mkdir()

        assert await findings(ingest_deps, mend=True) == [("damaged lesson", "book", False)]
        assert await content(ingest_deps) == before


@pytest.mark.parametrize("deed", ["remove", "save", "settle"])
async def test_a_write_that_is_cancelled_is_not_remembered_wrongly(tmp_path: Path, deed: str) -> None:
    """The database may have committed although the caller was cancelled: the books are read again, not remembered."""
    author = Author(tmp_path / "book", 16)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        collection = entry.collection_name
        names = tuple(await ingest_deps.ledger.records("book", collection))
        engine = ingest_deps.ledger._engine.sync_engine
        number = await ingest_deps.ledger.intend("book", collection, [])
        [work] = await ingest_deps.ledger.unsettled()
        assert work.number == number
        removal = Intent(change=Change(put=(), drop=(), language="en"), records=(), retired=names)
        deeds = {
            "remove": lambda: ingest_deps.ledger.remove_book("book"),
            "save": lambda: ingest_deps.ledger.save_book(replace(entry, source="/elsewhere")),
            "settle": lambda: ingest_deps.ledger.settle(replace(work, intents=(removal,))),
        }
        await ingest_deps.ledger.books()  # remembered
        task = asyncio.ensure_future(deeds[deed]())
        event.listen(engine, "commit", lambda _: task.cancel(), once=True)
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await ingest_deps.ledger.books() == await SqlLedger(ingest_deps.ledger._engine).books()


async def test_a_reader_does_not_remember_what_a_writer_just_changed(tmp_path: Path) -> None:
    """Books that were being read while one was saved are not kept for the next reader."""
    author = Author(tmp_path / "book", 17)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        for _ in range(20):
            ingest_deps.ledger._book_list.forget()
            await asyncio.gather(
                ingest_deps.ledger.books(), ingest_deps.ledger.save_book(replace(entry, source="/elsewhere"))
            )
            assert await ingest_deps.ledger.books() == await SqlLedger(ingest_deps.ledger._engine).books()
            await ingest_deps.ledger.save_book(entry)


async def test_a_book_of_another_schema_opens_and_can_be_recreated(tmp_path: Path) -> None:
    """Chunks of a shape this version does not read: the home opens, and the advised command works, on both engines."""
    from lectern.schemas import payload

    for server in (False, True):
        author = Author(tmp_path / str(server) / "book", 18)
        async with open_ingest_parts(tmp_path / str(server) / "home", server=server) as ingest_deps:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(payload, "SCHEMA_VERSION", 99)
                await run(ingest_deps, author.folder)
            entry = await ingest_deps.ledger.book("book")
            assert entry is not None
            where = ChunkFilter(book_id="book")
            index = ingest_deps.collections.current.index
            assert await index.read(lambda view, where=where: view.count(where)) == entry.total_chunks
            await ingest_deps.collections.verify(entry)
            [finding] = [item async for item in examine(ingest_deps, mend=True)]
            assert (finding.kind, finding.mended, "--mode recreate" in finding.detail) == ("not examined", False, True)

            await run(ingest_deps, author.folder, "recreate")
            assert await kinds(ingest_deps) == []
            assert len(await content(ingest_deps)) == entry.total_chunks


async def test_a_book_of_another_schema_can_be_removed(tmp_path: Path) -> None:
    """Nothing has to be read to take a book out."""
    from lectern.schemas import payload

    for server in (False, True):
        author = Author(tmp_path / str(server) / "book", 19)
        async with open_ingest_parts(tmp_path / str(server) / "home", server=server) as ingest_deps:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(payload, "SCHEMA_VERSION", 99)
                await run(ingest_deps, author.folder)
            entry = await ingest_deps.ledger.book("book")
            assert entry is not None
            await remove(ingest_deps.ledger, ingest_deps.collections, entry)

            assert await kinds(ingest_deps) == []
            assert await content(ingest_deps) == []


@pytest.mark.parametrize("trouble", ["IndexMismatch", "Busy"])
async def test_a_book_that_cannot_be_verified_is_not_sound(
    tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the chunks of a book cannot be counted, other books are not blocked."""
    from lectern.domain import errors

    author = Author(tmp_path / "book", 20)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None

        async def read(self: EdgeIndex, work: object) -> None:
            raise getattr(errors, trouble)("x")

        monkeypatch.setattr(EdgeIndex, "read", read)
        assert not await ingest_deps.collections.verify(entry)
        with pytest.raises(IndexDamaged):
            await ingest_deps.collections.serving(entry)


async def test_an_index_that_does_not_answer_says_nothing_about_a_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An outage is reported as one; afterwards the book is served without being verified again."""
    author = Author(tmp_path / "book", 20)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None

        async def read(self: EdgeIndex, work: object) -> None:
            raise ProviderError("test", "x")

        with monkeypatch.context() as outage:
            outage.setattr(EdgeIndex, "read", read)
            with pytest.raises(ProviderError):
                await ingest_deps.collections.verify(entry)

        assert await ingest_deps.collections.serving(entry)
