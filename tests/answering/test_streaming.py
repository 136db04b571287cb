"""A stream shows text while the model is still writing, then verdicts, then the reply: in Python, over HTTP, through
`lectern.connect` and in the terminal. The scripted model stops half way until the first text has been seen, so that
nothing here depends on a clock."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import lectern as package
from lectern.domain.replies import Answer, Delta, Judged, Replied
from tests.answering.scripted import KEY, drafting, open_scripted, write_book
from tests.fakeai import FakeAI, Step, fake_ai
from tests.served import LECTERN, serving
from tests.served import lectern as run_lectern
from tests.sse import events as sse_events

NODE = "A node is a process that computes."
TOPICS = "Nodes talk to each other over topics, and each topic has a message type."
GERMAN = "Ein Knoten ist ein Tier, das im Wasser lebt."  # which the local judge leaves open
DRAFT = f"{NODE} [1] {TOPICS} [1] {GERMAN} [1] {NODE} [1]"
QUOTE = "A node is a process that computes"
CONTRADICTED = {"verdict": "contradicted", "passage": 1, "quote": QUOTE}


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    """The scripted endpoint."""
    with fake_ai() as server:
        yield server


def script(ai: FakeAI) -> threading.Event:
    """A model that stops half way through its draft until the event is set."""
    hold = threading.Event()
    ai.script(Step(say=drafting(DRAFT), hold=hold), then=Step(say=drafting(DRAFT, CONTRADICTED)))
    return hold


def served(tmp_path: Path, ai: FakeAI) -> tuple[list[str], dict[str, str]]:
    """The command and the settings of a server on the book."""
    home = tmp_path / "home"
    run_lectern("ingest", str(write_book(tmp_path / "robots")), "--book", "robots", home=home)
    settings = {"LECTERN_HOME": str(home), "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1"}
    return [LECTERN, "serve", "--port", "0"], {**os.environ, **settings}


def assert_in_order(kinds: list[str], last: str) -> None:
    """Deltas, then verdicts, one for each claim and a second for the one that the model judged, then the reply."""
    assert re.fullmatch(rf"(?:delta,)+(?:verdict,){{5}}{last},", "".join(f"{kind}," for kind in kinds))


async def test_text_comes_while_the_model_writes(tmp_path: Path, ai: FakeAI) -> None:
    """The first text is seen before the model has ended; verdicts follow, and the reply is last."""
    hold, kinds, text, reply = script(ai), [], "", None
    async with open_scripted(tmp_path, ai) as lectern:
        async for event in lectern.stream("What is a node?"):
            if isinstance(event, Delta):
                text += event.text
                hold.set()
            if isinstance(event, Delta | Judged | Replied):
                kinds.append(event.kind)
            reply = event.reply if isinstance(event, Replied) else reply

    assert isinstance(reply, Answer)
    assert text == reply.text == DRAFT
    assert_in_order(kinds, "replied")
    assert [statement.verdict for statement in reply.statements] == ["supported", "supported", "doubtful", "supported"]


def test_text_comes_over_http_while_the_model_writes(tmp_path: Path, ai: FakeAI) -> None:
    """Server-Sent Events carry the same, each verdict with the place of its claim in the text so far."""
    hold, rows = script(ai), []
    command, env = served(tmp_path, ai)
    with (
        serving(command, env=env) as server,
        httpx.stream("POST", f"{server}/chat/stream", json={"message": "What is a node?"}, timeout=60) as response,
    ):
        for event in sse_events(response.iter_lines()):
            rows.append((event.name, event.body))
            if event.name == "delta":
                hold.set()

    text = "".join(body["text"] for name, body in rows if name == "delta")
    verdicts = [body for name, body in rows if name == "verdict"]
    assert_in_order([name for name, _ in rows if name in ("delta", "verdict", "reply")], "reply")
    assert all(text[body["start"] : body["end"]] == body["text"] for body in verdicts)
    assert [body["claim"] for body in verdicts] == [0, 1, 2, 3, 2]
    assert (verdicts[-1]["verdict"], verdicts[-1]["evidence"]) == ("doubtful", QUOTE)
    assert rows[-1][1]["response"] == text == DRAFT


async def test_text_comes_through_a_connection_while_the_model_writes(tmp_path: Path, ai: FakeAI) -> None:
    """`lectern.connect` gives the same events as a local Lectern."""
    hold, events = script(ai), []
    command, env = served(tmp_path, ai)
    with serving(command, env=env) as server:
        async with package.connect(server) as remote:
            async for event in remote.stream("What is a node?"):
                events.append(event)
                if isinstance(event, Delta):
                    hold.set()

    assert_in_order([event.kind for event in events if event.kind in ("delta", "verdict", "replied")], "replied")
    judged_events = [event for event in events if isinstance(event, Judged)]
    assert judged_events[-1].statement.verdict == "doubtful"
    assert judged_events[-1].statement == events[-1].reply.statements[2]


def terminal(tmp_path: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, *command: str, **options: Any) -> str:
    """What a command prints for the question."""
    home = tmp_path / "home"
    run_lectern("ingest", str(write_book(tmp_path / "robots")), "--book", "robots", home=home)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{ai.url}/v1")
    return run_lectern(*command, home=home, **options).stdout


@pytest.mark.parametrize(
    ("command", "options"), [(("ask", "What is a node?"), {}), (("chat",), {"typed": "What is a node?\n"})]
)
def test_the_terminal_shows_ticks_and_flags_below_the_text(
    tmp_path: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], options: dict[str, Any]
) -> None:
    """The text stands as it was written; a doubtful claim is flagged once, with the book's words; ticks are counted."""
    ai.script(then=Step(say=drafting(DRAFT, CONTRADICTED)))
    printed = terminal(tmp_path, ai, monkeypatch, *command, **options)

    assert printed.startswith(DRAFT)
    assert printed.count("⚑") == 1
    assert f"⚑ “{GERMAN}" in printed
    assert f"The book: “{QUOTE}”" in printed
    assert "✓ 3 of 4 claims" in printed
    assert "unverified" not in printed


def test_the_terminal_says_that_a_draft_is_withdrawn(
    tmp_path: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was shown and does not rest on the book is taken back in words."""
    ai.script(then=Step(say=drafting("The gripper was invented in Atlantis by dolphins. [1]")))
    printed = terminal(tmp_path, ai, monkeypatch, "chat", typed="What is a node?\n")

    assert "That draft is withdrawn" in printed
    assert "I couldn't find that information in the book." in printed
