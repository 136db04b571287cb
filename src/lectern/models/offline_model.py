"""The offline writer as a model of the Agents SDK. It reads the same messages as a language model, so that answering
runs through the same code with and without a key."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any, cast

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from lectern.ports.answering import Passage, PassageWriter

Items = Any  # the SDK's input items


class OfflineModel(Model):
    """Answers from the newest question and the passages retrieved for it."""

    def __init__(self, writer: PassageWriter) -> None:
        self._writer = writer

    async def get_response(  # the SDK's signature
        self,
        system_instructions: str | None,
        input: Items,  # noqa: A002  # the SDK's name
        *_: object,
        **__: object,
    ) -> ModelResponse:
        """The whole answer."""
        message = _message(await self._write(input))
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    async def stream_response(  # the SDK's signature
        self,
        system_instructions: str | None,
        input: Items,  # noqa: A002  # the SDK's name
        *_: object,
        **__: object,
    ) -> AsyncIterator[Any]:
        """The whole answer, as a stream of one piece."""
        text = await self._write(input)
        message = _message(text)
        yield ResponseTextDeltaEvent(
            type="response.output_text.delta",
            delta=text,
            item_id=message.id,
            output_index=0,
            content_index=0,
            sequence_number=0,
            logprobs=[],
        )
        response = Response(
            id=f"resp_{uuid.uuid4().hex}",
            created_at=time.time(),
            model=self._writer.model,
            object="response",
            output=[message],
            parallel_tool_calls=False,
            tool_choice="none",
            tools=[],
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=1)

    async def _write(self, items: Items) -> str:
        question, passages = _question_and_passages(items)
        return "" if passages is None else await self._writer.write(question, passages)


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    name = f"msg_{uuid.uuid4().hex}"
    return ResponseOutputMessage(id=name, type="message", role="assistant", status="completed", content=[content])


def _question_and_passages(items: Items) -> tuple[str, list[Passage] | None]:
    """The newest question and what was retrieved for it; None if this is no question about the book, but a task that
    only a language model can do."""
    question, passages = "", cast("list[Passage] | None", None)
    for item in items:
        if item.get("role") == "user":
            question, passages = str(item["content"]), None
        elif item.get("type") == "function_call_output":
            results = json.loads(item["output"]).get("results", [])
            passages = [*(passages or ()), *(_passage(result) for result in results)]
    return question, passages


def _passage(result: dict[str, Any]) -> Passage:
    heading = result.get("section_heading") or result.get("page_title") or ""
    return Passage(
        number=result.get("rank", 0),  # passages of earlier turns have none
        text=result["chunk_text"],
        heading=heading,
        similarity=result.get("similarity", 0.0),
        page=result.get("page_title") or "",
    )
