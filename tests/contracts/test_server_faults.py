"""A Qdrant server that is down, slow, cut off or forgetful (RELIABILITY S4, S5, S6): an error in bounded time, and
nothing lost, doubled or stale once it is back."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException

from lectern.domain.chunks import Change
from lectern.domain.errors import IndexDamaged, ProviderError, ProviderTimeout
from lectern.domain.scope import ChunkFilter
from lectern.index import nodes
from lectern.index.nodes import connect
from lectern.index.server import MAX_FAILURES, ServerIndex, open_server_index
from lectern.ingestion.doctor import examine
from lectern.ingestion.ingest import IngestDeps
from lectern.ports.index import IndexView
from tests.books import Author
from tests.contracts.test_index import Book
from tests.ingest_parts import agreement, content, open_ingest_parts, run
from tests.making import DIMENSIONS, chunk, indexed, unit_vector
from tests.ports import closed_port

BOOK = ChunkFilter(book_id="book")
SECONDS = 0.3  # that a server gets
BOUND = 60.0  # seconds in which any of this has to end; a hang would take for ever
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of this machine between, and a server gets little time for a write, too."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(nodes, "WRITE_SECONDS", SECONDS)


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    linger = struct.pack("ii", 1, 0)  # closing sends a reset
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _half_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
    await writer.drain()
    await asyncio.Event().wait()


async def _cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
    writer.close()


async def _answer_otherwise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<h1>Hello</h1")
    await writer.drain()
    writer.close()


async def _failing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


FAULTS: dict[str, tuple[Answer | None, type[ProviderError]]] = {
    "down": (None, ProviderError),
    "silent": (_silent, ProviderTimeout),
    "reset": (_reset, ProviderError),
    "half open": (_half_open, ProviderTimeout),
    "cut": (_cut, ProviderError),
    "another server": (_answer_otherwise, ProviderError),
    "failing": (_failing, ProviderError),
}


@asynccontextmanager
async def faulty(answer: Answer | None) -> AsyncIterator[str]:
    """The address of a server that does this to everybody; without an answer, of a port where nobody listens."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await answer(reader, writer)
        except (asyncio.CancelledError, ConnectionError):
            """The test is over, or the client has gone."""
        finally:
            writer.close()

    if answer is None:
        with closed_port() as port:
            yield f"http://127.0.0.1:{port}"
        return
    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _count(view: IndexView) -> int:
    return await view.count(BOOK)


async def _find(view: IndexView) -> object:
    return await view.find(unit_vector("x"), "robot", language="en", where=BOOK, limit=5)


async def _books(view: IndexView) -> object:
    return await view.book_ids()


async def _look_up(view: IndexView) -> object:
    return await view.by_ids("book", [chunk("Some text here.").id])


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_server_that_does_not_serve_is_an_error_in_bounded_time(fault: str) -> None:
    """Opening, reading, finding, writing and clearing up: each ends with our own error, and none of them hangs."""
    answer, error = FAULTS[fault]
    change = Change(put=(indexed(chunk("Some text here.")),), drop=(), language="en")

    async def commit() -> None:
        raise AssertionError("nothing was written, so nothing may be committed")

    async with faulty(answer) as url, asyncio.timeout(6 * BOUND):
        with pytest.raises(error):
            async with (
                asyncio.timeout(BOUND),
                open_server_index(connect(url, None, seconds=SECONDS), "c", DIMENSIONS, Book()),
            ):
                pass
        client = connect(url, None, seconds=SECONDS)
        for work in (_count, _find, _look_up, _books):
            with pytest.raises(error):
                async with asyncio.timeout(BOUND):
                    await ServerIndex(client, "c", Book()).read(work)
        index = ServerIndex(client, "c", Book())
        with pytest.raises(error):
            async with asyncio.timeout(BOUND):
                await index.replace("book", 1, [change], commit)
        with pytest.raises(error):
            async with asyncio.timeout(BOUND):
                await index.remnants("book", set(), drop=True)
        await client.close()


async def test_readers_do_not_queue_up_before_a_server_that_is_silent() -> None:
    """After a few that had to wait, every further reader gets the error at once."""
    connections = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await _silent(reader, writer)

    async with faulty(silent) as url:
        client = connect(url, None, seconds=SECONDS)
        index = ServerIndex(client, "c", Book())
        for _ in range(MAX_FAILURES):
            with pytest.raises(ProviderError):
                await index.read(_count)
        waited = connections
        for _ in range(20):
            with pytest.raises(ProviderError, match="try again"):
                await index.read(_count)
        await client.close()

    assert connections == waited > 0


async def test_a_collection_that_is_gone_is_named(tmp_path: Path) -> None:
    """An earlier embedder's collection that somebody deleted is not taken for a refusal of ours, nor made anew."""
    client = AsyncQdrantClient(":memory:")
    with pytest.raises(IndexDamaged, match="not on the server"):
        async with open_server_index(client, "gone", None, Book()):
            pass


def client_of(ingest_deps: IngestDeps) -> AsyncQdrantClient:
    """The client behind the index of the ingestion parts."""
    index = ingest_deps.collections.current.index
    assert isinstance(index, ServerIndex)
    return index._client


async def points_of(ingest_deps: IngestDeps) -> int:
    """How many points the server really has, live or not."""
    return (await client_of(ingest_deps).count(ingest_deps.collections.current.index.collection, exact=True)).count


def lost() -> ResponseHandlingException:
    """The client's word for an answer that never came."""
    return ResponseHandlingException(httpx.ReadTimeout("no answer"))


@pytest.mark.parametrize("operation", ["upsert", "delete"])
async def test_what_was_applied_without_an_answer_is_done_again_harmlessly(tmp_path: Path, operation: str) -> None:
    """The server did it and the answer was lost: the job fails, and the next run ends equal to a fresh ingest."""
    author = Author(tmp_path / "book", 1)
    async with open_ingest_parts(tmp_path / "home", server=True) as ingest_deps:
        await run(ingest_deps, author.folder)
        author._change_a_line()
        author._delete()
        client, lose = client_of(ingest_deps), [True]
        real = getattr(client, operation)

        async def unanswered(*args: Any, **kwargs: Any) -> Any:
            outcome = await real(*args, **kwargs)
            if lose:
                lose.clear()
                raise lost()
            return outcome

        setattr(client, operation, unanswered)
        with pytest.raises(ProviderTimeout):
            await run(ingest_deps, author.folder)
        assert len(await ingest_deps.ledger.unsettled()) == 1
        await run(ingest_deps, author.folder)

        actual = await content(ingest_deps)
        await agreement(ingest_deps)
        assert await ingest_deps.ledger.unsettled() == []
        assert await points_of(ingest_deps) == len(actual)  # none twice, none stale
        assert [finding async for finding in examine(ingest_deps, mend=False)] == []
    async with open_ingest_parts(tmp_path / "fresh") as ingest_deps:
        await run(ingest_deps, author.folder)
        assert await content(ingest_deps) == actual


def forgetful(client: AsyncQdrantClient, times: int) -> list[int]:
    """Let the server skip one point of each delete, so often; gives how many points each delete was asked for."""
    real, calls = client.delete, list[int]()

    async def delete(collection: str, selector: models.PointIdsList, **kwargs: Any) -> Any:
        calls.append(len(selector.points))
        points = selector.points[1:] if len(calls) <= times else selector.points
        if not points:
            return None
        return await real(collection, models.PointIdsList(points=points), **kwargs)

    client.delete = delete  # type: ignore[method-assign]  # a fault on purpose
    return calls


async def test_a_delete_that_skips_a_point_is_noticed_and_repeated(tmp_path: Path) -> None:
    """What was to go is looked up again, and deleted again, until it has gone."""
    author = Author(tmp_path / "book", 2)
    async with open_ingest_parts(tmp_path / "home", server=True) as ingest_deps:
        await run(ingest_deps, author.folder)
        author._change_a_line()
        calls = forgetful(client_of(ingest_deps), times=2)
        await run(ingest_deps, author.folder)

        assert calls[1:] == [1, 1]
        assert await points_of(ingest_deps) == len(await content(ingest_deps))


async def test_a_point_that_will_not_go_is_an_error_and_is_found_later(tmp_path: Path) -> None:
    """Readers do not see it, the job says so, and the doctor drops it once the server lets it go."""
    author = Author(tmp_path / "book", 3)
    async with open_ingest_parts(tmp_path / "home", server=True) as ingest_deps:
        await run(ingest_deps, author.folder)
        author._change_a_line()
        client = client_of(ingest_deps)
        real = client.delete
        forgetful(client, times=10_000)
        with pytest.raises(ProviderError, match="could not be deleted"):
            await run(ingest_deps, author.folder)
        await agreement(ingest_deps)
        assert await points_of(ingest_deps) == len(await content(ingest_deps)) + 1

        assert {finding.kind async for finding in examine(ingest_deps, mend=False)} == {"stuck change"}
        client.delete = real  # type: ignore[method-assign]  # a fault on purpose
        assert {(finding.kind, finding.mended) async for finding in examine(ingest_deps, mend=True)} >= {
            ("stuck change", True)
        }
        assert [finding async for finding in examine(ingest_deps, mend=False)] == []
        assert await points_of(ingest_deps) == len(await content(ingest_deps))


async def test_both_engines_search_exactly(tmp_path: Path) -> None:
    """The server is asked for the exact nearest, as the embedded index is: an approximate search ranks otherwise."""
    searches: list[models.QueryRequest | models.Prefetch] = []
    async with open_ingest_parts(tmp_path / "home", server=True) as ingest_deps:
        client = client_of(ingest_deps)
        real = client.query_batch_points

        async def query_batch_points(collection: str, requests: list[models.QueryRequest], **kwargs: Any) -> Any:
            searches.extend([*requests, *(prefetch for request in requests for prefetch in request.prefetch)])
            return await real(collection, requests, **kwargs)

        client.query_batch_points = query_batch_points  # type: ignore[method-assign]  # a fault on purpose
        [vector] = await ingest_deps.collections.current.embedder.embed(["robot"], purpose="question")
        await ingest_deps.collections.current.index.read(
            lambda view: view.find(vector, "robot", language="en", where=BOOK, limit=5)
        )

    dense = [search for search in searches if search.using == "dense"]
    assert dense
    assert all(search.params is not None and search.params.exact for search in dense)


async def test_counting_reads_no_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start counts every book: the server counts, and of a sound book nothing is fetched."""
    author = Author(tmp_path / "book", 4)
    async with open_ingest_parts(tmp_path / "home", server=True) as ingest_deps:
        await run(ingest_deps, author.folder)
        chunks = len(await content(ingest_deps))

        async def scroll(*_: Any, **__: Any) -> Any:
            raise AssertionError("a chunk was read")

        monkeypatch.setattr(client_of(ingest_deps), "scroll", scroll)
        assert await ingest_deps.collections.current.index.read(_count) == chunks
