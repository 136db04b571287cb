"""Does the server answer while it ingests? A server is asked `/health/live` 20 times a second, on schedule whatever the
answers take, first with nothing to do and then while it ingests a book of many chunks that was made up for this.

    python benchmarks/health_during_ingest.py                     # 10,000 chunks, embedded by the local model
    python benchmarks/health_during_ingest.py --quick             # vectors made up: the index as busy as it can be
    python benchmarks/health_during_ingest.py --chunks 1000 --json health.json

A probe's time counts from the moment it was due, so a server that stops answers late and not seldom. The bar: p99
at most 50 ms and none over 250 ms, on 2 cores.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from lectern.models.local.embedder import DIMENSIONS, LocalEmbedder

RATE = 20.0  # probes a second
MOST_P99, MOST = 50.0, 250.0  # milliseconds: the bars
IDLE = 5.0  # seconds of probes with nothing to do
SECTIONS = 7  # of a lesson; each is a chunk
WORDS = (
    "robot sensor node topic service action frame camera lidar motor torque gripper planner map odometry filter noise "
    "latency message publisher subscriber launch parameter world physics joint link inertia policy reward grasp the a "
    "of to and in that is for with on as by from at which when while between under over after before"
).split()


@dataclass(frozen=True, slots=True)
class QuickEmbedder(LocalEmbedder):
    """Cuts windows like the local model and makes their vectors up."""

    async def embed(self, texts: Sequence[str], *, purpose: str) -> list[list[float]]:
        """A direction for every text, the same at every time."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        raw = [np.random.default_rng(seed).standard_normal(DIMENSIONS) for seed in seeds]
        return [(vector / np.linalg.norm(vector)).tolist() for vector in raw]


def write_book(folder: Path, chunks: int, seed: int = 1) -> None:
    """A book of about so many chunks, no two alike."""
    chance = random.Random(seed)
    for lesson in range(max(1, chunks // SECTIONS)):
        parts = [f"# Lesson {lesson}"]
        for section in range(SECTIONS):
            sentences = [" ".join(chance.choices(WORDS, k=14)).capitalize() + "." for _ in range(14)]
            parts += [f"## Section {section} of {lesson}", "\n\n".join(sentences)]
        chapter = f"module-{lesson // 400 + 1}/chapter-{lesson // 20 % 20 + 1}"
        file = folder / chapter / f"{lesson % 20 + 1:02}-x.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


async def probe(client: httpx.AsyncClient, until: asyncio.Event, latencies: list[float]) -> None:
    """Ask on schedule until told to stop; milliseconds from the moment that each was due."""
    start_time, asking = time.perf_counter(), set[asyncio.Task[None]]()

    async def ask(due: float) -> None:
        (await client.get("/health/live")).raise_for_status()
        latencies.append((time.perf_counter() - due) * 1000)

    for number in range(sys.maxsize):
        due = start_time + number / RATE
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if until.is_set():
            break
        task = asyncio.create_task(ask(due))
        asking.add(task)
        task.add_done_callback(asking.discard)
    await asyncio.gather(*asking)


def figures(latencies: Sequence[float]) -> dict[str, float]:
    """What is said of some probes."""
    rows = sorted(latencies)
    at = {name: rows[min(len(rows) - 1, int(len(rows) * share))] for name, share in (("p50", 0.5), ("p99", 0.99))}
    return {"probes": len(rows), **{name: round(value, 1) for name, value in at.items()}, "max": round(rows[-1], 1)}


async def measure(address: str, source: str) -> dict[str, Any]:
    """Probes while nothing happens, then while the book is ingested."""
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        idle: list[float] = []
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(IDLE, stop.set)
        await probe(client, stop, idle)
        busy: list[float] = []
        stop = asyncio.Event()
        probing = asyncio.create_task(probe(client, stop, busy))
        started = (await client.post("/books/made-up/ingestions", json={"source": source})).json()
        job = started
        while job["status"] in {"queued", "running"}:
            await asyncio.sleep(1)
            answer = await client.get(f"/ingestions/{started['job_id']}")
            job = answer.json() if answer.is_success else job  # the limit of requests a minute is on
        stop.set()
        await probing
    assert job["status"] == "completed", job
    job_figures = {
        name: job[name] for name in ("duration_seconds", "chunks_created", "chunks_embedded", "stage_seconds")
    }
    return {"idle": figures(idle), "ingesting": figures(busy), "job": job_figures}


def serve_quick() -> None:
    """`lectern serve` with the quick embedder."""
    from lectern.app.factories import PartFactory
    from lectern.cli.main import run

    PartFactory.embedder = lambda _self, _name=None: QuickEmbedder()  # type: ignore[method-assign,assignment]  # in this process only
    sys.argv = ["lectern", "serve", "--port", "0"]
    run()


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="make the vectors up")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        books = Path(folder) / "books"
        write_book(books / "made-up", options.chunks)
        environment = {**os.environ, "LECTERN_HOME": f"{folder}/home", "LECTERN_BOOKS": str(books)}
        environment["LECTERN_RATE_LIMIT"] = "0"
        lectern = [str(Path(sys.executable).with_name("lectern")), "serve", "--port", "0"]
        command = [sys.executable, __file__, "serve-quick"] if options.quick else lectern
        load = os.getloadavg()[0]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address_match = next(match for line in server.stdout if (match := re.search(r"http://[^/\s]+", line)))
            figures = asyncio.run(measure(address_match.group(), "made-up"))
        finally:
            server.send_signal(2)
            server.wait(30)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    figures |= {"cores": cores, "load_before": round(load, 2), "python": platform.python_version()}
    figures["embedder"] = "made-up vectors" if options.quick else "local model"
    figures["passed"] = figures["ingesting"]["p99"] <= MOST_P99 and figures["ingesting"]["max"] <= MOST
    print(json.dumps(figures, indent=2))
    print(
        f"/health/live at {RATE:g} Hz: {'within' if figures['passed'] else 'OVER'} p99 {MOST_P99:g} ms, max {MOST:g} ms"
    )
    if options.json:
        options.json.write_text(json.dumps(figures), encoding="utf-8")
    return 0 if figures["passed"] else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["serve-quick"]:
        serve_quick()
    else:
        sys.exit(main())
