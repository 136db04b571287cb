"""The application: routes, the page, one error shape, and the headers that keep a browser honest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api import errors
from lectern.api.routes import books, chat, health, local
from lectern.version import __version__
from lectern.wiring import Lectern

WEB = Path(__file__).parent / "web"
LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


def create_app(lectern: Lectern, local_token: str | None = None) -> FastAPI:
    """The application around an open Lectern; whoever opened it closes it. Commands come in with the local token."""
    app = FastAPI(title="Lectern", version=__version__, docs_url="/docs", redoc_url=None)
    app.state.lectern = lectern
    app.state.local_token = local_token
    for module in (chat, books, health, local):
        app.include_router(module.router)
    app.mount("/", StaticFiles(directory=WEB, html=True), name="web")  # last: it answers what no route does
    errors.install(app)
    app.add_middleware(SafeHeaders)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK_HOSTS)  # a rebound DNS name must not read books
    return app


class SafeHeaders:
    """Adds the headers to every response; plain ASGI, so that streams pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and mark the response."""

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                extra = [(name, value) for name, value in HEADERS.items() if name not in present]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        sender: Callable[[Message], Awaitable[None]] = marked
        await self._app(scope, receive, sender)
