"""Ingestion on the real parts: what is embedded, what readers see meanwhile, what a switch of embedders does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lectern.domain.chunks import Chunk
from lectern.domain.errors import Busy, IndexMismatch, ProviderError, WrongBook
from lectern.domain.scope import ChunkFilter, SearchQuery
from lectern.ingestion.ingest import IngestDeps
from lectern.ports.index import Purpose
from lectern.retrieval.search import HybridSearch
from tests.books import Author
from tests.doubles import WordEmbedder
from tests.ingest_parts import agreement, content, open_ingest_parts, run


class OtherEmbedder(WordEmbedder):
    """The same vectors under another name."""

    fingerprint = "test/other/32"


class FailingEmbedder(WordEmbedder):
    """A provider that goes down."""

    async def embed(self, texts: list[str], *, purpose: Purpose) -> list[list[float]]:
        """Never works."""
        raise ProviderError("test", "is down")


async def test_no_text_is_embedded_twice(tmp_path: Path) -> None:
    """Unchanged, renamed, moved and fully re-ingested files send nothing to the embedder; recreate sends everything."""
    author = Author(tmp_path / "book", 1)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        first = await run(ingest_deps, author.folder)
        author._rename()
        author._move()
        renamed = await run(ingest_deps, author.folder)
        full = await run(ingest_deps, author.folder, "full")
        again = await run(ingest_deps, author.folder, "recreate")

    assert first.chunks_embedded > 0
    assert (renamed.chunks_embedded, full.chunks_embedded) == (0, 0)
    assert again.chunks_embedded > 0


async def test_an_edit_of_an_included_file_is_indexed(tmp_path: Path) -> None:
    """The index then equals a fresh ingest, and the report counts what was included and left out."""
    folder = tmp_path / "book"
    files = {
        "book.toml": "[book]",
        "src/SUMMARY.md": "- [A](a.md)\n",
        "src/a.md": "# A\n\nLook:\n\n```rust\n{{#include ../x.rs}}\n```\n\n{{#include none.md}}\n",
        "src/unlisted.md": "# Not published\n\nWords that nobody sees.\n",
        "x.rs": "fn first() {}\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        first = await run(ingest_deps, folder)
        unchanged = await run(ingest_deps, folder)
        (folder / "x.rs").write_text("fn second() {}\n", encoding="utf-8")
        edited = await run(ingest_deps, folder)
        after = await content(ingest_deps)
        await agreement(ingest_deps)
    async with open_ingest_parts(tmp_path / "fresh") as ingest_deps:
        await run(ingest_deps, folder)
        fresh = await content(ingest_deps)

    assert (first.files_processed, unchanged.files_processed, edited.files_processed) == (1, 0, 1)
    assert (first.files_discovered, first.files_left_out) == (1, 1)
    assert (first.includes_read, first.includes_failed) == (1, 1)
    assert any("src/unlisted.md" in problem.message for problem in first.warnings)
    assert after == fresh
    assert any("fn second() {}" in text for text in after)


async def listing(ingest_deps: IngestDeps) -> list[Chunk]:
    """Every chunk, as one response."""
    stored_chunks = await ingest_deps.collections.current.index.read(
        lambda view: view.chunks(ChunkFilter(book_id="book"))
    )
    assert len(stored_chunks) % 3 == 0  # three lessons of one size
    return [stored.chunk for stored in stored_chunks]


async def searching(ingest_deps: IngestDeps) -> list[Chunk]:
    """A search for every lesson with both neighbours of each hit, as one response."""
    query = SearchQuery(text="version of the word", limit=18, expand=1)
    findings = await HybridSearch(ingest_deps.collections, ingest_deps.ledger)(query)
    for hit in findings.hits:
        before, after = [chunk.id for chunk in hit.before], [chunk.id for chunk in hit.after]
        assert before == ([hit.chunk.prev_chunk_id] if hit.chunk.prev_chunk_id else [])
        assert after == ([hit.chunk.next_chunk_id] if hit.chunk.next_chunk_id else [])
    return [chunk for hit in findings.hits for chunk in (*hit.before, hit.chunk, *hit.after)]


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("look", [listing, searching])
async def test_readers_never_see_a_mixed_or_missing_lesson(
    tmp_path: Path, reads: int, look: Callable[[IngestDeps], Awaitable[list[Chunk]]], server: bool
) -> None:
    """While lessons are replaced again and again, every response shows each lesson whole and of one version: listed,
    or searched with neighbours, embedded or on a server."""
    folder = tmp_path / "book"
    folder.mkdir()
    enough = asyncio.Event()
    versions = refused = 0

    def write(version: int) -> None:
        for name in ("a", "b", "c"):
            parts = [f"## Part {n}\n\nVersion {version}, {name}, {n}. " + "word " * 150 for n in range(6)]
            (folder / f"{name}.md").write_text("\n\n".join([f"# Lesson {name}", *parts]), encoding="utf-8")

    async with open_ingest_parts(tmp_path / "home", server=server) as ingest_deps:
        write(0)
        await run(ingest_deps, folder)

        async def keep_writing() -> None:
            nonlocal versions
            while not enough.is_set():
                versions += 1
                write(versions)
                await run(ingest_deps, folder)

        writer = asyncio.create_task(keep_writing())
        share = 1 if not server else 15 if look is searching else 5  # the client's local mode takes long
        for _ in range(reads // share):
            try:
                view_before = await look(ingest_deps)
            except Busy:  # said so, rather than shown two versions
                refused += 1
                continue
            lessons: dict[str, set[str]] = {}
            for chunk in view_before:
                lessons.setdefault(chunk.source_file, set()).add(chunk.source_file_hash)
            assert {name: len(hashes) for name, hashes in lessons.items()} == {"a.md": 1, "b.md": 1, "c.md": 1}
            await asyncio.sleep(0.001)  # let the writer have its turn
        enough.set()
        await writer

    assert versions >= 3
    assert refused <= reads / 100


@pytest.fixture
def reads(request: pytest.FixtureRequest) -> int:
    """How many reads; `make crash` asks for more."""
    return int(request.config.getoption("--reads"))


async def test_a_provider_that_fails_leaves_the_old_version_serving(tmp_path: Path) -> None:
    """The job is failed, says why, and nothing that was there is touched."""
    author = Author(tmp_path / "book", 2)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)
    author._change_a_line()
    author._add()
    failing = FailingEmbedder()
    async with open_ingest_parts(tmp_path / "home", failing) as ingest_deps:
        with pytest.raises(ProviderError, match="is down"):
            await run(ingest_deps, author.folder)

        assert await content(ingest_deps) == before
        await agreement(ingest_deps)


async def test_switching_embedders_rebuilds_beside(tmp_path: Path) -> None:
    """The new collection is built while the old one serves; then readers go over and the old one is emptied."""
    author = Author(tmp_path / "book", 3)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        before = await content(ingest_deps)
        old = ingest_deps.collections.current.index.collection

    async with open_ingest_parts(tmp_path / "home", OtherEmbedder()) as ingest_deps:
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        assert entry.collection_name == old
        with pytest.raises(IndexMismatch, match=r"test/words/32.*test/other/32.*lectern ingest"):
            await ingest_deps.collections.serving(entry)

        await run(ingest_deps, author.folder)

        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        assert entry.fingerprint == "test/other/32"
        assert len(await content(ingest_deps)) == len(before)
        assert await ingest_deps.ledger.records("book", old) == {}
        old_index = await ingest_deps.collections.index(old)
        assert await old_index.read(lambda view: view.count(ChunkFilter(book_id="book"))) == 0


async def test_a_switch_that_fails_leaves_readers_where_they_were(tmp_path: Path) -> None:
    """A rebuild that cannot be finished changes nothing for readers."""
    author = Author(tmp_path / "book", 4)

    class OtherFailing(FailingEmbedder):
        fingerprint = "test/other/32"

    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        old = ingest_deps.collections.current.index.collection
        before = await content(ingest_deps)
    async with open_ingest_parts(tmp_path / "home", OtherFailing()) as ingest_deps:
        with pytest.raises(ProviderError):
            await run(ingest_deps, author.folder)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        entry = await ingest_deps.ledger.book("book")
        assert entry is not None
        assert entry.collection_name == old
        assert await content(ingest_deps) == before


async def test_two_books_do_not_touch_each_other(tmp_path: Path) -> None:
    """Editing and removing lessons of one book leaves the other as it was."""
    from lectern.ingestion.ingest import IngestRequest, ingest

    first_author, second_author = Author(tmp_path / "one", 5), Author(tmp_path / "two", 5)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, first_author.folder)
        async for _ in ingest(IngestRequest(folder=second_author.folder, book_id="other"), ingest_deps):
            pass
        before = await content(ingest_deps, "other")
        first_author._delete()
        first_author._change_a_line()
        await run(ingest_deps, first_author.folder)

        assert await content(ingest_deps, "other") == before


async def test_another_folder_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """Nothing is touched until somebody says --replace."""
    first_author = Author(tmp_path / "one", 6)
    second_folder = tmp_path / "other"
    second_folder.mkdir()
    (second_folder / "zzz.md").write_text("# Another book altogether\n\nWith other words in it.\n", encoding="utf-8")
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, first_author.folder)
        before = await content(ingest_deps)
        with pytest.raises(WrongBook):
            await run(ingest_deps, second_folder, replace=False)

        assert await content(ingest_deps) == before


async def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit between survey and reading is taken up in the same run; a file that never rests keeps its old version."""
    from lectern.ingestion import worker as flow

    folder = tmp_path / "book"
    folder.mkdir()
    lesson = folder / "a.md"
    lesson.write_text("# A\n\nThe first version of this lesson.\n", encoding="utf-8")
    (folder / "b.md").write_text("# B\n\nA lesson that nobody touches.\n", encoding="utf-8")
    edits = iter(range(100))
    real, times = flow.read_lesson, 1

    def edited(book: Path, source, manifest, rules):
        nonlocal times
        if source.source_file == "a.md" and times > 0:
            times -= 1
            lesson.write_text(f"# A\n\nEdited while it was read, {next(edits)}.\n", encoding="utf-8")
        return real(book, source, manifest, rules)

    monkeypatch.setattr(flow, "read_lesson", edited)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        once = await run(ingest_deps, folder)
        assert (once.files_processed, once.files_failed) == (2, 0)
        assert "while it was read, 0" in "".join(await content(ingest_deps))

        lesson.write_text("# A\n\nAn edit by an author who never rests.\n", encoding="utf-8")
        times = 100
        restless = await run(ingest_deps, folder)
        assert (restless.files_failed, restless.files_skipped) == (1, 1)
        assert "while it was read, 0" in "".join(await content(ingest_deps))
        await agreement(ingest_deps)


async def test_a_cancelled_run_leaves_nothing_that_comes_back(tmp_path: Path) -> None:
    """Cancelled at any instant inside one process, the next run and the next start end equal to a fresh ingest."""
    from lectern.domain import failpoints

    author = Author(tmp_path / "book", 8)
    names = ["ingest.embedded", "ledger.intended", "index.put", "index.changed", "index.flushed", "ledger.settled"]
    try:
        async with open_ingest_parts(tmp_path / "home") as ingest_deps:
            await run(ingest_deps, author.folder)
            for name in names:
                author._change_a_line()
                author._add()
                task = asyncio.ensure_future(run(ingest_deps, author.folder))

                def cancel(reached: str, task: asyncio.Future = task, name: str = name) -> None:
                    if reached == name:
                        task.cancel()

                failpoints.listen(cancel)
                with pytest.raises(asyncio.CancelledError):
                    await task
                failpoints.listen(None)
                await agreement(ingest_deps)
                author._change_a_line()
                await run(ingest_deps, author.folder)
                await agreement(ingest_deps)
            actual = await content(ingest_deps)
    finally:
        failpoints.listen(None)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        assert await content(ingest_deps) == actual
    async with open_ingest_parts(tmp_path / "fresh") as ingest_deps:
        await run(ingest_deps, author.folder)
        assert await content(ingest_deps) == actual


async def test_one_job_per_book_at_a_time(tmp_path: Path) -> None:
    """A second ingestion of a book that is being ingested is refused, and says so; another book is not in the way."""
    from lectern.ingestion.ingest import IngestRequest, ingest

    author = Author(tmp_path / "book", 9)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        first = ingest(IngestRequest(folder=author.folder, book_id="book"), ingest_deps)
        await anext(first)
        with pytest.raises(Busy, match="book"):
            await run(ingest_deps, author.folder)
        async for _ in ingest(IngestRequest(folder=author.folder, book_id="other"), ingest_deps):
            pass
        async for _ in first:
            pass
        assert await content(ingest_deps)


async def test_switching_embedders_does_not_lift_the_guard(tmp_path: Path) -> None:
    """Another folder under a known name is refused whatever the embedder."""
    first_author = Author(tmp_path / "one", 6)
    second_folder = tmp_path / "other"
    second_folder.mkdir()
    (second_folder / "zzz.md").write_text("# Another book altogether\n\nWith other words in it.\n", encoding="utf-8")
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, first_author.folder)
    async with open_ingest_parts(tmp_path / "home", OtherEmbedder()) as ingest_deps:
        with pytest.raises(WrongBook):
            await run(ingest_deps, second_folder, replace=False)


async def test_a_dry_run_says_what_would_happen_and_does_nothing(tmp_path: Path) -> None:
    """Its forecast of chunks is what the real run then does, and until then nothing has changed."""
    from lectern.domain.jobs import Planned
    from lectern.ingestion.ingest import IngestRequest, ingest

    author = Author(tmp_path / "book", 11)
    async with open_ingest_parts(tmp_path / "home") as ingest_deps:
        await run(ingest_deps, author.folder)
        for _ in range(6):
            author.edit()
        before = await content(ingest_deps)
        request = IngestRequest(folder=author.folder, book_id="book", dry_run=True, replace=True)
        *working, planned = [event async for event in ingest(request, ingest_deps)]
        assert {event.kind for event in working} == {"working"}
        assert isinstance(planned, Planned)
        assert await content(ingest_deps) == before
        job = await run(ingest_deps, author.folder)

    assert planned.forecast is not None
    forecast = (planned.forecast.add, planned.forecast.keep, planned.forecast.remove)
    assert forecast == (job.chunks_created, job.chunks_kept, job.chunks_deleted)


async def test_a_language_the_embedder_does_not_read_is_a_warning(tmp_path: Path) -> None:
    """The report says so, names the model, and the book is indexed all the same; its own language is no warning."""
    author = Author(tmp_path / "book", 12)
    author._write(Path("lectern.toml"), 'language = "ur"\n')
    english = WordEmbedder()
    english.languages = frozenset({"en"})
    async with open_ingest_parts(tmp_path / "home", english) as ingest_deps:
        job = await run(ingest_deps, author.folder)
        author._write(Path("lectern.toml"), 'language = "en-GB"\n')
        again = await run(ingest_deps, author.folder)

    assert [problem.file for problem in job.warnings if "does not read" in problem.message] == ["lectern.toml"]
    assert job.chunks_created > 0
    assert not [problem for problem in again.warnings if "language" in problem.message]
