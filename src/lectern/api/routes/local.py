"""The route for commands on the same machine. While a server owns the home, it runs them. A command
needs the token in the home."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from lectern.api.deps import LecternDep
from lectern.api.errors import problem
from lectern.app.command_handlers import run
from lectern.app.commands import LOCAL_TOKEN_HEADER, from_json
from lectern.app.lectern import Lectern
from lectern.domain.errors import BadInput, LecternError

PATH = "/local/"
router = APIRouter(include_in_schema=False)


@router.post(PATH + "{name}", response_model=None)
async def command(name: str, request: Request, lectern: LecternDep) -> StreamingResponse | JSONResponse:
    """Run a command and send its lines as they come."""
    expected = request.app.state.local_token
    token = request.headers.get(LOCAL_TOKEN_HEADER, "")
    if expected is None or not secrets.compare_digest(token.encode(), expected.encode()):
        return problem(404, "Not Found")  # the route does not show that it exists, and the body is not read
    return StreamingResponse(_lines(name, await request.json(), lectern), media_type="application/x-ndjson")


async def _lines(name: str, body: object, lectern: Lectern) -> AsyncIterator[bytes]:
    try:
        async for line in run(from_json(name, body), lectern):
            yield json.dumps({"line": line}).encode() + b"\n"
        yield b'{"end": true}\n'  # without this line the answer is incomplete
    except LecternError as exc:
        typed = isinstance(exc, BadInput)
        yield json.dumps({"error": str(exc), "exit_code": exc.exit_code, "typed": typed}).encode() + b"\n"
