"""The application: routes, the page, one error shape, and the guards before them."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.body_limit import RequestBodyLimitMiddleware

from lectern.api import errors
from lectern.api.guards import KnownHosts, SafeHeaders
from lectern.api.routes import books, chat, health, local, threads
from lectern.version import __version__
from lectern.wiring import Lectern

WEB = Path(__file__).parent / "web"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
MAX_BODY = 64 * 1024  # bytes; a question has at most 1,000 characters


def create_app(lectern: Lectern, local_token: str | None = None, host: str = "localhost") -> FastAPI:
    """The application around an open Lectern; whoever opened it closes it. Commands come in with the local token."""
    app = FastAPI(title="Lectern", version=__version__, docs_url=None, redoc_url=None)  # ours needs no foreign host
    app.state.lectern = lectern
    app.state.local_token = local_token
    for module in (chat, threads, books, health, local):
        app.include_router(module.router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(WEB / "docs.html")

    app.mount("/", StaticFiles(directory=WEB, html=True), name="web")  # last: it answers what no route does
    errors.install(app)
    app.add_middleware(RequestBodyLimitMiddleware, max_body_size=MAX_BODY)
    app.add_middleware(KnownHosts, hosts={*LOOPBACK_HOSTS, host})
    app.add_middleware(SafeHeaders)
    return app
