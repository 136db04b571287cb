"""Runs a command on the server that owns the home, if one is running, else in this process. This is decided before
anything heavy is imported."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from lectern.app.commands import LOCAL_TOKEN_HEADER, Command, to_json
from lectern.app.home import ServerAddress, configured_home, find_home, shell_variables
from lectern.cli.terminal import echo
from lectern.domain.errors import CommandFailed, ProviderError
from lectern.domain.scope import refuse_undecodable

Line = dict[str, Any]
Run = Callable[[Command], AsyncIterator[Line]]


async def run(command: Command, *, direct: bool = False, create: bool = False) -> AsyncIterator[Line]:
    """Run a command and yield its lines. `direct` never goes through a server; `create` makes the home."""
    async with open_runner(direct=direct, create=create) as run_command:
        async for line in run_command(command):
            yield line


async def run_one(command: Command, *, direct: bool = False) -> Line:
    """The line of a command that has exactly one."""
    return (await run_all(command, direct=direct))[0]


async def run_all(command: Command, *, direct: bool = False) -> list[Line]:
    """Every line of a command."""
    return [line async for line in run(command, direct=direct)]


@asynccontextmanager
async def open_runner(*, direct: bool = False, create: bool = False) -> AsyncIterator[Run]:
    """A function that runs commands, on the server of the home or on a Lectern that is opened once."""
    home = find_home(configured_home(), create=create)
    server = None if direct else home.server()
    async with AsyncExitStack() as stack:
        if server is not None and await _is_listening(server):
            _say_ignored_settings(server)
            yield lambda command: _run_on_server(server, _checked(command))
            return
        from lectern.app.command_handlers import run as run_here
        from lectern.app.open import open_lectern

        lectern = await stack.enter_async_context(open_lectern(create=create))
        yield lambda command: run_here(_checked(command), lectern)


def _say_ignored_settings(server: ServerAddress) -> None:
    """Say on stderr that a server answers with its own settings, if the shell has others."""
    shell = shell_variables()
    if not shell:
        return
    from lectern.app.settings import changed_variables  # slow to import, and rarely needed here

    settings = changed_variables()
    names = [name for name in settings if name in shell and not server.has_setting(name, settings[name])]
    if names:
        other = f"not with {', '.join(sorted(names))} of this shell"
        advice = "restart it with them, or stop it and add --direct"
        echo(f"lectern: {server.description} answers with its own settings, {other}; {advice}", err=True)


def running_server() -> ServerAddress | None:
    """The server that owns the home."""
    return find_home(configured_home(), create=False).server()


def _checked(command: Command) -> Command:
    """Reject a command whose text contains bytes that are not valid text."""
    for field in dataclasses.fields(command):
        if isinstance(value := getattr(command, field.name), str):
            refuse_undecodable(value, "text")
    return command


async def _is_listening(server: ServerAddress) -> bool:
    """Whether a server is listening; a server that was killed leaves its address behind."""
    import asyncio
    from urllib.parse import urlsplit

    parts = urlsplit(server.url)
    try:
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True


async def _run_on_server(server: ServerAddress, command: Command) -> AsyncIterator[Line]:
    import httpx

    name, url = type(command).__name__, server.url
    headers = {LOCAL_TOKEN_HEADER: server.token}
    try:
        async with (
            httpx.AsyncClient(timeout=None, trust_env=False) as client,  # noqa: S113  # an ingestion may take hours
            client.stream("POST", f"{url}/local/{name}", json=to_json(command), headers=headers) as response,
        ):
            if response.is_error:
                raise ProviderError("lectern server", f"answered {response.status_code}; stop it, or try again")
            async for raw in response.aiter_lines():
                body = json.loads(raw)
                if "error" in body:
                    raise CommandFailed(body["error"], body["exit_code"], typed=body.get("typed", False))
                if "end" in body:
                    return
                yield body["line"]
    except httpx.HTTPError as exc:
        raise ProviderError("lectern server", f"at {url} did not answer ({type(exc).__name__}); try again") from exc
    raise ProviderError("lectern server", f"at {url} stopped in the middle; what was finished is kept, run it again")
