"""The application: routes, the web page, error responses, and the middleware before them."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from lectern import __version__
from lectern.api import errors
from lectern.api.addresses import is_loopback, networks
from lectern.api.auth import Authenticator
from lectern.api.description import describe_headers
from lectern.api.gate import UNLIMITED_PATHS, Gate, unguarded_paths
from lectern.api.metrics import Metrics
from lectern.api.middleware import AllowedHosts, AllowedOrigins, BodyLimit, RequestTracing, SecurityHeaders
from lectern.api.rate_windows import Limits, RateWindows
from lectern.api.readers import Readers
from lectern.api.routes import (
    books,
    caller,
    chat,
    health,
    ingestions,
    local,
    maintenance,
    metrics,
    pages,
    readers,
    threads,
    tools,
)
from lectern.api.slow_clients import BodyTimeout
from lectern.api.sse import Streams
from lectern.api.web_files import file_route, page_files, web_file
from lectern.api.widget_access import WidgetAccess, widget_paths, widget_words
from lectern.app.lectern import Lectern
from lectern.domain.dependencies import watch

WEB = Path(__file__).parent / "web"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
MODULES = (chat, threads, books, tools, pages, ingestions, maintenance, readers, caller, health, metrics, local)
ROUTERS = tuple(module.router for module in MODULES)
MAX_BODY_BYTES = 64 * 1024  # a question has at most 1,000 characters
MAX_LOCAL_BODY_BYTES = 4 * 1024 * 1024  # some 20,000 questions of `lectern calibrate --questions`


def create_app(lectern: Lectern, local_token: str | None = None, host: str = "localhost") -> FastAPI:
    """The application that serves an open Lectern; the caller closes the Lectern. Commands on this machine use the
    local token. While no key exists, no request needs one if `host` is a loopback address."""
    app = unguarded_app()
    app.state.lectern = lectern
    app.state.local_token = local_token
    app.state.stopping = False  # True: no load balancer should send anything here any more
    app.state.book_faults = {}  # what the last check of readiness found
    settings, url = lectern.app.settings, lectern.app.settings.limits_url
    app.state.streams = Streams(2 * settings.max_runs, 2 * settings.max_runs_per_key, lectern.app.keys.is_unrevoked)
    windows = RateWindows(url.get_secret_value() if url else None)
    lectern.app.stack.push_async_callback(windows.close)
    # the middleware that is added first runs last
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES, max_local_bytes=MAX_LOCAL_BODY_BYTES, local_path=local.PATH)
    app.add_middleware(BodyTimeout, seconds=settings.request_timeout)
    app.add_middleware(
        Gate,
        authenticator=Authenticator(lectern.app.keys, Readers(lectern.app.keys), local=is_loopback(host)),
        limits=Limits(windows, settings.rate_limit, settings.reader_rate_limit),
        proxies=networks(settings.proxies),
        unguarded=unguarded_paths(WEB),
        api=api_steps(),
    )
    app.add_middleware(AllowedOrigins, allowed=frozenset(settings.origins), keys=lectern.app.keys)
    app.add_middleware(AllowedHosts, hosts={*LOOPBACK_HOSTS, host.lower(), *settings.hosts})
    app.add_middleware(
        WidgetAccess,
        paths=widget_paths(unguarded_paths(WEB)),
        allowed=frozenset(settings.origins),
        keys=lectern.app.keys,
    )
    app.add_middleware(SecurityHeaders)
    app.state.metrics = Metrics(lectern.app.runs, lectern.jobs)
    lectern.app.watchers.append(app.state.metrics.question)
    lectern.app.stack.callback(watch(app.state.metrics.call))
    app.add_middleware(
        RequestTracing,
        metrics=app.state.metrics,
        tracer=lectern.app.tracer,
        untraced=unguarded_paths(WEB) | UNLIMITED_PATHS,
    )
    return app


def unguarded_app() -> FastAPI:
    """The routes and the web page without keys, limits and other middleware: enough to describe the API, not to serve
    it."""
    # no `docs_url`: our own page loads nothing from other hosts
    app = FastAPI(title="Lectern", version=__version__, docs_url=None, redoc_url=None)
    for router in ROUTERS:
        app.include_router(router)

    files = page_files(WEB)
    for path, file in {**files, "/docs": files["/docs.html"]}.items():
        app.add_route(path, file_route(web_file(file)), methods=["GET"], include_in_schema=False)
        if path.endswith("/") and path != "/":
            app.add_route(path.rstrip("/"), _to_folder, methods=["GET"], include_in_schema=False)
    for path, words in widget_words().items():
        app.add_route(path, file_route(words), methods=["GET"], include_in_schema=False)
    errors.install(app)
    describe_headers(app)
    return app


def api_steps() -> frozenset[str]:
    """The first steps of the API's paths."""
    return frozenset(route.path.split("/")[1] for router in ROUTERS for route in router.routes)


async def _to_folder(request: Request) -> Response:
    """Add the slash that relative addresses need. The address is relative, because a proxy may serve us under a
    prefix."""
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{request.url.path.rpartition('/')[2]}/{query}")
