"""What an operator relies on: request ids, log lines, figures, and a stop that lets answers finish."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from lectern.app.logs import Redaction
from tests.answering.scripted import KEY
from tests.fakeai import FakeAI, Step, fake_ai, saying
from tests.served import LECTERN, lectern

MAX_WAIT_SECONDS = 120.0  # for what must come; other tests share the machine
QUESTION = "What is a node?"
ANSWER = "A node is a process that computes. [1]"


@contextmanager
def served(home: Path, folder: Path, **settings: str) -> Iterator[tuple[str, subprocess.Popen[str], Path]]:
    """A server, its process and its log."""
    shutil.copytree(home, folder / "home")
    log = folder / "log"
    env = {**os.environ, "LECTERN_HOME": str(folder / "home"), "LECTERN_LOG_FORMAT": "json", **settings}
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [LECTERN, "serve", "--port", "0"], env=env, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
        assert process.stdout is not None
        match = re.search(r"http://\S+", process.stdout.readline())
        assert match, log.read_text()
        try:
            yield match.group().rstrip("/"), process, log
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=MAX_WAIT_SECONDS)


def lines(log: Path) -> list[dict[str, Any]]:
    """The log's JSON lines."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def test_a_server_greets_with_its_addresses_and_its_parts(small_home: Path, tmp_path: Path) -> None:
    """Where nothing is wrong, the lines are the address, the author's and what it runs on, and there is no fourth."""
    with served(small_home, tmp_path) as (server, process, log):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server)
        assert log.read_text() == ""

        desk, parts = (process.stdout.readline().rstrip() for _ in range(2))
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=MAX_WAIT_SECONDS)

    assert rest == ""
    assert desk == f"The author's page: {server}/desk/"
    assert re.fullmatch(r"Model: \S+ · embedder: local/\S+ · index: embedded · database: SQLite", parts)


def test_requests_have_ids_and_questions_have_lines(small_home: Path, tmp_path: Path) -> None:
    """A plain id is kept, a strange one replaced; each question is one line with that id, and without its text."""
    with served(small_home, tmp_path) as (server, _, log):
        response = httpx.post(
            f"{server}/chat/run", json={"message": QUESTION}, headers={"X-Request-ID": "mine-1"}, timeout=120
        )
        odd = httpx.get(f"{server}/health/live", headers={"X-Request-ID": 'x" evil'}, timeout=120)

        metrics = httpx.get(f"{server}/metrics", timeout=120).text

    assert response.headers["X-Request-ID"] == "mine-1"
    assert re.fullmatch(r"[0-9a-f]{32}", odd.headers["X-Request-ID"])
    [line] = [line for line in lines(log) if line["event"] == "question.replied"]
    assert (line["request_id"], line["outcome"], line["book"]) == ("mine-1", "answered", "robots")
    assert QUESTION not in log.read_text()
    assert 'lectern_questions_total{outcome="answered"} 1.0' in metrics
    assert re.search(r'lectern_http_requests_total\{method="POST",route="/chat/run",status="200"\} 1.0', metrics)


def test_every_way_to_ask_has_its_line(small_home: Path, tmp_path: Path) -> None:
    """A question from the terminal is a question: `ask` and `chat`, kept or not, are logged and counted, too."""
    with served(small_home, tmp_path) as (server, _, log):
        lectern("ask", QUESTION, home=tmp_path / "home")
        lectern("ask", "Which wine goes well with roast duck?", home=tmp_path / "home", check=False)
        lectern("ask", QUESTION, "--book", "nowhere", home=tmp_path / "home", check=False)
        lectern("chat", typed=f"{QUESTION}\n", home=tmp_path / "home")
        lectern("chat", "--ephemeral", typed=f"{QUESTION}\n", home=tmp_path / "home")
        metrics = httpx.get(f"{server}/metrics", timeout=120).text

    log_lines = [line for line in lines(log) if line["event"].startswith("question.")]
    assert [line["outcome"] for line in log_lines] == ["answered", "refused", "failed", "answered", "answered"]
    assert all(line["request_id"] for line in log_lines)
    assert [log_lines[2][name] for name in ("event", "error")] == ["question.failed", "UnknownBook"]
    assert QUESTION not in log.read_text()
    assert 'lectern_questions_total{outcome="answered"} 3.0' in metrics


def test_what_readers_ask_is_logged_only_on_request(small_home: Path, tmp_path: Path) -> None:
    """With the setting the text stands there, on one line whatever it holds."""
    nasty = "What is a node?\n\x1b[31m{fake: line}"
    with served(small_home, tmp_path, LECTERN_LOG_QUESTIONS="true") as (server, _, log):
        answered = httpx.post(f"{server}/chat/run", json={"message": nasty}, timeout=120)
        httpx.post(f"{server}/chat/run", json={"message": "What is\na node?"}, timeout=120)

    assert answered.status_code == 422  # control characters
    texts = [line.get("question") for line in lines(log) if line["event"].startswith("question.")]
    assert "What is\na node?" in texts
    assert all(line.startswith(("{", "lectern:")) for line in log.read_text().splitlines())


def test_secrets_never_reach_the_log_or_the_database(small_home: Path, tmp_path: Path) -> None:
    """A key of the endpoint, of ours and of the database's address stand in no line, whatever fails."""
    with fake_ai() as ai:
        ai.script(then=Step(status=401, code=f"invalid_api_key {KEY}"))
        settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1"}
        with served(small_home, tmp_path, **settings) as (server, _, log):
            failed = httpx.post(f"{server}/chat/run", json={"message": QUESTION}, timeout=120)
            key = json.loads(lectern("keys", "create", "--name", "x", "--json", home=tmp_path / "home").stdout)["key"]
            httpx.get(f"{server}/books", headers={"Authorization": f"Bearer {key}x"}, timeout=120)

    assert failed.status_code == 503
    stored_bytes = b"".join(file.read_bytes() for file in (tmp_path / "home").glob("lectern.db*")) + log.read_bytes()
    for secret in (KEY, key):
        assert secret.encode() not in stored_bytes
        assert secret not in failed.text


def test_a_failing_server_of_others_is_logged_and_counted(small_home: Path, tmp_path: Path) -> None:
    """Each failed call of the language model and of Redis is one line, and they are counted."""
    with fake_ai() as ai:
        ai.script(then=Step(status=401))
        settings = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1"}
        settings |= {"LECTERN_LIMITS_URL": "redis://127.0.0.1:1/0"}
        with served(small_home, tmp_path, **settings) as (server, _, log):
            assert httpx.post(f"{server}/chat/run", json={"message": QUESTION}, timeout=120).status_code == 503
            metrics = httpx.get(f"{server}/metrics", timeout=120).text

    failures = [line for line in lines(log) if line["event"] == "dependency.failed"]
    assert {line["dependency"] for line in failures} == {"language_model", "redis"}
    assert {line["error"] for line in failures if line["dependency"] == "language_model"} == {"ProviderRefused"}
    for dependency in ("language_model", "redis"):
        count = sum(line["dependency"] == dependency for line in failures)
        assert f'lectern_dependency_errors_total{{dependency="{dependency}"}} {count}.0' in metrics
        assert f'lectern_dependency_calls_total{{dependency="{dependency}"}} {count}.0' in metrics
    assert 'lectern_dependency_errors_total{dependency="qdrant"} 0.0' in metrics


def test_redaction_looks_everywhere() -> None:
    """Known secrets and whatever looks like a key are taken out of nested values, too."""
    clean = Redaction(["hunter2-password"])(
        None, "info", {"a": ["x hunter2-password y", {"b": "lk_abc_0123456789ab"}], "n": 1}
    )

    assert clean == {"a": ["x [hidden] y", {"b": "[hidden]"}], "n": 1}


def test_a_stop_lets_answers_finish(small_home: Path, tmp_path: Path) -> None:
    """After SIGTERM a stream that was under way gets its reply, new connections are refused, and the exit is clean."""
    with fake_ai() as ai, _slow(ai, small_home, tmp_path, str(MAX_WAIT_SECONDS)) as (server, process, _):
        received: list[str] = []
        reading = threading.Thread(target=lambda: received.append(_stream(server)))
        reading.start()
        _wait_for_call(ai)
        process.send_signal(signal.SIGTERM)
        reading.join(MAX_WAIT_SECONDS)
        process.communicate(timeout=MAX_WAIT_SECONDS)

    assert "event: reply" in received[0]
    assert process.returncode == 0


class Caller(threading.Thread):
    """A client that keeps its connection, and asks as long as its load balancer sends it there."""

    def __init__(self, server: str, is_ready: threading.Event) -> None:
        super().__init__()
        self.statuses: list[int] = []
        self.errors: list[str] = []
        self._server, self._is_ready = server, is_ready

    def run(self) -> None:
        """Ask one question after the other."""
        with httpx.Client(base_url=self._server, timeout=120) as client:
            while self._is_ready.is_set():
                try:
                    body = {"text": "node", "book_id": "robots"}
                    self.statuses.append(client.post("/search", json=body).status_code)
                except httpx.HTTPError as exc:
                    self.errors.append(repr(exc))


def test_a_stop_is_announced_before_anything_closes(small_home: Path, tmp_path: Path) -> None:
    """After SIGTERM readiness is false at once, while everything is still answered; only after the delay, which a
    second signal ends, the socket closes. With a load balancer in front that asks for readiness, no request of a busy
    server fails."""
    settings = {"LECTERN_SHUTDOWN_DELAY": "300", "LECTERN_RATE_LIMIT": "0"}
    with served(small_home, tmp_path, **settings) as (server, process, log):
        is_ready = threading.Event()
        is_ready.set()
        callers = [Caller(server, is_ready) for _ in range(4)]
        for caller in callers:
            caller.start()
        _until(lambda: all(caller.statuses for caller in callers))
        process.send_signal(signal.SIGTERM)
        _until(lambda: httpx.get(f"{server}/health/ready", timeout=120).status_code == 503)
        said = httpx.get(f"{server}/health/ready", timeout=120)
        answered = sum(len(caller.statuses) for caller in callers)
        _until(lambda: sum(len(caller.statuses) for caller in callers) > answered + 4)
        _until(lambda: httpx.get(f"{server}/books", timeout=120).headers.get("connection") == "close")
        is_ready.clear()
        for caller in callers:
            caller.join(MAX_WAIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=MAX_WAIT_SECONDS)

    assert ("stopping" in said.text, int(said.headers["Retry-After"]) > 0) == (True, True)
    assert [caller.errors for caller in callers] == [[]] * 4
    assert {status for caller in callers for status in caller.statuses} == {200}
    assert process.returncode == 0
    assert "Traceback" not in log.read_text()


def test_a_second_signal_does_not_wait(small_home: Path, tmp_path: Path) -> None:
    """Whoever cannot wait for the delay signals again."""
    with served(small_home, tmp_path, LECTERN_SHUTDOWN_DELAY="300") as (server, process, _):
        process.send_signal(signal.SIGTERM)
        _until(lambda: httpx.get(f"{server}/health/ready", timeout=120).status_code == 503)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=MAX_WAIT_SECONDS)

    assert process.returncode == 0


def _until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_stop_does_not_wait_for_ever(small_home: Path, tmp_path: Path) -> None:
    """Beyond its grace an answer is cut off with an error event, nothing of it is kept, and the log line says so."""
    with fake_ai() as ai, _slow(ai, small_home, tmp_path, "0.2", delay=600) as (server, process, log):
        received: list[str] = []
        reading = threading.Thread(target=lambda: received.append(_stream(server)))
        reading.start()
        _wait_for_call(ai)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=MAX_WAIT_SECONDS)
        reading.join(MAX_WAIT_SECONDS)

    assert "event: error" in received[0]
    assert [line["outcome"] for line in lines(log) if line["event"] == "question.failed"] == ["cancelled"]


@contextmanager
def _slow(
    ai: FakeAI, home: Path, folder: Path, grace: str, delay: float = 2
) -> Iterator[tuple[str, subprocess.Popen[str], Path]]:
    ai.script(then=Step(say=saying(ANSWER), delay=delay))
    settings = {"OPENAI_BASE_URL": f"{ai.url}/v1", "LECTERN_SHUTDOWN_GRACE": grace, "LECTERN_SHUTDOWN_DELAY": "0"}
    with served(home, folder, **settings) as server:
        yield server


def _stream(server: str) -> str:
    with httpx.stream("POST", f"{server}/chat/stream", json={"message": QUESTION}, timeout=120) as response:
        return "".join(response.iter_text())


def _wait_for_call(ai: FakeAI) -> None:
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not any(received.path.endswith("/chat/completions") for received in ai.received):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"LECTERN_FOO": "1"}, "unknown setting"),
        ({"LECTERN_RATE_LIMIT": "-1"}, "LECTERN_RATE_LIMIT"),
        ({"LECTERN_PROXIES": "nonsense"}, "LECTERN_PROXIES"),
        ({"LECTERN_LIMITS_URL": "http://x"}, "LECTERN_LIMITS_URL"),
        ({"LECTERN_ORIGINS": "not an origin"}, "LECTERN_ORIGINS"),
        ({"LECTERN_HOSTS": "http://x"}, "LECTERN_HOSTS"),
        ({"DATABASE_URL": "mysql://u:p4ssw0rd@h/x"}, "DATABASE_URL"),
        ({"DATABASE_URL": "postgresql://u:p4ssw0rd@127.0.0.1:1/x"}, "DATABASE_URL"),
        ({"AGENT_MAX_TURNS": "x"}, "AGENT_MAX_TURNS"),
        ({"LECTERN_HOME": "/proc/nothing/here"}, "LECTERN_HOME"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_starts(
    tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    """One line that names the variable, exit 2, no traceback, no secret."""
    env = {**os.environ, "LECTERN_HOME": str(tmp_path / "home"), **settings}
    result = subprocess.run(
        [LECTERN, "serve", "--port", "0"], env=env, capture_output=True, text=True, check=False, timeout=60
    )

    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "p4ssw0rd" not in result.stderr
