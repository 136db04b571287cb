"""The gate before the routes: it finds the caller of a request and applies the rate limit. A new route is guarded
unless its path is listed here. It is plain ASGI, so that streams are not buffered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.addresses import Network, peer_of
from lectern.api.auth import CALLER, Authenticator
from lectern.api.errors import problem_of
from lectern.api.lesson_addresses import keyless_visit
from lectern.api.rate_windows import Limits, LimitState, limit_headers, too_many
from lectern.api.web_files import page_files
from lectern.api.widget_access import widget_words
from lectern.domain.errors import BadKey, LecternError, WrongOrigin
from lectern.domain.keys import Caller

OPEN_PATHS = frozenset({"/health/live", "/health/ready", "/openapi.json", "/docs"})
LOCAL_PREFIX = "/local/"  # commands on this machine, which use the local token instead of a key
UNLIMITED_PATHS = frozenset({"/metrics"})


def unguarded_paths(web: Path) -> frozenset[str]:
    """The paths that need no key and have no rate limit: health, the API's description, and the page's files."""
    paths = page_files(web).keys()
    return OPEN_PATHS | paths | widget_words().keys() | {path.rstrip("/") for path in paths if path != "/"}


class Gate:
    """Passes a request on with its caller, or answers it with a problem."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticator: Authenticator,
        limits: Limits,
        proxies: Sequence[Network],
        unguarded: frozenset[str],
        api: frozenset[str] = frozenset(),
    ) -> None:
        self._app = app
        self._authenticator, self._limits = authenticator, limits
        self._proxies, self._unguarded, self._api = proxies, unguarded, api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in self._unguarded or scope["path"].startswith(LOCAL_PREFIX):
            await self._app(scope, receive, send)
            return
        peer = peer_of(scope, self._proxies)
        state: LimitState | None = None
        try:
            caller = await self._caller(scope, peer)
            if scope["path"] not in UNLIMITED_PATHS:
                state = await self._limits.admit(caller, peer)
            if state is not None and not state.admitted:
                raise too_many(state)
        except LecternError as exc:
            if isinstance(exc, BadKey) and not exc.key_sent and (page := keyless_visit(scope, self._api)) is not None:
                await page(scope, receive, send)
                return
            await problem_of(exc)(scope, receive, _with_limit_headers(send, state))
            return
        scope[CALLER] = caller
        await self._app(scope, receive, _with_limit_headers(send, state))

    async def _caller(self, scope: Scope, peer: str) -> Caller:
        try:
            return await self._authenticator.caller(Headers(scope=scope))
        except (BadKey, WrongOrigin) as exc:
            if not isinstance(exc, BadKey) or exc.key_sent:
                await self._limits.refuse_guessing(peer)
            raise


def _with_limit_headers(send: Send, state: LimitState | None) -> Send:
    """Add the rate limit headers to the response."""
    if state is None:
        return send
    extra = limit_headers(state)

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *extra]
        await send(message)

    return send_with_headers
