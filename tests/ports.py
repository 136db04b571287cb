"""Ports for tests: one that a server will listen on, and one where nobody listens."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager

PORTS = range(20_000, 32_768)  # below those that systems give to outgoing connections
_kept: list[socket.socket] = []


def free_port() -> int:
    """A port of loopback for a server, which it gets again after a restart. As long as this process lives, it is nobody
    else's: a socket is bound to it that does not listen, and whoever asks for this very port may still do so."""
    while True:
        keeper = socket.socket()
        try:
            keeper.bind(("127.0.0.1", port := secrets.choice(PORTS)))
        except OSError:
            keeper.close()
            continue
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after it was bound alone; servers set it too
        _kept.append(keeper)
        return port


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of loopback that refuses connections, and that nobody can listen on while the block runs."""
    with socket.socket() as keeper:
        keeper.bind(("127.0.0.1", 0))
        yield int(keeper.getsockname()[1])
