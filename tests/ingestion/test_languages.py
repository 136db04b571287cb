"""A book in any language is searched in its language, declared or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lectern.domain.books import Problem
from lectern.domain.scope import Scope, SearchQuery
from lectern.ingestion.ingest import IngestDeps
from lectern.retrieval.search import HybridSearch
from tests.ingest_parts import open_ingest_parts, run

BOOKS = Path(__file__).parents[1] / "languages"


def copy(name: str, folder: Path, manifest: str = "") -> Path:
    """A book of this folder, with a manifest."""
    folder.mkdir()
    for file in (BOOKS / name).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    if manifest:
        (folder / "lectern.toml").write_text(manifest, encoding="utf-8")
    return folder


def about_language(problems: tuple[Problem, ...]) -> list[str]:
    """The warnings about the language."""
    return [problem.message for problem in problems if "the text" in problem.message or "text is in" in problem.message]


async def language_of(deps: IngestDeps) -> str:
    """The language that is recorded with the book."""
    entry = await deps.ledger.book("book")
    assert entry is not None
    return entry.manifest.language


async def first_hits(deps: IngestDeps, name: str) -> float:
    """The share of the questions whose lesson is the first that is found by its words."""
    search = HybridSearch(deps.collections, deps.ledger)
    questions = [json.loads(line) for line in (BOOKS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
    right = 0
    for question in questions:
        query = SearchQuery(text=question["text"], scope=Scope(book_id="book"), mode="lexical", limit=1)
        hits = (await search(query)).hits
        right += bool(hits) and hits[0].chunk.source_file == question["file"]
    return right / len(questions)


@pytest.mark.parametrize("server", [False, True], ids=["edge", "server"])
@pytest.mark.parametrize(("name", "language", "share"), [("german", "de", 0.8), ("japanese", "ja", 0.95)])
async def test_a_book_is_found_by_the_words_of_its_language(
    tmp_path: Path, name: str, language: str, share: float, *, server: bool
) -> None:
    """Nothing is declared. As English, 15 of the 24 German questions and no Japanese one found their lesson."""
    async with open_ingest_parts(tmp_path / "home", server=server) as deps:
        job = await run(deps, BOOKS / name)

        assert job.language == await language_of(deps) == language
        assert [language in message for message in about_language(job.warnings)] == [True]
        assert await first_hits(deps, name) >= share


async def test_the_manifest_wins(tmp_path: Path) -> None:
    """The text is German, which the report says, and the book is searched as declared."""
    folder = copy("german", tmp_path / "book", 'language = "en-GB"\n')
    async with open_ingest_parts(tmp_path / "home") as deps:
        job = await run(deps, folder)

        assert job.language == await language_of(deps) == "en-GB"
        [message] = about_language(job.warnings)
        assert "'en-GB'" in message
        assert "German (de)" in message
        assert await first_hits(deps, "german") < 0.7


async def test_a_declared_language_that_cannot_be_recognised_is_no_warning(tmp_path: Path) -> None:
    """Slovak looks like Czech, and whoever declared it knows better."""
    async with open_ingest_parts(tmp_path / "home") as deps:
        job = await run(deps, copy("german", tmp_path / "book", 'language = "lb"\n'))

    assert job.language == "lb"
    assert not about_language(job.warnings)


async def test_another_language_gives_all_lessons_other_terms(tmp_path: Path) -> None:
    """Without one edit in a lesson, the whole book is indexed again and no text is embedded; the second time nothing
    is left to do."""
    folder = copy("german", tmp_path / "book", 'language = "en"\n')
    async with open_ingest_parts(tmp_path / "home") as deps:
        await run(deps, folder)
        before = await first_hits(deps, "german")
        (folder / "lectern.toml").unlink()
        noticed = await run(deps, folder)
        again = await run(deps, folder)

        assert (noticed.files_processed, noticed.chunks_embedded) == (12, 0)
        assert await first_hits(deps, "german") > before
        assert (again.files_processed, again.files_skipped) == (0, 12)


async def test_an_unknown_language_is_neither_english_nor_guessed(tmp_path: Path) -> None:
    """The text is in no language that is recognised: it is recorded so, and found by its words as they are."""
    folder = tmp_path / "book"
    folder.mkdir()
    (folder / "a.md").write_text("# ᎣᏏᏲ\n\nᎣᏏᏲ ᏗᏂᏲᏟ ᎠᎴ ᎠᏂᏴᏫ ᎤᎾᏓᏅᏖᎵ.\n", encoding="utf-8")
    async with open_ingest_parts(tmp_path / "home") as deps:
        job = await run(deps, folder)

        assert job.language == await language_of(deps) == "und"
        assert "not recognised" in about_language(job.warnings)[0]
