"""Tries out the endpoint of a language model for the doctor: is the model listed, does it answer, stream, call tools
and write markers? Three short calls, through the same code as answers, each with a limit of time and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from agents import FunctionTool, Model, ModelTracing
from agents.exceptions import AgentsException
from openai import OpenAIError

from lectern.domain.errors import LecternError, ProviderTimeout, ToolsUnknown
from lectern.models.endpoint import Ending, Endpoint
from lectern.models.provider_errors import PROVIDER, UNREADABLE, errors_of, name_endpoint, sdk_error, unreadable_answer
from lectern.text.markers import renumbered

CheckName = Literal["model list", "model answer", "model markers", "model stream", "model tools"]
Severity = Literal["ok", "note", "problem"]
MAX_SECONDS = 30.0  # of each call
MAX_TOKENS = 256  # of each answer; a model that thinks first needs more than the sentence takes
NO_LIST_STATUSES = (404, 405, 501)
SHOWN_NAMES = 5  # of the models that an endpoint lists

CITING = 'You answer in one short sentence, and end it with the number of the passage in square brackets, as in "[1]".'
QUESTION = "Passage [1]: A node is a process that computes.\nQuestion: What is a node?"
TOOL_TASK = "Call the tool look_up with the word node. Write nothing else."


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointCheck:
    """What was found when one thing was tried."""

    name: CheckName
    severity: Severity
    detail: str


async def check_endpoint(endpoint: Endpoint) -> AsyncIterator[EndpointCheck]:
    """What the endpoint can do, a line each; if the model does not answer, nothing else is tried."""
    yield await _check_list(endpoint)
    ending = Ending()
    try:
        text = await _within_limits(endpoint, _answer(endpoint, ending))
    except LecternError as exc:
        yield EndpointCheck(name="model answer", severity="problem", detail=str(exc))
        return
    yield _answer_check(text, ending)
    yield _marker_check(text)
    yield await _check_stream(endpoint)
    yield await _check_tools(endpoint)


async def _check_list(endpoint: Endpoint) -> EndpointCheck:
    """Whether GET /models names the model. Never a problem by itself: gateways take names that they do not list."""
    try:
        answer: Any = await _within_limits(endpoint, endpoint.client.get("/models", cast_to=object))
        names = [str(row["id"]) for row in answer["data"]]
    except LecternError as exc:
        return EndpointCheck(name="model list", severity="note", detail=str(exc))
    except (OpenAIError, KeyError, *UNREADABLE) as exc:
        detail = "the endpoint lists no models"
        if isinstance(exc, OpenAIError) and getattr(exc, "status_code", None) not in NO_LIST_STATUSES:
            detail = str(name_endpoint(sdk_error(exc), str(endpoint.client.base_url)))
        return EndpointCheck(name="model list", severity="note", detail=detail)
    if endpoint.model in names:
        return EndpointCheck(name="model list", severity="ok", detail=f"{endpoint.model} is listed")
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    detail = f"{endpoint.model} is not among the {len(names)} models listed ({shown}); check OPENAI_MODEL"
    return EndpointCheck(name="model list", severity="note", detail=detail)


def _answer_check(text: str, ending: Ending) -> EndpointCheck:
    if not text.strip():
        detail = "the model gives empty answers; choose another model, or raise LECTERN_MAX_TOKENS"
        return EndpointCheck(name="model answer", severity="problem", detail=detail)
    refused = f"; the endpoint refuses {', '.join(ending.refused)}, so it is left out" if ending.refused else ""
    return EndpointCheck(name="model answer", severity="ok", detail=f"the model answers{refused}")


def _marker_check(text: str) -> EndpointCheck:
    if "[1]" in renumbered(text, lambda number: number):  # in any form that is read
        return EndpointCheck(name="model markers", severity="ok", detail="the model cites with [1] when asked to")
    detail = "the model did not end its sentence with [1], so its answers will cite little; a larger model does better"
    return EndpointCheck(name="model markers", severity="note", detail=detail)


async def _check_stream(endpoint: Endpoint) -> EndpointCheck:
    try:
        pieces = await _within_limits(endpoint, _streamed(endpoint))
    except LecternError as exc:
        return EndpointCheck(name="model stream", severity="problem", detail=str(exc))
    if pieces > 1:
        return EndpointCheck(name="model stream", severity="ok", detail=f"the model streams (in {pieces} pieces)")
    detail = "a streamed answer comes in one piece, so readers wait for all of it; is there a proxy that buffers?"
    return EndpointCheck(name="model stream", severity="note", detail=detail)


async def _check_tools(endpoint: Endpoint) -> EndpointCheck:
    without = "answers rest on the first search alone"
    try:
        names = await _within_limits(endpoint, _called(endpoint))
    except ToolsUnknown:
        detail = f"the endpoint refuses tools for this model, so {without}; vLLM needs --enable-auto-tool-choice"
        return EndpointCheck(name="model tools", severity="note", detail=detail)
    except LecternError as exc:
        return EndpointCheck(name="model tools", severity="note", detail=str(exc))
    if "look_up" in names:
        return EndpointCheck(name="model tools", severity="ok", detail="the model calls tools")
    detail = f"the model did not call a tool when asked to; if it never does, {without}"
    return EndpointCheck(name="model tools", severity="note", detail=detail)


async def _within_limits(endpoint: Endpoint, call: Any) -> Any:  # noqa: ANN401  # whatever the call gives
    """The result of a call, within the limit of time; an error names the endpoint."""
    with errors_of(str(endpoint.client.base_url)):
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await call
        except TimeoutError:
            detail = f"did not answer within {MAX_SECONDS:g} s; is the model still loading?"
            raise ProviderTimeout(PROVIDER, detail) from None
        except AgentsException as exc:
            raise unreadable_answer(PROVIDER, exc) from None


async def _answer(endpoint: Endpoint, ending: Ending) -> str:
    response = await endpoint.sdk_model(ending).get_response(CITING, QUESTION, **_arguments(endpoint))
    return "".join(
        part.text
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "output_text"
    )


async def _streamed(endpoint: Endpoint) -> int:
    """In how many pieces a streamed answer comes."""
    model: Model = endpoint.sdk_model(Ending())
    pieces = 0
    async for event in model.stream_response(CITING, QUESTION, **_arguments(endpoint)):
        pieces += event.type == "response.output_text.delta"
    return pieces


async def _called(endpoint: Endpoint) -> list[str]:
    """The names of the tools that the model calls when it is told to."""
    arguments = _arguments(endpoint) | {"tools": [_LOOK_UP]}
    response = await endpoint.sdk_model(Ending()).get_response("You call tools.", TOOL_TASK, **arguments)
    return [item.name for item in response.output if item.type == "function_call"]


def _arguments(endpoint: Endpoint) -> dict[str, Any]:
    limit = min(endpoint.settings.max_tokens or MAX_TOKENS, MAX_TOKENS)
    return {
        "model_settings": replace(endpoint.settings, max_tokens=limit),
        "tools": [],
        "output_schema": None,
        "handoffs": [],
        "tracing": ModelTracing.DISABLED,
        "previous_response_id": None,
        "conversation_id": None,
        "prompt": None,
    }


async def _never_run(*_: object) -> str:
    return ""


_LOOK_UP = FunctionTool(
    name="look_up",
    description="Look up a word.",
    params_json_schema={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    on_invoke_tool=_never_run,
    strict_json_schema=False,
)
