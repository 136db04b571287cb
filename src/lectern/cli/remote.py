"""Where a command's work is done: here, or inside the server that owns the home."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from lectern.domain.errors import InUse, LecternError, ProviderError

Line = dict[str, Any]


class Refused(LecternError):
    """What the server's action raised."""

    def __init__(self, message: str, exit_code: int, *, typed: bool) -> None:
        self.exit_code = exit_code  # here it is the server's word
        self.typed = typed  # about what was typed, not about a file or the server
        super().__init__(message)


async def act(name: str, params: Line, *, direct: bool = False, create: bool = False) -> AsyncIterator[Line]:
    """Carry an action out and give its lines; `direct` never goes through a server."""
    from lectern.app.home import find_home
    from lectern.app.settings import load_settings
    from lectern.domain.scope import refuse_undecodable

    for value in params.values():
        if isinstance(value, str):
            refuse_undecodable(value, "text")
    settings = load_settings()
    home = find_home(settings.home, create=create)
    try:
        async for line in _here(name, params, create=create):
            yield line
    except InUse:
        server = home.server()
        if direct or server is None:
            raise
        async for line in _there(server["url"], server["token"], name, params):
            yield line


Act = Callable[[str, Line], AsyncIterator[Line]]


@asynccontextmanager
async def channel(*, direct: bool = False) -> AsyncIterator[Act]:
    """Several actions one after the other, on a Lectern that is opened once, or inside the home's server."""
    from lectern.app.book_commands import action_named
    from lectern.app.home import find_home
    from lectern.app.open import open_lectern
    from lectern.app.settings import load_settings

    home = find_home(load_settings().home, create=False)
    async with AsyncExitStack() as stack:
        try:
            lectern = await stack.enter_async_context(open_lectern(create=False))
        except InUse:
            server = home.server()
            if direct or server is None:
                raise
            yield lambda name, params: _there(server["url"], server["token"], name, params)
            return
        yield lambda name, params: action_named(name)(lectern, params)


async def only(name: str, params: Line, *, direct: bool = False) -> Line:
    """The one line of an action that has one."""
    lines = [line async for line in act(name, params, direct=direct)]
    return lines[0]


async def _here(name: str, params: Line, *, create: bool) -> AsyncIterator[Line]:
    from lectern.app.book_commands import action_named
    from lectern.app.open import open_lectern

    async with open_lectern(create=create) as lectern:
        async for line in action_named(name)(lectern, params):
            yield line


async def _there(url: str, token: str, name: str, params: Line) -> AsyncIterator[Line]:
    import httpx

    headers = {"x-lectern-token": token}
    try:
        async with (
            httpx.AsyncClient(timeout=None, trust_env=False) as client,  # noqa: S113  # an ingestion takes its time
            client.stream("POST", f"{url}/local/{name}", json=params, headers=headers) as response,
        ):
            if response.is_error:
                raise ProviderError("lectern server", f"answered {response.status_code}; stop it, or try again")
            async for raw in response.aiter_lines():
                body = json.loads(raw)
                if "error" in body:
                    raise Refused(body["error"], body["exit_code"], typed=body.get("typed", False))
                if "end" in body:
                    return
                yield body["line"]
    except httpx.HTTPError as exc:
        raise ProviderError("lectern server", f"at {url} did not answer ({type(exc).__name__}); try again") from exc
    raise ProviderError("lectern server", f"at {url} stopped in the middle; what was finished is kept, run it again")
