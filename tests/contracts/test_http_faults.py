"""What a caller over HTTP hears of a server that cannot answer: a problem that says when to come back, and a readiness
that is really asked for (RELIABILITY S4)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from lectern.api import errors
from lectern.api.app import create_app
from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.domain.errors import BadInput, IndexDamaged, IndexMismatch, LecternError, ProviderError, RateLimited
from lectern.index.edge import EdgeIndex


def calling(app: FastAPI) -> httpx.AsyncClient:
    """A client of this application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Lectern, httpx.AsyncClient]]:
    """A Lectern with one small book, and a client of it."""
    book = folder / "tiny"
    book.mkdir()
    (book / "01-nodes.md").write_text("# Nodes\n\nA node is a process that computes.\n", encoding="utf-8")
    async with open_lectern() as lectern:
        await lectern.ingest(book)
        async with calling(create_app(lectern)) as client:
            yield lectern, client


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RateLimited("qdrant", 2.1), "3"),
        (RateLimited("openai", 60), "60"),
        (ProviderError("qdrant", "could not be reached"), "5"),
        (IndexDamaged("the index cannot be read"), "5"),
        (IndexMismatch("of another model"), None),
        (BadInput("wrong", field="text"), None),
    ],
)
async def test_only_what_waiting_may_mend_says_how_long(error: LecternError, says: str | None) -> None:
    """A 503 carries Retry-After in whole seconds, the provider's own where it named any; no other answer does."""
    app = FastAPI()
    errors.install(app)

    @app.get("/")
    async def fail() -> None:
        raise error

    async with calling(app) as client:
        response = await client.get("/")

    assert response.headers.get("retry-after") == says
    assert (response.status_code == 503) == (says is not None)
    assert response.headers["content-type"] == "application/problem+json"


async def test_a_server_is_ready_with_and_without_books(tmp_path: Path) -> None:
    """What can be asked, was asked, and answered."""
    async with open_lectern() as lectern, calling(create_app(lectern)) as client:
        assert (await client.get("/health/ready")).status_code == 200
    async with served(tmp_path) as (_, client):
        assert (await client.get("/health/ready")).status_code == 200


async def _not_ready(client: httpx.AsyncClient) -> str:
    response = await client.get("/health/ready")
    assert (response.status_code, response.headers["content-type"]) == (503, "application/problem+json")
    assert response.headers["retry-after"]
    assert (await client.get("/health/live")).status_code == 200
    return str(response.json()["detail"])


async def test_a_database_that_is_gone_makes_the_server_unready(tmp_path: Path) -> None:
    """Although the list of books is still remembered."""
    from sqlalchemy import text

    async with served(tmp_path) as (lectern, client):
        await lectern.books()
        async with lectern.app.ingest_deps.ledger._engine.begin() as connection:  # type: ignore[attr-defined]  # behind the port on purpose
            await connection.execute(text("ALTER TABLE lessons RENAME TO lost"))

        assert "does not answer" in await _not_ready(client)


@pytest.mark.parametrize("error", [ProviderError("qdrant", "is down"), IndexMismatch("is of another shape")])
async def test_an_index_that_does_not_answer_makes_the_server_unready(
    tmp_path: Path, error: LecternError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is really read, and whatever it says instead of an answer is a 503."""
    async with served(tmp_path) as (_, client):

        async def read(self: EdgeIndex, work: object) -> None:
            raise error

        monkeypatch.setattr(EdgeIndex, "read", read)
        assert str(error) in await _not_ready(client)


async def test_an_index_that_lost_a_book_makes_the_server_unready(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty collection is not taken for a healthy one. The log names the book, the answer does not."""
    from lectern.domain.chunks import Change
    from lectern.domain.scope import ChunkFilter

    async with served(tmp_path) as (lectern, client):
        index, where = lectern.app.ingest_deps.collections.current.index, ChunkFilter(book_id="tiny")
        stored_chunks = await index.read(lambda view: view.chunks(where))

        async def commit() -> None:
            """The ledger is not told."""

        drop = tuple(stored.chunk.id for stored in stored_chunks)
        await index.replace("tiny", 1, [Change(put=(), drop=drop, language="en")], commit)

        detail = await _not_ready(client)
        assert "doctor" in detail
        assert "tiny" not in detail
        assert "'tiny'" in caplog.text


async def test_a_damaged_book_is_not_named_to_whoever_asks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Readiness needs no key, so only the log says which book it is about."""
    async with served(tmp_path) as (lectern, client):
        collections = lectern.app.ingest_deps.collections
        collections._damaged.add("tiny")  # type: ignore[attr-defined]  # behind the port on purpose

        assert "tiny" not in await _not_ready(client)
    assert "'tiny'" in caplog.text


async def test_one_book_that_cannot_be_served_takes_no_process_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The process is ready for the others, and says how many it cannot serve; the book itself says why. The log has
    one line when it begins and one when it is over, however often readiness is asked for."""
    async with served(tmp_path) as (lectern, client):
        other = tmp_path / "other"
        shutil.copytree(tmp_path / "tiny", other)
        await lectern.ingest(other, book="other")
        damaged = lectern.app.ingest_deps.collections._damaged  # type: ignore[attr-defined]  # behind the port on purpose
        damaged.add("tiny")
        for _ in range(3):
            response = await client.get("/health/ready")
            assert (response.status_code, response.json()) == (200, {"status": "ok", "books": 2, "books_not_ready": 1})
        refused = await client.get("/books/tiny/ready")
        assert (refused.status_code, "doctor" in refused.json()["detail"]) == (503, True)
        assert refused.headers["retry-after"]
        assert (await client.get("/books/other/ready")).json() == {"status": "ok"}
        assert (await client.get("/books/nobody/ready")).status_code == 404
        assert caplog.text.count("not ready: 'tiny'") == 1
        damaged.clear()
        assert (await client.get("/health/ready")).json()["books_not_ready"] == 0
    assert caplog.text.count("ready again: 'tiny'") == 1


async def test_findings_name_no_folder_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the folder a book was ingested from, nor the one that a link leads to, nor the home is shown."""
    async with served(tmp_path) as (lectern, client):
        moved_folder = (tmp_path / "tiny").rename(tmp_path / "moved")
        (tmp_path / "tiny").symlink_to(moved_folder)

        async def fail(*_: object) -> None:
            raise IndexDamaged(
                f"{tmp_path / 'tiny'}, {moved_folder / '01-nodes.md'} and {lectern.app.home.path} are damaged"
            )

        monkeypatch.setattr(lectern.app.ingest_deps.ledger, "records", fail)
        findings = (await client.post("/doctor")).json()

    assert [finding["detail"] for finding in findings] == ["PATH, PATH/01-nodes.md and LECTERN_HOME are damaged"]
