"""Clients that dribble: nobody holds a connection for ever, and whoever is merely slow is served."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.answering.scripted import KEY
from tests.fakeai import Step, fake_ai, saying
from tests.served import LECTERN, serving

SECONDS = 2.0  # that a client has in these tests
PAUSE = 0.1  # of a client that is merely slow
MAX_WAIT_SECONDS = 60.0  # for the end of a connection; all bytes of a client that dribbles take longer
BODY = json.dumps({"message": "What does a best effort publisher mean?"}).encode()
HEAD = (
    f"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
)


@pytest.fixture(scope="module")
def hurried(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a server that waits for two seconds; its model takes three."""
    home = tmp_path_factory.mktemp("hurried") / "home"
    shutil.copytree(sample_home, home)
    with fake_ai() as ai:
        ai.script(then=Step(say=saying("It means that samples may be lost. [1]"), delay=1.5 * SECONDS))
        settings = {
            "LECTERN_HOME": str(home),
            "LECTERN_REQUEST_TIMEOUT": str(SECONDS),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{ai.url}/v1",
        }
        with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
            parts = urlsplit(address)
            yield str(parts.hostname), int(parts.port or 0)


def dribbled(address: tuple[str, int], at_once: bytes, rest: bytes) -> bytes:
    """Send some, then byte by byte, until the server has enough and closes the connection; what came back."""
    end, received, is_closed = time.monotonic() + MAX_WAIT_SECONDS, b"", False
    with socket.create_connection(address) as connection, suppress(ConnectionError):
        connection.settimeout(0.1)
        connection.sendall(at_once)
        remaining = iter(rest)
        while not is_closed:
            assert time.monotonic() < end, "the server does not close the connection"
            if (byte := next(remaining, None)) is not None:
                connection.sendall(bytes([byte]))
            with suppress(TimeoutError):
                part = connection.recv(65536)
                received += part
                is_closed = not part
    return received


@pytest.mark.parametrize("before", [b"", b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_a_head_that_dribbles_is_given_up(hurried: tuple[str, int], before: bytes) -> None:
    """408 and the end, on a new connection and on one that has had a request; others are served meanwhile."""
    received = dribbled(hurried, before + b"GET /books HT", b"TP/1.1\r\nX-Slow: " + b"a" * 1000)

    assert received.count(b"HTTP/1.1 ") == (2 if before else 1)
    head, _, body = received[received.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout")
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == 408
    assert httpx.get(f"http://{hurried[0]}:{hurried[1]}/health/live", timeout=60).status_code == 200


def test_a_connection_that_says_nothing_is_closed(hurried: tuple[str, int]) -> None:
    """Without a word: nobody asked anything."""
    received = dribbled(hurried, b"", b"")

    assert received == b""


def test_a_body_that_dribbles_is_given_up(hurried: tuple[str, int]) -> None:
    """408 in the one shape of an error, and the connection is closed."""
    received = dribbled(hurried, HEAD.encode(), b" " * len(BODY))

    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    for header in (b"application/problem+json", b"x-request-id", b"nosniff", b"onnection: close"):
        assert header in head
    assert "2 s" in json.loads(body)["detail"]


def test_a_body_that_nobody_reads_holds_nothing(hurried: tuple[str, int]) -> None:
    """The answer is there long before the body; the connection goes all the same."""
    head = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    received = dribbled(hurried, head, b"x" * 1000)

    assert received.startswith(b"HTTP/1.1 200 ")


def test_whoever_is_merely_slow_is_served(hurried: tuple[str, int]) -> None:
    """A request in parts that comes in time is answered, and an answer may take longer than a request."""
    with socket.create_connection(hurried) as connection:
        connection.settimeout(10)
        for part in (HEAD[:20].encode(), HEAD[20:].encode() + BODY[:10], BODY[10:]):
            connection.sendall(part)
            time.sleep(PAUSE)
        assert connection.recv(65536).startswith(b"HTTP/1.1 422 ")  # a search has `text`, but it was read
    answered = httpx.post(f"http://{hurried[0]}:{hurried[1]}/chat/stream", json=json.loads(BODY), timeout=120)
    assert "event: reply" in answered.text
    assert answered.elapsed.total_seconds() > SECONDS
