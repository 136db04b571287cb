"""`lectern serve`: the page and the API on this machine."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import secrets
import signal
import socket
import sqlite3
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lectern.cli.render import carry, fail
from lectern.domain.errors import ConfigError

if TYPE_CHECKING:
    from lectern.wiring import Lectern

DEFAULT_PORT = 8420
HIGHEST_PORT = 65_535


def command(
    host: Annotated[str, typer.Option("--host", help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any free one.")] = DEFAULT_PORT,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Keep every indexed book up to date as it is edited.")] = False,
) -> None:
    """Serve the page and the API on this machine."""
    if not 0 <= port <= HIGHEST_PORT:
        fail(f"--port must be 0 to {HIGHEST_PORT}, not {port}", 2)
    if not _is_loopback(host):
        fail(f"--host {host!r} can be reached by others, and there are no keys yet; use 127.0.0.1", 2)
    carry(_serve(host, port, watch=watch))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _serve(host: str, port: int, *, watch: bool) -> None:
    import uvicorn

    from lectern.api.app import create_app
    from lectern.api.sse import leave_streams_to_their_runs
    from lectern.conversing.keeping import keep_tidy
    from lectern.wiring import open_lectern

    class Server(uvicorn.Server):
        """Says where it is as soon as it answers, and ends in peace: the signal that ends it is not raised again."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # uvicorn's signature
            self.force_exit = self.should_exit and sig == signal.SIGINT  # a second Ctrl-C does not wait
            self.should_exit = True

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            typer.echo(f"Lectern is ready: {url}/  (Ctrl-C stops it)")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            ending = asyncio.create_task(lectern.end_runs())  # streams end with the runs that they follow
            await super().shutdown(sockets)
            await ending

    with _listen(host, port) as listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        token = secrets.token_urlsafe(32)
        async with open_lectern() as lectern:
            config = uvicorn.Config(
                create_app(lectern, token, f"[{host}]" if ":" in host else host),
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=math.ceil(lectern.settings.shutdown_grace) + 5,
            )
            leave_streams_to_their_runs()
            if lectern.settings.database_url is None:
                _warn_of_sqlite(lectern.home.database)
            await lectern.talk.log.sweep()
            with lectern.home.serving(url, token):
                tidying = keep_tidy(lectern.talk.threads, lectern.settings.retention_days)
                beside = [asyncio.create_task(tidying), *([asyncio.create_task(_follow(lectern))] if watch else [])]
                await Server(config).serve(sockets=[listener])
                for task in beside:
                    task.cancel()
                await asyncio.wait(beside)


async def _follow(lectern: Lectern) -> None:
    import dataclasses

    from lectern.cli.ingest import show_job
    from lectern.cli.watching import follow_books

    await follow_books(
        lectern,
        lambda job: show_job(dataclasses.asdict(job)),
        lambda message: typer.echo(f"lectern: {message}", err=True),
    )


def _warn_of_sqlite(database: Path) -> None:
    """Some versions can damage a write-ahead log that two programs write; Lectern alone is one, with one connection."""
    if _faulty(sqlite3.sqlite_version_info):
        typer.echo(
            f"lectern: SQLite {sqlite3.sqlite_version} can damage a database that two programs write at once (mended "
            f"in 3.51.3). Lectern is one program: let no other write {database}, and do not put it on a network drive",
            err=True,
        )


def _faulty(version: tuple[int, ...]) -> bool:
    return (3, 7, 0) <= version < (3, 51, 3) and not any(
        fixed <= version < (fixed[0], fixed[1] + 1) for fixed in ((3, 44, 6), (3, 50, 7))
    )


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
