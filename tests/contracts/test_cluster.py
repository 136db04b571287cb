"""A cluster of three Qdrant nodes that hold each shard twice: any node may be lost, and the collection is as the
operator configured it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
from qdrant_client import models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.chunks import Change, Vector
from lectern.domain.dependencies import Call, watch
from lectern.domain.errors import ConfigError, IndexDamaged, LecternError, ProviderError, ProviderTimeout
from lectern.domain.evidence import Candidate
from lectern.index import layout as layouts
from lectern.index.layout import Layout, search_params
from lectern.index.nodes import client_errors, connect
from lectern.index.server import ServerIndex, open_server_index
from lectern.ports.index import ChunkIndex
from tests.contracts.test_index import BOOK, Book
from tests.making import DIMENSIONS, chunk, indexed, place, unit_vector
from tests.ports import closed_port
from tests.qdrant import MemoryClient
from tests.qdrant_server import QdrantServer, qdrant_cluster, qdrant_server

LAYOUT = Layout(shards=3, replicas=2)
LESSONS = 30
QUESTIONS = tuple((unit_vector(f"v{n}"), f"robot {n}") for n in range(3))
Rankings = list[list[Candidate]]


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[QdrantServer]]:
    """Three nodes of one cluster."""
    with qdrant_cluster(3) as running:
        yield running


@asynccontextmanager
async def opened(
    urls: str, name: str, ledger: Book, layout: Layout = LAYOUT, *, seconds: float = 30.0, grpc_port: int | None = None
) -> AsyncIterator[ServerIndex]:
    """A collection on those nodes."""
    client = connect(urls, None, seconds=seconds, grpc_port=grpc_port)
    async with open_server_index(client, name, DIMENSIONS, ledger, layout) as index:
        yield index


async def store(index: ChunkIndex, ledger: Book, lessons: range) -> None:
    """Put lessons of one chunk each, no two of which have the same score."""
    texts = {n: f"Robot number {n}{' goes' * n}." for n in lessons}
    put = tuple(indexed(chunk(text, place(lesson=n)), unit_vector(f"v{n}")) for n, text in texts.items())
    change, number = Change(put=put, drop=(), language="en"), ledger.number + 1

    async def commit() -> None:
        ledger.commit("book", number, [change])

    await index.replace("book", number, [change], commit)


async def rankings(index: ChunkIndex) -> Rankings:
    """What every question finds."""

    async def ranking(vector: Vector, text: str) -> list[Candidate]:
        found = await index.read(lambda view: view.find(vector, text, language="en", where=BOOK, limit=10))
        # the last digits of a score depend on how it is sent and where it is added up
        return [one._replace(cosine=round(one.cosine, 4), bm25=round(one.bm25, 4)) for one in found]

    return [await ranking(vector, text) for vector, text in QUESTIONS]


def addresses_of(nodes: list[QdrantServer]) -> str:
    """As they stand in QDRANT_URL."""
    return ", ".join(node.url for node in nodes)


async def until(reached: Callable[[], bool]) -> None:
    """Wait for a state."""
    while not reached():  # noqa: ASYNC110  # nothing announces it
        await asyncio.sleep(0.01)


async def copies_live(index: ServerIndex) -> None:
    """Wait until every copy of every shard is in use, and none is being moved."""
    while True:
        with suppress(LecternError, UnexpectedResponse, ResponseHandlingException):  # while the node comes back
            info = await index._client.collection_cluster_info(index.collection)
            states = {shard.state for shard in (*info.local_shards, *info.remote_shards)}
            if not info.shard_transfers and states == {models.ReplicaState.ACTIVE}:
                return
        await asyncio.sleep(0.05)


async def once(tries: int, work: object) -> object:
    """What `work` gives, after so many failures at most."""
    for attempt in range(tries + 1):
        try:
            return await work()  # type: ignore[operator]  # a function without arguments
        except LecternError:
            if attempt == tries:
                raise
            await asyncio.sleep(0.2)
    raise AssertionError


async def test_every_node_may_be_lost_while_it_is_read_and_written(nodes: list[QdrantServer]) -> None:
    """With each node killed in turn, each read succeeds after one retry at most and ranks as before, new lessons are
    stored, and the node takes part again once it is back."""
    ledger = Book()
    async with opened(addresses_of(nodes), "lost-nodes", ledger) as index:
        await store(index, ledger, range(LESSONS))
        reads = 0
        for number, node in enumerate(nodes):
            expected = await rankings(index)
            stop, disturbed = asyncio.Event(), list[Rankings]()

            async def read(stop: asyncio.Event = stop, disturbed: list[Rankings] = disturbed) -> None:
                while not stop.is_set():
                    disturbed.append(await once(1, lambda: rankings(index)))  # type: ignore[arg-type]

            async with asyncio.TaskGroup() as readers:
                for _ in range(4):
                    readers.create_task(read())
                await until(lambda disturbed=disturbed: len(disturbed) >= 4)
                node.kill()
                enough = len(disturbed) + 12
                await until(lambda disturbed=disturbed, enough=enough: len(disturbed) >= enough)
                stop.set()
            assert all(found == expected for found in disturbed)
            reads += len(disturbed) * len(QUESTIONS)

            new = range(LESSONS + number, LESSONS + number + 1)
            await once(20, lambda new=new: store(index, ledger, new))
            count = await index.read(lambda view: view.count(BOOK))
            assert count == LESSONS + number + 1
            node.start()
            await copies_live(index)
        assert reads >= 3 * 16 * len(QUESTIONS)


async def test_a_collection_is_made_as_configured_and_mended_to_it(nodes: list[QdrantServer]) -> None:
    """Shards, copies, write consistency, what is on the disk, quantization and graphs; a collection that differs is
    told with the settings' names, and the doctor gives it what it lacks."""
    layout = Layout(shards=2, replicas=2, write_consistency=2, on_disk=True, quantization="scalar")
    ledger = Book()
    async with opened(addresses_of(nodes), "plain", ledger, Layout(shards=2)) as index:
        await store(index, ledger, range(LESSONS))
        expected = await rankings(index)
        assert await index.faults(mend=False) == []
    async with opened(addresses_of(nodes), "plain", ledger, layout) as index:
        faults = " ".join(await index.faults(mend=False))
        for name in ("REPLICAS", "WRITE_CONSISTENCY", "ON_DISK", "QUANTIZATION"):
            assert f"LECTERN_QDRANT_{name} is" in faults
        await index.faults(mend=True)
        await copies_live(index)
        assert await index.faults(mend=False) == []
        assert await rankings(index) == expected
    async with opened(addresses_of(nodes), "configured", Book(), layout) as index:
        assert await index.faults(mend=False) == []


async def test_a_write_consistency_that_no_write_could_reach_is_an_error(real_qdrant: QdrantServer) -> None:
    """One node holds one copy of a shard, whatever the number of copies is set to."""
    layout = Layout(replicas=2, write_consistency=2)
    with pytest.raises(ConfigError, match=r"LECTERN_QDRANT_WRITE_CONSISTENCY is 2.*1 node"):
        async with opened(real_qdrant.url, "too-many-copies", Book(), layout):
            pass


async def test_a_key_that_may_not_count_the_nodes_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    """A key for one collection alone gets a refusal from /cluster: a warning says so, and the server is used."""

    class Limited(MemoryClient):
        async def cluster_status(self) -> models.ClusterStatus:
            raise UnexpectedResponse(403, "Forbidden", b"", httpx.Headers())

    async with open_server_index(
        Limited(":memory:"), "limited", DIMENSIONS, Book(), Layout(replicas=2, write_consistency=2)
    ) as index:
        assert await index.read(lambda view: view.book_ids()) == frozenset()
    assert "could not be counted" in caplog.text


async def test_missing_payload_indexes_are_an_error_that_the_doctor_mends(real_qdrant: QdrantServer) -> None:
    """Nothing is read without them: a filter would look at every point, and counts would be refused."""
    ledger = Book()
    async with AsyncExitStack() as stack:
        index = await stack.enter_async_context(opened(real_qdrant.url, "unindexed", ledger, Layout()))
        await store(index, ledger, range(3))
        await index._client.delete_payload_index("unindexed", "generation")
        again = await stack.enter_async_context(opened(real_qdrant.url, "unindexed", ledger, Layout()))
        with pytest.raises(IndexDamaged, match=r"generation.*doctor --mend"):
            await rankings(again)
        assert await again.faults(mend=False) == ["the payload index of generation is missing"]
        await again.faults(mend=True)
        assert await again.faults(mend=False) == []
        assert len((await rankings(again))[0]) == 3
        await index._client.delete_collection("unindexed")


async def test_a_collection_that_was_made_anew_is_an_error_and_never_empty(real_qdrant: QdrantServer) -> None:
    """The ledger knows of chunks, and the server has none of the book: whether the collection is gone or empty."""
    ledger = Book()
    async with opened(real_qdrant.url, "emptied", ledger, Layout()) as index:
        await store(index, ledger, range(3))
        await index._client.delete_collection("emptied")
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await rankings(index)
        await layouts.create(index._client, "emptied", DIMENSIONS, Layout())
        with pytest.raises(IndexDamaged, match="holds nothing of 'book'"):
            await rankings(index)
        await index._client.delete_collection("emptied")


async def test_a_wrong_port_for_grpc_is_named(real_qdrant: QdrantServer) -> None:
    """Nobody listens there: the error names the setting."""
    with closed_port() as port:
        client = connect(real_qdrant.url, None, grpc_port=port)
        with pytest.raises(ProviderError, match="LECTERN_QDRANT_GRPC_PORT"), client_errors():
            await client.get_collections()
        await client.close()


async def test_grpc_finds_the_same_and_its_errors_are_ours(real_qdrant: QdrantServer) -> None:
    """The other protocol changes nothing but the port."""
    ledger = Book()
    async with AsyncExitStack() as stack:
        rest = await stack.enter_async_context(opened(real_qdrant.url, "grpc", ledger, Layout()))
        await store(rest, ledger, range(5))
        grpc = opened(real_qdrant.url, "grpc", ledger, Layout(), grpc_port=real_qdrant.grpc_port)
        index = await stack.enter_async_context(grpc)
        assert await rankings(index) == await rankings(rest)
        await store(index, ledger, range(5, 8))
        assert await index.read(lambda view: view.count(BOOK)) == 8
        await rest._client.delete_collection("grpc")
        with pytest.raises(IndexDamaged, match="lost a collection"):
            await rankings(index)


async def test_a_frozen_server_holds_a_reader_no_longer_than_the_setting() -> None:
    """And a frozen node of several only its share of that; the failed call is reported."""
    ledger, calls = Book(), list[Call]()
    loop = asyncio.get_running_loop()
    with qdrant_server() as frozen:
        async with opened(frozen.url, "frozen", ledger, Layout(), seconds=1.0) as index:
            await store(index, ledger, range(3))
            frozen.freeze()
            start = loop.time()
            with pytest.raises(ProviderTimeout):
                await rankings(index)
            took = loop.time() - start
            assert 0.9 < took < 2.0
            frozen.thaw()
            expected = await once(20, lambda: rankings(index))
            frozen.freeze()
            dead_and_alive = connect(f"{frozen.url},{frozen.url}", None, seconds=1.0)
            end = watch(calls.append)
            start = loop.time()
            with pytest.raises(ProviderTimeout):
                await ServerIndex(dead_and_alive, "frozen", ledger).read(lambda view: view.count(BOOK))
            end()
            took = loop.time() - start
            assert took < 2.0
            assert [type(call.error) for call in calls] == [ProviderTimeout, ProviderTimeout]
            frozen.thaw()
            await dead_and_alive.close()
            assert await once(20, lambda: rankings(index)) == expected


@pytest.mark.parametrize("url", ["", "ftp//x", "http://a:b:c", "http://one:6333,"])
def test_an_address_that_is_none_is_named(url: str) -> None:
    """Each of several addresses is looked at."""
    with pytest.raises(ConfigError, match="QDRANT_URL"):
        connect(url, None)


def test_a_large_book_is_searched_through_its_graph() -> None:
    """Below the size the search is exact, and quantized vectors are not used for it."""
    layout = Layout(exact_below=100)
    assert search_params(layout, 99).exact
    assert search_params(layout, 99).quantization.ignore  # type: ignore[union-attr]  # it is set
    assert not search_params(layout, 100).exact
    assert search_params(layout, 100).quantization.rescore  # type: ignore[union-attr]  # it is set


async def test_the_doctor_brings_back_a_book_whose_collection_was_made_anew(
    tmp_path: Path, real_qdrant: QdrantServer
) -> None:
    """Somebody deleted the collection while a server ran, and made it anew without indexes: a search says what to do,
    never nothing, and the doctor makes the collection as it is configured and fills it."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "01-robot.md").write_text("# Robot\n\nThe robot closes its gripper.\n", encoding="utf-8")
    name = f"anew-{tmp_path.name}"
    settings = Settings(
        home=tmp_path / "home", qdrant_url=real_qdrant.url, qdrant_collection_name=name, qdrant_quantization="scalar"
    )
    async with open_lectern(settings) as lectern:
        await lectern.ingest(tmp_path / "book", book="book")
        before = await lectern.search("Which robot closes a gripper?")
        index = lectern.app.ingest_deps.collections.current.index
        assert isinstance(index, ServerIndex)
        client, collection = index._client, index.collection
        info = await client.get_collection(collection)
        await client.delete_collection(collection)
        vectors = info.config.params.vectors
        words = info.config.params.sparse_vectors
        await client.create_collection(collection, vectors_config=vectors, sparse_vectors_config=words)
        with pytest.raises(IndexDamaged, match="doctor --mend"):
            await lectern.search("Which robot closes a gripper?")

        findings = [finding async for finding in lectern.doctor(mend=True)]

        kinds = {(finding.kind, finding.mended) for finding in findings}
        assert kinds >= {("collection", True), ("damaged lesson", True)}
        assert [finding async for finding in lectern.doctor()] == []
        after = await lectern.search("Which robot closes a gripper?")
        assert [hit.chunk.id for hit in after.hits] == [hit.chunk.id for hit in before.hits]
        await client.delete_collection(collection)
