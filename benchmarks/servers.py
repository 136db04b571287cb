"""A Qdrant server and PostgreSQL beside the embedded index and SQLite, in one run on one machine: the same ranking, the
round trips of a search, requests a second, many books, and the count of a long one.

    python benchmarks/servers.py [--json servers.json] [--older SRC] [--parts ranking,search,books,count,nearest]

Everything is on loopback: a Qdrant server (`.ci/run` installs its program), PostgreSQL from PyPI, `lectern serve` in a
process of its own, clients in this one. What is compared is measured by turns, so that a busy machine slows both.
`--older` names the `src` folder of an earlier Lectern, whose requests a second are measured by turns with the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # servers for tests serve here too

from peers.measuring import percentile
from tests.databases import new_postgres_database, postgres
from tests.qdrant_server import QdrantServer, qdrant_server
from tests.served import LECTERN, serving_process

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "examples" / "physical-ai-robotics"
QUERIES = ROOT / "examples" / "golden" / "physical-ai-robotics" / "queries.jsonl"
OTHER_BOOKS = 2  # beside it, in the ranking
SECONDS, ROUNDS, CLIENTS = 5.0, 4, 8
FEW_BOOKS, MANY_BOOKS, SEARCHES, WARM_UP = 3, 2_000, 400, 40
LESSONS, LESSON_CHUNKS, BATCH_LESSONS = 900, 112, 2  # some 100,000 chunks, in batches as an ingestion makes them
COUNTS = 20
BOOK_SIZES, DIMENSIONS, CLUSTERS, NEAREST_SEARCHES, UPLOADED = (20_000, 50_000), 384, 200, 100, 256
FREEDOM = 32  # dimensions in which the vectors really differ: those of texts do so in few, too
EFFORTS = (100, 200, 400)  # candidates that a search keeps on its way through the graph; 100 is Qdrant's own
TIE = 1e-5
SHARDS = """
import qdrant_client
plain = qdrant_client.AsyncQdrantClient.create_collection
async def sharded(self, *names, **options):
    return await plain(self, *names, **{**options, "shard_number": 3})
qdrant_client.AsyncQdrantClient.create_collection = sharded
"""


def questions() -> list[str]:
    """The questions of the sample book's golden set."""
    return [json.loads(line)["text"] for line in QUERIES.read_text(encoding="utf-8").splitlines()]


# The same ranking.

RANK = """
import asyncio, json, sys
from lectern import open_lectern
async def main(book, others, queries):
    async with open_lectern() as lectern:
        await lectern.ingest(book, book="book")
        for number in range(int(others)):
            await lectern.ingest(f"{book}/../other-{number}", book=f"other-{number}")
        ranked = []
        for text in json.load(open(queries)):
            findings = await lectern.search(text, book="book", limit=10)
            ranked.append([(hit.chunk.id, hit.score) for hit in findings.hits])
    print(json.dumps(ranked))
asyncio.run(main(*sys.argv[1:]))
"""


def rankings(folder: Path, others: int, settings: dict[str, str], preparation: str = "") -> list[list[list[Any]]]:
    """The top ten of every question, as a fresh process ranks them."""
    queries = folder / "queries.json"
    queries.write_text(json.dumps(questions()), encoding="utf-8")
    command = [sys.executable, "-c", preparation + RANK, str(folder / "book"), str(others), str(queries)]
    ran = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    ranked: list[list[list[Any]]] = json.loads(ran.stdout.splitlines()[-1])
    return ranked


def compare_rankings(server: QdrantServer) -> dict[str, Any]:
    """How often the first ten are the same, in the same order but for ties: alone, beside other books, on shards."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "book").symlink_to(BOOK)
        for number in range(OTHER_BOOKS):
            _write_other(folder / f"other-{number}", number)
        embedded = rankings(folder, 0, {"LECTERN_HOME": f"{name}/embedded"})
        cases = {"alone": (0, ""), "beside other books": (OTHER_BOOKS, ""), "on three shards": (OTHER_BOOKS, SHARDS)}
        for label, (others, preparation) in cases.items():
            stem = f"rank-{label.replace(' ', '-')}"
            settings = {"LECTERN_HOME": f"{name}/{stem}", "QDRANT_URL": server.url, "QDRANT_COLLECTION_NAME": stem}
            ranked = rankings(folder, others, settings, preparation)
            figures[label] = {
                "n": len(ranked),
                "same_order": sum(_same(one, other) for one, other in zip(embedded, ranked, strict=True)),
            }
    return figures


def _same(one: list[list[Any]], other: list[list[Any]]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a[0] == b[0] or abs(a[1] - b[1]) < TIE for a, b in pairs)


def _write_other(folder: Path, number: int) -> None:
    """A book that uses the words of the first one far more often, or not at all."""
    words = " ".join(questions()).split() if number % 2 == 0 else ["something", "else", "entirely"]
    dice = random.Random(number)
    (folder / "part").mkdir(parents=True)
    for lesson in range(40):
        text = " ".join(dice.choices(words, k=300))
        (folder / "part" / f"{lesson:02}-lesson.md").write_text(f"# Lesson {lesson}\n\n{text}.\n", encoding="utf-8")


# Requests a second.


@contextmanager
def serving_search(home: Path, settings: dict[str, str], source: str | None = None) -> Iterator[tuple[str, int]]:
    """The address and the process of a Lectern server on the sample book."""
    env = {**os.environ, "LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0", **settings}
    if source:
        env["PYTHONPATH"] = source
    subprocess.run([LECTERN, "ingest", str(BOOK)], env=env, capture_output=True, check=True)
    command = ["bash", "-c", 'exec "$0" "$@" 2>/dev/null', LECTERN, "serve", "--port", "0"]
    with serving_process(command, env=env) as (address, process):
        yield address, process.pid


def processor_seconds(pids: list[int], database: str = "") -> float:
    """What these processes and those of PostgreSQL have used; other work on the machine changes it little."""
    postgres_pids = [
        process.pid
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] == "postgres" and process.info["cwd"] and process.info["cwd"] in database
    ]
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in (*pids, *postgres_pids))


async def requests_per_second(address: str, texts: list[str]) -> dict[str, float]:
    """Searches a second, and their latency, from clients that ask as fast as they are answered."""
    took: list[float] = []
    async with httpx.AsyncClient(timeout=60) as client:
        end = time.perf_counter() + SECONDS

        async def ask(number: int) -> None:
            while (start := time.perf_counter()) < end:
                response = await client.post(f"{address}/search", json={"text": texts[number % len(texts)]})
                response.raise_for_status()
                took.append((time.perf_counter() - start) * 1000)
                number += CLIENTS

        await asyncio.gather(*(ask(number) for number in range(CLIENTS)))
    return {"per_second": len(took) / SECONDS, "p50_ms": percentile(took, 50), "p99_ms": percentile(took, 99)}


async def compare_throughput(server: QdrantServer, database: str, older: str | None) -> dict[str, Any]:
    """Rounds by turns, and the median of each."""
    texts = questions()
    remote = {"QDRANT_URL": server.url, "QDRANT_COLLECTION_NAME": "throughput"}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        kinds: dict[str, tuple[dict[str, str], str | None]] = {
            "embedded": ({}, None),
            "server": ({**remote, "DATABASE_URL": await new_database(database)}, None),
        }
        if older:
            remote = {"QDRANT_URL": server.url, "QDRANT_COLLECTION_NAME": "older"}
            kinds["server, older"] = ({**remote, "DATABASE_URL": await new_database(database)}, older)
        addresses = {
            kind: stack.enter_context(serving_search(Path(name, kind), settings, source))
            for kind, (settings, source) in kinds.items()
        }

        async def measure(kind: str) -> dict[str, float]:
            address, pid = addresses[kind]
            pids = [pid, server.pid, os.getpid()]
            start = processor_seconds(pids, database)
            figures = await requests_per_second(address, texts)
            used = (processor_seconds(pids, database) - start) * 1000
            return {**figures, "processor_ms": used / figures["per_second"] / SECONDS}

        for kind in kinds:
            await measure(kind)  # warm
        rounds = [{kind: await measure(kind) for kind in kinds} for _ in range(ROUNDS)]
    medians = {
        kind: {name: round(statistics.median(one[kind][name] for one in rounds), 1) for name in rounds[0][kind]}
        for kind in addresses
    }
    ratios = {kind: [one[kind]["per_second"] / one["embedded"]["per_second"] for one in rounds] for kind in addresses}
    return medians | {
        "of_embedded": {
            kind: {"median": statistics.median(values), "least": min(values), "most": max(values)}
            for kind, values in ratios.items()
        }
    }


async def new_database(address: str) -> str:
    """An empty database on the server."""
    return (await new_postgres_database(address)).render_as_string(hide_password=False)


# Many books, and a long one: the real ledger and index, filled without reading files.


@asynccontextmanager
async def filled(server: QdrantServer, database: str, stem: str) -> AsyncIterator[Any]:
    """An empty ledger and collection, and what searches them."""
    from tests.doubles import WordEmbedder

    from lectern.app.collections import OpenCollections
    from lectern.index.nodes import connect
    from lectern.index.server import open_server_index
    from lectern.ports.index import Serving
    from lectern.store.database import database_url, open_database
    from lectern.store.ledger import SqlLedger

    embedder = WordEmbedder()
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(open_database(database_url(await new_database(database))))
        ledger = SqlLedger(engine)
        opened = open_server_index(connect(server.url, None), stem, embedder.dimensions, ledger.generations(stem))
        index = await stack.enter_async_context(opened)
        serving_parts = Serving(embedder=embedder, index=index)
        yield OpenCollections(stack, serving_parts, _nothing, _nothing), ledger


def _nothing(*_: object) -> Any:  # noqa: ANN401  # never called: there is one collection
    raise AssertionError


async def add_book(collections: Any, ledger: Any, book_id: str, batches: Iterator[list[list[str]]]) -> None:  # noqa: ANN401  # lectern's own, imported late
    """Store a book, batch by batch, as an ingestion does; each batch has lessons of some texts."""
    from tests.making import chunk, indexed, place, record, source

    from lectern.domain.books import BookEntry, Manifest
    from lectern.domain.chunks import Change
    from lectern.domain.jobs import Intent
    from lectern.ingestion.replacing import change

    index, embedder = collections.current.index, collections.current.embedder
    await ledger.save_book(
        BookEntry(
            manifest=Manifest(book_id=book_id, title=book_id),
            source="/nowhere",
            fingerprint=embedder.fingerprint,
            collection_name=index.collection,
            total_chunks=0,
            last_full_ingest=None,
            last_incremental_update=None,
        )
    )
    number = 0
    for batch in batches:
        intents = []
        for texts in batch:
            where = place(book_id, lesson=number)
            vectors = await embedder.embed(texts, purpose="passage")
            put = [
                indexed(chunk(text, where, chunk_index=at, hardware_tier=1 + at % 4), vector)
                for at, (text, vector) in enumerate(zip(texts, vectors, strict=True))
            ]
            chunks = [part.stored.chunk for part in put]
            made = record(source(f"{number}.md", where=where), tuple(part.id for part in chunks))
            counted = replace(made, terms=index.count_terms(chunks, "en"))
            intents.append(
                Intent(change=Change(put=tuple(put), drop=(), language="en"), records=(counted,), retired=())
            )
            number += 1
        await change(ledger, index, book_id, intents)


def small_book(dice: random.Random) -> Iterator[list[list[str]]]:
    """Two lessons of three chunks."""
    yield [[" ".join(dice.choices(WORDS, k=60)) for _ in range(3)] for _ in range(2)]


def long_book(dice: random.Random) -> Iterator[list[list[str]]]:
    """Some 100,000 chunks."""
    for _ in range(LESSONS // BATCH_LESSONS):
        yield [[" ".join(dice.choices(WORDS, k=12)) for _ in range(LESSON_CHUNKS)] for _ in range(BATCH_LESSONS)]


WORDS = [f"word{number}" for number in range(5_000)]


async def compare_books(server: QdrantServer, database: str) -> dict[str, Any]:
    """A search with a few books and with many, by turns; and the list of books.

    A process remembers passages that it has read. Searches in all of the many books meet passages that it has not, so
    they are compared twice: as they come, and with nothing remembered on either side.
    """
    dice = random.Random(1)
    async with filled(server, database, "few") as few, filled(server, database, "many") as many:
        for number, (collections, ledger) in ((FEW_BOOKS, few), (MANY_BOOKS, many)):
            for book in range(number):
                await add_book(collections, ledger, f"book-{book}", small_book(dice))
        cases = {
            f"{FEW_BOOKS} books": (few, FEW_BOOKS),
            f"{FEW_BOOKS} of {MANY_BOOKS} books": (many, FEW_BOOKS),
            f"{MANY_BOOKS} books": (many, MANY_BOOKS),
        }
        figures: dict[str, Any] = {"n": SEARCHES}
        for label, forgetful in (("remembering", False), ("forgetful", True)):
            figures[label] = await _searches_by_turns(dice, cases, forgetful=forgetful)
        _, ledger = many
        figures["list_ms"] = {
            "unchanged": await _median_ms(ledger.books),
            "after a commit": await _median_ms(ledger.books, before=lambda: _touch(ledger)),
        }
    return figures


async def _searches_by_turns(dice: random.Random, cases: dict[str, Any], *, forgetful: bool) -> dict[str, Any]:
    """The median time of a search in each case, and how many times that of the first case it is."""
    from lectern.domain.scope import Scope, SearchQuery
    from lectern.index.points import KnownPoints
    from lectern.retrieval.search import HybridSearch

    took: dict[str, list[float]] = {name: [] for name in cases}
    searches = {name: HybridSearch(*parts) for name, (parts, _) in cases.items()}
    for turn in range(WARM_UP + SEARCHES):
        text = " ".join(dice.choices(WORDS, k=6))
        for name, ((collections, _), books) in cases.items():
            if forgetful:
                collections.current.index._known = KnownPoints()
            query = SearchQuery(text=text, scope=Scope(book_id=f"book-{dice.randrange(books)}"))
            start = time.perf_counter()
            await searches[name](query)
            if turn >= WARM_UP:
                took[name].append((time.perf_counter() - start) * 1000)
    medians = {name: percentile(times, 50) for name, times in took.items()}
    first = next(iter(medians.values()))
    return {name: {"p50_ms": round(median, 2), "ratio": round(median / first, 3)} for name, median in medians.items()}


async def _touch(ledger: Any) -> None:  # noqa: ANN401  # lectern's own, imported late
    await ledger.save_book(await ledger.book("book-7"))


async def compare_counts(server: QdrantServer, database: str) -> dict[str, Any]:
    """The count of a long book, of a part of it, and while a lesson is being replaced."""
    from tests.making import chunk, indexed, place

    from lectern.domain.chunks import Change
    from lectern.domain.scope import ChunkFilter

    whole, part = ChunkFilter(book_id="long"), ChunkFilter(book_id="long", max_tier=2)
    async with filled(server, database, "long") as (collections, ledger):
        await add_book(collections, ledger, "long", long_book(random.Random(2)))
        index = collections.current.index
        chunks = await index.read(lambda view: view.count(whole))
        assert chunks == LESSONS * LESSON_CHUNKS, chunks
        while (await index._client.get_collection(index.collection)).status != "green":  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.5)
        figures: dict[str, Any] = {
            "chunks": chunks,
            "whole_ms": await _median_ms(lambda: index.read(lambda view: view.count(whole))),
            "part_ms": await _median_ms(lambda: index.read(lambda view: view.count(part))),
        }

        async def commit() -> None:
            figures["while_replacing_ms"] = await _median_ms(lambda: index.read(lambda view: view.count(whole)))
            assert await index.read(lambda view: view.count(whole)) == chunks

        [vector] = await collections.current.embedder.embed(["new"], purpose="passage")
        new = tuple(indexed(chunk(f"new {at}", place("long", lesson=3)), vector) for at in range(LESSON_CHUNKS))
        await index.replace("long", 1_000_000, [Change(put=new, drop=(), language="en")], commit)
    return figures


# Exact and approximate search of one book, by its size.


async def compare_nearest(server: QdrantServer) -> dict[str, Any]:
    """The ten nearest chunks through a book's graph, beside the exact ones: how many are the same, and how long both
    take. Vectors are random, in clusters that overlap, as long as those of the local model."""
    from tests.contracts.test_index import Book

    from lectern.index.layout import Layout
    from lectern.index.nodes import connect
    from lectern.index.server import open_server_index

    figures: dict[str, Any] = {}
    dice, ledger = np.random.default_rng(3), Book()
    space = dice.normal(size=(CLUSTERS, FREEDOM)), dice.normal(size=(FREEDOM, DIMENSIONS))
    for name, layout in {"plain": Layout(), "scalar": Layout(quantization="scalar")}.items():
        async with open_server_index(
            connect(server.url, None, seconds=120), f"nearest-{name}", DIMENSIONS, ledger, layout
        ) as index:
            for size in BOOK_SIZES:
                await _fill(index._client, index.collection, f"book-{size}", _near(dice, space, size))
            while not await _is_indexed(index):  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0.5)
            for size in BOOK_SIZES:
                questions = _near(dice, space, NEAREST_SEARCHES)
                figures[f"{name}, {size}"] = await _nearest(index, f"book-{size}", questions, server.pid)
            await index._client.delete_collection(index.collection)
    return figures


async def _is_indexed(index: Any) -> bool:  # noqa: ANN401  # lectern's own, imported late
    info = await index._client.get_collection(index.collection)
    return info.status == "green" and bool(info.indexed_vectors_count)


async def _fill(client: Any, collection: str, book_id: str, vectors: Any) -> None:  # noqa: ANN401  # qdrant's and numpy's own
    from qdrant_client import models

    from lectern.index.schema import DENSE

    for start in range(0, len(vectors), UPLOADED):
        points = [
            models.PointStruct(
                id=str(uuid.uuid4()), vector={DENSE: [vector]}, payload={"book_id": book_id, "hardware_tier": 1}
            )
            for vector in vectors[start : start + UPLOADED].tolist()
        ]
        await client.upsert(collection, points, wait=True)


async def _nearest(index: Any, book_id: str, questions: Any, pid: int) -> dict[str, Any]:  # noqa: ANN401  # lectern's and numpy's
    """The searches exactly, and through the graph with more and more effort; and the server's processor time."""
    from lectern.domain.scope import ChunkFilter
    from lectern.index.layout import Layout, search_params
    from lectern.index.schema import DENSE
    from lectern.index.server import compile_filter

    layout = Layout(exact_below=1)
    params = {"exact": search_params(layout, 0)}
    for effort in EFFORTS:
        params[f"graph, {effort}"] = search_params(layout, 1).model_copy(update={"hnsw_ef": effort})
    scope, figures = compile_filter(ChunkFilter(book_id=book_id)), {}
    nearest: list[set[Any]] = []
    for name, how in params.items():
        tops, start = [], processor_seconds([pid])
        for vector in questions.tolist():
            answer = await index._client.query_points(
                index.collection, query=vector, using=DENSE, query_filter=scope, search_params=how, limit=30
            )
            tops.append({point.id for point in answer.points[:10]})
        used = (processor_seconds([pid]) - start) * 1000 / len(tops)
        nearest = nearest or tops
        shared = sum(len(exact & top) for exact, top in zip(nearest, tops, strict=True))
        recall = shared / sum(map(len, nearest))
        figures[name] = {"recall@10": round(recall, 4), "processor_ms": round(used, 2)}
    return figures


def _near(dice: Any, space: tuple[Any, Any], count: int) -> Any:  # noqa: ANN401  # numpy's own
    """Vectors of some clusters, and a little of every dimension."""
    centres, projection = space
    chosen = 0.7 * centres[dice.integers(len(centres), size=count)] + dice.normal(size=(count, FREEDOM))
    return np.round(chosen @ projection / 6 + 0.1 * dice.normal(size=(count, DIMENSIONS)), 4)


async def _median_ms(work: Any, before: Any = None) -> float:  # noqa: ANN401  # functions that return awaitables
    took = []
    for _ in range(COUNTS):
        if before is not None:
            await before()
        start = time.perf_counter()
        await work()
        took.append((time.perf_counter() - start) * 1000)
    return round(statistics.median(took), 2)


PARTS = ("ranking", "search", "books", "count", "nearest")


def main() -> None:
    """Measure and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--older")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    with qdrant_server() as server, postgres() as database:
        figures["qdrant"] = server.get("/")["version"]
        measures: dict[str, Callable[[], Any]] = {
            "ranking": lambda: compare_rankings(server),
            "search": lambda: asyncio.run(compare_throughput(server, database, options.older)),
            "books": lambda: asyncio.run(compare_books(server, database)),
            "count": lambda: asyncio.run(compare_counts(server, database)),
            "nearest": lambda: asyncio.run(compare_nearest(server)),
        }
        for part in options.parts.split(","):
            figures[part] = measures[part]()
            print(part, json.dumps(figures[part]), file=sys.stderr, flush=True)
    text = json.dumps(figures, indent=2)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
