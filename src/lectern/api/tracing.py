"""Every request has an id: the caller's, if it is a plain one, else ours. It comes back in the response and stands in
every log line of the request and of the run it began. Plain ASGI, so that streams pass untouched."""

from __future__ import annotations

import re
import time
import uuid

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.metrics import Metrics

HEADER = b"x-request-id"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PLAIN = re.compile(rb"[A-Za-z0-9._-]{1,64}")


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
