"""A real model behind a real server: what is promised here is about the wire, not about the quality of answers. The
model is tiny, and what it says differs from machine to machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lectern.app.factories import endpoint_answerer
from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.errors import ProviderError
from lectern.domain.replies import Answer, Refusal, Replied
from tests.answering.test_endpoint import written
from tests.conftest import ROOT

QUESTION = "What is a topic?"
MAX_TOKENS = 24  # the model writes about 50 a second
pytest.importorskip("xllamacpp", reason="no wheel of xllamacpp for this machine")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The base URL of the model's server."""
    command = [sys.executable, "-m", "tests.answering.gguf_server"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield f"{process.stdout.readline().strip()}/v1"
        process.kill()


def settings(endpoint: str, **more: Any) -> Settings:
    """The settings of an operator of this endpoint."""
    values = {"OPENAI_BASE_URL": endpoint, "OPENAI_MODEL": "smollm2", "max_tokens": MAX_TOKENS, "turn_budget": 120}
    return Settings(**(values | more))


@asynccontextmanager
async def opened(endpoint: str, sample_home: Path, tmp_path: Path) -> AsyncIterator[Lectern]:
    """Lectern on the sample book, its answers from the model."""
    shutil.copytree(sample_home, tmp_path / "home")
    async with open_lectern(settings(endpoint, home=tmp_path / "home")) as lectern:
        yield lectern


async def test_a_question_is_answered_refused_or_an_error(endpoint: str, sample_home: Path, tmp_path: Path) -> None:
    """Whole and streamed: a reply of one of the known kinds with its tokens, or an error with advice; no crash."""
    async with opened(endpoint, sample_home, tmp_path) as lectern:
        for stream in (False, True):
            try:
                events = [event async for event in lectern.stream(QUESTION, top_k=1)] if stream else []
                reply = events[-1].reply if stream else await lectern.ask(QUESTION, top_k=1)
            except ProviderError as exc:
                assert "; " in str(exc)  # noqa: PT017  # an honest outcome for so small a model
                continue
            assert not events or isinstance(events[-1], Replied)
            assert isinstance(reply, Answer | Refusal)
            assert reply.account.model == "smollm2"
            assert reply.account.tokens_used > MAX_TOKENS


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_text_comes_in_pieces_and_tokens_are_counted(endpoint: str, api: str) -> None:
    """Through both APIs of the server, whole and streamed."""
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:
        answerer = endpoint_answerer(settings(endpoint, openai_api=api), stack)
        whole = await written(answerer, stream=False)
        streamed = await written(answerer, stream=True)

    assert (len(whole.pieces), len(streamed.pieces) > 3) == (1, True)
    assert whole.text.strip()
    assert streamed.text.strip()
    assert min(whole.tokens, streamed.tokens) > MAX_TOKENS
    if api == "chat":  # this server does not say so in the Responses API
        assert [cut.reason for cut in streamed.cuts] in ([], ["length"])


async def test_the_doctor_tries_it(endpoint: str, tmp_path: Path) -> None:
    """It is there, answers and streams; whether it cites and calls tools is told, whatever it is."""
    async with open_lectern(settings(endpoint, home=tmp_path / "home")) as lectern:
        found = {finding.kind: finding.severity async for finding in lectern.doctor()}

    assert (found["model list"], found["model answer"], found["model stream"]) == ("ok", "ok", "ok")
    assert {found["model markers"], found["model tools"]} <= {"ok", "note"}
