"""Clients that come while a server starts and has few file descriptors: it stays up, and serves when they have gone."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.ports import free_port
from tests.served import LECTERN

DESCRIPTORS, CLIENTS = 64, 100


def test_connections_during_warm_up_do_not_end_the_server(tmp_path: Path) -> None:
    """More half-sent requests than descriptors arrive before the models are loaded. Loading fails then, and the log
    says so; the process goes on, is ready, and answers once the clients have gone."""
    port = free_port()
    process = subprocess.Popen(
        [LECTERN, "serve", "--port", str(port)],
        env={**os.environ, "LECTERN_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),  # noqa: PLW1509  # no threads
    )
    try:
        with ExitStack() as clients:
            while process.poll() is None:  # until the server listens
                try:
                    clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                    break
                except OSError:
                    time.sleep(0.01)  # a loop without a pause would keep a processor from the server
            for _ in range(CLIENTS):
                client = clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                client.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            assert process.stdout is not None
            assert "Lectern is ready" in process.stdout.readline()
        with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as web:
            assert web.get(f"http://127.0.0.1:{port}/health/live").status_code == 200
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 0
