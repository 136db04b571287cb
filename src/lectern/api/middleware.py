"""Middleware: the allowed host names, the size of a request, the security headers, and request ids with metrics. It is
plain ASGI, so that streams are not buffered.

A request keeps the id that its caller sent if it matches `_PLAIN_ID`; otherwise it gets a new one. The id is in the
response and in the log lines of the request and of the run that it starts.

Requests from pages of other origins (CORS). A page may read answers only if the operator allowed its origin, by a
setting or with a publishable key. A request that changes something is refused for other origins: a browser may send it
before it checks whether the page may read the answer.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from http import HTTPStatus
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.description import HEADERS
from lectern.api.errors import problem, problem_of
from lectern.api.metrics import Metrics
from lectern.domain.errors import LecternError
from lectern.domain.tracing import UNTRACED, Attributes
from lectern.ports.keys import KeyStore
from lectern.ports.tracing import Tracer

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; img-src 'self' blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'; object-src 'none'"
)
SECURITY_HEADERS = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
REQUEST_ID_HEADER = b"x-request-id"
TRACE_HEADERS = (b"traceparent", b"tracestate")
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PLAIN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ALLOWED_METHODS = "GET, HEAD, POST, PATCH, DELETE"
ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-API-Key, X-Reader-Token"
EXPOSED_HEADERS = ", ".join(sorted(HEADERS))  # a page may read every header in the API's description
PREFLIGHT_MAX_AGE = "600"  # seconds that a browser may store the answer; a key's origins may change


class SecurityHeaders:
    """Adds the security headers to responses, refusals included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to the response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                extra = [(name, value) for name, value in SECURITY_HEADERS.items() if name not in present]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class AllowedHosts:
    """Refuses a request for another host name, so that a DNS name rebound to this machine cannot read books."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if its host name is allowed."""
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
    """Refuses a request whose Content-Length is too large, with a problem response. `RequestBodyLimitMiddleware` stops
    a body that is too large when its Content-Length is missing or wrong. Commands of this machine have their own limit:
    one may bring a file of questions. Their route reads no body without the token of the home."""

    def __init__(self, app: ASGIApp, *, max_bytes: int, max_local_bytes: int, local_path: str) -> None:
        self._local_path = local_path
        self._max_bytes, self._app = max_bytes, RequestBodyLimitMiddleware(app, max_body_size=max_bytes)
        self._max_local_bytes = max_local_bytes
        self._local_app = RequestBodyLimitMiddleware(app, max_body_size=max_local_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on if it is small enough."""
        is_local = scope.get("path", "").startswith(self._local_path)
        max_bytes = self._max_local_bytes if is_local else self._max_bytes
        length = next((value for name, value in scope.get("headers", ()) if name == b"content-length"), b"")
        if length.isdigit() and int(length[:12]) > max_bytes:
            await problem(413, f"a request may have {max_bytes} bytes")(scope, receive, send)
            return
        await (self._local_app if is_local else self._app)(scope, receive, send)


class RequestTracing:
    """Gives each request an id, counts requests in the metrics, and records a span for each but those of health, the
    metrics and static files, which come all the time and say nothing about readers."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, tracer: Tracer, untraced: AbstractSet[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._tracer, self._untraced = tracer, untraced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent_id = next((value for name, value in scope["headers"] if name == REQUEST_ID_HEADER), b"")
        request_id = sent_id if _PLAIN_ID.fullmatch(sent_id) else uuid.uuid4().hex.encode()
        status = 500
        start = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (REQUEST_ID_HEADER, request_id)]
            await send(message)

        method = scope["method"] if scope["method"] in KNOWN_METHODS else "other"
        tracer = UNTRACED if scope["path"] in self._untraced else self._tracer
        with tracer.span(method, caller=_trace_headers(scope)):
            ids = {"request_id": request_id.decode(), "trace_id": tracer.trace_id()}
            with structlog.contextvars.bound_contextvars(**{name: value for name, value in ids.items() if value}):
                try:
                    await self._app(scope, receive, send_with_id)
                finally:
                    route = _route(scope)
                    self._metrics.request(method, route, status, time.perf_counter() - start)
                    tracer.note(_span_attributes(method, route, status), name=f"{method} {route}")


def _trace_headers(scope: Scope) -> dict[str, str]:
    """The headers that say which trace the caller works on."""
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in TRACE_HEADERS}


def _span_attributes(method: str, route: str, status: int) -> Attributes:
    """What a request's span says, in OpenTelemetry's names. The path is left out: it may hold anything."""
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
    }
    return attributes if status < HTTPStatus.INTERNAL_SERVER_ERROR else {**attributes, "error.type": str(status)}


def _route(scope: Scope) -> str:
    """The route's pattern, not the path itself: a label must not hold ids."""
    route = scope.get("route")
    return getattr(route, "path", None) or "other"


class AllowedOrigins:
    """Adds the CORS headers for allowed origins, and refuses changes from all others."""

    def __init__(self, app: ASGIApp, *, allowed: frozenset[str], keys: KeyStore) -> None:
        self._app = app
        self._allowed, self._keys = allowed, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the CORS headers if the origin is allowed, or refuse it."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if (origin := headers.get("origin")) is None:
            await self._app(scope, receive, send)
            return
        try:
            allowed = origin in self._allowed or origin in await self._keys.origins()
        except LecternError as exc:
            await problem_of(exc)(scope, receive, send)
            return
        if allowed and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _preflight()(scope, receive, _with_cors_headers(send, origin))
        elif allowed:
            await self._app(scope, receive, _with_cors_headers(send, origin))
        elif scope["method"] in SAFE_METHODS or _is_same_origin(origin, headers):
            # without the CORS headers the browser does not give the answer to the page
            await self._app(scope, receive, send)
        else:
            refusal = problem(
                HTTPStatus.FORBIDDEN, "pages of that origin are not served; the operator can list it in LECTERN_ORIGINS"
            )
            await refusal(scope, receive, send)


def _preflight() -> Response:
    headers = {
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": ALLOWED_HEADERS,
        "Access-Control-Max-Age": PREFLIGHT_MAX_AGE,
    }
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)


def _with_cors_headers(send: Send, origin: str) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
            headers.add_vary_header("Origin")
        await send(message)

    return send_with_headers


def _is_same_origin(origin: str, headers: Headers) -> bool:
    """Whether the page came from this server. Only the host is compared, because a proxy may have ended TLS."""
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
