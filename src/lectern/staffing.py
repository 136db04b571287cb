"""Who has a part in answering, as the settings name them: the model behind an endpoint or the offline one, the judge,
the policy of confidence. Opened with the first question, because a search needs none of them."""

from __future__ import annotations

from contextlib import AsyncExitStack

from lectern.answering.agent import AgentAnswerer
from lectern.answering.desk import Library
from lectern.answering.instructions import INSTRUCTIONS
from lectern.answering.offline import MODEL_NAME, OfflineWriter
from lectern.answering.offline_model import OfflineModel
from lectern.answering.outgoing import Confidential
from lectern.answering.refusing import PolicyOf
from lectern.answering.second_look import SecondLook
from lectern.answering.support import LocalJudge
from lectern.answering.turns import AnsweringRules, Staff
from lectern.domain.errors import ConfigError
from lectern.embedders.entailment import LocalEntailment
from lectern.embedders.finding import LocalFinder
from lectern.embedders.minilm import LocalEmbedder
from lectern.parts import openai_key
from lectern.ports import Embedder
from lectern.settings import Settings

STATED, WRITTEN = "The lamp is lit at nine.", "In the evening, at nine, somebody lights the lamp."  # to read something


def staff_of(settings: Settings, library: Library, policy: PolicyOf, closing: AsyncExitStack) -> Staff:
    """The staff that the settings name; what has to be closed is closed with the stack."""
    finder = LocalFinder()
    answerer = _answerer(settings, finder, closing)
    quoting = answerer.model == MODEL_NAME
    secrets = (settings.openai_api_key, settings.cohere_api_key, settings.qdrant_api_key)
    return Staff(
        library=library,
        answerer=answerer,
        judge=LocalJudge(LocalEntailment()),
        policy=policy,
        # a language model reads the passages itself; the design documents' own rules are not amended
        second_look=SecondLook(finder) if quoting and settings.confidence == "calibrated" else None,
        confidential=Confidential(
            [answerer.instructions],
            [secret.get_secret_value() for secret in secrets if secret is not None],
            known=INSTRUCTIONS,
        ),
        rules=AnsweringRules(
            refusal=settings.refusal,
            disclaimer=settings.disclaimer,
            top_k=settings.top_k,
            threshold=settings.score_threshold,
            budget=settings.turn_budget,
        ),
    )


async def warm(staff: Staff, embedder: Embedder) -> None:
    """Have every network of this machine loaded that a question will need; no provider is called."""
    if isinstance(embedder, LocalEmbedder):
        await embedder.embed([STATED], purpose="question")
    await staff.judge.judge(STATED, [WRITTEN])
    if staff.second_look is not None:
        await staff.second_look.finder.find(STATED, [("", (WRITTEN,))])


def _answerer(settings: Settings, finder: LocalFinder, closing: AsyncExitStack) -> AgentAnswerer:
    reachable = settings.openai_api_key is not None or settings.openai_base_url is not None
    if settings.answerer == "offline" or (settings.answerer == "auto" and not reachable):
        # whoever embeds the book, the offline model's sentences do not leave the machine
        return AgentAnswerer(OfflineModel(OfflineWriter(LocalEmbedder(), finder)), MODEL_NAME, more=_added(settings))
    return _endpoint(settings, closing)


def _endpoint(settings: Settings, closing: AsyncExitStack) -> AgentAnswerer:
    from agents import ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel

    from lectern.answering.endpoint import client, is_openai

    opened = client(openai_key(settings), settings.openai_base_url, settings.turn_budget)
    closing.push_async_callback(opened.close)
    kind = OpenAIResponsesModel if is_openai(settings.openai_base_url) else OpenAIChatCompletionsModel
    wishes = ModelSettings(
        temperature=settings.temperature, max_tokens=settings.max_tokens, include_usage=True, store=False
    )
    model = kind(model=settings.openai_model, openai_client=opened)
    return AgentAnswerer(model, settings.openai_model, wishes, more=_added(settings))


def _added(settings: Settings) -> str:
    if settings.instructions is None:
        return ""
    try:
        return settings.instructions.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise ConfigError(f"LECTERN_INSTRUCTIONS: {settings.instructions} cannot be read ({exc})") from exc
