"""What a turn costs around a model that answers at once: retrieval, confidence, the agent run over real HTTP to a
scripted endpoint, checking. The baseline is the same HTTP call made bare.

    python benchmarks/turn.py HOME QUERIES
"""

# ruff: noqa: I001  # the path to the tests comes before what it leads to

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the scripted endpoint lives with the tests

from lectern.domain.replies import Answer
from lectern.app.settings import Settings
from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from tests.fakeai import ScriptedReply, Step, fake_ai

QUESTIONS = 200


def first_sentence(body: dict[str, Any]) -> ScriptedReply:
    """A model that quotes the first passage."""
    outputs = [json.loads(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    lines = [line for line in outputs[-1]["results"][0]["chunk_text"].splitlines() if line[:1].isalpha()] or [
        "Nothing."
    ]
    return ScriptedReply(text=f"{lines[0]} [1]")


async def streamed(lectern: Lectern, question: str) -> None:
    """A turn to its last event."""
    async for _ in lectern.stream(question):
        pass


async def main(home: Path, questions: list[str]) -> None:
    """Ask each question streamed and not, and print a table."""
    with fake_ai() as ai:
        ai.script(then=Step(say=first_sentence))
        settings = Settings(home=home, OPENAI_BASE_URL=f"{ai.url}/v1")  # type: ignore[call-arg]  # by their variables
        async with open_lectern(settings, create=False) as lectern, httpx.AsyncClient() as bare:
            rows: dict[str, list[float]] = {"bare call": [], "turn": [], "turn, streamed": []}
            answered = 0
            for question in [questions[0], *questions]:
                reply, took = await timed(lectern.ask(question))
                if not isinstance(reply, Answer):
                    continue  # refused: no model was called
                answered += 1
                rows["turn"].append(took)
                rows["turn, streamed"].append((await timed(streamed(lectern, question)))[1])
                body = ai.received[-1].body | {"stream": False}
                headers = {"authorization": "Bearer none"}
                call = bare.post(f"{ai.url}/v1/chat/completions", json=body, headers=headers)
                rows["bare call"].append((await timed(call))[1])
    print(f"{answered} of {len(questions)} questions answered\n\n| | p50, ms | p99, ms |\n|---|---:|---:|")
    for name, spent in rows.items():
        ordered = sorted(spent[1:])
        print(f"| {name} | {statistics.median(ordered):.1f} | {ordered[int(len(ordered) * 0.99) - 1]:.1f} |")


async def timed(work: Any) -> tuple[Any, float]:  # noqa: ANN401  # whatever is awaited
    """The result, and how many milliseconds it took."""
    start_time = time.perf_counter()
    return await work, (time.perf_counter() - start_time) * 1000


if __name__ == "__main__":
    lines = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    asyncio.run(main(Path(sys.argv[1]), [json.loads(line)["text"] for line in lines][:QUESTIONS]))
