"""A rolling upgrade: servers of an older version and of this one work on one database and one index, until the older
one is stopped."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ROOT, SAMPLE_BOOK
from tests.ports import free_port
from tests.qdrant_server import QdrantServer
from tests.scaling.readers import Reader
from tests.scaling.topology import Database, Program, status, wait_until
from tests.served import LECTERN

OLD = "a3e5175f65474659e480489a7124bab89597b7b9"  # the oldest version from which servers may be upgraded one by one
BOOK = SAMPLE_BOOK.name
QUESTIONS = ("What is a node?", "What is a URDF file?")  # every version answers them


@pytest.fixture
def old_source(tmp_path: Path) -> Path:
    """The source of the old version, beside the sample book of that time: a newer one may have settings that it does
    not know."""
    parts = ("src", SAMPLE_BOOK.relative_to(ROOT).as_posix())
    archive = subprocess.run(["git", "archive", OLD, *parts], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"this checkout has no history back to {OLD[:7]}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tmp_path / "old", filter="data")
    return tmp_path / "old" / "src"


class Servers:
    """Servers of both versions with the same settings."""

    def __init__(self, folder: Path, settings: dict[str, str], stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.settings = {**settings, "LECTERN_HOME": str(folder / "home"), "LECTERN_RATE_LIMIT": "0"}
        self.key = ""

    def run(self, source: Path, *arguments: str) -> str:
        """Run a command of a version; gives what it printed."""
        environment = {**os.environ, **self.settings, "PYTHONPATH": str(source)}
        result = subprocess.run([LECTERN, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def start(self, name: str, source: Path) -> Program:
        """A server of a version that is ready."""
        command = [LECTERN, "serve", "--port", str(port := free_port())]
        server = Program(command, self._folder / f"{name}.log", port, {**self.settings, "PYTHONPATH": str(source)})
        self._stack.callback(server.kill)
        server.start()
        wait_until(lambda: status(f"{address(server)}/health/ready") == 200, f"{name} did not become ready")
        return server

    def call(self, server: Program, method: str, path: str, **arguments: Any) -> Any:
        """What a server answers to the operator, read as JSON."""
        headers = {"X-API-Key": self.key}
        response = httpx.request(method, f"{address(server)}{path}", headers=headers, timeout=120, **arguments)
        assert response.is_success, response.text
        return response.json()

    def ask(self, thread: Reader, server: Program, question: str) -> None:
        """The next turn of a conversation, at one of the servers."""
        thread.proxy = address(server)
        thread.ask(question)
        assert (thread.repeated, len(thread.replies[-1].cited) > 0) == ([], True)


def address(server: Program) -> str:
    """Where a server is."""
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """An empty PostgreSQL and an empty Qdrant for them."""
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with tempfile.TemporaryDirectory(prefix="lectern-postgres-", dir=root) as folder, ExitStack() as stack:
        node, database = QdrantServer(tmp_path / "qdrant"), Database(Path(folder))
        stack.callback(node.kill)
        stack.callback(database.stop)
        node.start()
        yield Servers(tmp_path, {"DATABASE_URL": database.address, "QDRANT_URL": node.url}, stack)


def test_servers_are_upgraded_one_by_one(servers: Servers, old_source: Path) -> None:
    """While this version migrates and serves, the old server goes on: both answer, turns of one conversation alternate
    between them, an ingestion by this version is read by both; and when the old one is stopped nothing is wrong."""
    new_source = ROOT / "src"
    servers.run(old_source, "ingest", str(old_source.parent / SAMPLE_BOOK.relative_to(ROOT)))
    rights = ("--right", "read", "--right", "chat", "--right", "ingest")
    servers.key = json.loads(servers.run(old_source, "keys", "create", "--name", "ops", *rights, "--json"))["key"]
    old = servers.start("old", old_source)
    thread = Reader(proxy="", key=servers.key, streams=False)
    servers.ask(thread, old, QUESTIONS[0])

    new = servers.start("new", new_source)
    for server in (new, old, new, old):
        servers.ask(thread, server, QUESTIONS[1])
    job = servers.call(new, "POST", f"/books/{BOOK}/ingestions", json={"mode": "full"})["job_id"]
    servers.ask(thread, old, QUESTIONS[0])
    wait_until(lambda: servers.call(new, "GET", f"/ingestions/{job}")["status"] == "completed", "the job did not end")
    for server in (old, new):
        servers.ask(thread, server, QUESTIONS[0])
    old.stop()
    servers.ask(thread, new, QUESTIONS[1])

    asked = [
        message["content"] for message in servers.call(new, "GET", f"/threads/{thread.thread_id}")["messages"][::2]
    ]
    first, second = QUESTIONS
    assert asked == [first, second, second, second, second, first, first, first, second]
    servers.run(new_source, "doctor")  # fails if anything disagrees
