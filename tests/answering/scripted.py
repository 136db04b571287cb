"""A small book, and Lectern on it with a scripted model behind a real HTTP endpoint."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lectern.answering.instructions import JUDGING
from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.replies import Replied, Reply
from tests.fakeai import FakeAI, Say, ScriptedReply

KEY = "sk-canary-51d0c7b2e94f4a6b8c3d2e1f0a9b8c7d"
LESSONS = {
    "ros2/01-nodes.md": """# Nodes and Topics

## What is a node?

A node is a process that computes. Nodes talk to each other over topics, and each topic has a message type.

## How fast is the camera?

The camera topic publishes 30 images every second. A laptop can show about 10 of them.
""",
    "ros2/02-services.md": """# Services

## What is a service?

A service is a question and an answer between two nodes. The client waits until the server has replied.
""",
    "arm/01-gripper.md": """---
hardware_tier: 4
---
# The gripper

## How strong is the gripper?

The gripper closes with a force of 40 newtons. Its fingers are made of silicone rubber.
""",
}


def write_book(folder: Path, lessons: dict[str, str] | None = None) -> Path:
    """The lessons as files."""
    for name, text in (lessons or LESSONS).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


@asynccontextmanager
async def open_scripted(
    tmp_path: Path, ai: FakeAI, lessons: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Lectern]:
    """Lectern on the book, its answers from the scripted model; options are settings."""
    settings = Settings(
        home=tmp_path / "home",
        OPENAI_API_KEY=KEY,  # type: ignore[call-arg]  # settings are named as their variables
        OPENAI_BASE_URL=f"{ai.url}/v1",
        OPENAI_MODEL="scripted-model",
        **options,
    )
    async with open_lectern(settings) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots", lessons), book="robots")
        ai.received.clear()
        yield lectern


def is_judging(body: dict[str, Any]) -> bool:
    """Whether a request asks the model as judge."""
    return body["messages"][0]["content"] == JUDGING


def drafting(draft: str, *verdicts: dict[str, Any]) -> Say:
    """A model that writes this draft, and as judge gives these verdicts."""
    verdicts_text = json.dumps({"claims": [{"claim": number, **row} for number, row in enumerate(verdicts, start=1)]})
    return lambda body: ScriptedReply(text=verdicts_text if is_judging(body) else draft)


def chats(ai: FakeAI) -> list[dict[str, Any]]:
    """The bodies of all chat requests."""
    return [received.body for received in ai.received if received.path.endswith("/chat/completions")]


def tool_outputs(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What tools answered, as the model sees it."""
    return [json.loads(message["content"]) for message in body["messages"] if message["role"] == "tool"]


async def reply_to(lectern: Lectern, text: str, *, stream: bool, **options: Any) -> Reply:
    """The reply to a question, asked at once or streamed."""
    if not stream:
        return await lectern.ask(text, **options)
    replies = [event.reply async for event in lectern.stream(text, **options) if isinstance(event, Replied)]
    return replies[-1]
