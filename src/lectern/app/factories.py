"""Builds the parts that the settings name: embedder and index; answerer, judge and confidence policy; the worker and
the jobs. Parts for answering are built, and their packages imported, for the first question, because nothing else needs
them. The packages of an extra are imported only if a setting needs them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.answering.ask import AnsweringRules, AskDeps
from lectern.answering.confidential import Confidential
from lectern.answering.desk import Library
from lectern.answering.instructions import (
    JUDGING,
    NOT_COVERED,
    REWRITING,
    STYLE,
    SUMMARISING,
    answering_instructions,
)
from lectern.answering.offline.writer import MODEL_NAME, OfflineWriter
from lectern.answering.suggestions import PolicyOf
from lectern.app.collections import OpenCollections
from lectern.app.home import Home
from lectern.app.settings import Settings
from lectern.confidence.answerability import Answerability
from lectern.domain.chunks import model_of
from lectern.domain.errors import ConfigError
from lectern.domain.extras import import_extra
from lectern.domain.tracing import UNTRACED
from lectern.grounding.judge import LocalJudge
from lectern.index.schema import collection_name
from lectern.ingestion.ingest import IngestDeps
from lectern.ingestion.outages import Patience
from lectern.ingestion.replacing import recover_all, verify_all
from lectern.ingestion.worker import InProcess, Worker
from lectern.jobs.runner import JobRules, Jobs
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.models.local.embedder import LocalEmbedder
from lectern.models.local.entailment import LocalEntailment
from lectern.ports.index import ChunkIndex, Embedder, Serving
from lectern.ports.tracing import Tracer
from lectern.reading.chunking import ReadingRules
from lectern.store.jobs import SqlJobs
from lectern.store.ledger import SqlLedger
from lectern.store.locks import SqlBookLocks
from lectern.store.vectors import SqlVectorCache

if TYPE_CHECKING:
    from lectern.models.agent import AgentAnswerer, Prompts
    from lectern.models.cohere import CohereEmbedder
    from lectern.models.endpoint import Api, Endpoint
    from lectern.models.endpoint_check import EndpointCheck
    from lectern.models.openai import OpenAIEmbedder

READING_PASSAGES = 10  # that a language model gets, if a request names no number
QUOTED_PASSAGES = 8  # that the offline model reads: the answer is among five in 88 of 100, among eight in 91
COMMAND_OUTAGE_SECONDS = 600.0  # that a command waits for a server it needs; a server's jobs wait as long as it takes
MIN_KEY_LENGTH = 40
OPENAI_MODEL_NAME = re.compile(r"(?:ft:)?(?:gpt-|chatgpt-|o\d|codex-|computer-use-)[\w.:-]*")
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

    @cached_property
    def ledger(self) -> SqlLedger:
        """The one ledger of a process: what it knows of the books is in it."""
        return SqlLedger(self.engine)

    async def embedder(self, fingerprints: Collection[str]) -> Embedder:
        """The embedder that the settings name. The dimensions of its model are those of a book that was indexed with
        it (`fingerprints`), or the provider is asked once."""
        name = self.settings.embedder
        models = {"openai": self.settings.openai_embedding_model, "cohere": self.settings.cohere_model}
        model = models.get(name, "")
        same = (indexed for indexed in fingerprints if indexed.startswith(f"{name}/") and model_of(indexed) == model)
        known = (int(indexed.rpartition("/")[2]) for indexed in same)
        embedder = self._embedder(name, model, next(known, None))
        if not isinstance(embedder, LocalEmbedder):
            await embedder.ask_dimensions()
        return embedder

    def _embedder(
        self, name: str, model: str, dimensions: int | None
    ) -> LocalEmbedder | OpenAIEmbedder | CohereEmbedder:
        match name:
            case "local":
                from lectern.models.local.embedder import LocalEmbedder

                return LocalEmbedder()
            case "openai":
                return self._openai(model, dimensions)
            case "cohere":
                return self._cohere(model, dimensions)
            case unknown:
                raise ConfigError(f"there is no embedder {unknown!r}; LECTERN_EMBEDDER is local, openai or cohere")

    def embedder_of(self, fingerprint: str) -> Embedder:
        """The embedder behind a fingerprint, if it can run here."""
        provider, _, rest = fingerprint.partition("/")
        model, _, dimensions = rest.rpartition("/")
        embedder = self._embedder(provider, model, int(dimensions))
        if embedder.fingerprint != fingerprint:
            raise ConfigError(f"here it would be {embedder.fingerprint!r}")
        return embedder

    def _openai(self, model: str, dimensions: int | None) -> OpenAIEmbedder:
        from lectern.models.openai import OpenAIEmbedder
        from lectern.models.provider_errors import BASE_URL

        embedder = OpenAIEmbedder(
            openai_key(self.settings),
            base_url=self.settings.openai_base_url or BASE_URL,
            model=model,
            dimensions=dimensions,
        )
        self._stack.push_async_callback(embedder.aclose)
        return embedder

    def _cohere(self, model: str, dimensions: int | None) -> CohereEmbedder:
        import_extra("cohere", extra="cohere", setting="LECTERN_EMBEDDER=cohere")
        from lectern.models.cohere import CohereEmbedder

        if self.settings.cohere_api_key is None:
            raise ConfigError("the embedder 'cohere' needs COHERE_API_KEY")
        key = self.settings.cohere_api_key.get_secret_value()
        embedder = CohereEmbedder(key, model=model, dimensions=dimensions)
        self._stack.push_async_callback(embedder.aclose)
        return embedder

    def index(self, collection: str, dimensions: int | None) -> AbstractAsyncContextManager[ChunkIndex]:
        """The index of a collection: on the server that QDRANT_URL names, else in the home."""
        if self.settings.qdrant_url is None:
            from lectern.index.edge import open_edge_index

            min_free = int(self.settings.min_free_mib * 1024 * 1024)
            lexicon = self.ledger.generations(collection)
            return open_edge_index(
                self._home.indexes, collection, dimensions, lexicon, serving=self.serving, min_free=min_free
            )
        import_extra("qdrant_client", extra="server", setting="QDRANT_URL")
        from lectern.index.layout import Layout
        from lectern.index.nodes import connect
        from lectern.index.server import open_server_index

        settings = self.settings
        key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
        client = connect(
            self.settings.qdrant_url, key, seconds=settings.qdrant_timeout, grpc_port=settings.qdrant_grpc_port
        )
        layout = Layout(
            shards=settings.qdrant_shards,
            replicas=settings.qdrant_replicas,
            write_consistency=settings.qdrant_write_consistency,
            on_disk=settings.qdrant_on_disk,
            quantization=settings.qdrant_quantization,
            graph_per_book=settings.qdrant_graph_per_book,
            exact_below=settings.qdrant_exact_below,
        )
        return open_server_index(client, collection, dimensions, self.ledger.generations(collection), layout)


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


def openai_model(settings: Settings) -> str:
    """The model that answers, checked for its form: at OpenAI, the name of one of its language models."""
    name = settings.openai_model
    if settings.openai_base_url is None and not OPENAI_MODEL_NAME.fullmatch(name):
        raise ConfigError(
            f"OPENAI_MODEL is {name!r}, which is no language model of OpenAI (such as gpt-4o-mini); "
            "for another endpoint set OPENAI_BASE_URL too"
        )
    return name


def check_settings(settings: Settings) -> None:
    """Raise an error if a provider that the settings name cannot be used with them, before anybody asks."""
    if not settings.answers_offline:
        openai_key(settings)
        openai_model(settings)
    if settings.embedder == "openai":
        openai_key(settings)


def build_ask_deps(
    settings: Settings, library: Library, policy: PolicyOf, stack: AsyncExitStack, tracer: Tracer = UNTRACED
) -> AskDeps:
    """What answering needs, as the settings name it; the stack closes it."""
    locator = answer_locator()
    answerer = _answerer(settings, locator, stack, tracer)
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
            signs=[NOT_COVERED],
        ),
        answers_offline=quoting,
        rules=AnsweringRules(
            refusal=_operators_own(settings, "refusal"),
            disclaimer=_operators_own(settings, "disclaimer"),
            top_k=settings.top_k,
            threshold=settings.score_threshold,
            reading_passages=QUOTED_PASSAGES if quoting else READING_PASSAGES,
            reading_tokens=settings.reading_tokens,
            history_tokens=settings.history_tokens,
            hide_doubtful=settings.doubtful == "hide",
            budget=settings.turn_budget,
            judge_seconds=settings.judge_seconds,
        ),
        tracer=tracer,
    )


def _operators_own(settings: Settings, name: str) -> str | None:
    """A sentence that the operator set; None if the book's language decides."""
    return getattr(settings, name) if name in settings.model_fields_set else None


def is_free(embedder: Embedder) -> bool:
    """Whether an embedder runs on this machine."""
    return isinstance(embedder, LocalEmbedder)


async def load_models(deps: AskDeps, embedder: Embedder) -> None:
    """Load every local network that a question will need; no provider is called."""
    if isinstance(embedder, LocalEmbedder):
        await embedder.embed([WARM_UP_SENTENCE], purpose="question")
    await deps.judge.judge(WARM_UP_SENTENCE, [WARM_UP_PASSAGE])
    if deps.answerability is not None:
        await deps.answerability.locator.find(WARM_UP_SENTENCE, [("", (WARM_UP_PASSAGE,))])


def answer_locator() -> LocalAnswerLocator:
    """The network that says which passages answer a question; it is loaded with its first use."""
    return LocalAnswerLocator()


def _answerer(settings: Settings, locator: LocalAnswerLocator, stack: AsyncExitStack, tracer: Tracer) -> AgentAnswerer:
    from lectern.models.agent import AgentAnswerer
    from lectern.models.offline_model import OfflineModel

    if settings.answers_offline:
        # whatever embeds the book, the offline model's sentences stay on this machine
        model = OfflineModel(OfflineWriter(locator))
        return AgentAnswerer(lambda _: model, MODEL_NAME, _prompts(settings))
    return endpoint_answerer(settings, stack, tracer)


def endpoint_answerer(settings: Settings, stack: AsyncExitStack, tracer: Tracer = UNTRACED) -> AgentAnswerer:
    """The language model behind the endpoint that the settings name; the stack closes it."""
    from lectern.models.agent import AgentAnswerer

    endpoint = replace(_endpoint(settings, stack), trace_headers=tracer.headers)
    return AgentAnswerer(endpoint.sdk_model, endpoint.model, _prompts(settings), endpoint.settings)


async def check_endpoint(settings: Settings) -> AsyncIterator[EndpointCheck]:
    """What the endpoint that the settings name can do; nothing if they name none."""
    from lectern.models import endpoint_check

    if settings.answers_offline:
        return
    async with AsyncExitStack() as stack:
        async for check in endpoint_check.check_endpoint(_endpoint(settings, stack)):
            yield check


def model_description(settings: Settings) -> str:
    """The model that answers, and where it is."""
    if settings.answers_offline:
        return MODEL_NAME
    from lectern.models.provider_errors import BASE_URL

    return f"{settings.openai_model} at {urlsplit(settings.openai_base_url or BASE_URL).netloc}"


def parts_description(settings: Settings, fingerprint: str) -> str:
    """What a server runs on, in one line without secrets: model, embedder, index and database."""
    nodes = [urlsplit(url.strip()).netloc.rpartition("@")[2] for url in (settings.qdrant_url or "").split(",")]
    index = f"Qdrant at {', '.join(nodes)}" if settings.qdrant_url else "embedded"
    database = "SQLite"
    if settings.database_url is not None:
        url = urlsplit(settings.database_url.get_secret_value())
        database = f"PostgreSQL {url.path.strip('/')} at {url.hostname or 'its socket'}"
    return f"Model: {model_description(settings)} · embedder: {fingerprint} · index: {index} · database: {database}"


def _endpoint(settings: Settings, stack: AsyncExitStack) -> Endpoint:
    from agents import ModelSettings

    from lectern.models.endpoint import Endpoint, client
    from lectern.models.provider_errors import is_openai

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
    return Endpoint(client=openai_client, model=openai_model(settings), api=api, settings=model_settings)


def instructions_of(settings: Settings) -> str:
    """The instructions for answers, with the texts of the operator's files."""
    style = _text_of("LECTERN_STYLE", settings.style) or STYLE
    return answering_instructions(style, _text_of("LECTERN_INSTRUCTIONS", settings.instructions))


def _prompts(settings: Settings) -> Prompts:
    from lectern.models.agent import Prompts

    return Prompts(answering=instructions_of(settings), rewriting=REWRITING, summarising=SUMMARISING)


def _text_of(variable: str, file: Path | None) -> str:
    """The text of a file that the operator names."""
    if file is None:
        return ""
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as exc:
        raise ConfigError(f"{variable}: {file} cannot be read ({exc})") from exc


async def open_ingest_deps(parts: PartFactory, stack: AsyncExitStack, rules: ReadingRules | None) -> IngestDeps:
    """What an ingestion needs. Changes that a killed process left unfinished are completed first."""
    locks = SqlBookLocks(parts.engine)
    ledger = parts.ledger.fenced(locks.check)
    embedder = await parts.embedder([entry.fingerprint for entry in await ledger.books()])
    name = collection_name(parts.settings.collection_stem, embedder.fingerprint)
    index = await stack.enter_async_context(parts.index(name, embedder.dimensions))
    collections = OpenCollections(stack, Serving(embedder=embedder, index=index), parts.index, parts.embedder_of)
    await recover_all(ledger, collections, locks)
    await verify_all(ledger, collections, locks)
    return IngestDeps(
        ledger=ledger,
        collections=collections,
        vectors=SqlVectorCache(parts.engine),
        rules=rules
        or ReadingRules(
            max_file_bytes=int(parts.settings.max_file_mib * 1024 * 1024),
            include_limits=tuple(map(str, parts.settings.books)),
        ),
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


@asynccontextmanager
async def open_tracer(settings: Settings) -> AsyncIterator[Tracer]:
    """What records spans: nothing, unless the settings name a collector."""
    base, endpoint = settings.otlp_endpoint, settings.otlp_traces_endpoint
    is_off = settings.otel_disabled.lower() == "true" or settings.traces_exporter == "none"
    if (base is None and endpoint is None) or is_off:
        yield UNTRACED
        return
    setting = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" if base is None else "OTEL_EXPORTER_OTLP_ENDPOINT"
    for package in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        import_extra(package, extra="traces", setting=setting)
    from lectern.app.traces import open_traces

    async with open_traces(base, endpoint) as tracer:
        yield tracer


def build_jobs(engine: AsyncEngine, ingest_deps: IngestDeps, settings: Settings, *, serving: bool) -> Jobs:
    """Jobs whose records are in this database."""
    from lectern.jobs.sources import check_roots

    if serving:
        check_roots(settings.books)
    patience = Patience() if serving else Patience(longest_outage=COMMAND_OUTAGE_SECONDS)
    shared = engine.dialect.name != "sqlite"
    rules = JobRules(serving=serving, shared=shared, roots=settings.books, patience=patience)
    assert isinstance(ingest_deps.locks, SqlBookLocks)  # from `open_ingest_deps`
    return Jobs(ingest_deps, SqlJobs(engine, ingest_deps.locks.check), rules)


def _portable(embedder: Embedder) -> bool:
    """Whether an embedder belongs in the worker process: the local model computes, the others wait for a provider."""
    from lectern.models.local.embedder import LocalEmbedder

    return isinstance(embedder, LocalEmbedder)
