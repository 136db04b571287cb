"""What stands before every route: whose name the server answers to, how large a request may be, and the headers that
keep a browser honest. Plain ASGI, so that streams pass untouched."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lectern.api.errors import problem

HEADERS = {
    b"content-security-policy": b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


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
