"""The API under load: requests a second of /search and /chat/run beside a bare FastAPI endpoint in the same run, and
what 20 chats at once add to a model that takes 200 ms.

    python benchmarks/api.py HOME QUERIES [--json api.json] [--chart docs/benchmarks/api.svg]

HOME has the book indexed and no keys; it is copied. Server and bare endpoint have a process of their own; clients and
the scripted model are in this one, so on two cores everybody shares them. Every question begins a conversation. Chats
are held over plain sockets: a client library took a tenth of what it was to measure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the scripted endpoint lives with the tests

from peers.measuring import percentile
from tests.fakeai import ScriptedReply, Step, fake_ai
from tests.served import LECTERN, serving

SECONDS, CLIENTS = 8.0, 8  # of each throughput
CHATS, TURNS, MODEL_SECONDS = 20, 10, 0.2
PROMPT = 9_000  # characters, about what a turn sends
BARE = """
from fastapi import FastAPI
from pydantic import BaseModel
class In(BaseModel):
    message: str
app = FastAPI()
@app.post("/bare")
async def bare(body: In) -> In:
    return body
import uvicorn, socket
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP); listener.bind(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
import asyncio
asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).serve(sockets=[listener]))
"""


def first_sentence(body: dict[str, Any]) -> ScriptedReply:
    """A model that quotes the first passage."""
    outputs = [json.loads(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    if not outputs:
        return ScriptedReply(text="A conversation about the book")
    lines = [line for line in outputs[-1]["results"][0]["chunk_text"].splitlines() if line[:1].isalpha()] or [
        "Nothing."
    ]
    return ScriptedReply(text=f"{lines[0]} [1]")


@contextmanager
def server(home: Path, model: str) -> Iterator[str]:
    """A Lectern server on a copy of the home, answered by the scripted model."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(home, Path(folder) / "home")
        env = {
            **os.environ,
            "LECTERN_HOME": f"{folder}/home",
            "LECTERN_RATE_LIMIT": "0",
            "OPENAI_BASE_URL": f"{model}/v1",
        }
        command = ["bash", "-c", 'exec "$0" "$@" 2>/dev/null', LECTERN, "serve", "--port", "0"]
        with serving(command, env=env) as address:
            yield address


async def throughput(call: Callable[[httpx.AsyncClient, int], Awaitable[httpx.Response]]) -> dict[str, float]:
    """Requests a second and their latency, from clients that ask as fast as they are answered."""
    took: list[float] = []
    async with httpx.AsyncClient(timeout=60) as client:
        await call(client, 0)
        end = time.perf_counter() + SECONDS

        async def ask(first: int) -> None:
            number = first
            while (start_time := time.perf_counter()) < end:
                (await call(client, number)).raise_for_status()
                took.append((time.perf_counter() - start_time) * 1000)
                number += CLIENTS

        await asyncio.gather(*(ask(number) for number in range(CLIENTS)))
    return {
        "per_second": round(len(took) / SECONDS, 1),
        "p50_ms": round(percentile(took, 50), 1),
        "p99_ms": round(percentile(took, 99), 1),
    }


class Line:
    """A connection that is kept, over which one request after the other is sent."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.removeprefix("http://").partition(":")
        self._port = int(port)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What comes back; anything but 200 ends the measurement."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAuthorization: Bearer any\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        if " 200 " not in first:
            raise RuntimeError(first)
        headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        reply: dict[str, Any] = json.loads(await reader.readexactly(int(headers["content-length"])))
        return reply

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()


async def chats(address: str, questions: list[str], within: float = 0.0) -> list[float]:
    """Milliseconds of every turn of 20 conversations, where the model was asked; they begin within so many seconds."""
    took: list[float] = []

    async def conversations(first: int) -> None:
        await asyncio.sleep(first * within / CHATS)
        line = Line(address)
        for turn in range(TURNS):
            body = {"message": questions[(first * TURNS + turn) % len(questions)], "session_id": str(uuid.uuid4())}
            start_time = time.perf_counter()
            reply = await line.post("/chat/run", body)
            spent = (time.perf_counter() - start_time) * 1000
            if reply["tokens_used"]:
                took.append(spent)
        line.close()

    await asyncio.gather(*(conversations(number) for number in range(CHATS)))
    return took


async def straight(model: str, size: int, within: float = 0.0) -> list[float]:
    """Milliseconds that the same clients wait for the model itself: what clients and model cost without a server."""
    took: list[float] = []
    body = {"model": "any", "messages": [{"role": "user", "content": "x" * size}]}

    async def conversations(first: int) -> None:
        await asyncio.sleep(first * within / CHATS)
        line = Line(model)
        for _ in range(TURNS):
            start_time = time.perf_counter()
            await line.post("/v1/chat/completions", body)
            took.append((time.perf_counter() - start_time) * 1000)
        line.close()

    await asyncio.gather(*(conversations(number) for number in range(CHATS)))
    return took


async def measure(home: Path, questions: list[str]) -> dict[str, Any]:
    """All of it, one thing after the other."""
    figures: dict[str, Any] = {}
    command = ["bash", "-c", 'exec "$0" "$@" 2>/dev/null', sys.executable, "-c", BARE]
    with serving(command) as bare:
        figures["bare"] = await throughput(
            lambda client, number: client.post(f"{bare}/bare", json={"message": questions[number % len(questions)]})
        )
    with fake_ai() as ai:
        ai.script(then=Step(say=first_sentence))
        with server(home, ai.url) as address:
            figures["search"] = await throughput(
                lambda client, number: client.post(
                    f"{address}/search", json={"text": questions[number % len(questions)]}
                )
            )
            figures["chat_run"] = await throughput(
                lambda client, number: client.post(
                    f"{address}/chat/run", json={"message": questions[number % len(questions)]}
                )
            )
            ai.script(then=Step(say=first_sentence, delay=MODEL_SECONDS))
            for name, within in (("added", 0.0), ("added_spread", 1.0)):
                added_ms = [spent - MODEL_SECONDS * 1000 for spent in await chats(address, questions, within)]
                figures[name] = {
                    "n": len(added_ms),
                    "p50_ms": percentile(added_ms, 50),
                    "p99_ms": percentile(added_ms, 99),
                }
        for name, within in (("straight", 0.0), ("straight_spread", 1.0)):
            bare = [spent - MODEL_SECONDS * 1000 for spent in await straight(ai.url, PROMPT, within)]
            figures[name] = {"n": len(bare), "p50_ms": percentile(bare, 50), "p99_ms": percentile(bare, 99)}
    return figures


def chart(figures: dict[str, Any]) -> str:
    """Requests a second, as bars."""
    rows = [("bare FastAPI", figures["bare"]), ("/search", figures["search"]), ("/chat/run", figures["chat_run"])]
    most = max(row["per_second"] for _, row in rows)
    bars = [
        f'<text x="10" y="{40 + 40 * place}">{name}</text>'
        f'<rect x="120" y="{26 + 40 * place}" width="{380 * row["per_second"] / most:.0f}" height="20" fill="#3b6ea5"/>'
        f'<text x="{128 + 380 * row["per_second"] / most:.0f}" y="{40 + 40 * place}">{row["per_second"]:g}/s</text>'
        for place, (name, row) in enumerate(rows)
    ]
    style = "<style>text{font:13px sans-serif;fill:#333}</style>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 150">{style}{"".join(bars)}</svg>\n'


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chart", type=Path)
    options = parser.parse_args()
    questions = [json.loads(line)["text"] for line in options.queries.read_text(encoding="utf-8").splitlines()][:200]
    figures = asyncio.run(measure(options.home, questions))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if options.chart:
        options.chart.write_text(chart(figures), encoding="utf-8")
    print("| | requests/s | of bare | p50, ms | p99, ms |\n|---|---:|---:|---:|---:|")
    for name in ("bare", "search", "chat_run"):
        row = figures[name]
        share = row["per_second"] / figures["bare"]["per_second"]
        print(f"| {name} | {row['per_second']} | {share:.2f} | {row['p50_ms']} | {row['p99_ms']} |")
    print(f"\n{CHATS} chats, a model of {MODEL_SECONDS * 1000:g} ms:")
    comparisons = (
        ("added", "straight", "begun in the same moment"),
        ("added_spread", "straight_spread", "begun within a second"),
    )
    for name, alone, label in comparisons:
        row, bare = figures[name], figures[alone]
        print(f"  {label}, n = {row['n']}: added p50 {row['p50_ms']:.1f} ms, p99 {row['p99_ms']:.1f} ms (bar 100)")
        print(f"    the same clients at the model itself: p50 {bare['p50_ms']:.1f} ms, p99 {bare['p99_ms']:.1f} ms")


if __name__ == "__main__":
    main()
