"""A server under mixed load for as long as asked: `make soak` runs it for half an hour. What readers, authors and bad
connections do at once must leave memory, descriptors, threads and the database as they are after a minute."""

from __future__ import annotations

import json
import os
import random
import socket
import statistics
import struct
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from lectern.conversations.runs import MAX_ENDED_RUNS
from tests.books import WORDS, Author
from tests.fakeai import FakeAI, Step, fake_ai, saying
from tests.served import LECTERN, lectern, serving_process

READERS = 3
READER_PAUSE, AUTHOR_PAUSE, SAMPLE_PAUSE = 0.7, 4.0, 1.0  # seconds; a soak is long, not busy
MAX_LESSONS = 14  # the book changes and does not grow, so neither may anything that is made of it
LONG_RUN = 1_500.0  # seconds; a shorter run cannot tell growth from warming up
MAX_GROWTH_MIB = 32.0  # of memory, from the beginning of the part of a long run that is compared to its end
MAX_TURN_KIB, MAX_JOB_KIB, SPARE_MIB = 48, 96, 16  # of the database, for each turn and each ingestion that it stores
MIB = 1024 * 1024
ANSWER = "A robot has a sensor and a motor. [1] The planner uses a map. [2]"


@dataclass(frozen=True, slots=True)
class Sample:
    """What the server and its worker hold at one moment."""

    memory: float  # MiB, of the server; without files that are mapped
    worker: float  # MiB, of the process that reads and embeds
    descriptors: int
    threads: int
    database: int  # bytes
    index: int
    turns: int
    jobs: int


@dataclass(slots=True)
class Tally:
    """What was done so far, and what the server held meanwhile."""

    done: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)  # acknowledged, by thread
    samples: list[Sample] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, deed: str, thread: str | None = None) -> None:
        """Note that something was done, and the turn that it made."""
        with self.lock:
            self.done[deed] += 1
            if thread is not None:
                self.turns[thread] += 1


@dataclass(frozen=True, slots=True)
class Site:
    """A running server, its home and its process."""

    address: str
    home: Path
    pid: int
    author: Author


@contextmanager
def _site(folder: Path, ai: FakeAI) -> Iterator[Site]:
    author = Author(folder / "books" / "robots", 20)
    home = folder / "home"
    lectern("ingest", str(author.folder), "--book", "robots", home=home)
    settings = {"LECTERN_HOME": str(home), "LECTERN_BOOKS": str(folder / "books"), "LECTERN_RATE_LIMIT": "0"}
    settings |= {"OPENAI_API_KEY": "sk-soak", "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
    with (
        (folder / "server.log").open("w") as log,
        serving_process([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}, stderr=log) as started,
    ):
        yield Site(started[0], home, started[1].pid, author)


class Reader:
    """Asks, streams, leaves, cancels, searches and deletes, at random."""

    def __init__(self, site: Site, tally: Tally, seed: int) -> None:
        self._site, self._tally = site, tally
        self._chance = random.Random(seed)
        self._web = httpx.Client(base_url=site.address, timeout=60, trust_env=False)
        self._threads: list[str] = []
        deeds = [self.chat, self.chat, self.stream, self.stream, self.vanish, self.cancel, self.search, self.search]
        self._deeds: list[Callable[[], None]] = [*deeds, self.delete, self.mistake, self.export]

    def act(self) -> None:
        """One of the deeds."""
        deed = self._chance.choice(self._deeds)
        deed()
        self._tally.count(deed.__name__)

    def chat(self) -> None:
        """A question with one answer."""
        thread = self._thread()
        answered = self._web.post("/chat/run", json=self._question(thread))
        assert answered.status_code == 200, answered.text
        self._tally.count("turn", thread)

    def stream(self) -> None:
        """A question whose answer is read to its end."""
        thread = self._thread()
        with self._web.stream("POST", "/chat/stream", json=self._question(thread)) as response:
            assert response.status_code == 200, response.read()
            text = "".join(response.iter_text())
        assert "event: reply" in text, text[-500:]
        self._tally.count("turn", thread)

    def vanish(self) -> None:
        """A question of a client that resets its connection after a moment."""
        parts = urlsplit(self._site.address)
        body = json.dumps(self._question(str(uuid.uuid4()))).encode()
        head = f"POST /chat/stream HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as client:
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(self._chance.choice([0.0, 0.01, 0.05, 0.2]))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, no goodbye

    def cancel(self) -> None:
        """A question that is cancelled as soon as its run has a name."""
        with self._web.stream("POST", "/chat/stream", json=self._question(str(uuid.uuid4()))) as response:
            for line in response.iter_lines():
                if line.startswith("data:") and "run_id" in line:
                    run_id = json.loads(line.removeprefix("data:"))["run_id"]
                    assert self._web.post(f"/chat/runs/{run_id}/cancel").status_code in {200, 202, 204}
                    break

    def search(self) -> None:
        """A search that finds something."""
        found = self._web.post("/search", json={"text": self._chance.choice(WORDS), "book_id": "robots"})
        assert found.status_code == 200, found.text

    def delete(self) -> None:
        """An old conversation goes."""
        if len(self._threads) > 10:
            thread = self._threads.pop(0)
            assert self._web.delete(f"/threads/{thread}").status_code == 204
            with self._tally.lock:
                del self._tally.turns[thread]

    def export(self) -> None:
        """A conversation is exported, with every turn that was acknowledged."""
        if self._threads:
            thread = self._chance.choice(self._threads)
            exported = self._web.get(f"/threads/{thread}/export")
            assert exported.status_code == 200, exported.text
            assert exported.json()["turn_count"] == self._tally.turns[thread]

    def mistake(self) -> None:
        """A request that cannot be understood."""
        assert self._web.post("/chat/run", content=b"{").status_code == 422
        assert self._web.get(f"/threads/{uuid.uuid4()}").status_code == 404

    def close(self) -> None:
        """Close the connections."""
        self._web.close()

    def _thread(self) -> str:
        if len(self._threads) < 3 or self._chance.random() < 0.3:
            self._threads.append(str(uuid.uuid4()))
            return self._threads[-1]
        return next((thread for thread in reversed(self._threads) if self._tally.turns[thread] < 12), self._threads[-1])

    def _question(self, thread: str) -> dict[str, str]:
        words = " ".join(self._chance.sample(WORDS, 3))
        return {"message": f"What does the book say about {words}?", "session_id": thread}


def _ingest(site: Site, tally: Tally, web: httpx.Client, chance: random.Random) -> None:
    """Edit the book and have the server read it again; now and then everything, now and then a job is cancelled."""
    author = site.author
    author.edit()
    while len(author._lessons()) > MAX_LESSONS:
        author._delete()
    mode = chance.choice(["incremental", "incremental", "incremental", "full"])
    started = web.post("/books/robots/ingestions", json={"source": "robots", "mode": mode, "replace": True})
    assert started.status_code == 202, started.text
    job_id = started.json()["job_id"]
    cancelled = chance.random() < 0.15
    if cancelled:
        web.post(f"/ingestions/{job_id}/cancel").raise_for_status()
    web.get(f"/ingestions/{job_id}/events").raise_for_status()  # ends with the job
    job = web.get(f"/ingestions/{job_id}").json()
    assert job["status"] in ({"completed", "cancelled"} if cancelled else {"completed"}), job
    tally.count("ingest")


def _processes(pid: int) -> list[int]:
    """The server and everything that it started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    started = Path(f"/proc/{pid}/task").iterdir()
    children += [child for task in started for child in (task / "children").read_text().split()]
    return [pid, *{int(child) for child in children}]


def _sample(site: Site, tally: Tally) -> Sample:
    status = [Path(f"/proc/{pid}/status").read_text() for pid in _processes(site.pid)]

    def total(name: str) -> int:
        return sum(int(line.split()[1]) for text in status for line in text.splitlines() if line.startswith(name))

    def memory(text: str) -> float:
        [line] = [line for line in text.splitlines() if line.startswith("RssAnon:")]
        return int(line.split()[1]) / 1024

    files = list(site.home.glob("lectern.db*"))
    return Sample(
        memory=memory(status[0]),
        worker=max(map(memory, status[1:]), default=0.0),
        descriptors=sum(1 for _ in Path(f"/proc/{site.pid}/fd").iterdir()),
        threads=total("Threads:"),
        database=sum(file.stat().st_size for file in files if file.exists()),
        index=sum(_size(path) for path in (site.home / "index").rglob("*")),
        turns=tally.done["turn"] + tally.done["vanish"] + tally.done["cancel"],
        jobs=tally.done["ingest"],
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except FileNotFoundError:  # the engine deletes its own files
        return 0


def _runs(web: httpx.Client) -> float:
    lines = web.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("lectern_runs_active")))


def _quiet(web: httpx.Client) -> None:
    """Wait until no question is being answered."""
    end = time.monotonic() + 60
    while _runs(web):
        assert time.monotonic() < end, "runs do not end"
        time.sleep(0.1)


def _repeat(end: float, pause: float, deed: Callable[[], None], over: threading.Event) -> None:
    """Do this again and again; whoever fails ends everybody's work."""
    try:
        while time.monotonic() < end and not over.is_set():
            deed()
            over.wait(pause)
    except BaseException:
        over.set()
        raise


def _load(site: Site, tally: Tally, seconds: float) -> None:
    """Everybody at once, for so long."""
    readers = [Reader(site, tally, seed) for seed in range(READERS)]
    end, over, chance = time.monotonic() + seconds, threading.Event(), random.Random(20)
    with httpx.Client(base_url=site.address, timeout=120, trust_env=False) as web, ThreadPoolExecutor() as pool:
        deeds = [(READER_PAUSE, reader.act) for reader in readers]
        deeds.append((AUTHOR_PAUSE, lambda: _ingest(site, tally, web, chance)))
        deeds.append((SAMPLE_PAUSE, lambda: tally.samples.append(_sample(site, tally))))
        for work in [pool.submit(_repeat, end, pause, deed, over) for pause, deed in deeds]:
            work.result()
    for reader in readers:
        reader.close()


def _report(tally: Tally, *quiet: Sample) -> None:
    """What was done and what the server held, for those who run it with `-s`."""
    lines = [str(dict(tally.done)), *map(str, quiet), *map(str, tally.samples[:: max(1, len(tally.samples) // 12)])]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


def _median(samples: list[Sample], name: str) -> float:
    return statistics.median(getattr(sample, name) for sample in samples)


def _assert_flat(samples: list[Sample]) -> None:
    """Once the server remembers as many ended runs as it ever does, nothing grows but what stores conversations."""
    full = [sample for sample in samples if sample.turns >= MAX_ENDED_RUNS]
    sixth = len(full) // 6
    assert sixth > 10, "the run was too short for the memory of ended runs to fill up"
    early, late = full[:sixth], full[-sixth:]
    assert _median(late, "memory") <= _median(early, "memory") + MAX_GROWTH_MIB
    assert _median(late, "threads") <= _median(early, "threads") + 2
    assert _median(late, "descriptors") <= _median(early, "descriptors") + 4
    assert _median(late, "index") <= 1.5 * _median(early, "index") + 64 * MIB
    first, last = early[0], late[-1]
    stored = (last.turns - first.turns) * MAX_TURN_KIB + (last.jobs - first.jobs) * MAX_JOB_KIB
    assert last.database - first.database <= stored * 1024 + SPARE_MIB * MIB


def test_a_server_stays_as_it_is_under_load(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Chats, streams, cancels, resets, mistakes, edits and ingestions at once: no request fails, every acknowledged
    turn is there, index and ledger agree, and when it is quiet again no descriptor and no thread is left over. A run of
    25 minutes or more also shows that memory and index stay flat and the database grows by what it stores."""
    seconds, tally = 60 * float(request.config.getoption("--soak-minutes")), Tally()
    with fake_ai() as ai:
        ai.script(then=Step(say=saying(ANSWER), drip=0.002))
        with (
            _site(tmp_path, ai) as site,
            httpx.Client(base_url=site.address, timeout=120, trust_env=False) as web,
        ):
            warm = min(60.0, seconds / 3)
            _load(site, tally, warm)
            _quiet(web)
            before = _sample(site, tally)
            tally.samples.clear()
            _load(site, tally, seconds - warm)
            _quiet(web)
            after = _sample(site, tally)
            _report(tally, before, after)
            findings = web.post("/doctor", json={}).json()
            assert not [finding for finding in findings if not finding["kind"].startswith("model")], findings
            for thread, turns in tally.turns.items():
                assert web.get(f"/threads/{thread}").json()["turn_count"] == turns

    assert after.descriptors <= before.descriptors + 4
    assert after.threads <= before.threads + 2
    assert "Traceback" not in (tmp_path / "server.log").read_text()
    if seconds >= LONG_RUN:
        _assert_flat(tally.samples)
