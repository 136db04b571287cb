"""Settings, read once from the environment and `.env`, and checked before anything is opened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from lectern.domain.errors import ConfigError

PREFIX = "LECTERN_"
ENV_FILE = ".env"


class Settings(BaseSettings):
    """Everything an operator can set; only `wiring` and the borders ever see it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True
    )

    home: Path | None = Field(
        default=None, description="Folder that holds everything local; default: the nearest .lectern/ upward."
    )
    embedder: Literal["local", "openai", "cohere"] = Field(
        default="local", description="Who turns text into vectors: local, openai or cohere."
    )
    default_book: str | None = Field(default=None, description="The book that is meant when several are indexed.")
    refusal: str = Field(
        default="I couldn't find that information in the book.",
        min_length=1,
        description="The sentence of a refusal.",
    )
    disclaimer: str = Field(
        default="The book covers this only in part, so check the sources.",
        min_length=1,
        description="The sentence that opens an answer of low confidence.",
    )
    max_file_mib: float = Field(default=5, gt=0, le=100, description="Lessons larger than this are refused.")
    answerer: Literal["auto", "openai", "offline"] = Field(
        default="auto",
        description="Who answers: auto is the endpoint where a key or OPENAI_BASE_URL is set, else the offline model.",
    )
    confidence: Literal["calibrated", "thresholds", "relevance"] = Field(
        default="calibrated", description="How confidence is worked out: calibrated, thresholds or relevance."
    )
    temperature: float = Field(default=0.1, ge=0, le=1, description="How freely the model words its answers, 0 to 1.")
    max_tokens: int | None = Field(
        default=None, ge=1, description="The most tokens of an answer; default: the model's."
    )
    instructions: Path | None = Field(
        default=None, description="A file whose text is added to the model's instructions, never in their place."
    )
    turn_budget: float = Field(default=60, gt=0, description="Seconds that a turn may take, tool calls included.")
    database_url: SecretStr | None = Field(
        default=None,
        validation_alias="DATABASE_URL",
        description="A PostgreSQL database instead of the SQLite file in the home.",
    )
    max_turns: int = Field(
        default=50, ge=0, validation_alias="AGENT_MAX_TURNS", description="Turns of a conversation; 0 for no limit."
    )
    thread_wait: float = Field(
        default=30, ge=0, le=600, description="Seconds that a question waits for the one before it in its conversation."
    )
    max_runs: int = Field(default=200, ge=1, description="Questions that one server answers at a time.")
    max_runs_per_key: int = Field(default=100, ge=1, description="The same, of one key or reader.")
    retention_days: float | None = Field(
        default=None, gt=0, description="Conversations that were not used for so long are deleted; default: never."
    )
    shutdown_grace: float = Field(
        default=10, ge=0, le=300, description="Seconds that a stopping server gives to answers that are being made."
    )
    top_k: int = Field(
        default=5, ge=1, le=100, validation_alias="AGENT_TOP_K", description="Passages retrieved for a question."
    )
    score_threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        validation_alias="AGENT_SCORE_THRESHOLD",
        description="The least cosine of a passage; default: the embedder's calibrated floor.",
    )
    openai_model: str = Field(
        default="gpt-4o-mini", validation_alias="OPENAI_MODEL", description="The language model that answers."
    )
    openai_api_key: SecretStr | None = Field(
        default=None, validation_alias="OPENAI_API_KEY", description="Key for OpenAI or a compatible endpoint."
    )
    openai_base_url: str | None = Field(
        default=None, validation_alias="OPENAI_BASE_URL", description="A compatible endpoint instead of OpenAI's own."
    )
    cohere_api_key: SecretStr | None = Field(
        default=None, validation_alias="COHERE_API_KEY", description="Key for Cohere."
    )
    cohere_model: str = Field(
        default="embed-english-v3.0", validation_alias="COHERE_MODEL", description="Cohere's embedding model."
    )
    qdrant_url: str | None = Field(
        default=None, validation_alias="QDRANT_URL", description="A Qdrant server instead of the embedded index."
    )
    qdrant_api_key: SecretStr | None = Field(
        default=None, validation_alias="QDRANT_API_KEY", description="Key for that server."
    )
    collection_stem: str = Field(
        default="documentation",
        validation_alias="QDRANT_COLLECTION_NAME",
        pattern=r"^[A-Za-z0-9_-]{1,100}$",
        description="What the collection's name begins with.",
    )


def load_settings() -> Settings:
    """The settings, or an error that names the variable to mend."""
    _refuse_unknown()
    try:
        return Settings()
    except ValidationError as exc:
        lines = [
            f"{_variable(error['loc'])}: {error['msg']} ({_shown(error['loc'], error['input'])})"
            for error in exc.errors()
        ]
        raise ConfigError("; ".join(lines)) from None  # the cause would print secrets


def variables() -> dict[str, str]:
    """Every variable that is read, with what it does."""
    return {_variable((name,)): field.description or "" for name, field in Settings.model_fields.items()}


def _shown(loc: tuple[int | str, ...], value: object) -> str:
    return "it is not shown" if {"KEY", "DATABASE"} & set(_variable(loc).split("_")) else f"it is {value!r}"


def _refuse_unknown() -> None:
    known = {_variable((name,)) for name in Settings.model_fields}
    given = {*os.environ, *dotenv_values(ENV_FILE)}
    unknown = sorted(name for name in given if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        raise ConfigError(f"unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _variable(loc: tuple[int | str, ...]) -> str:
    name = str(loc[0])
    field = Settings.model_fields.get(name)
    alias = field.validation_alias if field else None
    return alias if isinstance(alias, str) else name if name.isupper() else f"{PREFIX}{name.upper()}"
