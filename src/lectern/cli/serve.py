"""`lectern serve`: the page and the API on this machine."""

from __future__ import annotations

import ipaddress
import secrets
import signal
import socket
from types import FrameType
from typing import Annotated

import typer

from lectern.cli.render import carry, fail
from lectern.domain.errors import ConfigError

DEFAULT_PORT = 8420
HIGHEST_PORT = 65_535


def command(
    host: Annotated[str, typer.Option("--host", help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any free one.")] = DEFAULT_PORT,
) -> None:
    """Serve the page and the API on this machine."""
    if not 0 <= port <= HIGHEST_PORT:
        fail(f"--port must be 0 to {HIGHEST_PORT}, not {port}", 2)
    if not _is_loopback(host):
        fail(f"--host {host!r} can be reached by others, and there are no keys yet; use 127.0.0.1", 2)
    carry(_serve(host, port))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve(host: str, port: int) -> None:
    import uvicorn

    from lectern.api.app import create_app
    from lectern.wiring import open_lectern

    class Server(uvicorn.Server):
        """Says where it is as soon as it answers, and ends in peace: the signal that ends it is not raised again."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # uvicorn's signature
            self.force_exit = self.should_exit and sig == signal.SIGINT  # a second Ctrl-C does not wait
            self.should_exit = True

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            typer.echo(f"Lectern is ready: {url}/  (Ctrl-C stops it)")

    with _listen(host, port) as listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        token = secrets.token_urlsafe(32)
        async with open_lectern() as lectern:
            config = uvicorn.Config(
                create_app(lectern, token, f"[{host}]" if ":" in host else host), log_level="warning", access_log=False
            )
            with lectern.home.serving(url, token):
                await Server(config).serve(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise ConfigError(f"port {port} cannot be used ({exc.strerror}); choose another with --port") from exc
    return listener
