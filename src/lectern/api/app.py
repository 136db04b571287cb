"""The application: routes, the web page, error responses, and the middleware before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from lectern import __version__
from lectern.api import errors
from lectern.api.addresses import is_loopback, networks
from lectern.api.auth import Authenticator
from lectern.api.description import describe_headers
from lectern.api.gate import Gate, page_files, unguarded_paths
from lectern.api.metrics import Metrics
from lectern.api.middleware import AllowedHosts, AllowedOrigins, BodyLimit, RequestTracing, SecurityHeaders
from lectern.api.rate_windows import Limits, RateWindows
from lectern.api.readers import Readers
from lectern.api.routes import books, chat, health, ingestions, local, maintenance, metrics, readers, threads
from lectern.api.slow_clients import BodyTimeout
from lectern.api.sse import Streams
from lectern.app.lectern import Lectern

WEB = Path(__file__).parent / "web"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
MAX_BODY_BYTES = 64 * 1024  # a question has at most 1,000 characters


def create_app(lectern: Lectern, local_token: str | None = None, host: str = "localhost") -> FastAPI:
    """The application that serves an open Lectern; the caller closes the Lectern. Commands on this machine use the
    local token. While no key exists, no request needs one if `host` is a loopback address."""
    app = unguarded_app()
    app.state.lectern = lectern
    app.state.local_token = local_token
    settings, url = lectern.app.settings, lectern.app.settings.limits_url
    app.state.streams = Streams(2 * settings.max_runs, 2 * settings.max_runs_per_key, lectern.app.keys.is_unrevoked)
    windows = RateWindows(url.get_secret_value() if url else None)
    lectern.app.stack.push_async_callback(windows.close)
    # the middleware that is added first runs last
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY_BYTES)
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    app.add_middleware(BodyTimeout, seconds=settings.request_timeout)
    app.add_middleware(
        Gate,
        authenticator=Authenticator(lectern.app.keys, Readers(lectern.app.keys), local=is_loopback(host)),
        limits=Limits(windows, settings.rate_limit, settings.reader_rate_limit),
        proxies=networks(settings.proxies),
        unguarded=unguarded_paths(WEB),
    )
    app.add_middleware(AllowedOrigins, allowed=frozenset(settings.origins), keys=lectern.app.keys)
    app.add_middleware(AllowedHosts, hosts={*LOOPBACK_HOSTS, host.lower(), *settings.hosts})
    app.add_middleware(SecurityHeaders)
    app.state.metrics = Metrics(lectern.app.runs, lectern.jobs)
    lectern.app.watchers.append(app.state.metrics.question)
    app.add_middleware(RequestTracing, metrics=app.state.metrics)
    return app


def unguarded_app() -> FastAPI:
    """The routes and the web page without keys, limits and other middleware: enough to describe the API, not to serve
    it."""
    # no `docs_url`: our own page loads nothing from other hosts
    app = FastAPI(title="Lectern", version=__version__, docs_url=None, redoc_url=None)
    for module in (chat, threads, books, ingestions, maintenance, readers, health, metrics, local):
        app.include_router(module.router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(WEB / "docs.html")

    for path, file in page_files(WEB).items():
        app.add_route(path, _file_route(file), methods=["GET"], include_in_schema=False)
    errors.install(app)
    describe_headers(app)
    return app


def _file_route(file: str) -> Callable[[Request], Awaitable[Response]]:
    """A route for one file of the web page. A mount at the root would also answer wrong methods of other routes."""
    files = StaticFiles(directory=WEB)

    async def serve(request: Request) -> Response:
        return await files.get_response(file, request.scope)

    return serve
