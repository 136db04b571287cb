"""The doctor finds and mends every disagreement between index and ledger."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from lectern.domain.chunks import Change, IndexedChunk
from lectern.domain.scope import ChunkFilter, SearchQuery
from lectern.ingestion.doctor import examine
from lectern.ingestion.ingest import IngestDeps
from lectern.retrieval.search import HybridSearch
from tests.books import Author
from tests.ingest_parts import agreement, content, counts_are_right, open_ingest_parts, run
from tests.making import chunk, indexed, place


async def kinds(ingest_deps: IngestDeps, *, mend: bool = False) -> list[str]:
    """What the doctor says."""
    return [finding.kind async for finding in examine(ingest_deps, mend=mend)]


async def tamper(ingest_deps: IngestDeps, *, put: tuple[IndexedChunk, ...] = (), drop: tuple[str, ...] = ()) -> None:
    """Change the index behind the ledger's back."""

    async def commit() -> None:
        """The ledger is not told."""

    book_id = put[0].stored.chunk.book_id if put else "book"
    change = Change(put=put, drop=drop, language="en")
    await ingest_deps.collections.current.index.replace(book_id, 1, [change], commit)


async def stored_chunks(ingest_deps: IngestDeps) -> list:
    """Every stored chunk of the book."""
    return await ingest_deps.collections.current.index.read(lambda view: view.chunks(ChunkFilter(book_id="book")))


async def test_a_healthy_book_has_no_finding(tmp_path: Path) -> None:
    """Nothing is reported, and mending changes nothing, where index and ledger agree."""
    author = Author(tmp_path / "book", 1)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)

        assert await kinds(ingest_deps) == []
        assert await kinds(ingest_deps, mend=True) == []
        assert await content(ingest_deps) == before


async def test_a_book_without_lessons_yet_has_no_finding(tmp_path: Path) -> None:
    """Its first ingestion was interrupted before anything was indexed: there is nothing to count."""
    author = Author(tmp_path / "book", 1)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        await ingest_deps.ledger.save_book(
            replace(entry, manifest=replace(entry.manifest, book_id="begun"), total_chunks=0)
        )

        assert await kinds(ingest_deps) == []


async def test_lost_changed_and_unknown_chunks_are_found_and_mended(tmp_path: Path) -> None:
    """A chunk that vanished, one whose payload changed, one that nobody put there: afterwards all is as fresh."""
    author = Author(tmp_path / "book", 2)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)
        first, second, *_ = await stored_chunks(ingest_deps)
        changed_chunk = IndexedChunk(
            stored=replace(second, chunk=replace(second.chunk, page_title="Changed")), vectors=([1.0] * 32,)
        )
        stranger = IndexedChunk(
            stored=replace(first, chunk=chunk("A chunk nobody knows.", place("book"))), vectors=([1.0] * 32,)
        )
        await tamper(ingest_deps, put=(changed_chunk, stranger), drop=(first.chunk.id,))

        assert set(await kinds(ingest_deps)) == {"orphan chunks", "damaged lesson"}
        assert set(await kinds(ingest_deps, mend=True)) >= {"orphan chunks", "damaged lesson"}
        assert await kinds(ingest_deps) == []
        assert await content(ingest_deps) == before
        await agreement(ingest_deps)


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE term_counts SET chunks = chunks + 1",
        "UPDATE lexicons SET chunks = 1",
        "UPDATE lexicons SET epoch = epoch - 1",
        "UPDATE lessons SET terms = NULL",
    ],
)
async def test_wrong_term_counts_are_found_and_counted_again(tmp_path: Path, fault: str, server: bool) -> None:
    """Whatever of them was changed or lost; afterwards they are those of a fresh ingest."""
    author = Author(tmp_path / "book", 2)
    async with open_ingest_parts(tmp_path / "home", server=server) as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await counts_are_right(ingest_deps)
        async with ingest_deps.ledger._engine.begin() as connection:
            await connection.execute(text(fault))

        assert await kinds(ingest_deps) == ["term counts"]
        assert await kinds(ingest_deps, mend=True) == ["term counts"]
        assert await kinds(ingest_deps) == []
        assert await counts_are_right(ingest_deps) == before


@pytest.mark.parametrize("server", [False, True])
async def test_a_book_of_an_older_version_is_counted_by_its_first_search(tmp_path: Path, server: bool) -> None:
    """A migrated database has no counts. The search counts the chunks that the index holds and ranks by them; nothing
    is embedded for it, and later changes go on from there."""
    author = Author(tmp_path / "book", 5)
    query = SearchQuery(text="the robot and its sensors")
    async with open_ingest_parts(tmp_path / "home", server=server) as ingest_deps:
        await run(ingest_deps, author.folder)
        search = HybridSearch(ingest_deps.collections, ingest_deps.ledger)
        expected, before = await search(query), await counts_are_right(ingest_deps)
        async with ingest_deps.ledger._engine.begin() as connection:
            await connection.execute(text("DELETE FROM lexicons"))
            await connection.execute(text("UPDATE lessons SET terms = NULL"))
        ingest_deps.ledger._book_list.forget()
        ingest_deps.collections.current.embedder.sent.clear()

        findings = await search(query)
        assert findings.hits == expected.hits
        assert await counts_are_right(ingest_deps) == before
        assert ingest_deps.collections.current.embedder.sent == []  # no passage
        author.edit()
        await run(ingest_deps, author.folder)
        await counts_are_right(ingest_deps)


async def test_a_book_the_ledger_does_not_know_is_taken_out(tmp_path: Path) -> None:
    """Chunks of a book without a record cannot be read by anybody, and are swept."""
    author = Author(tmp_path / "book", 3)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        stranger = indexed(chunk("Some text of a ghost.", place("ghost")), [1.0] * 32)
        await tamper(ingest_deps, put=(stranger,))

        assert await kinds(ingest_deps) == ["unknown book"]
        await kinds(ingest_deps, mend=True)
        assert await kinds(ingest_deps) == []


async def test_an_old_copy_of_either_side_is_noticed(tmp_path: Path) -> None:
    """Restoring yesterday's index beside today's database, or the other way round, ends equal to a fresh ingest."""
    for restored in ("index", "lectern.db"):
        folder = tmp_path / restored
        author = Author(folder / "book", 4)
        home = folder / "home"
        async with open_ingest_parts(home) as ingest_deps:
            await run(ingest_deps, author.folder)
        shutil.copytree(home, folder / "backup")
        for _ in range(6):
            author.edit()
        async with open_ingest_parts(home) as ingest_deps:
            await run(ingest_deps, author.folder)
            today = await content(ingest_deps)
        if restored == "index":
            shutil.rmtree(home / "index")
            shutil.copytree(folder / "backup" / "index", home / "index")
        else:
            shutil.copy(folder / "backup" / "lectern.db", home / "lectern.db")

        async with open_ingest_parts(home) as ingest_deps:
            assert await kinds(ingest_deps)
            await kinds(ingest_deps, mend=True)
            await run(ingest_deps, author.folder)
            assert await content(ingest_deps) == today
            assert await kinds(ingest_deps) == []


async def test_vectors_that_no_chunk_uses_are_pruned(tmp_path: Path) -> None:
    """After an edit the old text's vector is dead weight; mending forgets it and keeps the rest."""
    author = Author(tmp_path / "book", 5)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        author._change_a_line()
        await run(ingest_deps, author.folder)

        assert "unused vectors" in await kinds(ingest_deps, mend=True)
        again = await run(ingest_deps, author.folder, "full")
        assert again.chunks_embedded == 0


async def test_a_lesson_that_cannot_be_read_again_is_not_taken_away(tmp_path: Path) -> None:
    """The book's folder is gone: the doctor reports the damage and leaves what there is."""
    author = Author(tmp_path / "book", 6)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        first, *_ = await stored_chunks(ingest_deps)
        changed_chunk = IndexedChunk(
            stored=replace(first, chunk=replace(first.chunk, page_title="Changed")), vectors=([1.0] * 32,)
        )
        await tamper(ingest_deps, put=(changed_chunk,))
        before = await content(ingest_deps)
        shutil.rmtree(author.folder)

        findings = [finding async for finding in examine(ingest_deps, mend=True)]

        assert [(finding.kind, finding.mended) for finding in findings] == [("damaged lesson", False)]
        assert await content(ingest_deps) == before


@pytest.mark.parametrize("mend", [False, True])
async def test_a_foreign_error_is_named_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, mend: bool
) -> None:
    """The text of another library's exception may hold addresses and paths: it is in the log, not in the finding."""
    author = Author(tmp_path / "book", 7)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        first, *_ = await stored_chunks(ingest_deps)
        await tamper(ingest_deps, drop=(first.chunk.id,))

        async def fail(*_: object, **__: object) -> None:
            raise OSError("no route to database.internal:5432 from /srv/secret")

        if mend:  # the examination works, reading the damaged lesson again does not
            monkeypatch.setattr("lectern.ingestion.doctor.reread_files", fail)
        else:
            monkeypatch.setattr(ingest_deps.ledger, "records", fail)
        findings = [finding async for finding in examine(ingest_deps, mend=mend)]

    assert [finding.mended for finding in findings] == [False]
    assert "OSError" in findings[0].detail
    assert "lectern" in findings[0].detail  # the advice
    assert "internal" not in findings[0].detail
    assert "/srv" not in findings[0].detail
    assert "database.internal:5432" in caplog.text
