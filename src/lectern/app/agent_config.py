"""The settings of answers as one value, under the names that the design documents give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from lectern.app.factories import instructions_of
from lectern.app.settings import Settings, load_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The AgentConfig of the third and fifth design documents and the AgentConfiguration of the second. It can be read;
    Lectern itself is configured by its settings."""

    openai_api_key: str | None = field(repr=False)
    openai_model: str
    top_k: int
    score_threshold: float | None  # None: the embedder's calibrated floor
    max_conversation_turns: int
    temperature: float | None
    max_tokens: int | None
    min_relevance_score: float
    system_prompt: str

    @property
    def model(self) -> str:
        """The model, as the second and fifth documents call it."""
        return self.openai_model

    @classmethod
    def from_env(cls) -> Self:
        """The configuration in the environment and in `.env`."""
        return cls.of(load_settings())

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The part of the settings that is about answers."""
        key = settings.openai_api_key
        return cls(
            openai_api_key=key.get_secret_value() if key else None,
            openai_model=settings.openai_model,
            top_k=settings.top_k,
            score_threshold=settings.score_threshold,
            max_conversation_turns=settings.max_turns,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            min_relevance_score=settings.min_relevance_score,
            system_prompt=instructions_of(settings),
        )
