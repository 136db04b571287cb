"""What stands before every route: whose name the server answers to, how large a request may be, and the headers that
keep a browser honest. Plain ASGI, so that streams pass untouched.

Every request has an id: the caller's, if it is a plain one, else ours. It comes back in the response and stands in
every log line of the request and of the run it began. Plain ASGI, so that streams pass untouched.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.errors import problem
from lectern.api.metrics import Metrics

HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
HEADER = b"x-request-id"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PLAIN = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class SafeHeaders:
    """Adds the headers to every response, a refusal's too."""

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

        await self._app(scope, receive, marked)


class KnownHosts:
    """Refuses a request that was meant for another name: a DNS name rebound to this machine must not read books."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what was meant for us."""
        if scope["type"] == "http" and _host(scope) not in self._hosts:
            refusal = problem(
                400, "this server does not answer to that host name; its operator can add it to LECTERN_HOSTS"
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _host(scope: Scope) -> str:
    """The name in the Host header, without its port."""
    raw = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
    name, _, port = raw.rpartition(":")
    return name if name and port.isdecimal() else raw


class BodyLimit:
    """Refuses a body that says it is too large, in the one shape of an error; one that lies is cut off later."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what fits."""
        said = next((value for name, value in scope.get("headers", ()) if name == b"content-length"), b"")
        if said.isdigit() and int(said[:12]) > self._most:
            await problem(413, f"a request may have {self._most} bytes")(scope, receive, send)
            return
        await self._app(scope, receive, send)


class Traced:
    """Names requests and counts them."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == HEADER), b"")
        name = given if _PLAIN.fullmatch(given) else uuid.uuid4().hex.encode()
        status = 500
        begun = time.perf_counter()

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (HEADER, name)]
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=name.decode()):
            try:
                await self._app(scope, receive, named)
            finally:
                method = scope["method"] if scope["method"] in METHODS else "other"
                self._metrics.request(method, _route(scope), status, time.perf_counter() - begun)


def _route(scope: Scope) -> str:
    """The route's pattern, never the address itself: ids are not for labels."""
    route = scope.get("route")
    return getattr(route, "path", None) or "other"
