"""The gate before every route: who asks, and whether they may ask now. Routes that are added later stand behind it by
themselves; what needs no key is listed. Plain ASGI, so that streams pass untouched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.addresses import Network, peer_of
from lectern.api.auth import CALLER, Authenticator
from lectern.api.errors import problem_of
from lectern.api.rate_windows import Limits, Standing, limit_headers, too_many
from lectern.domain.errors import BadKey, LecternError, WrongOrigin
from lectern.domain.keys import Caller

OPEN = frozenset({"/health/live", "/health/ready", "/openapi.json", "/docs"})
OWN_DOOR = "/local/"  # commands of this machine, who have a token of their own
UNCOUNTED = frozenset({"/metrics"})


def page_files(web: Path) -> dict[str, str]:
    """The page's files by their paths on the server."""
    names = [file.relative_to(web).as_posix() for file in web.rglob("*") if file.is_file()]
    files = {f"/{name}": name for name in names}
    return files | {
        path.removesuffix("index.html"): name for path, name in files.items() if path.endswith("/index.html")
    }


def unguarded_paths(web: Path) -> frozenset[str]:
    """What needs no key and is not counted: health, the API's description, and the page's files."""
    return OPEN | page_files(web).keys()


class Gate:
    """Lets a request through with its caller, or answers it with a problem."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        door: Authenticator,
        limits: Limits,
        proxies: Sequence[Network],
        unguarded: frozenset[str],
    ) -> None:
        self._app = app
        self._door, self._limits = door, limits
        self._proxies, self._unguarded = proxies, unguarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in self._unguarded or scope["path"].startswith(OWN_DOOR):
            await self._app(scope, receive, send)
            return
        peer = peer_of(scope, self._proxies)
        standing: Standing | None = None
        try:
            caller = await self._caller(scope, peer)
            if scope["path"] not in UNCOUNTED:
                standing = await self._limits.admit(caller, peer)
            if standing is not None and not standing.admitted:
                raise too_many(standing)
        except LecternError as exc:
            await problem_of(exc)(scope, receive, _marked(send, standing))
            return
        scope[CALLER] = caller
        await self._app(scope, receive, _marked(send, standing))

    async def _caller(self, scope: Scope, peer: str) -> Caller:
        try:
            return await self._door.caller(Headers(scope=scope))
        except (BadKey, WrongOrigin) as exc:
            if not isinstance(exc, BadKey) or exc.key_sent:
                await self._limits.refuse_guessing(peer)
            raise


def _marked(send: Send, standing: Standing | None) -> Send:
    """Say with the response how the caller stands."""
    if standing is None:
        return send
    extra = limit_headers(standing)

    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *extra]
        await send(message)

    return marked
