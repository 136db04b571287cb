"""Pages of other origins. They may use the API only if the operator listed them, by a setting or with a publishable
key; a request that changes something is not even carried out for the others, because a browser sends it before it asks
whether the page may read the answer."""

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

HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = "GET, HEAD, POST, PATCH, DELETE"
SENT = "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID, X-API-Key, X-Reader-Token"
SHOWN = ", ".join(sorted(HEADERS))  # a page may read all that the description names
REMEMBERED = "600"  # seconds that a browser need not ask again; a key's origins may change


class ListedOrigins:
    """Answers browsers that ask for a page of another origin."""

    def __init__(self, app: ASGIApp, *, listed: frozenset[str], keys: SqlKeys) -> None:
        self._app = app
        self._listed, self._keys = listed, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with what a browser wants to know, or refuse it."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if (origin := headers.get("origin")) is None:
            await self._app(scope, receive, send)
            return
        try:
            listed = origin in self._listed or origin in await self._keys.origins()
        except LecternError as exc:
            await problem_of(exc)(scope, receive, send)
            return
        if listed and scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _preflight()(scope, receive, _allowing(send, origin))
        elif listed:
            await self._app(scope, receive, _allowing(send, origin))
        elif scope["method"] in HARMLESS or _is_own(origin, headers):
            await self._app(scope, receive, send)  # without our word the browser keeps the answer from the page
        else:
            refusal = problem(
                HTTPStatus.FORBIDDEN, "pages of that origin are not served; the operator can list it in LECTERN_ORIGINS"
            )
            await refusal(scope, receive, send)


def _preflight() -> Response:
    headers = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": SENT,
        "Access-Control-Max-Age": REMEMBERED,
    }
    return Response(status_code=HTTPStatus.NO_CONTENT, headers=headers)


def _allowing(send: Send, origin: str) -> Send:
    async def allowing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = origin
            headers["Access-Control-Expose-Headers"] = SHOWN
            headers.add_vary_header("Origin")
        await send(message)

    return allowing


def _is_own(origin: str, headers: Headers) -> bool:
    """The page came from this server; by name alone, because a proxy may have taken the encryption off."""
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
