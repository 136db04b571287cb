"""Builds the parts that the settings name: embedder and index; answerer, judge and confidence policy; the worker and
the jobs. Parts for answering are built for the first question, because a search needs none of them. The packages of an
extra are imported only if a setting needs them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.answering.ask import AnsweringRules, AskDeps
from lectern.answering.confidential import Confidential
from lectern.answering.desk import Library
from lectern.answering.instructions import INSTRUCTIONS, JUDGING, NOT_COVERED, REWRITING, SUMMARISING
from lectern.answering.offline.writer import MODEL_NAME, OfflineWriter
from lectern.answering.suggestions import PolicyOf
from lectern.app.collections import OpenCollections
from lectern.app.home import Home
from lectern.app.settings import Settings
from lectern.confidence.answerability import Answerability
from lectern.domain.errors import ConfigError
from lectern.domain.extras import import_extra
from lectern.grounding.judge import LocalJudge
from lectern.index.schema import collection_name
from lectern.ingestion.ingest import IngestDeps
from lectern.ingestion.replacing import recover_all, verify_all
from lectern.ingestion.worker import InProcess, Worker
from lectern.jobs.runner import JobRules, Jobs
from lectern.models.agent import AgentAnswerer, Prompts
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.models.local.embedder import LocalEmbedder
from lectern.models.local.entailment import LocalEntailment
from lectern.models.offline_model import OfflineModel
from lectern.ports.index import ChunkIndex, Embedder, Serving
from lectern.reading.chunking import ReadingRules
from lectern.store.jobs import SqlJobs
from lectern.store.ledger import SqlLedger
from lectern.store.locks import SqlBookLocks
from lectern.store.vectors import SqlVectorCache

if TYPE_CHECKING:
    from lectern.models.endpoint import Api, Endpoint
    from lectern.models.endpoint_check import EndpointCheck

READING_PASSAGES = 10  # that a language model gets, if a request names no number
MIN_KEY_LENGTH = 40
WARM_UP_SENTENCE = "The lamp is lit at nine."
WARM_UP_PASSAGE = "In the evening, at nine, somebody lights the lamp."


class PartFactory:
    """Builds embedders and indexes, and closes them with the stack."""

    def __init__(
        self, settings: Settings, home: Home, engine: AsyncEngine, stack: AsyncExitStack, *, serving: bool = False
    ) -> None:
        self.settings = settings
        self.serving = serving
        self._home = home
        self.engine = engine
        self._stack = stack

    def embedder(self, name: str | None = None) -> Embedder:
        """The embedder of this name, or the one that the settings name."""
        match name or self.settings.embedder:
            case "local":
                from lectern.models.local.embedder import LocalEmbedder

                return LocalEmbedder()
            case "openai":
                return self._openai()
            case "cohere":
                return self._cohere()
            case unknown:
                raise ConfigError(f"there is no embedder {unknown!r}; LECTERN_EMBEDDER is local, openai or cohere")

    def embedder_of(self, fingerprint: str) -> Embedder:
        """The embedder behind a fingerprint, if it can run here."""
        embedder = self.embedder(fingerprint.partition("/")[0])
        if embedder.fingerprint != fingerprint:
            raise ConfigError(f"here it would be {embedder.fingerprint!r}")
        return embedder

    def _openai(self) -> Embedder:
        from lectern.models.openai import BASE_URL, OpenAIEmbedder

        embedder = OpenAIEmbedder(openai_key(self.settings), base_url=self.settings.openai_base_url or BASE_URL)
        self._stack.push_async_callback(embedder.aclose)
        return embedder

    def _cohere(self) -> Embedder:
        import_extra("cohere", extra="cohere", setting="LECTERN_EMBEDDER=cohere")
        from lectern.models.cohere import CohereEmbedder

        if self.settings.cohere_api_key is None:
            raise ConfigError("the embedder 'cohere' needs COHERE_API_KEY")
        embedder = CohereEmbedder(self.settings.cohere_api_key.get_secret_value(), model=self.settings.cohere_model)
        self._stack.push_async_callback(embedder.aclose)
        return embedder

    def index(self, collection: str, dimensions: int | None) -> AbstractAsyncContextManager[ChunkIndex]:
        """The index of a collection: on the server that QDRANT_URL names, else in the home."""
        if self.settings.qdrant_url is None:
            from lectern.index.edge import open_edge_index

            return open_edge_index(self._home.indexes, collection, dimensions, serving=self.serving)
        import_extra("qdrant_client", extra="server", setting="QDRANT_URL")
        from lectern.index.server import connect, open_server_index
        from lectern.store.ledger import SqlGenerations

        key = self.settings.qdrant_api_key
        client = connect(self.settings.qdrant_url, key.get_secret_value() if key else None)
        return open_server_index(client, collection, dimensions, SqlGenerations(self.engine, collection))


def openai_key(settings: Settings) -> str:
    """The key for OpenAI, checked for its form. Another endpoint has keys of any form, or none."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
    if settings.openai_base_url is not None:
        return key or "none"
    if not key.startswith("sk-") or len(key) < MIN_KEY_LENGTH:
        raise ConfigError(
            f"OPENAI_API_KEY is missing or not of OpenAI's shape (sk-…, {MIN_KEY_LENGTH} characters or more); "
            "for another endpoint set OPENAI_BASE_URL too"
        )
    return key


def build_ask_deps(settings: Settings, library: Library, policy: PolicyOf, stack: AsyncExitStack) -> AskDeps:
    """What answering needs, as the settings name it; the stack closes it."""
    locator = LocalAnswerLocator()
    answerer = _answerer(settings, locator, stack)
    quoting = answerer.model == MODEL_NAME
    secrets = (settings.openai_api_key, settings.cohere_api_key, settings.qdrant_api_key)
    return AskDeps(
        library=library,
        answerer=answerer,
        judge=LocalJudge(LocalEntailment()),
        model_judge=None if quoting or settings.judge == "local" else answerer.as_judge(JUDGING),
        policy=policy,
        # a language model reads the passages itself; the policies of the design documents stay as they are
        answerability=Answerability(locator) if quoting and settings.confidence == "calibrated" else None,
        confidential=Confidential(
            [answerer.instructions],
            [secret.get_secret_value() for secret in secrets if secret is not None],
            public_text=INSTRUCTIONS,
            signs=[NOT_COVERED],
        ),
        rules=AnsweringRules(
            refusal=settings.refusal,
            disclaimer=settings.disclaimer,
            top_k=settings.top_k,
            threshold=settings.score_threshold,
            reading_passages=0 if quoting else READING_PASSAGES,
            reading_tokens=settings.reading_tokens,
            hide_doubtful=settings.doubtful == "hide",
            budget=settings.turn_budget,
        ),
    )


async def load_models(deps: AskDeps, embedder: Embedder) -> None:
    """Load every local network that a question will need; no provider is called."""
    if isinstance(embedder, LocalEmbedder):
        await embedder.embed([WARM_UP_SENTENCE], purpose="question")
    await deps.judge.judge(WARM_UP_SENTENCE, [WARM_UP_PASSAGE])
    if deps.answerability is not None:
        await deps.answerability.locator.find(WARM_UP_SENTENCE, [("", (WARM_UP_PASSAGE,))])


def _answerer(settings: Settings, locator: LocalAnswerLocator, stack: AsyncExitStack) -> AgentAnswerer:
    if _is_offline(settings):
        # whatever embeds the book, the offline model's sentences stay on this machine
        model = OfflineModel(OfflineWriter(LocalEmbedder(), locator))
        return AgentAnswerer(lambda _: model, MODEL_NAME, _prompts(settings))
    return endpoint_answerer(settings, stack)


def endpoint_answerer(settings: Settings, stack: AsyncExitStack) -> AgentAnswerer:
    """The language model behind the endpoint that the settings name; the stack closes it."""
    endpoint = _endpoint(settings, stack)
    return AgentAnswerer(endpoint.sdk_model, endpoint.model, _prompts(settings), endpoint.settings)


async def check_endpoint(settings: Settings) -> AsyncIterator[EndpointCheck]:
    """What the endpoint that the settings name can do; nothing if they name none."""
    from lectern.models import endpoint_check

    if _is_offline(settings):
        return
    async with AsyncExitStack() as stack:
        async for check in endpoint_check.check_endpoint(_endpoint(settings, stack)):
            yield check


def _is_offline(settings: Settings) -> bool:
    reachable = settings.openai_api_key is not None or settings.openai_base_url is not None
    return settings.answerer == "offline" or (settings.answerer == "auto" and not reachable)


def _endpoint(settings: Settings, stack: AsyncExitStack) -> Endpoint:
    from agents import ModelSettings

    from lectern.models.endpoint import Endpoint, client, is_openai

    openai_client = client(openai_key(settings), settings.openai_base_url, settings.turn_budget)
    stack.push_async_callback(openai_client.close)
    official = is_openai(settings.openai_base_url)
    api: Api = "responses" if official else "chat"
    if settings.openai_api != "auto":
        api = settings.openai_api
    model_settings = ModelSettings(
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
        include_usage=True if api == "chat" else None,
        # the Responses API and OpenAI keep every answer for a month unless they are told not to
        store=False if official or api == "responses" else None,
    )
    return Endpoint(client=openai_client, model=settings.openai_model, api=api, settings=model_settings)


def _prompts(settings: Settings) -> Prompts:
    extra = _extra_instructions(settings).strip()
    return Prompts(
        answering=INSTRUCTIONS + (f"\n{extra}\n" if extra else ""), rewriting=REWRITING, summarising=SUMMARISING
    )


def _extra_instructions(settings: Settings) -> str:
    if settings.instructions is None:
        return ""
    try:
        return settings.instructions.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise ConfigError(f"LECTERN_INSTRUCTIONS: {settings.instructions} cannot be read ({exc})") from exc


async def open_ingest_deps(parts: PartFactory, stack: AsyncExitStack, rules: ReadingRules | None) -> IngestDeps:
    """What an ingestion needs. Changes that a killed process left unfinished are completed first."""
    embedder = parts.embedder()
    name = collection_name(parts.settings.collection_stem, embedder.fingerprint)
    index = await stack.enter_async_context(parts.index(name, embedder.dimensions))
    collections = OpenCollections(stack, Serving(embedder=embedder, index=index), parts.index, parts.embedder_of)
    ledger, locks = SqlLedger(parts.engine), SqlBookLocks(parts.engine)
    await recover_all(ledger, collections, locks)
    await verify_all(ledger, collections, locks)
    return IngestDeps(
        ledger=ledger,
        collections=collections,
        vectors=SqlVectorCache(parts.engine),
        rules=rules or ReadingRules(max_file_bytes=int(parts.settings.max_file_mib * 1024 * 1024)),
        locks=locks,
        worker=await stack.enter_async_context(_worker(serving=parts.serving)),
    )


@asynccontextmanager
async def _worker(*, serving: bool) -> AsyncIterator[Worker]:
    """A command works in its own process; a server uses a separate worker process."""
    if not serving:
        yield InProcess()
        return
    from lectern.jobs.worker_process import Subprocess

    worker = Subprocess(_portable)
    try:
        yield worker
    finally:
        await worker.close()


def build_jobs(engine: AsyncEngine, ingest_deps: IngestDeps, settings: Settings, *, serving: bool) -> Jobs:
    """Jobs whose records are in this database."""
    from lectern.jobs.sources import check_roots

    if serving:
        check_roots(settings.books)
    rules = JobRules(serving=serving, shared=engine.dialect.name != "sqlite", roots=settings.books)
    return Jobs(ingest_deps, SqlJobs(engine), rules)


def _portable(embedder: Embedder) -> bool:
    """Whether an embedder belongs in the worker process: the local model computes, the others wait for a provider."""
    from lectern.models.local.embedder import LocalEmbedder

    return isinstance(embedder, LocalEmbedder)
