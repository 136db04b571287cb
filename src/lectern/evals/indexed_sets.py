"""Opens an indexed question set: a Lectern in which the set's books are indexed by the real pipeline. It has a home, an
index and a database of its own, so no other book is touched. The index is stored under the hash of the content, so a
second run can search at once. If the code that makes an index has changed, everything is read and indexed again, but
only texts that changed are embedded."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from lectern.app.lectern import Lectern
from lectern.app.open import open_application
from lectern.app.settings import Settings
from lectern.domain.books import Problem
from lectern.domain.jobs import Finished, LessonsIndexed
from lectern.evals.datasets import EvalBook, QuestionSet, digest
from lectern.evals.recipes import INDEXING_PACKAGES, code_digest, package_versions
from lectern.ingestion.ingest import IngestRequest
from lectern.reading.chunking import ReadingRules
from lectern.reading.names import slugged

STAMP_FILE = "indexed.json"  # written last
HASH_DIGITS = 16  # of the content's hash, in the name of a folder

Advance = Callable[[str, int, int], None]  # progress: the step, how much is done, the total


class Stamp(TypedDict):
    """What a stored index was made with, and the documents that the reader rejected."""

    made_with: dict[str, str]
    failed: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedSet:
    """A Lectern that holds the books of a question set."""

    lectern: Lectern
    chunks: int
    failed: tuple[str, ...]  # documents that the reader rejected, each with its reason


@asynccontextmanager
async def open_indexed_set(
    questions: QuestionSet,
    settings: Settings,
    cache: Path,
    *,
    fresh: bool,
    advance: Advance,
    rules: ReadingRules | None = None,
) -> AsyncIterator[IndexedSet]:
    """Index the books of a set, or open their stored index; with `fresh` no stored index is used."""
    folder = cache / f"{slugged(questions.name)}-{digest(questions.books)[:HASH_DIGITS]}"
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    # The embedded index and SQLite: rankings are the same, and no server's index or database gets these documents.
    own = {"home": folder / "home", "qdrant_url": None, "database_url": None, "default_book": None}
    isolated = settings.model_copy(update=own)
    async with open_application(isolated, rules=rules) as app:
        lectern = Lectern(app)
        made_with = _made_with(lectern)
        stamp = _read_stamp(folder / STAMP_FILE)
        if stamp is None or stamp["made_with"] != made_with:
            (folder / STAMP_FILE).unlink(missing_ok=True)
            failed = [line for book in questions.books for line in await _index(lectern, book, folder, advance)]
            stamp = Stamp(made_with=made_with, failed=failed)
            (folder / STAMP_FILE).write_text(json.dumps(stamp), encoding="utf-8")
        chunks = sum(entry.total_chunks for entry in await lectern.books())
        yield IndexedSet(lectern=lectern, chunks=chunks, failed=tuple(stamp["failed"]))


def _made_with(lectern: Lectern) -> dict[str, str]:
    return {
        "embedder": lectern.app.ingest_deps.collections.current.embedder.fingerprint,
        "rules": repr(lectern.app.ingest_deps.rules),
        "code": code_digest(INDEXING_PACKAGES),
        **package_versions(),
    }


def _read_stamp(file: Path) -> Stamp | None:
    try:
        stamp: Stamp = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # never finished
        return None
    return stamp


async def _index(lectern: Lectern, book: EvalBook, folder: Path, advance: Advance) -> list[str]:
    """Write a book to files and ingest it; returns the documents that could not be read."""
    source = folder / "books" / book.book_id
    for path, content in book.files.items():
        file = source / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    problems: tuple[Problem, ...] = ()
    request = IngestRequest(folder=source, book_id=book.book_id, mode="full")
    async with aclosing(lectern.app.jobs.ingesting(request)) as events:  # type: ignore[type-var]  # an async generator
        async for event in events:
            if isinstance(event, LessonsIndexed):
                advance(f"Indexing {book.book_id}", event.done, event.total)
            elif isinstance(event, Finished):
                problems = event.job.errors
    return [f"{book.documents.get(problem.file, problem.file)}: {problem.message}" for problem in problems]
