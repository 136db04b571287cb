"""Limits: never one request too many in any minute, never one too few, and a state that is true."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lectern.api import rate_windows
from lectern.api.rate_windows import (
    MAX_BAD_KEYS,
    REDIS_CONNECTIONS,
    REDIS_TIMEOUT,
    Limits,
    MemoryWindows,
    RateLimit,
    RateWindows,
    limit_headers,
)
from lectern.domain.errors import TooMany
from lectern.domain.keys import LOCAL, Caller
from tests.ports import closed_port, free_port

MOST, WINDOW = 100, 60.0
LATE = 1.0  # seconds, after which an answer of Redis is late
REDIS = shutil.which("redis-server")
NO_REDIS = "no redis-server on this machine"
KEY = Caller(owner="o", rights=frozenset({"read"}), books=None, key_id="k")
TICK = 1 / 1024  # seconds; sums of it are exact, so that the edge of a window is where it is
PAUSES = st.sampled_from([0.0, 0.0, 0.0, TICK, 0.5, 7.0, 30 - TICK, 30.0, 59.0, 60 - TICK, 60.0, 60 + TICK, 61.0])


class Clock:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.now


async def arrivals(bursts: list[tuple[float, int]]) -> tuple[list[float], list[tuple[float, bool, int, int]]]:
    """The moments of admitted requests, and how each request stood, for bursts after pauses."""
    clock = Clock()
    windows = RateWindows(clock=clock)
    admitted: list[float] = []
    stood = []
    for pause, size in bursts:
        clock.now += pause
        for _ in range(size):
            state = await windows.count(RateLimit(("key", "k"), MOST))
            admitted += [clock.now] if state.admitted else []
            stood.append((clock.now, state.admitted, state.remaining, state.wait))
    return admitted, stood


@given(st.lists(st.tuples(PAUSES, st.integers(1, 60)), min_size=1, max_size=25))
@example([(0.0, 100), (60 - TICK, 1), (TICK, 99), (TICK, 100)])  # bursts on both sides of an edge
@example([(0.0, 50), (30.0, 60), (30.0, 60), (30 + TICK, 120)])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_never_more_than_the_limit_in_any_minute(bursts: list[tuple[float, int]]) -> None:
    """Whatever the arrivals, every window of 60 s has at most 100, and nobody is refused while there is room."""
    admitted, stood = asyncio.run(arrivals(bursts))

    for last, first in zip(admitted[MOST:], admitted, strict=False):
        assert last - first > WINDOW
    admitted_times: list[float] = []
    for moment, was_admitted, remaining, wait in stood:
        before = [admitted_time for admitted_time in admitted_times if admitted_time >= moment - WINDOW]
        assert was_admitted == (len(before) < MOST)
        admitted_times += [moment] if was_admitted else []
        in_window = [admitted_time for admitted_time in admitted_times if admitted_time >= moment - WINDOW]
        assert remaining == MOST - len(in_window)
        assert (
            in_window[0] + WINDOW < moment + wait <= in_window[0] + WINDOW + 1.01
        )  # it is true, and not a second too long


async def test_retry_after_is_true() -> None:
    """Who waits as long as was said gets in; who waits a second less does not."""
    clock = Clock()
    windows = RateWindows(clock=clock)
    limit = RateLimit(("key", "k"), 3)
    for _ in range(3):
        await windows.count(limit)
        clock.now += 10.3
    refused = await windows.count(limit)
    clock.now += refused.wait - 1
    early = await windows.count(limit)
    clock.now += 1

    assert not refused.admitted
    assert not early.admitted
    assert (await windows.count(limit)).admitted


async def test_buckets_that_nobody_uses_are_forgotten() -> None:
    """A million addresses do not stay in memory."""
    clock = Clock()
    store = MemoryWindows(clock)
    for number in range(1000):
        await store.acquire_entry(f"peer {number}", 5, 60)
    clock.now += 61
    await store.acquire_entry("another", 5, 60)

    assert len(store._hits) == 1


async def test_a_key_is_counted_whatever_its_address(windows: RateWindows) -> None:
    """Many addresses share a key's limit; two keys, and two addresses without keys, do not share one."""
    limits = Limits(windows, 4, 2)
    admitted = [await limits.admit(KEY, f"1.1.1.{number}") for number in range(5)]

    assert [decision.admitted for decision in admitted if decision] == [True] * 4 + [False]
    for caller, peer in ((LOCAL, "1.1.1.1"), (LOCAL, "2.2.2.2")):
        state = await limits.admit(caller, peer)
        assert state
        assert state.remaining == 3


async def test_a_reader_has_a_share_of_the_keys_limit(windows: RateWindows) -> None:
    """One reader stops at its own limit, all together at the key's; a visitor without a token counts by address."""
    limits = Limits(windows, 6, 3)

    async def admitted(reader: str | None, peer: str, times: int) -> int:
        caller = Caller(
            owner="o", rights=KEY.rights, books=None, key_id="w", reader=reader, nameless=reader is None
        )  # fmt: skip
        stood = [await limits.admit(caller, peer) for _ in range(times)]
        return sum(1 for decision in stood if decision and decision.admitted)

    assert await admitted("a", "1.1.1.1", 5) == 3
    assert await admitted(None, "1.1.1.1", 5) == 3
    assert await admitted("b", "2.2.2.2", 5) == 0


async def test_a_full_key_takes_nothing_of_a_readers_share(windows: RateWindows) -> None:
    """A request that is refused by one limit is counted in none."""
    limits = Limits(windows, 2, 2)
    reader = Caller(owner="o", rights=KEY.rights, books=None, key_id="k", reader="r")
    await limits.admit(KEY, "p")
    await limits.admit(KEY, "p")
    refused = await limits.admit(reader, "p")

    assert refused
    assert not refused.admitted
    assert (await windows.count(RateLimit(("reader", "k", "r"), 2))).remaining == 1


async def test_bad_keys_are_limited_by_address(windows: RateWindows) -> None:
    """So many from one address, then a wait; another address is not concerned; with limits off none of it."""
    limits = Limits(windows, 100, 30)
    for _ in range(MAX_BAD_KEYS):
        await limits.refuse_guessing("1.1.1.1")

    with pytest.raises(TooMany, match="bad keys"):
        await limits.refuse_guessing("1.1.1.1")
    await limits.refuse_guessing("2.2.2.2")
    off = Limits(windows, 0, 30)
    await off.refuse_guessing("1.1.1.1")
    assert await off.admit(KEY, "1.1.1.1") is None


async def test_headers_say_how_a_caller_stands(windows: RateWindows) -> None:
    """The four of the draft."""
    state = await windows.count(RateLimit(("key", "k"), 100))

    assert dict(limit_headers(state)) == {
        b"ratelimit-limit": b"100",
        b"ratelimit-remaining": b"99",
        b"ratelimit-reset": b"60",
        b"ratelimit-policy": b"100;w=60",
    }


async def test_without_redis_each_process_counts_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    """K6: nobody is turned away for it, the limit still holds, it is said once, and nobody waits for it each time."""
    with closed_port() as port:
        windows = RateWindows(f"redis://:hunter2@127.0.0.1:{port}/0")
        stood = [await windows.count(RateLimit(("key", "k"), 3)) for _ in range(5)]
        await windows.close()

    assert [decision.admitted for decision in stood] == [True] * 3 + [False] * 2
    assert len(caplog.records) == 1
    assert "LECTERN_LIMITS_URL" in caplog.text
    assert "hunter2" not in caplog.text


async def test_a_redis_that_hangs_costs_one_request_half_a_second() -> None:
    """A connection that is taken and never answered does not stop the server."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        windows = RateWindows(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        stood = [await windows.count(RateLimit(("key", "k"), 3)) for _ in range(20)]
        await windows.close()
        waited = _connections(silent)

    assert sum(1 for decision in stood if decision.admitted) == 3
    assert (waited, REDIS_TIMEOUT) == (1, 0.5)


async def test_a_redis_that_hangs_holds_up_a_burst_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of many requests at once only those that are being counted wait for it; the rest go on, and it is said once."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(500)
        windows = RateWindows(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        stood = await asyncio.gather(*(windows.count(RateLimit(("key", "k"), 3)) for _ in range(400)))
        await windows.close()
        waited = _connections(silent)

    assert sum(1 for decision in stood if decision.admitted) == 3
    assert waited <= REDIS_CONNECTIONS
    assert len(caplog.records) == 1


def _connections(listener: socket.socket) -> int:
    """How many connections were opened to somebody who never took one."""
    listener.setblocking(False)
    for count in itertools.count():
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
    raise AssertionError


@contextlib.asynccontextmanager
async def slowed(url: str, seconds: float) -> AsyncIterator[str]:
    """The address of a Redis whose answers come late, each by as much."""
    port = urlsplit(url).port
    assert port

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                await asyncio.sleep(delay)
                writer.write(data)
        writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        redis_reader, redis_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, redis_writer, 0), forward(redis_reader, writer, seconds))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    finally:
        server.close()


@pytest.mark.skipif(REDIS is None, reason=NO_REDIS)
async def test_a_burst_that_waits_for_redis_is_counted_in_redis(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More requests at once than connections: they wait longer than a single answer may take, and the limit holds."""
    monkeypatch.setattr(rate_windows, "REDIS_TIMEOUT", LATE)
    with redis_server(tmp_path) as url:
        async with slowed(url, LATE / 10) as slow_url:
            windows = RateWindows(slow_url)
            limit = RateLimit(("key", "k"), MOST)
            start_time = time.monotonic()
            stood = await asyncio.gather(*(windows.count(limit) for _ in range(300)))
            assert time.monotonic() - start_time > LATE
            await windows.close()

    assert sum(1 for state in stood if state.admitted) == MOST
    assert caplog.records == []


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis on a busy machine is waited for."""
    monkeypatch.setattr(rate_windows, "REDIS_TIMEOUT", 60.0)


@contextlib.contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """A real Redis on a port of its own."""
    assert REDIS
    port = free_port()
    command = [REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        for line in process.stdout:
            if "Ready to accept connections" in line:
                break
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture(params=["process", "redis"])
async def windows(request: pytest.FixtureRequest, tmp_path: Path, patient: None) -> AsyncIterator[RateWindows]:
    """Counts in memory and, where there is one, in a real Redis."""
    with contextlib.ExitStack() as stack:
        if request.param == "redis" and REDIS is None:
            pytest.skip(NO_REDIS)
        url = stack.enter_context(redis_server(tmp_path)) if request.param == "redis" else None
        windows = RateWindows(url)
        yield windows
        await windows.close()


@pytest.mark.skipif(REDIS is None, reason=NO_REDIS)
@pytest.mark.usefixtures("patient")
async def test_two_processes_share_one_limit_in_redis(tmp_path: Path) -> None:
    """Of 300 requests at two servers at once exactly 100 are admitted; when Redis goes, each counts on."""
    with redis_server(tmp_path) as url:
        first_windows, second_windows = RateWindows(url), RateWindows(url)
        limit = RateLimit(("key", "k"), MOST)
        stood = await asyncio.gather(
            *((first_windows, second_windows)[number % 2].count(limit) for number in range(300))
        )
        assert sum(1 for state in stood if state.admitted) == MOST

    assert (await first_windows.count(limit)).admitted
    for windows in (first_windows, second_windows):
        await windows.close()
