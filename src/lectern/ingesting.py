"""Ingestion put together: the workbench that fits the process, and the jobs on one database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.index.schema import collection_name
from lectern.ingestion.bench import Bench, Here
from lectern.ingestion.ingest import Workshop
from lectern.ingestion.replacing import recover_all, verify_all
from lectern.jobs.runner import JobRules, Jobs
from lectern.parts import Parts
from lectern.ports import Embedder, Stand
from lectern.reading.rules import ReadingRules
from lectern.records.jobs import SqlJobs
from lectern.records.ledger import SqlLedger
from lectern.records.locks import SqlBookLocks
from lectern.records.vectors import SqlVectorCache
from lectern.settings import Settings
from lectern.stands import OpenShelf


async def open_workshop(parts: Parts, stack: AsyncExitStack, rules: ReadingRules | None) -> Workshop:
    """Everything an ingestion works with; what a kill left half done is completed first."""
    embedder = parts.embedder()
    name = collection_name(parts.settings.collection_stem, embedder.fingerprint)
    index = await stack.enter_async_context(parts.index(name, embedder.dimensions))
    shelf = OpenShelf(stack, Stand(embedder=embedder, index=index), parts.index, parts.embedder_of)
    ledger, locks = SqlLedger(parts.engine), SqlBookLocks(parts.engine)
    await recover_all(ledger, shelf, locks)
    await verify_all(ledger, shelf, locks)
    return Workshop(
        ledger=ledger,
        shelf=shelf,
        vectors=SqlVectorCache(parts.engine),
        rules=rules or ReadingRules(max_file_bytes=int(parts.settings.max_file_mib * 1024 * 1024)),
        locks=locks,
        bench=await stack.enter_async_context(_workbench(serving=parts.serving)),
    )


@asynccontextmanager
async def _workbench(*, serving: bool) -> AsyncIterator[Bench]:
    """A command works where it is; a server has the heavy part done in a process of its own."""
    if not serving:
        yield Here()
        return
    from lectern.jobs.apart import Apart

    bench = Apart(_portable)
    try:
        yield bench
    finally:
        await bench.close()


def jobs_on(engine: AsyncEngine, shop: Workshop, settings: Settings, *, serving: bool) -> Jobs:
    """Jobs whose records are kept in this database."""
    from lectern.jobs.sources import check_roots

    if serving:
        check_roots(settings.books)
    rules = JobRules(serving=serving, shared=engine.dialect.name != "sqlite", roots=settings.books)
    return Jobs(shop, SqlJobs(engine), rules)


def _portable(embedder: Embedder) -> bool:
    """The local model computes, so it goes where computing disturbs nobody; the others wait for a provider."""
    from lectern.embedders.minilm import LocalEmbedder

    return isinstance(embedder, LocalEmbedder)
