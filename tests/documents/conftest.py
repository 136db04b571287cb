"""One question to the sample book, asked once for the tests of all documents."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

from lectern import Conversation, Findings, Reply, Settings, open_lectern

QUESTION = "How do ROS 2 nodes communicate?"


@dataclass(frozen=True)
class Asked:
    """What Python gives for the question."""

    found: Findings
    reply: Reply
    conversation: Conversation


@pytest.fixture(scope="session")
def asked(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """A search and an answer in a conversation, by the offline model."""
    home = tmp_path_factory.mktemp("documents") / "home"
    shutil.copytree(sample_home, home)

    async def ask() -> Asked:
        async with open_lectern(Settings(home=home)) as lectern:
            thread = str(uuid.uuid4())
            found = await lectern.search(QUESTION)
            reply = await lectern.ask(QUESTION, thread=thread)
            return Asked(found, reply, await lectern.threads.conversation(thread))

    return asyncio.run(ask())
