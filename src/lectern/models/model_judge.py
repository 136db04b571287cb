"""A language model as judge: one call over the claims that the local judge left unconfirmed, with their passages. What
the model says is an opinion: its quotations are checked by whoever asked. A call that fails or cannot be read gives no
opinion, and the local verdicts stand."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents import Agent, Model, ModelSettings, RunConfig, Runner
from agents.exceptions import AgentsException

from lectern.domain.errors import LecternError
from lectern.models.endpoint import Ending
from lectern.models.provider_errors import UNREADABLE
from lectern.ports.answering import OpenClaim, Opinion, Usage

log = logging.getLogger("lectern.judge")
MAX_PASSAGE_CHARACTERS = 6_000
VERDICTS = ("supported", "contradicted", "not_said")
ModelOf = Callable[[Ending], Model]  # the model for one run
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)


class EndpointJudge:
    """Asks the endpoint's model."""

    def __init__(self, model_of: ModelOf, instructions: str, settings: ModelSettings | None = None) -> None:
        self._model_of = model_of
        self._agent: Agent[None] = Agent(
            name="Lectern", instructions=instructions, model_settings=settings or ModelSettings()
        )

    async def opinions(
        self, claims: Sequence[OpenClaim], passages: Mapping[int, str]
    ) -> tuple[list[Opinion | None], Usage]:
        """An opinion on each claim; empty if the call failed."""
        try:
            config = RunConfig(
                model=self._model_of(Ending()), tracing_disabled=True, trace_include_sensitive_data=False
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
    """The opinions in a model's answer, which may have other text around its JSON."""
    opinions: list[Opinion | None] = [None] * count
    match = _OBJECT.search(text)
    try:
        rows = json.loads(match[0])["claims"] if match else []
    except (ValueError, KeyError, TypeError, RecursionError):
        log.warning("the model's verdicts cannot be read; the local ones stand")
        return []
    for row in rows if isinstance(rows, list) else []:
        number = _whole(row.get("claim")) if isinstance(row, dict) else None
        if number is not None and 1 <= number <= count and row.get("verdict") in VERDICTS:
            opinions[number - 1] = Opinion(
                verdict=row["verdict"], quote=str(row.get("quote") or ""), passage=_whole(row.get("passage"))
            )
    return opinions


def _whole(value: Any) -> int | None:  # noqa: ANN401  # whatever a model wrote
    return value if isinstance(value, int) and not isinstance(value, bool) else None
