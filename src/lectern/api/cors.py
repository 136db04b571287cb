"""Requests from pages of other origins (CORS). A page may read answers only if the operator allowed its origin, by a
setting or with a publishable key. A request that changes something is refused for other origins: a browser may send it
before it checks whether the page may read the answer."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.description import HEADERS
from lectern.api.errors import problem, problem_of
from lectern.domain.errors import LecternError
from lectern.store.keys import SqlKeys

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
ALLOWED_METHODS = "GET, HEAD, POST, PATCH, DELETE"
ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-API-Key, X-Reader-Token"
EXPOSED_HEADERS = ", ".join(sorted(HEADERS))  # a page may read every header in the API's description
PREFLIGHT_MAX_AGE = "600"  # seconds that a browser may store the answer; a key's origins may change


class AllowedOrigins:
    """Adds the CORS headers for allowed origins, and refuses changes from all others."""

    def __init__(self, app: ASGIApp, *, allowed: frozenset[str], keys: SqlKeys) -> None:
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
