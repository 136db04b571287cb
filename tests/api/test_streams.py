"""Answers as Server-Sent Events, against a real server: what is sent, resumed, cancelled, and left when clients go."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import shutil
import socket
import struct
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sse_starlette import ServerSentEvent

from lectern.api import sse
from lectern.api.sse import Streams, _name_and_body, frame
from lectern.domain.errors import Overloaded
from lectern.domain.keys import LOCAL, Caller
from lectern.domain.replies import Delta
from tests.answering.scripted import KEY
from tests.fakeai import Step, fake_ai, saying
from tests.served import LECTERN, serving
from tests.sse import Event, events

MAX_WAIT_SECONDS = 120.0  # for what must come; other tests share the machine
QUESTION = "What does a best effort publisher mean for a reliable subscriber?"
OFF_BOOK = "Which wine goes well with roast duck?"


def stream(
    server: str, *, path: str = "/chat/stream", headers: dict[str, str] | None = None, **body: Any
) -> list[Event]:
    """Every event of a question."""
    with httpx.stream("POST", f"{server}{path}", json=body, headers=headers, timeout=120) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(events(response.iter_lines()))


def resume(server: str, run_id: str, last: str | None = None) -> list[Event]:
    """The events of a run after one of them."""
    headers = {"Last-Event-ID": last} if last is not None else {}
    with httpx.stream("GET", f"{server}/chat/stream/{run_id}", headers=headers, timeout=120) as response:
        assert response.status_code == 200, response.read()
        return list(events(response.iter_lines()))


@pytest.mark.parametrize("path", ["/chat/stream", "/chat/run"])
@pytest.mark.parametrize("question", [QUESTION, OFF_BOOK])
def test_a_stream_begins_with_its_ids_and_ends_with_the_reply(server: str, path: str, question: str) -> None:
    """Status with run and session first, sources before text, and one reply, which the thread holds as it was sent."""
    events = stream(server, path=path, message=question, stream=True)

    first, last = events[0], events[-1]
    assert (first.name, set(first.body)) == ("status", {"state", "run_id", "session_id", "book_id"})
    assert [event.name for event in events].count("reply") == 1
    assert last.name == "reply"
    numbers = [int(event.id.partition("-")[2]) for event in events]
    assert numbers == sorted(set(numbers))
    assert len({event.id.partition("-")[0] for event in events}) == 1
    text = "".join(event.body["text"] for event in events if event.name == "delta")
    assert text == (last.body["response"] if last.body["should_answer"] else "")
    thread = httpx.get(f"{server}/threads/{first.body['session_id']}/export", timeout=120).json()
    assert [turn["reply"] for turn in thread["turns"]] == [last.body]


def test_a_dropped_client_goes_on_where_it_was(server: str) -> None:
    """From every event on, what is left is sent again, alike, and after the last the last; a strange id, or one of
    another run, begins at the beginning."""
    events, second_events = stream(server, message=QUESTION), stream(server, message=QUESTION)
    run_id = events[0].body["run_id"]

    for place, event in enumerate(events[:-1]):
        assert resume(server, run_id, event.id) == events[place + 1 :]
    assert resume(server, run_id, events[-1].id) == events[-1:]
    attempt = events[0].id.partition("-")[0]
    for strange in (None, "", "x", "-1", "0", "3", "stored", f"{attempt}-", f"{attempt}-999", second_events[2].id):
        assert resume(server, run_id, strange) == events


def test_a_second_attempt_is_not_taken_for_the_first(small_home: Path, tmp_path: Path) -> None:
    """A run that failed half way and is asked again under its key has the same run id: whoever comes back with an event
    of the first attempt gets all of the second."""
    home, key = shutil.copytree(small_home, tmp_path / "home"), {"Idempotency-Key": "twice"}
    with fake_ai() as ai:
        ai.script(Step(status=400), then=Step(say=saying("A node is a process that computes. [1]")))
        settings = {"LECTERN_HOME": str(home), "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1"}
        with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as server:
            first = stream(server, headers=key, message="What is a node?")
            second = stream(server, headers=key, message="What is a node?")
            run_id = first[0].body["run_id"]
            resumed = [resume(server, run_id, event.id) for event in first]

    assert (first[-1].name, second[-1].name, second[0].body["run_id"]) == ("error", "reply", run_id)
    assert resumed == [second] * len(first)


def test_a_run_that_is_unknown_is_so_everywhere(server: str) -> None:
    """Resuming and cancelling what nobody began is a 404 in the one shape of an error."""
    for call in (
        httpx.get(f"{server}/chat/stream/{uuid.uuid4()}", timeout=120),
        httpx.post(f"{server}/chat/runs/{uuid.uuid4()}/cancel", timeout=120),
    ):
        assert call.status_code == 404
        assert call.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"message": " "}, 422),
        ({"message": "x" * 1001}, 422),
        ({"message": "bell \u0007"}, 422),
        ({"message": QUESTION, "book_id": "none"}, 404),
        ({"message": QUESTION, "module_filter": "none"}, 422),
        ({"message": QUESTION, "session_id": str(uuid.uuid1())}, 422),
        ({"message": QUESTION, "metadata": {"x": "y" * 5000}}, 422),
        ({"message": QUESTION, "metadata": {"x": "\u0000"}}, 422),
        ({"message": QUESTION, "metadata": {"x": "\ud800"}}, 422),
        ({"message": QUESTION, "module_filter": "\ud800"}, 422),
        ({"message": "lone \ud800"}, 422),
        ({"message": QUESTION, "metadata": {"x": float("nan")}}, 422),
    ],
)
def test_what_is_wrong_is_said_before_the_stream_begins(server: str, body: dict[str, Any], status: int) -> None:
    """A request that cannot be carried out gets a status and a problem, never an empty stream."""
    answered = _post(server, body)
    keyed = _post(server, body, {"Idempotency-Key": str(uuid.uuid4())})

    assert (answered.status_code, keyed.status_code) == (status, status)
    if status != 200:
        assert answered.headers["content-type"] == "application/problem+json"


def _post(server: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> httpx.Response:
    """A request whose body may hold what a client library would refuse to send."""
    request_headers = {"Content-Type": "application/json", **(headers or {})}
    return httpx.post(f"{server}/chat/stream", content=json.dumps(body), headers=request_headers, timeout=120)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"message": ', "no valid JSON"),
        ("", "send a JSON object"),
        ("[1]", "send a JSON object"),
        ('{"message": "x", "metadata": ' + '{"a":' * 900 + "1" + "}" * 900 + "}", "metadata"),
        ('{"message": "' + "x" * 70_000 + '"}', "bytes"),
    ],
)
def test_a_body_that_cannot_be_read_is_said_plainly(server: str, content: str, message: str) -> None:
    """4xx in the one shape, with advice; nothing about the inside."""
    answered = httpx.post(
        f"{server}/chat/run", content=content, headers={"Content-Type": "application/json"}, timeout=120
    )

    assert answered.status_code in (413, 422)
    assert answered.headers["content-type"] == "application/problem+json"
    assert message in answered.json()["detail"]


def test_a_cursor_that_was_never_given_is_refused(server: str) -> None:
    """Numbers no database has, and text that is none, are 422."""
    for place in ("x 99999999999999999999999999", "2026-01-01T00:00:00.000Z 99999999999999999999999", "\x00 1"):
        cursor = base64.urlsafe_b64encode(place.encode()).decode()
        assert httpx.get(f"{server}/threads", params={"cursor": cursor}, timeout=120).status_code == 422


def test_a_deleted_conversation_cannot_be_followed(server: str) -> None:
    """After the deletion its run is unknown, too."""
    events = stream(server, message=QUESTION)
    first = events[0].body
    assert httpx.delete(f"{server}/threads/{first['session_id']}", timeout=120).status_code == 204

    assert httpx.get(f"{server}/chat/stream/{first['run_id']}", timeout=120).status_code == 404
    assert httpx.delete(f"{server}/threads/{first['session_id']}", timeout=120).status_code == 404


def test_one_key_is_one_question(server: str) -> None:
    """The same key and body twice, streamed or not, is one turn and one reply; another body under it is refused."""
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = httpx.post(f"{server}/chat/run", json={"message": QUESTION}, headers=key, timeout=120).json()
    again = httpx.post(f"{server}/chat/run", json={"message": QUESTION}, headers=key, timeout=120).json()
    streamed = stream(server, headers=key, message=QUESTION)[-1].body
    second_response = httpx.post(f"{server}/chat/run", json={"message": OFF_BOOK}, headers=key, timeout=120)

    assert first == again == streamed
    assert httpx.get(f"{server}/threads/{first['session_id']}", timeout=120).json()["turn_count"] == 1
    assert second_response.status_code == 422


def test_a_stored_reply_is_given_after_a_restart(sample_home: Path, tmp_path: Path) -> None:
    """A server that never saw the run gives its reply from the database, and repeats it for the same key."""
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)
    env = {**os.environ, "LECTERN_HOME": str(home)}
    key = {"Idempotency-Key": "across"}
    with serving([LECTERN, "serve", "--port", "0"], env=env) as server:
        events = stream(server, headers=key, message=QUESTION)
    with serving([LECTERN, "serve", "--port", "0"], env=env) as server:
        resumed = resume(server, events[0].body["run_id"])
        again = httpx.post(f"{server}/chat/run", json={"message": QUESTION}, headers=key, timeout=120).json()

    assert [(event.name, event.body) for event in resumed] == [("reply", events[-1].body)]
    assert again == events[-1].body


@given(text=st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_the_framing(text: str) -> None:
    """Line ends of every kind, `data:` and `event:` in an answer arrive as they were, in one event."""
    name, body = _name_and_body(Delta(text=text)) or ("", {})
    framed = frame(name, body, "7").encode().decode()

    [event] = events(framed.split("\n"))
    assert (event.name, event.id, event.body) == ("delta", "7", {"text": text})


@pytest.fixture
def lone_server(sample_home: Path, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A server of one's own, with its process id."""
    home = tmp_path / "home"
    shutil.copytree(sample_home, home)
    env = {**os.environ, "LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0"}
    with serving([LECTERN, "serve", "--port", "0"], env=env) as server:
        yield server, int(json.loads((home / "server.json").read_text())["pid"])


def test_clients_that_vanish_leave_nothing_behind(lone_server: tuple[str, int], request: pytest.FixtureRequest) -> None:
    """Resets before, during and after a stream: in the end the server holds no more descriptors than before, runs are
    over, and every question that was begun is answered in its thread."""
    server, pid = lone_server
    stream(server, message=QUESTION)  # everything that is made once is made
    count = int(request.config.getoption("--disconnects"))
    rng, before = random.Random(7), _descriptors(pid)
    for number in range(count):
        _vanish(server, rng.choice([0.0, 0.002, 0.01, 0.03, 0.1]), f"{QUESTION} {number}")

    _wait(lambda: _descriptors(pid) <= before + 2)
    _wait(lambda: _active(server) == 0)
    threads = httpx.get(f"{server}/threads", params={"limit": 100}, timeout=120).json()["threads"]
    assert all(thread["turn_count"] == 1 for thread in threads)


def _vanish(server: str, after: float, message: str) -> None:
    """Ask, and reset the connection after a moment."""
    parts = urlsplit(server)
    body = json.dumps({"message": message}).encode()
    head = f"POST /chat/stream HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(after)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a goodbye


def _descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def _active(server: str) -> float:
    text = httpx.get(f"{server}/metrics", timeout=120).text
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith("lectern_runs_active")))


def _wait(condition: Any) -> None:
    end = time.monotonic() + MAX_WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end, f"not within {MAX_WAIT_SECONDS:g} s"
        time.sleep(0.05)


async def test_open_streams_are_capped_and_their_places_given_back() -> None:
    """One more than allowed is refused, of one owner and in all; a stream that ends, however, makes room."""
    streams = Streams(max_streams=2, max_per_owner=1)

    def caller(owner: str) -> Caller:
        return replace(LOCAL, owner=owner)

    async def silent() -> AsyncIterator[ServerSentEvent]:
        await asyncio.Event().wait()
        yield ServerSentEvent(data="never")

    async def open_stream(owner: str) -> asyncio.Task[None]:
        started = asyncio.Event()

        async def send(_: object) -> None:
            started.set()

        scope = {"type": "http", "method": "GET", "headers": []}
        task = asyncio.create_task(streams.open(caller(owner), silent())(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]  # nothing is received
        await started.wait()
        return task

    streams.open(caller("a"), silent())  # made and never sent: it takes no place
    first, second = await open_stream("a"), await open_stream("b")
    for owner in ("a", "c"):
        with pytest.raises(Overloaded):
            streams.open(caller(owner), silent())
    first.cancel()
    await asyncio.wait([first])
    third = await open_stream("a")
    for task in (second, third):
        task.cancel()
    await asyncio.wait([second, third])


async def test_a_silent_stream_ends_when_its_key_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it follows, and though nothing happens there: the last event says why, and nothing is left waiting."""
    monkeypatch.setattr(sse, "KEY_CHECK_SECONDS", 0.02)
    revoked, closed = False, False

    async def is_valid(key_id: str) -> bool:
        return key_id == "mine" and not revoked

    async def following() -> AsyncIterator[ServerSentEvent]:
        nonlocal closed
        try:
            yield frame("progress", {}, "1")
            await asyncio.Event().wait()
        finally:
            closed = True

    texts: list[str] = []

    async def send(message: Any) -> None:
        texts.append(message.get("body", b"").decode())

    stream_ = Streams(9, 9, is_valid).open(replace(LOCAL, key_id="mine"), following())
    scope = {"type": "http", "method": "GET", "headers": []}
    task = asyncio.create_task(stream_(scope, asyncio.Event().wait, send))  # type: ignore[arg-type]  # nothing is received
    while "progress" not in "".join(texts):  # noqa: ASYNC110  # no event says so
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert not task.done()
    revoked = True
    await asyncio.wait_for(task, MAX_WAIT_SECONDS)

    assert "event: error" in "".join(texts)
    assert '"status": 401' in "".join(texts)
    assert closed
