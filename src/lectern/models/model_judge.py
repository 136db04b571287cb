"""A language model as judge: one call over the claims that the local judge left unconfirmed, with their passages. What
the model says is an opinion: its quotations are checked by whoever asked. A call that fails or cannot be read gives no
opinion, and the local verdicts stand."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents import Agent, AgentOutputSchemaBase, Model, ModelSettings, RunConfig, Runner
from agents.exceptions import AgentsException

from lectern.domain.errors import LecternError
from lectern.models.endpoint import Ending
from lectern.models.provider_errors import UNREADABLE
from lectern.ports.answering import OpenClaim, Opinion, Usage

log = logging.getLogger("lectern.judge")
MAX_PASSAGE_CHARACTERS = 6_000
JUDGE_TOKENS, JUDGE_TOKENS_PER_CLAIM = (
    4_000,
    150,
)  # of an answer; the first are for a model that thinks before it writes
MAX_UNREADABLE = 20  # places of an answer where a row was looked for in vain
VERDICTS = ("supported", "contradicted", "not_said")
ROW_PROPERTIES = {
    "claim": {"type": "integer"},
    "verdict": {"type": "string", "enum": list(VERDICTS)},
    "passage": {"type": ["integer", "null"]},
    "quote": {"type": "string"},
}
ModelOf = Callable[[Ending], Model]  # the model for one run


class _VerdictForm(AgentOutputSchemaBase):
    """The form of the answer, for endpoints that take one. The text is read here row by row in any case: not every
    endpoint keeps to the form, and an answer may be cut off."""

    def is_plain_text(self) -> bool:
        """It is JSON."""
        return False

    def name(self) -> str:
        """A name for the SDK."""
        return "verdicts"

    def json_schema(self) -> dict[str, Any]:
        """The form as JSON schema."""
        row = _object_schema(ROW_PROPERTIES)
        return _object_schema({"claims": {"type": "array", "items": row}})

    def is_strict_json_schema(self) -> bool:
        """Every property is required, and there are no others."""
        return True

    def validate_json(self, json_str: str) -> str:
        """The text as it is."""
        return json_str


def _object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


class EndpointJudge:
    """Asks the endpoint's model."""

    def __init__(self, model_of: ModelOf, instructions: str, settings: ModelSettings | None = None) -> None:
        self._model_of = model_of
        self._settings = settings or ModelSettings()
        self._agent: Agent[None] = Agent(name="Lectern", instructions=instructions, output_type=_VerdictForm())

    async def opinions(
        self, claims: Sequence[OpenClaim], passages: Mapping[int, str]
    ) -> tuple[list[Opinion | None], Usage]:
        """An opinion on each claim; empty if the call failed."""
        try:
            config = RunConfig(
                model=self._model_of(Ending()),
                model_settings=replace(self._settings, max_tokens=JUDGE_TOKENS + JUDGE_TOKENS_PER_CLAIM * len(claims)),
                tracing_disabled=True,
                trace_include_sensitive_data=False,
            )
            result = await Runner.run(self._agent, input=_request(claims, passages), max_turns=1, run_config=config)
        except (LecternError, AgentsException, *UNREADABLE, KeyError, IndexError) as exc:
            log.warning("the model gave no verdicts (%s); the local ones stand", type(exc).__name__)
            return [], Usage(tokens=0)
        usage = Usage(tokens=sum(response.usage.total_tokens or 0 for response in result.raw_responses))
        return _opinions(str(result.final_output or ""), len(claims)), usage


def _request(claims: Sequence[OpenClaim], passages: Mapping[int, str]) -> str:
    """Passages and claims as JSON. All passages are sent: a claim may cite the wrong one."""
    body = {
        "passages": [{"passage": number, "text": text[:MAX_PASSAGE_CHARACTERS]} for number, text in passages.items()],
        "claims": [
            {"claim": number, "text": claim.text, "cites": list(claim.passages)}
            for number, claim in enumerate(claims, start=1)
        ],
    }
    return json.dumps(body, ensure_ascii=False)


def _opinions(text: str, count: int) -> list[Opinion | None]:
    """The opinions in a model's answer; empty if no row of it can be read."""
    rows = list(_rows(text))
    if not rows:
        log.warning("the model's verdicts cannot be read; the local ones stand")
        return []
    opinions: list[Opinion | None] = [None] * count
    for row in rows:
        number = _whole(row.get("claim")) if isinstance(row, dict) else None
        if number is not None and 1 <= number <= count and row.get("verdict") in VERDICTS:
            opinions[number - 1] = Opinion(
                verdict=row["verdict"], quote=str(row.get("quote") or ""), passage=_whole(row.get("passage"))
            )
    return opinions


def _rows(text: str) -> Iterator[Any]:
    """The rows of a model's answer, which may be cut off, or have other text around its JSON."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks in strings
    unreadable = 0
    place = text.find("{")
    while place >= 0 and unreadable < MAX_UNREADABLE:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            unreadable += 1
            end = place + 1
        else:
            rows = value.get("claims", [value])
            yield from rows if isinstance(rows, list) else ()
        place = text.find("{", end)


def _whole(value: Any) -> int | None:  # noqa: ANN401  # whatever a model wrote
    return value if isinstance(value, int) and not isinstance(value, bool) else None
