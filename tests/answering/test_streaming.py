"""A stream shows text while the model is still writing, then verdicts, then the reply: in Python, over HTTP, through
`lectern.connect` and in the terminal. The scripted model stops half way until the first text has been seen, so that
nothing here depends on a clock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import lectern as package
from lectern.cli.chat import CHANGED
from lectern.domain.replies import Answer, Delta, Judged, Replied
from tests.answering.scripted import KEY, drafting, open_scripted
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


@pytest.fixture
def home(small_home: Path, tmp_path: Path) -> Path:
    """A home of the test's own with the book in it."""
    return Path(shutil.copytree(small_home, tmp_path / "home"))


def served(home: Path, ai: FakeAI) -> tuple[list[str], dict[str, str]]:
    """The command and the settings of a server on the book."""
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


def test_text_comes_over_http_while_the_model_writes(home: Path, ai: FakeAI) -> None:
    """Server-Sent Events carry the same, each verdict with the place of its claim in the text so far."""
    hold, rows = script(ai), []
    command, env = served(home, ai)
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
    assert (verdicts[-1]["verdict"], verdicts[-1]["evidence"]) == ("doubtful", f"{QUOTE}.")
    assert rows[-1][1]["response"] == text == DRAFT


async def test_text_comes_through_a_connection_while_the_model_writes(home: Path, ai: FakeAI) -> None:
    """`lectern.connect` gives the same events as a local Lectern."""
    hold, events = script(ai), []
    command, env = served(home, ai)
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


def run_in_terminal(
    home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, *command: str, **options: Any
) -> subprocess.CompletedProcess[str]:
    """A command that asks the question."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{ai.url}/v1")
    return run_lectern(*command, home=home, **options)


def terminal(home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, *command: str, **options: Any) -> str:
    """What a command prints for the question."""
    return run_in_terminal(home, ai, monkeypatch, *command, **options).stdout


@pytest.mark.parametrize(
    ("command", "options"), [(("ask", "What is a node?"), {}), (("chat",), {"typed": "What is a node?\n"})]
)
def test_the_terminal_shows_ticks_and_flags_below_the_text(
    home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], options: dict[str, Any]
) -> None:
    """The text stands as it was written; a doubtful claim is flagged once, with the book's words; ticks are counted."""
    ai.script(then=Step(say=drafting(DRAFT, CONTRADICTED)))
    printed = terminal(home, ai, monkeypatch, *command, **options)

    assert printed.startswith(DRAFT)
    assert printed.count("⚑") == 1
    assert f"⚑ “{GERMAN}" in printed
    assert f"The book: “{QUOTE}.”" in printed
    assert "✓ 3 of 4 claims" in printed
    assert "unverified" not in printed


def test_the_terminal_says_that_a_draft_is_withdrawn(home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was shown and does not rest on the book is taken back in words."""
    ai.script(then=Step(say=drafting("The gripper was invented in Atlantis by dolphins. [1]")))
    printed = terminal(home, ai, monkeypatch, "chat", typed="What is a node?\n")

    assert "That draft is withdrawn" in printed
    assert "I couldn't find that information in the book." in printed


DOLPHINS = "The gripper was invented in Atlantis by dolphins. [1]"
ASK, CHAT = (("ask", "What is a node?"), {}), (("chat",), {"typed": "What is a node?\n"})


@pytest.mark.parametrize("draft", [DOLPHINS, "NOT_COVERED"])
@pytest.mark.parametrize("doubtful", ["flag", "hide"])
@pytest.mark.parametrize(("command", "options"), [ASK, CHAT])
def test_the_terminal_says_why_it_refuses(
    home: Path,
    ai: FakeAI,
    monkeypatch: pytest.MonkeyPatch,
    draft: str,
    doubtful: str,
    command: tuple[str, ...],
    options: dict[str, Any],
) -> None:
    """Below the one sentence it says that a draft was withdrawn, unless the model itself found nothing."""
    ai.script(then=Step(say=drafting(draft)))
    monkeypatch.setenv("LECTERN_DOUBTFUL", doubtful)
    printed = terminal(home, ai, monkeypatch, *command, check=False, **options)

    sentence, reason = (
        "I couldn't find that information in the book.\n",
        "withdrawn: its claims do not rest on the book.",
    )
    assert printed.count(sentence) == 1
    assert printed.count(reason) == (draft == DOLPHINS)
    assert printed.startswith(sentence) == (draft != DOLPHINS or command[0] == "ask" or doubtful == "hide")
    assert draft == "NOT_COVERED" or printed.index(sentence) < printed.index(reason)


DOUBTED = f"{NODE} [1] A node weighs 12 kilograms. [1]"
DISCLAIMER = "The book does not confirm parts of this answer, so check the sources."


@pytest.mark.parametrize(("command", "options"), [ASK, CHAT])
def test_a_level_that_verdicts_lowered_is_told_as_such(
    home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Above the answer it says that parts are not confirmed, not that the book has little of it; the number does not
    reach the next level."""
    ai.script(then=Step(say=drafting(DOUBTED)))
    printed = terminal(home, ai, monkeypatch, *command, **options)

    assert f"{DISCLAIMER}\n\n{DOUBTED}" in printed
    assert "only in part" not in printed
    assert "low confidence (0.74)" in printed


@pytest.mark.parametrize(("command", "options"), [ASK, CHAT])
def test_the_terminal_says_what_an_answer_lacks(
    home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Hidden claims and removed links are counted below the answer."""
    ai.script(then=Step(say=drafting(f"{DOUBTED} {NODE} [1] See [here](https://evil.example/x).")))
    monkeypatch.setenv("LECTERN_DOUBTFUL", "hide")
    printed = terminal(home, ai, monkeypatch, *command, **options)

    assert "1 doubtful claim is hidden; an ellipsis stands for it." in printed
    assert "1 link was removed: the book does not have it." in printed
    assert "kilograms" not in printed


def test_an_error_after_some_text_has_its_own_line(home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the endpoint, and the next question is answered: the conversation's end counts."""
    broken = Step(say=drafting(f"{NODE} [1] {NODE}"), signs="none")
    ai.script(broken, then=Step(say=drafting(f"{NODE} [1]")))
    typed = "What is a node?\nWhat is a node in the book?\n"
    result = run_in_terminal(home, ai, monkeypatch, "chat", typed=typed, check=False)

    assert f"{NODE}\n{NODE} [1]" in result.stdout
    assert result.stderr.startswith(f"lectern: {ai.url.removeprefix('http://')}: broke off")
    assert result.returncode == 0


def test_a_program_learns_that_its_last_question_failed(
    home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the questions end with one that failed, the exit code says so; who leaves with /quit left normally."""
    ai.script(then=Step(status=500))
    failed = run_in_terminal(home, ai, monkeypatch, "chat", typed="What is a node?\n", check=False)
    left = run_lectern("chat", home=home, typed="What is a node?\n/quit\n", check=False)

    assert (failed.returncode, left.returncode) == (3, 0)


SERVICE = "A service is a question and an answer between two nodes."


@pytest.mark.parametrize(
    ("draft", "again"),
    [
        ("{NODE} [1] {SERVICE} [1]", True),  # the second marker is corrected
        ("{NODE} {SERVICE}", True),  # both get a marker
        ("{SERVICE} [2] {NODE} [1]", False),
    ],
    ids=["corrected", "added", "as streamed"],
)
def test_the_markers_on_the_screen_are_those_of_the_sources(
    home: Path, ai: FakeAI, monkeypatch: pytest.MonkeyPatch, draft: str, *, again: bool
) -> None:
    """If the reply is not what was streamed, it is printed again above its sources; otherwise nothing is."""
    written = draft.format(NODE=NODE, SERVICE=SERVICE)
    ai.script(then=Step(say=drafting(written)))
    printed = terminal(home, ai, monkeypatch, "chat", typed="What is a node, and what is a service?\n")

    above, _, below = printed.partition(CHANGED)
    assert bool(below) == again
    assert printed.count(NODE) == printed.count(SERVICE) == (2 if again else 1)
    sources = dict(re.findall(r"(?m)^(\[\d\]) (.*)$", printed))
    answer = (below or above).split("\n\n")[0]
    assert {marker: "Nodes" in title for marker, title in sources.items()} == {
        re.search(rf"{re.escape(sentence)} (\[\d\])", answer)[1]: sentence == NODE  # type: ignore[index]  # it is there
        for sentence in (NODE, SERVICE)
    }
