"""The application: routes, the page, one error shape, and the guards before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from lectern.api import errors
from lectern.api.addresses import is_loopback, networks
from lectern.api.auth import Authenticator
from lectern.api.cors import ListedOrigins
from lectern.api.description import describe_headers
from lectern.api.gate import Gate, page_files, unguarded_paths
from lectern.api.metrics import Metrics
from lectern.api.middleware import BodyLimit, KnownHosts, SafeHeaders, Traced
from lectern.api.rate_windows import Limits, Windows
from lectern.api.readers import Readers
from lectern.api.routes import books, chat, health, ingestions, local, maintenance, metrics, readers, threads
from lectern.api.slow_clients import PromptBody
from lectern.api.sse import Streams
from lectern.app.lectern import Lectern
from lectern.version import __version__

WEB = Path(__file__).parent / "web"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
MAX_BODY = 64 * 1024  # bytes; a question has at most 1,000 characters


def create_app(lectern: Lectern, local_token: str | None = None, host: str = "localhost") -> FastAPI:
    """The application around an open Lectern; whoever opened it closes it. Commands come in with the local token. While
    no key exists nobody needs one, if `host` is this machine's own."""
    app = unguarded_app()
    app.state.lectern = lectern
    app.state.local_token = local_token
    settings, url = lectern.app.settings, lectern.app.settings.limits_url
    app.state.streams = Streams(2 * settings.max_runs, 2 * settings.max_runs_per_key, lectern.app.keys.is_unrevoked)
    windows = Windows(url.get_secret_value() if url else None)
    lectern.app.stack.push_async_callback(windows.close)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY)  # what is added first is reached last
    app.add_middleware(BodyLimit, most=MAX_BODY)
    app.add_middleware(PromptBody, seconds=settings.request_timeout)
    app.add_middleware(
        Gate,
        door=Authenticator(lectern.app.keys, Readers(lectern.app.keys), local=is_loopback(host)),
        limits=Limits(windows, settings.rate_limit, settings.reader_rate_limit),
        proxies=networks(settings.proxies),
        unguarded=unguarded_paths(WEB),
    )
    app.add_middleware(ListedOrigins, listed=frozenset(settings.origins), keys=lectern.app.keys)
    app.add_middleware(KnownHosts, hosts={*LOOPBACK_HOSTS, host.lower(), *settings.hosts})
    app.add_middleware(SafeHeaders)
    app.state.metrics = Metrics(lectern.app.runs, lectern.jobs)
    lectern.app.watchers.append(app.state.metrics.question)
    app.add_middleware(Traced, metrics=app.state.metrics)
    return app


def unguarded_app() -> FastAPI:
    """The routes and the page alone: enough to describe them, not to serve them."""
    app = FastAPI(title="Lectern", version=__version__, docs_url=None, redoc_url=None)  # ours needs no foreign host
    for module in (chat, threads, books, ingestions, maintenance, readers, health, metrics, local):
        app.include_router(module.router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(WEB / "docs.html")

    for path, file in page_files(WEB).items():
        app.add_route(path, _served(file), methods=["GET"], include_in_schema=False)
    errors.install(app)
    describe_headers(app)
    return app


def _served(file: str) -> Callable[[Request], Awaitable[Response]]:
    """A file of the page, as a route of its own: a mount at the root would answer wrong methods of other routes."""
    files = StaticFiles(directory=WEB)

    async def serve(request: Request) -> Response:
        return await files.get_response(file, request.scope)

    return serve
