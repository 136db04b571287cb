"""The worker in its own process does the same work, and neither its death nor a hanging call harms the server."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lectern.domain.errors import BookNotFound, ProviderError, WorkerLost
from lectern.ingestion import worker as steps
from lectern.ingestion.worker import InProcess
from lectern.jobs import worker_process
from lectern.jobs.worker_process import Subprocess
from lectern.models.local.embedder import LocalEmbedder
from lectern.reading.chunking import ReadingRules
from tests.books import Author
from tests.ingest_parts import agreement, content, open_ingest_parts, run

TEXTS = ["Nodes talk over topics.", "A robot is a machine.", "Sensors measure."]


@dataclass(frozen=True, slots=True)
class Odd(LocalEmbedder):
    """Does something else than embedding."""

    deed: str = "say"

    async def embed(self, texts: Sequence[str], *, purpose: str) -> list[list[float]]:
        """In whatever process it is asked to."""
        match self.deed:
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                time.sleep(600)  # noqa: ASYNC251  # a step that never ends
            case "raise":
                raise ProviderError("odd", "an error that does not travel by itself")
        return [[float(os.getpid()), float(os.nice(0))] for _ in texts]


@pytest.fixture
async def worker() -> AsyncIterator[Subprocess]:
    """A worker process that is ended after the test."""
    subprocess_worker = Subprocess(lambda embedder: isinstance(embedder, LocalEmbedder))
    yield subprocess_worker
    await subprocess_worker.close()


async def test_the_server_reads_and_embeds_nothing_itself(
    tmp_path: Path, worker: Subprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole ingestion without one survey, reading, cutting or embedding in this process; the result is the same."""
    import dataclasses

    author = Author(tmp_path / "book", 4)
    async with open_ingest_parts(tmp_path / "plain", LocalEmbedder()) as ingest_deps:
        await run(ingest_deps, author.folder)
        expected = await content(ingest_deps)

    def never(*_arguments: object, **_options: object) -> None:
        raise AssertionError("in the server's process")

    for owner, name in (
        (steps, "survey"),
        (steps, "read_lesson"),
        (LocalEmbedder, "embed"),
        (LocalEmbedder, "passages"),
    ):
        monkeypatch.setattr(owner, name, never)
    async with open_ingest_parts(tmp_path / "home", LocalEmbedder()) as ingest_deps:
        with pytest.raises(AssertionError, match="in the server's process"):
            await run(ingest_deps, author.folder)  # the guard can fail
        there = dataclasses.replace(ingest_deps, worker=worker)
        job = await run(there, author.folder)
        assert job.chunks_embedded > 0
        await agreement(there)
        assert await content(there) == expected


async def test_the_worker_is_another_process_that_gives_way(worker: Subprocess) -> None:
    """One process, spawned once, nicer than this one."""
    (first,) = await worker.embed(Odd(), TEXTS[:1])
    (second,) = await worker.embed(Odd(), TEXTS[:1])

    assert first == second == [worker.process, min(19, os.nice(0) + worker_process.NICENESS)]
    assert worker.process != os.getpid()
    assert await worker.embed(LocalEmbedder(), TEXTS) == await InProcess().embed(LocalEmbedder(), TEXTS)


async def test_errors_come_back_as_they_are(tmp_path: Path, worker: Subprocess) -> None:
    """Ours keep their class; one that cannot travel says at least what it was, and the worker lives on."""
    with pytest.raises(BookNotFound, match="none"):
        await worker.survey(tmp_path / "none", None, ReadingRules())
    process = worker.process
    with pytest.raises(RuntimeError, match="ProviderError: odd: an error"):
        await worker.embed(Odd(deed="raise"), TEXTS)
    assert (await worker.embed(Odd(), TEXTS[:1]))[0][0] == process


async def test_a_worker_that_dies_is_an_error_with_a_reason_and_not_a_hang(worker: Subprocess) -> None:
    """The step that it died in fails at once; the next gets a new worker, also after a death between two steps."""
    with pytest.raises(WorkerLost, match="ended unexpectedly"):
        await asyncio.wait_for(worker.embed(Odd(deed="die"), TEXTS), 120)
    (alive,) = await worker.embed(Odd(), TEXTS[:1])
    os.kill(worker.process, signal.SIGKILL)
    while Path(f"/proc/{int(alive[0])}").exists():  # noqa: ASYNC110  # the system tells nobody
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)

    assert (await worker.embed(Odd(), TEXTS[:1]))[0][0] != alive[0]


async def test_a_step_that_hangs_does_not_keep_the_next_waiting(
    worker: Subprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once nobody waits for it, or it has had its time, the worker is ended and another takes its place."""
    monkeypatch.setattr(worker_process, "GRACE_SECONDS", 0.1)
    hanging = asyncio.create_task(worker.embed(Odd(deed="hang"), TEXTS))
    while not worker.process:  # noqa: ASYNC110  # it is being spawned
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    await asyncio.sleep(0.3)
    assert await asyncio.wait_for(worker.embed(Odd(), TEXTS), 120)

    monkeypatch.setattr(worker_process, "MAX_CALL_SECONDS", 0.2)
    with pytest.raises(WorkerLost, match="busy with one step"):
        await worker.embed(Odd(deed="hang"), TEXTS)


async def test_a_worker_that_was_stopped_is_noticed(worker: Subprocess, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that somebody has stopped is ended within a minute, not after the time of the longest step; the next call
    gets another."""
    assert worker_process.LOOK_SECONDS * (worker_process.MAX_SILENT_LOOKS + 2) < 60
    (before,) = await worker.embed(Odd(), TEXTS[:1])
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "LOOK_SECONDS", 0.1)
        os.kill(worker.process, signal.SIGSTOP)
        with pytest.raises(WorkerLost, match="no sign of life"):
            await worker.embed(Odd(), TEXTS[:1])

    assert (await worker.embed(Odd(), TEXTS[:1]))[0][0] != before[0]


def stop_itself(_seconds: object) -> None:
    """In the worker, before it is ready."""
    os.kill(os.getpid(), signal.SIGSTOP)


async def test_a_worker_that_stops_while_it_starts_is_ended(
    worker: Subprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that waits for it fails with a reason, no process is left behind, and the next call gets another."""
    before = set(multiprocessing.active_children())
    with monkeypatch.context() as patch:
        patch.setattr(worker_process, "_prepare_worker", stop_itself)
        patch.setattr(worker_process, "MAX_CALL_SECONDS", 0.5)
        with pytest.raises(WorkerLost, match="cannot be started"):
            await worker.embed(Odd(), TEXTS[:1])
    while set(multiprocessing.active_children()) - before:  # noqa: ASYNC110  # the system tells nobody
        await asyncio.sleep(0.02)

    assert await worker.embed(Odd(), TEXTS[:1])


async def test_a_worker_that_stops_while_it_starts_does_not_keep_the_server_from_closing(
    worker: Subprocess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended with the server, and the call that waits for it fails."""
    before = set(multiprocessing.active_children())
    monkeypatch.setattr(worker_process, "_prepare_worker", stop_itself)
    waiting = asyncio.create_task(worker.embed(Odd(), TEXTS[:1]))
    while not set(multiprocessing.active_children()) - before:  # noqa: ASYNC110  # it is being spawned
        await asyncio.sleep(0.02)
    await worker.close()

    with pytest.raises(WorkerLost, match="cannot be started"):
        await waiting


PARENT = """
import asyncio, os, sys
from lectern.jobs.worker_process import Subprocess
from lectern.models.local.embedder import LocalEmbedder

async def main():
    worker = Subprocess(lambda embedder: True)
    await worker.windows(LocalEmbedder(), [(("a",), "text")])
    print(worker.process, flush=True)
    await asyncio.sleep(600)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_the_worker_goes_with_its_server(tmp_path: Path) -> None:
    """A server that is killed leaves no process behind, whatever it was doing."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = Path(f"/proc/{int(parent.stdout.readline())}")
    assert worker.exists()
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while worker.exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not worker.exists()
