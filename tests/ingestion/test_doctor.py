"""The doctor finds and mends every disagreement between index and ledger."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from lectern.domain.chunks import Change, IndexedChunk
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.doctor import examine
from lectern.ingestion.ingest import Workshop
from tests.books import Author
from tests.making import chunk, indexed, place
from tests.workshop import agreement, content, run, workshop


async def kinds(shop: Workshop, *, mend: bool = False) -> list[str]:
    """What the doctor says."""
    return [finding.kind async for finding in examine(shop, mend=mend)]


async def tamper(shop: Workshop, *, put: tuple[IndexedChunk, ...] = (), drop: tuple[str, ...] = ()) -> None:
    """Change the index behind the ledger's back."""

    async def commit() -> None:
        """The ledger is not told."""

    book_id = put[0].stored.chunk.book_id if put else "book"
    change = Change(put=put, drop=drop, language="en")
    await shop.shelf.current.index.replace(book_id, 1, [change], commit)


async def held(shop: Workshop) -> list:
    """Every stored chunk of the book."""
    return await shop.shelf.current.index.read(lambda view: view.chunks(ChunkFilter(book_id="book")))


async def test_a_healthy_book_has_no_finding(tmp_path: Path) -> None:
    """Nothing is reported, and mending changes nothing, where index and ledger agree."""
    author = Author(tmp_path / "book", 1)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        before = await content(shop)

        assert await kinds(shop) == []
        assert await kinds(shop, mend=True) == []
        assert await content(shop) == before


async def test_lost_changed_and_unknown_chunks_are_found_and_mended(tmp_path: Path) -> None:
    """A chunk that vanished, one whose payload changed, one that nobody put there: afterwards all is as fresh."""
    author = Author(tmp_path / "book", 2)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        before = await content(shop)
        first, second, *_ = await held(shop)
        changed = IndexedChunk(
            stored=replace(second, chunk=replace(second.chunk, page_title="Changed")), vectors=([1.0] * 32,)
        )
        stranger = IndexedChunk(
            stored=replace(first, chunk=chunk("A chunk nobody knows.", place("book"))), vectors=([1.0] * 32,)
        )
        await tamper(shop, put=(changed, stranger), drop=(first.chunk.id,))

        assert set(await kinds(shop)) == {"orphan chunks", "damaged lesson"}
        assert set(await kinds(shop, mend=True)) >= {"orphan chunks", "damaged lesson"}
        assert await kinds(shop) == []
        assert await content(shop) == before
        await agreement(shop)


async def test_a_book_the_ledger_does_not_know_is_taken_out(tmp_path: Path) -> None:
    """Chunks of a book without a record cannot be read by anybody, and are swept."""
    author = Author(tmp_path / "book", 3)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        stranger = indexed(chunk("Some text of a ghost.", place("ghost")), [1.0] * 32)
        await tamper(shop, put=(stranger,))

        assert await kinds(shop) == ["unknown book"]
        await kinds(shop, mend=True)
        assert await kinds(shop) == []


async def test_an_old_copy_of_either_side_is_noticed(tmp_path: Path) -> None:
    """Restoring yesterday's index beside today's database, or the other way round, ends equal to a fresh ingest."""
    for restored in ("index", "lectern.db"):
        folder = tmp_path / restored
        author = Author(folder / "book", 4)
        home = folder / "home"
        async with workshop(home) as shop:
            await run(shop, author.folder)
        shutil.copytree(home, folder / "backup")
        for _ in range(6):
            author.edit()
        async with workshop(home) as shop:
            await run(shop, author.folder)
            today = await content(shop)
        if restored == "index":
            shutil.rmtree(home / "index")
            shutil.copytree(folder / "backup" / "index", home / "index")
        else:
            shutil.copy(folder / "backup" / "lectern.db", home / "lectern.db")

        async with workshop(home) as shop:
            assert await kinds(shop)
            await kinds(shop, mend=True)
            await run(shop, author.folder)
            assert await content(shop) == today
            assert await kinds(shop) == []


async def test_vectors_that_no_chunk_uses_are_pruned(tmp_path: Path) -> None:
    """After an edit the old text's vector is dead weight; mending forgets it and keeps the rest."""
    author = Author(tmp_path / "book", 5)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        author._change_a_line()
        await run(shop, author.folder)

        assert "unused vectors" in await kinds(shop, mend=True)
        again = await run(shop, author.folder, "full")
        assert again.chunks_embedded == 0


async def test_a_lesson_that_cannot_be_read_again_is_not_taken_away(tmp_path: Path) -> None:
    """The book's folder is gone: the doctor reports the damage and leaves what there is."""
    author = Author(tmp_path / "book", 6)
    async with workshop(tmp_path / "home") as shop:
        await run(shop, author.folder)
        first, *_ = await held(shop)
        changed = IndexedChunk(
            stored=replace(first, chunk=replace(first.chunk, page_title="Changed")), vectors=([1.0] * 32,)
        )
        await tamper(shop, put=(changed,))
        before = await content(shop)
        shutil.rmtree(author.folder)

        findings = [finding async for finding in examine(shop, mend=True)]

        assert [(finding.kind, finding.mended) for finding in findings] == [("damaged lesson", False)]
        assert await content(shop) == before
