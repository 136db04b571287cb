"""`lectern serve`: serves the page and the API."""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import secrets
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lectern.cli.render import fail, run_async
from lectern.cli.terminal import echo
from lectern.domain.errors import ConfigError, LecternError

if TYPE_CHECKING:
    from lectern.app.lectern import Lectern

log = logging.getLogger("lectern.serve")
DEFAULT_PORT = 8420
CLOSE = (b"connection", b"close")
HIGHEST_PORT = 65_535
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # the address that commands of this machine use


def serve(
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; any but loopback needs a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any free one.")] = DEFAULT_PORT,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Keep every indexed book up to date as it is edited.")] = False,
) -> None:
    """Serve the page and the API, on this machine alone or, once a key exists, to others."""
    if not 0 <= port <= HIGHEST_PORT:
        fail(f"--port must be 0 to {HIGHEST_PORT}, not {port}", 2)
    run_async(_serve(host, port, watch=watch), _fast_loop())


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop, if it is installed (not on Windows); it makes a turn a tenth faster."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(host: str, port: int, *, watch: bool) -> None:
    import uvicorn

    from lectern.api.app import create_app
    from lectern.api.slow_clients import timeout_protocol
    from lectern.api.sse import leave_streams_to_their_runs
    from lectern.app.factories import check_settings, model_description, parts_description
    from lectern.app.lectern import Lectern
    from lectern.app.logs import QuestionLog, configure, log_failed_call
    from lectern.app.open import open_application
    from lectern.app.settings import changed_variables
    from lectern.conversations.retention import keep_tidy
    from lectern.domain import dependencies

    class Server(uvicorn.Server):
        """Prints its address when it is ready. After SIGTERM it first says that it is not ready any more, and goes on
        for a while; after a second signal, or Ctrl-C, it shuts down at once. It does not raise the signal again."""

        closes_at = math.inf

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # uvicorn's signature
            self.force_exit = self.should_exit and sig == signal.SIGINT  # a second Ctrl-C does not wait
            if sig == signal.SIGTERM and not app.state.stopping:
                self.closes_at = time.monotonic() + lectern.app.settings.shutdown_delay
            else:
                self.should_exit = True
            app.state.stopping = True

        async def on_tick(self, counter: int) -> bool:
            self.should_exit = self.should_exit or time.monotonic() >= self.closes_at
            exits = await super().on_tick(counter)
            headers = self.server_state.default_headers  # made anew every second
            if app.state.stopping and CLOSE not in headers:  # a client's next connection may be to another server
                self.server_state.default_headers = [*headers, CLOSE]
            return exits

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            await _warm(lectern)
            echo(f"Lectern is ready: {url}/  (Ctrl-C stops it)")
            echo(f"The author's page: {url}/desk/")
            fingerprint = lectern.app.ingest_deps.collections.current.embedder.fingerprint
            echo(parts_description(lectern.app.settings, fingerprint))

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            ending = asyncio.gather(lectern.app.end_runs(), lectern.jobs.close())  # a stream ends with its run or job
            await super().shutdown(sockets)
            await ending

    with _listen(host, port) as listener:
        url = _address(host, listener.getsockname()[1])
        token = secrets.token_urlsafe(32)
        async with open_application(serving=True) as application:
            lectern = Lectern(application)
            check_settings(application.settings)
            await _require_key(host, lectern)
            app = create_app(lectern, token, f"[{host}]" if ":" in host else host)
            config = uvicorn.Config(
                app,
                http=timeout_protocol(lectern.app.settings.request_timeout),
                log_config=None,  # our own lines, in one form
                access_log=False,
                proxy_headers=False,  # uvicorn would trust loopback; LECTERN_PROXIES names the trusted proxies
                timeout_graceful_shutdown=math.ceil(lectern.app.settings.shutdown_grace) + 5,
            )
            leave_streams_to_their_runs()
            configure(lectern.app.settings.log_format, secrets=lectern.app.settings.secrets())
            lectern.app.stack.callback(dependencies.watch(log_failed_call))
            lectern.app.watchers.append(QuestionLog(with_text=lectern.app.settings.log_questions))
            await lectern.app.conversations.log.sweep()
            await lectern.jobs.adopt_orphans()
            own_url = _address(LOOPBACK_OF.get(host, host), listener.getsockname()[1])
            model = model_description(lectern.app.settings)
            with lectern.app.home.serving(own_url, token, model=model, settings=changed_variables()):
                tidying = keep_tidy(
                    lectern.app.conversations.threads,
                    lectern.app.conversations.log,
                    lectern.app.settings.retention_days,
                )
                background = [asyncio.create_task(tidying), *([asyncio.create_task(_follow(lectern))] if watch else [])]
                await Server(config).serve(sockets=[listener])
                for task in background:
                    task.cancel()
                await asyncio.wait(background)


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


async def _require_key(host: str, lectern: Lectern) -> None:
    """Raise an error if others can reach the server and there is no key."""
    from lectern.api.addresses import is_loopback

    if not is_loopback(host) and not await lectern.app.keys.exist():
        raise ConfigError(
            f"--host {host!r} can be reached by others, and there is no key; make one first "
            "(lectern keys create --name NAME), or use 127.0.0.1"
        )


async def _warm(lectern: Lectern) -> None:
    """Load what the first question needs."""
    try:
        await lectern.app.warm()
        await lectern.app.prepare_details()
    except LecternError as exc:
        log.warning("questions will fail: %s", exc)
    except Exception:  # no descriptors, no memory: the first question loads it, or says why not
        log.exception("what the first question needs could not be loaded")
    gc.collect()
    gc.freeze()  # these objects stay; collecting them again and again would delay every request


async def _follow(lectern: Lectern) -> None:
    import dataclasses

    from lectern.app.watching import follow_books
    from lectern.cli.ingest import show_job

    await follow_books(
        lectern,
        lambda job: show_job(dataclasses.asdict(job)),
        lambda message: echo(f"lectern: {message}", err=True),
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With IPPROTO_TCP, asyncio turns off Nagle's algorithm, which delays a response of two parts by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except socket.gaierror as exc:
        listener.close()
        raise ConfigError(f"--host {host!r} is no address of this machine ({exc.strerror})") from exc
    except OSError as exc:
        listener.close()
        raise ConfigError(f"port {port} cannot be used ({exc.strerror}); choose another with --port") from exc
    return listener
