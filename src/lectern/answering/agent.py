"""The agent run. The only module that imports the Agents SDK: whoever answers, a language model or the offline one,
does so inside the same run, behind the same instructions, with retrieval already done and put in as a completed tool
call."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import AsyncIterator
from typing import Any

os.environ.setdefault(
    "OPENAI_AGENTS_DISABLE_TRACING", "1"
)  # the SDK sends traces out by default, whatever the endpoint

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from lectern.answering.instructions import INSTRUCTIONS
from lectern.answering.offline import MODEL_NAME, OfflineWriter, Passage
from lectern.answering.passages import TOOL_NAME, tool_response
from lectern.domain.evidence import Dossier
from lectern.domain.replies import Draft

set_tracing_disabled(True)  # the SDK's signature

MAX_TURNS = 8


class AgentAnswerer:
    """Drafts answers with the Agents SDK."""

    def __init__(self, model: Model, name: str) -> None:
        self._agent: Agent[None] = Agent(name="Lectern", instructions=INSTRUCTIONS, model=model)
        self.model = name

    async def draft(self, question: str, dossier: Dossier) -> Draft:
        """An answer with `[n]` markers, unchecked."""
        result = await Runner.run(
            self._agent,
            input=_conversation(question, dossier),
            max_turns=MAX_TURNS,
            run_config=RunConfig(tracing_disabled=True),
        )
        usage = sum(response.usage.total_tokens for response in result.raw_responses)
        return Draft(text=str(result.final_output), model=self.model, tokens_used=usage)


def offline_answerer(writer: OfflineWriter) -> AgentAnswerer:
    """The answerer that needs no key."""
    return AgentAnswerer(OfflineModel(writer), MODEL_NAME)


def _conversation(question: str, dossier: Dossier) -> list[Any]:
    """The question, followed by a retrieval that has already happened: no model can answer without one."""
    call = f"call_{uuid.uuid4().hex}"
    arguments = json.dumps({"query": dossier.question}, ensure_ascii=False)
    return [
        {"role": "user", "content": question},
        {"type": "function_call", "call_id": call, "name": TOOL_NAME, "arguments": arguments},
        {"type": "function_call_output", "call_id": call, "output": tool_response(dossier)},
    ]


class OfflineModel(Model):
    """The offline writer behind the SDK's model interface: it reads what any model would read, and nothing else."""

    def __init__(self, writer: OfflineWriter) -> None:
        self._writer = writer

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002, ANN401  # the SDK's signature
        """Answer from the newest question and the passages retrieved for it."""
        question, passages = _read(input)
        text = await self._writer.write(question, passages)
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id=f"msg_{uuid.uuid4().hex}", type="message", role="assistant", status="completed", content=[content]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:  # noqa: ANN401  # the SDK's signature
        """Not used: a draft is shown only when it has been checked."""
        raise NotImplementedError


def _read(items: Any) -> tuple[str, list[Passage]]:  # noqa: ANN401  # the SDK's input items
    question, passages = "", list[Passage]()
    for item in items:
        if item.get("role") == "user":
            question, passages = str(item["content"]), []
        elif item.get("type") == "function_call_output":
            results = json.loads(item["output"]).get("results", [])
            passages += [Passage(number=result["rank"], text=result["chunk_text"]) for result in results]
    return question, passages
