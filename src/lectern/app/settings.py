"""Settings, read once from the environment and `.env`, and checked before anything is opened."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from lectern.app.home import ENV_FILE
from lectern.domain.errors import BadInput, ConfigError
from lectern.domain.keys import origin_of
from lectern.text.strings import DEFAULT_LANGUAGE, strings_of

PREFIX = "LECTERN_"
LEVELS = ("high", "medium", "low")
ENGLISH = strings_of(DEFAULT_LANGUAGE)
SECRET_WORDS = {"KEY", "DATABASE", "LIMITS"}  # of the names of variables whose values may be secret


def _split_list(value: object) -> object:
    """A list as it is written in a variable: separated by commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(network, strict=False)) for network in networks)


def _origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(origin_of(origin) for origin in origins)
    except BadInput as exc:
        raise ValueError(str(exc)) from None


def _hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    for host in hosts:
        if not re.fullmatch(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", host):
            raise ValueError(f"{host!r} is no host name; write it as in the address, without scheme and port")
    return tuple(host.lower() for host in hosts)


def _redis(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(("redis://", "rediss://")):
        raise ValueError("write redis://host:6379/0, or rediss:// with encryption")
    return url


def _collector(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("write the collector's http or https address, as in http://localhost:4318")
    if parts.username or parts.password:
        raise ValueError("it must hold no user or password; they go into OTEL_EXPORTER_OTLP_HEADERS")
    return address


def _folders(value: object) -> object:
    """Folders as PATH lists them."""
    return tuple(part for part in value.split(os.pathsep) if part.strip()) if isinstance(value, str) else value


def _bars(value: object) -> object:
    """Three pairs, as they are written in a variable: `0.85/5, 0.75/3, 0.60/2`."""
    if not isinstance(value, str):
        return value
    parts = [part.partition("/") for part in value.split(",")]
    if len(parts) != len(LEVELS) or not all(slash for _, slash, _ in parts):
        raise ValueError("write what high, medium and low take, as in 0.85/5, 0.75/3, 0.60/2: relevance/chunks")
    return tuple((similarity.strip(), chunks.strip()) for similarity, _, chunks in parts)


def _check_bars(bars: tuple[tuple[float, int], ...]) -> tuple[tuple[float, int], ...]:
    similarities = [1.0, *(similarity for similarity, _ in bars)]
    if sorted(similarities, reverse=True) != similarities or similarities[-1] <= 0 or any(n < 1 for _, n in bars):
        raise ValueError(
            "similarities must fall from high to low, within 0 and 1, and a level takes one chunk at least"
        )
    return bars


def _none(value: object) -> object:
    return None if isinstance(value, str) and value.strip().lower() == "none" else value


Temperature = Annotated[Annotated[float, Field(ge=0, le=1)] | None, BeforeValidator(_none)]
Bars = Annotated[tuple[tuple[float, int], ...], NoDecode, BeforeValidator(_bars), AfterValidator(_check_bars)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)]
Collector = Annotated[str, AfterValidator(_collector)]
Folders = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_folders)]


class Settings(BaseSettings):
    """Everything an operator can set; only `app` and the layers above it see it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True
    )

    home: Path | None = Field(
        default=None,
        description="Folder for all local files, which no other user may read; default: the nearest .lectern/ in this "
        "folder or above.",
    )
    embedder: Literal["local", "openai", "cohere"] = Field(
        default="local", description="Who turns text into vectors: local, openai or cohere (needs `lectern[cohere]`)."
    )
    default_book: str | None = Field(
        default=None, description="The book to use when several are indexed and none is named."
    )
    books: Folders = Field(
        default=(),
        description="Folders below which books may be ingested over HTTP, separated as in PATH; default: none.",
    )
    refusal: str = Field(
        default=ENGLISH("refusal.default"),
        min_length=1,
        description="The text of a refusal; default: in the book's language.",
    )
    disclaimer: str = Field(
        default=ENGLISH("answer.disclaimer"),
        min_length=1,
        description="The sentence that opens an answer of low confidence; default: in the book's language.",
    )
    max_file_mib: float = Field(
        default=5, gt=0, le=100, description="Largest file of a lesson, in MiB; a larger one is rejected."
    )
    min_free_mib: float = Field(
        default=256,
        ge=0,
        description="MiB that must be free on the disk of LECTERN_HOME before an ingestion writes a batch.",
    )
    answerer: Literal["auto", "openai", "offline"] = Field(
        default="auto",
        description="What answers: openai, offline, or auto (openai if a key or OPENAI_BASE_URL is set, else offline).",
    )
    judge: Literal["auto", "local", "model"] = Field(
        default="auto",
        description="What judges an answer's claims: local, model (the local judge first, then the language model "
        "about what that one leaves open), or auto (model if a language model answers).",
    )
    judge_seconds: float = Field(
        default=20,
        gt=0,
        description="Seconds that the language model may take to judge an answer, and at most what is left of the "
        "turn; then the local verdicts stand.",
    )
    doubtful: Literal["flag", "hide"] = Field(
        default="flag", description="What happens to doubtful claims: flag, or hide (an ellipsis stands for each)."
    )
    reading_tokens: int = Field(
        default=6000, ge=500, description="About how many tokens of passages a language model gets at first."
    )
    history_tokens: int = Field(
        default=3000,
        ge=0,
        description="About how many tokens of passages from earlier turns a language model gets again; 0 for none.",
    )
    confidence: Literal["calibrated", "thresholds", "relevance"] = Field(
        default="calibrated", description="How confidence is computed: calibrated, thresholds or relevance."
    )
    thresholds: Bars = Field(
        default=(),
        description="Policy thresholds: the average relevance/chunks that high, medium and low need; "
        "default: 0.85/5, 0.75/3, 0.60/2.",
    )
    min_relevance_score: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="Policy relevance: the relevance from which the best passage makes an answer's confidence high.",
    )
    temperature: Temperature = Field(
        default=0.1, description="Temperature of the language model, 0 to 1, or none: then the model's own."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum tokens of an answer; default: the model's.")
    instructions: Path | None = Field(
        default=None, description="A file whose text is added to the model's instructions; it does not replace them."
    )
    style: Path | None = Field(
        default=None,
        description="A file whose text replaces what the model's instructions say about wording and form; the rules on "
        "passages, citations and refusals stay.",
    )
    turn_budget: float = Field(default=60, gt=0, description="Seconds that a turn may take, tool calls included.")
    database_url: SecretStr | None = Field(
        default=None,
        validation_alias="DATABASE_URL",
        description="A PostgreSQL database instead of the SQLite file in the home (needs `lectern[server]`).",
    )
    postgres_connections: int = Field(
        default=30,
        ge=2,
        le=1000,
        description="Most connections to PostgreSQL that one process opens; a third of them stays open.",
    )
    max_turns: int = Field(
        default=50,
        ge=0,
        validation_alias="AGENT_MAX_TURNS",
        description="Maximum turns of a conversation; 0 for no limit.",
    )
    thread_wait: float = Field(
        default=30, ge=0, le=600, description="Seconds that a question waits for the one before it in its conversation."
    )
    max_runs: int = Field(default=200, ge=1, description="Maximum questions that one server answers at a time.")
    max_runs_per_key: int = Field(
        default=100, ge=1, description="Maximum questions of one key or reader that one server answers at a time."
    )
    retention_days: float | None = Field(
        default=None, gt=0, description="Days after which an unused conversation is deleted; default: never."
    )
    log_format: Literal["auto", "json", "console"] = Field(
        default="auto", description="Form of log lines: json, console (readable) or auto (console on a terminal)."
    )
    insights_questions: bool = Field(
        default=False, description="Show the texts of readers' questions and comments in insights."
    )
    log_questions: bool = Field(default=False, description="Also log the text of questions.")
    otlp_endpoint: Collector | None = Field(
        default=None,
        validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT",
        description="An OpenTelemetry collector that gets traces over HTTP (needs `lectern[traces]`); default: none.",
    )
    otlp_traces_endpoint: Collector | None = Field(
        default=None,
        validation_alias="OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        description="The same as a whole address, /v1/traces or another path included.",
    )
    otel_disabled: str = Field(
        default="", validation_alias="OTEL_SDK_DISABLED", description="`true` sends no traces, whatever else is set."
    )
    traces_exporter: str = Field(
        default="", validation_alias="OTEL_TRACES_EXPORTER", description="`none` sends no traces, too."
    )
    shutdown_grace: float = Field(
        default=10, ge=0, le=300, description="Seconds that a stopping server waits for answers in progress."
    )
    shutdown_delay: float = Field(
        default=5,
        ge=0,
        le=300,
        description="Seconds that a server goes on after SIGTERM although /health/ready says that it stops, so that a "
        "load balancer turns to others before the socket closes. Ctrl-C does not wait.",
    )
    request_timeout: float = Field(
        default=20, gt=0, le=600, description="Seconds that a client may take to send a request."
    )
    rate_limit: int = Field(
        default=100,
        ge=0,
        description="Requests a minute for one key, or without keys for one address; 0 for no limits.",
    )
    reader_rate_limit: int = Field(
        default=30, ge=0, description="Requests a minute for one reader of a publishable key; 0 for the key's limit."
    )
    limits_url: Annotated[SecretStr, AfterValidator(_redis)] | None = Field(
        default=None,
        description="A Redis in which several servers count requests together (needs `lectern[server]`); "
        "default: each on its own.",
    )
    proxies: Annotated[Names, AfterValidator(_networks)] = Field(
        default=(), description="Proxies whose X-Forwarded-For is trusted: addresses or networks, separated by commas."
    )
    hosts: Annotated[Names, AfterValidator(_hosts)] = Field(
        default=(),
        description="Host names that the server answers to, besides this machine's own, separated by commas.",
    )
    origins: Annotated[Names, AfterValidator(_origins)] = Field(
        default=(),
        description="Origins of pages that may use the API, besides those of publishable keys, separated by commas.",
    )
    top_k: int = Field(
        default=5, ge=1, le=100, validation_alias="AGENT_TOP_K", description="Passages retrieved for a question."
    )
    score_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        validation_alias="AGENT_SCORE_THRESHOLD",
        description="Lowest relevance of a passage, 0 to 1; default: the embedder's calibrated floor.",
    )
    openai_model: str = Field(
        default="gpt-4o-mini",
        validation_alias="OPENAI_MODEL",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$",
        description="The language model that answers.",
    )
    openai_api_key: SecretStr | None = Field(
        default=None, validation_alias="OPENAI_API_KEY", description="Key for OpenAI or a compatible endpoint."
    )
    openai_base_url: str | None = Field(
        default=None, validation_alias="OPENAI_BASE_URL", description="A compatible endpoint instead of OpenAI's own."
    )
    openai_embedding_model: str = Field(
        default="text-embedding-3-small",
        validation_alias="OPENAI_EMBEDDING_MODEL",
        description="The embedding model of OpenAI or of that endpoint; any number of dimensions.",
    )
    openai_api: Literal["auto", "responses", "chat"] = Field(
        default="auto",
        description="How the language model is called: responses, chat (Chat Completions), or auto (responses at "
        "OpenAI's own host, else chat).",
    )
    cohere_api_key: SecretStr | None = Field(
        default=None, validation_alias="COHERE_API_KEY", description="Key for Cohere."
    )
    cohere_model: str = Field(
        default="embed-english-v3.0",
        validation_alias="COHERE_MODEL",
        description="Cohere's embedding model; any number of dimensions.",
    )
    qdrant_url: str | None = Field(
        default=None,
        validation_alias="QDRANT_URL",
        description="A Qdrant server instead of the embedded index (needs `lectern[server]`); the nodes of a cluster, "
        "separated by commas.",
    )
    qdrant_api_key: SecretStr | None = Field(
        default=None, validation_alias="QDRANT_API_KEY", description="Key for that server."
    )
    collection_stem: str = Field(
        default="documentation",
        validation_alias="QDRANT_COLLECTION_NAME",
        pattern=r"^[A-Za-z0-9_-]{1,100}$",
        description="First part of the collection's name.",
    )
    qdrant_timeout: float = Field(
        default=5, gt=0, le=600, description="Seconds that a reader waits for the Qdrant server, all nodes together."
    )
    qdrant_grpc_port: int | None = Field(
        default=None, ge=1, le=65535, description="The port at which every node is asked over gRPC; default: REST."
    )
    qdrant_shards: int | None = Field(
        default=None, ge=1, le=64, description="Shards of a new collection; default: one for each node."
    )
    qdrant_replicas: int = Field(
        default=1, ge=1, le=64, description="Nodes that hold each shard; with 2, any one node may be lost."
    )
    qdrant_write_consistency: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Copies that a write must reach; as many as there are nodes for them means that none may be lost.",
    )
    qdrant_on_disk: bool = Field(default=False, description="Leave vectors and payloads on the disk.")
    qdrant_quantization: Literal["none", "scalar", "binary"] = Field(
        default="none", description="Smaller vectors in memory, for books that are searched approximately."
    )
    qdrant_graph_per_book: bool = Field(
        default=True, description="A search graph for each book; without it, one for all books besides."
    )
    qdrant_exact_below: int = Field(
        default=50_000, ge=0, description="Chunks from which on a book is searched approximately, through its graph."
    )

    @property
    def answers_offline(self) -> bool:
        """Whether no language model answers."""
        is_reachable = self.openai_api_key is not None or self.openai_base_url is not None
        return self.answerer == "offline" or (self.answerer == "auto" and not is_reachable)

    @model_validator(mode="after")
    def _check_judge(self) -> Self:
        """A model can only judge where there is one."""
        if self.judge == "model" and self.answers_offline:
            raise ConfigError(
                "LECTERN_JUDGE is 'model', but no language model is set; set OPENAI_API_KEY or OPENAI_BASE_URL, or "
                "LECTERN_JUDGE=auto"
            )
        return self

    @model_validator(mode="after")
    def _check_copies(self) -> Self:
        """Qdrant takes a number of copies that no write can reach, and then waits for fewer."""
        if self.qdrant_write_consistency > self.qdrant_replicas:
            raise ConfigError(
                f"LECTERN_QDRANT_WRITE_CONSISTENCY is {self.qdrant_write_consistency}, but LECTERN_QDRANT_REPLICAS is "
                f"{self.qdrant_replicas}: a write cannot reach more copies than there are. Lower the one or raise the "
                "other"
            )
        return self

    def secrets(self) -> list[str]:
        """Values that must never be shown."""
        return [value.get_secret_value() for _, value in self if isinstance(value, SecretStr)]


def load_settings() -> Settings:
    """The settings, or an error that names the wrong variable."""
    _refuse_unknown()
    try:
        return Settings()
    except ValidationError as exc:
        lines = [
            f"{_variable(error['loc'])}: {error['msg']} ({_value_text(error['loc'], error['input'])})"
            for error in exc.errors()
        ]
        raise ConfigError("; ".join(lines)) from None  # the cause would print secrets


def variables() -> dict[str, str]:
    """Every variable that is read, with what it does."""
    return {_variable((name,)): field.description or "" for name, field in Settings.model_fields.items()}


def changed_variables() -> dict[str, str]:
    """The variables of the environment and of `.env` that set something else than the default, as they are written."""
    names = {_variable((name,)): field.default for name, field in Settings.model_fields.items()}
    written = {name.upper(): value or "" for name, value in (*dotenv_values(ENV_FILE).items(), *os.environ.items())}
    return {
        name: written[name]
        for name, default in names.items()
        if name in written and written[name] not in ("", str(default))
    }


def _value_text(loc: tuple[int | str, ...], value: object) -> str:
    return "it is not shown" if SECRET_WORDS & set(_variable(loc).split("_")) else f"it is {value!r}"


def _refuse_unknown() -> None:
    known_names = {_variable((name,)) for name in Settings.model_fields}
    set_names = {*os.environ, *dotenv_values(ENV_FILE)}
    unknown = sorted(name for name in set_names if name.upper().startswith(PREFIX) and name.upper() not in known_names)
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r}; known are {', '.join(sorted(known_names))}")


def _variable(loc: tuple[int | str, ...]) -> str:
    name = str(loc[0])
    field = Settings.model_fields.get(name)
    alias = field.validation_alias if field else None
    return alias if isinstance(alias, str) else name if name.isupper() else f"{PREFIX}{name.upper()}"
