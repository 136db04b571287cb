"""The doctor tries the language model: what it finds of an endpoint, what it advises, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.ingestion.doctor import Finding
from lectern.models import endpoint_check
from tests.answering.scripted import KEY, write_book
from tests.fakeai import FakeAI, ScriptedReply, Step, fake_ai
from tests.served import LECTERN, lectern, serving

CITED = "A node is a process that computes. [1]"


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    """The scripted endpoint."""
    with fake_ai() as server:
        yield server


def able(body: dict[str, Any]) -> ScriptedReply:
    """A model that does as it is told."""
    return ScriptedReply(calls=(("look_up", '{"word": "node"}'),)) if "tools" in body else ScriptedReply(text=CITED)


def wordy(_: dict[str, Any]) -> ScriptedReply:
    """A model that talks and does nothing else."""
    return ScriptedReply(text="I would be glad to help you with that, if you told me more about it.")


async def findings(ai: FakeAI, tmp_path: Path, **settings: Any) -> dict[str, Finding]:
    """What the doctor says of the endpoint, with no book indexed."""
    values = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
    async with open_lectern(Settings(home=tmp_path / "home", **(values | settings))) as opened:
        return {finding.kind: finding async for finding in opened.doctor()}


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_good_endpoint_is_found_good(ai: FakeAI, tmp_path: Path, api: str) -> None:
    """Listed, answers, streams, calls tools, cites; with few tokens and few calls."""
    ai.script(then=Step(say=able))
    found = await findings(ai, tmp_path, openai_api=api)

    assert list(found) == ["model list", "model answer", "model markers", "model stream", "model tools"]
    assert {finding.severity for finding in found.values()} == {"ok"}
    limits = [one.body.get("max_tokens") or one.body.get("max_output_tokens") for one in ai.received[1:]]
    assert limits == [endpoint_check.MAX_TOKENS] * 3


async def test_what_a_model_cannot_do_is_a_note_with_advice(ai: FakeAI, tmp_path: Path) -> None:
    """Lectern works without tools and lists; the operator is told what that means."""
    ai.script(Step(status=404), then=Step(say=wordy))
    found = await findings(ai, tmp_path)

    severities = {kind: finding.severity for kind, finding in found.items()}
    assert severities == {
        "model list": "note",
        "model answer": "ok",
        "model markers": "note",
        "model stream": "ok",
        "model tools": "note",
    }
    assert "larger model" in found["model markers"].detail


@pytest.mark.parametrize("marker", ["【1】", "【1†source】", "[Passage 1]"])
async def test_a_marker_in_any_form_that_is_read_is_found_good(ai: FakeAI, tmp_path: Path, marker: str) -> None:
    """A model whose answers will be cited gets no warning."""
    ai.script(then=Step(say=lambda _: ScriptedReply(text=CITED.replace("[1]", marker))))

    assert (await findings(ai, tmp_path))["model markers"].severity == "ok"


async def test_a_model_that_is_not_listed_is_named_with_those_that_are(ai: FakeAI, tmp_path: Path) -> None:
    """A note, because gateways take names that they do not list."""
    ai.script(then=Step(say=able))
    found = await findings(ai, tmp_path, OPENAI_MODEL="scripted-modle")

    assert found["model list"].severity == "note"
    assert "scripted-model" in found["model list"].detail


async def test_refused_parameters_are_named(ai: FakeAI, tmp_path: Path) -> None:
    """The operator hears what is left out of every call, and tools that the endpoint refuses."""
    ai.script(then=Step(say=able, refuses=("temperature", "tools")))
    found = await findings(ai, tmp_path)

    assert found["model answer"].severity == "ok"
    assert "temperature" in found["model answer"].detail
    assert found["model tools"].severity == "note"


FAULTS = {
    "key": Step(status=401),
    "web page": Step(body=b"<html>Welcome</html>", content_type="text/html"),
    "nobody there": Step(ending="reset"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_an_endpoint_that_does_not_answer_is_a_problem(ai: FakeAI, tmp_path: Path, fault: str) -> None:
    """Told once, without the key; what depends on an answer is not tried."""
    ai.script(then=FAULTS[fault])
    found = await findings(ai, tmp_path)

    assert found["model answer"].severity == "problem"
    assert KEY not in found["model answer"].detail
    assert set(found) <= {"model list", "model answer"}


async def test_a_stream_that_breaks_off_is_a_problem(ai: FakeAI, tmp_path: Path) -> None:
    """Whole answers may come through where streams do not."""
    ai.script(Step(), Step(say=able), Step(say=able, signs="none"), then=Step(say=able))
    found = await findings(ai, tmp_path)

    assert found["model stream"].severity == "problem"
    assert "broke off" in found["model stream"].detail
    assert found["model tools"].severity == "ok"


async def test_an_endpoint_has_only_so_much_time(ai: FakeAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging endpoint does not hang the doctor."""
    monkeypatch.setattr(endpoint_check, "MAX_SECONDS", 0.3)
    ai.script(Step(), then=Step(delay=30, say=able))
    found = await findings(ai, tmp_path)

    assert found["model answer"].severity == "problem"
    assert "0.3 s" in found["model answer"].detail


async def test_without_an_endpoint_nothing_is_tried(ai: FakeAI, tmp_path: Path) -> None:
    """The offline model needs no examination, whatever keys are set."""
    found = await findings(ai, tmp_path, answerer="offline")

    assert found == {}
    assert ai.received == []


def test_the_terminal_tells_problems_from_notes(ai: FakeAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes leave the exit code at 0; an endpoint that does not answer makes it 2, and --mend is not advised for it."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{ai.url}/v1")
    monkeypatch.setenv("OPENAI_MODEL", "scripted-model")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ai.script(then=Step(say=wordy))
    lectern("ingest", str(write_book(tmp_path / "robots")), home=tmp_path / "home")
    noted = lectern("doctor", home=tmp_path / "home")
    ai.script(then=Step(status=401))
    failed = lectern("doctor", home=tmp_path / "home", check=False)

    assert "agree" in noted.stdout
    assert "note: " in noted.stdout
    assert failed.returncode == 2
    assert "OPENAI_API_KEY" in failed.stdout
    assert "--mend" not in failed.stderr


def test_a_server_tells_the_same_over_http(ai: FakeAI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`POST /doctor` has a line for each thing that was tried."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{ai.url}/v1")
    monkeypatch.setenv("OPENAI_MODEL", "scripted-model")
    monkeypatch.setenv("LECTERN_HOME", str(tmp_path / "home"))
    ai.script(then=Step(say=able))
    with serving([LECTERN, "serve", "--port", "0"]) as address:
        rows = httpx.post(f"{address}/doctor", timeout=60).json()

    assert [(row["kind"], row["severity"]) for row in rows] == [
        ("model list", "ok"),
        ("model answer", "ok"),
        ("model markers", "ok"),
        ("model stream", "ok"),
        ("model tools", "ok"),
    ]
