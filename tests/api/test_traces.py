"""Traces: a turn's spans reach a collector over HTTP, within the caller's trace; they hold no text of readers or books;
and whatever the collector does, a reader gets the same answer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.answering.scripted import KEY, write_book
from tests.collector import Collector, ReceivedSpan, collecting
from tests.fakeai import FakeAI, Step, fake_ai, saying
from tests.ports import closed_port
from tests.served import LECTERN, serving_process

QUESTION = "What is a node?"
ANSWER = "A node is a process that computes. [1]"
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "50"}  # milliseconds between two batches
SERVER_KIND = 2


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that works."""
    with collecting() as running:
        yield running


@contextmanager
def served(home: Path, folder: Path, **settings: str) -> Iterator[tuple[str, Path]]:
    """A server on a copy of the home, and its log."""
    shutil.copytree(home, folder / "home")
    log = folder / "log"
    environment = {**os.environ, "LECTERN_HOME": str(folder / "home"), "LECTERN_LOG_FORMAT": "json", **SOON, **settings}
    with log.open("w") as stderr:
        command = [LECTERN, "serve", "--port", "0"]
        with serving_process(command, env=environment, stderr=stderr) as (address, _):
            yield address, log


def model(ai: FakeAI) -> dict[str, str]:
    """The settings of a scripted language model."""
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "LECTERN_JUDGE": "local"}


def ask(server: str, text: str = QUESTION, **headers: str) -> httpx.Response:
    """A question over HTTP."""
    return httpx.post(f"{server}/chat/run", json={"message": text}, headers=headers, timeout=120)


def one(collector: Collector, name: str) -> ReceivedSpan:
    """The only span of this name."""
    [span] = collector.named(name)
    return span


def test_a_turn_is_a_tree_of_spans_in_the_callers_trace(small_home: Path, tmp_path: Path, collector: Collector) -> None:
    """The request's span continues the trace of `traceparent`; turn, answer and the five steps lie below it; the model
    is called in the name of `draft`; the question's log line has the id of the trace."""
    with fake_ai() as ai:
        ai.script(then=Step(say=saying(ANSWER)))
        settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, **model(ai)}
        with served(small_home, tmp_path, **settings) as (server, log):
            response = ask(server, **CALLER)
            collector.wait(lambda it: it.named("POST /chat/run"))
        calls = [received.headers for received in ai.received if received.path.endswith("/chat/completions")]

    request, turn, answer = (one(collector, name) for name in ("POST /chat/run", "turn", "answer"))
    steps = {name: one(collector, name) for name in ("retrieve", "weigh", "draft", "judge")}
    assert response.json()["should_answer"]
    assert {span.trace for span in (request, turn, answer, *steps.values())} == {TRACE}
    assert (request.parent, request.kind) == (SPAN, SERVER_KIND)
    assert (turn.parent, answer.parent, one(collector, "store").parent) == (request.id, turn.id, turn.id)
    assert {step.parent for step in steps.values()} == {answer.id}
    assert [call["traceparent"] for call in calls] == [f"00-{TRACE}-{steps['draft'].id}-01"]
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/chat/run",
        "http.response.status_code": 200,
    }
    assert turn.attributes["lectern.outcome"] == "answered"
    assert (turn.attributes["lectern.book"], turn.attributes["lectern.cited"]) == ("robots", 1)
    assert steps["retrieve"].attributes["lectern.hits"] > 0
    assert request.resource["service.name"] == "lectern"
    [line] = [json.loads(line) for line in log.read_text().splitlines() if "question.replied" in line]
    assert line["trace_id"] == TRACE


def test_a_streamed_turn_has_the_same_spans(small_home: Path, tmp_path: Path, collector: Collector) -> None:
    """Events that pass through a span do not change where the next one belongs."""
    with served(small_home, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address) as (server, _):
        with httpx.stream("POST", f"{server}/chat/stream", json={"message": QUESTION}, timeout=120) as response:
            body = "".join(response.iter_text())
        collector.wait(lambda it: it.named("POST /chat/stream"))

    assert "event: reply" in body
    request, turn, answer = (one(collector, name) for name in ("POST /chat/stream", "turn", "answer"))
    assert (request.parent, turn.parent, answer.parent) == ("", request.id, turn.id)
    below = {span.name for span in collector.spans if span.parent == answer.id}
    assert below == {"retrieve", "weigh", "draft", "judge"}
    assert sum(span.seconds for span in collector.spans if span.parent == answer.id) <= answer.seconds


def test_no_text_of_readers_or_books_is_sent(small_home: Path, tmp_path: Path, collector: Collector) -> None:
    """Not the question, the answer, a filter, a path or an error's message. A failure is the name of its class."""
    with served(small_home, tmp_path, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.address}/v1/traces") as (
        server,
        _,
    ):
        ask(server)
        ask(server, "Where does the zebracanary live?")
        body = {"message": QUESTION, "module_filter": "zebracanary"}
        refused = httpx.post(f"{server}/chat/run", json=body, timeout=120)
        httpx.get(f"{server}/lessons/zebracanary", params={"book_id": "zebracanary"}, timeout=120)
        httpx.get(f"{server}/zebracanary", headers={"X-Request-ID": "zebracanary"}, timeout=120)
        httpx.get(f"{server}/health/ready", timeout=120)
        httpx.get(f"{server}/metrics", timeout=120)
        collector.wait(lambda it: it.named("GET other"))

    assert refused.status_code == 422
    assert "zebracanary" in refused.text
    sent = b"".join(collector.bodies)
    assert not [text for text in (b"zebracanary", b"What is", b"computes") if text in sent]
    [failed] = [span for span in collector.named("turn") if span.failed]
    assert failed.attributes["error.type"] == "BadInput"
    routes = {span.name for span in collector.spans if span.kind == SERVER_KIND}
    assert routes == {"POST /chat/run", "GET /lessons/{parent_doc_id}", "GET other"}


@pytest.mark.parametrize("behaviour", ["503", "400", "hangs", "gone"])
def test_a_collector_that_fails_harms_no_reader(
    small_home: Path, tmp_path: Path, collector: Collector, behaviour: str
) -> None:
    """Readers are answered and the server ends, although the collector refuses, hangs or is not there; the log has one
    line for it and no traceback."""
    collector.behaviour = behaviour
    with (
        closed_port() as port,
        served(
            small_home,
            tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}" if behaviour == "gone" else collector.address,
        ) as (server, log),
    ):
        answers = []
        for batch in (1, 2, 3):
            answers.append(ask(server))
            if behaviour == "400":  # a batch for each; the others are tried again and again
                collector.wait(lambda it, batch=batch: it.requests >= batch)
        if behaviour != "gone":
            collector.wait(lambda it: it.requests)

    assert [answer.status_code for answer in answers] == [200] * 3
    assert all(answer.json()["should_answer"] for answer in answers)
    assert not collector.ended.is_set()  # the server did not wait until a hanging collector let go
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events.count("traces.lost") == 1
    assert "Traceback" not in log.read_text()


def test_a_collector_that_comes_back_gets_what_follows(small_home: Path, tmp_path: Path, collector: Collector) -> None:
    """What could not be sent is lost; what follows arrives, and the log has a line for either."""
    collector.behaviour = "400"
    with served(small_home, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.address) as (server, log):
        ask(server)
        collector.wait(lambda it: it.requests)
        collector.behaviour = "well"
        ask(server)
        collector.wait(lambda it: it.named("turn"))

    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert [event for event in events if event.startswith("traces.")] == ["traces.lost", "traces.sent_again"]


def test_an_ingestion_is_a_span_with_its_figures(tmp_path: Path, collector: Collector) -> None:
    """A command's last spans are sent before it ends."""
    book = write_book(tmp_path / "robots")
    result = subprocess.run(
        [LECTERN, "ingest", str(book), "--json"],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address},
        capture_output=True,
        text=True,
        check=True,
    )
    job = json.loads(result.stdout)

    span = one(collector, "ingest")
    assert span.attributes["lectern.chunks_created"] == job["chunks_created"] > 0
    assert (span.attributes["lectern.book"], span.attributes["lectern.mode"]) == ("robots", "incremental")
    assert span.attributes["lectern.seconds.embed"] > 0


def test_a_command_does_not_wait_for_a_collector_that_hangs(
    small_home: Path, tmp_path: Path, collector: Collector
) -> None:
    """`lectern ask` ends with its answer while the collector still holds the request."""
    collector.behaviour = "hangs"
    shutil.copytree(small_home, tmp_path / "home")
    environment = {
        **os.environ,
        "LECTERN_HOME": str(tmp_path / "home"),
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address,
    }
    result = subprocess.run(
        [LECTERN, "ask", QUESTION], env=environment, capture_output=True, text=True, check=False, timeout=300
    )

    assert result.returncode == 0, result.stderr
    assert "A node is a process that computes." in result.stdout
    assert collector.requests >= 1
    assert collector.bodies == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT.*http://localhost:4318"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://u:p@localhost:4318"}, "OTEL_EXPORTER_OTLP_HEADERS"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'.*4318",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "OTEL_BSP_"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    small_home: Path, tmp_path: Path, settings: dict[str, str], says: str
) -> None:
    """One line that names the variable, and exit code 2."""
    result = subprocess.run(
        [LECTERN, "serve", "--port", "0"],
        env={**os.environ, "LECTERN_HOME": str(tmp_path / "home"), **settings},
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 2
    assert re.search(says, result.stderr)
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("settings", [{}, {"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_without_traces_nothing_of_the_sdk_is_imported(
    small_home: Path, tmp_path: Path, collector: Collector, settings: dict[str, str]
) -> None:
    """A process that sends no traces loads neither the SDK nor the exporter, whether none are set or they are off."""
    shutil.copytree(small_home, tmp_path / "home")
    code = (
        "import asyncio, sys\n"
        "from lectern import open_lectern\n"
        "async def main():\n"
        "    async with open_lectern() as lectern:\n"
        "        await lectern.ask('What is a node?')\n"
        "asyncio.run(main())\n"
        "sys.exit(', '.join({'opentelemetry.sdk', 'opentelemetry.exporter'} & sys.modules.keys()) or None)"
    )
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address} if settings else {}
    environment = {**os.environ, "LECTERN_HOME": str(tmp_path / "home"), **endpoint, **settings}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    assert collector.requests == 0
