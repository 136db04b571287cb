"""The door for commands on the same machine: while a server owns the home, `lectern ingest` and its kin come in here.
Whoever can read the token in the home may use it, and nobody else."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse

from lectern.api.deps import LecternDep
from lectern.api.errors import problem
from lectern.app.book_commands import action_named
from lectern.app.open import Lectern
from lectern.domain.errors import BadInput, LecternError

router = APIRouter(include_in_schema=False)
TOKEN_HEADER = "x-lectern-token"  # noqa: S105  # a header's name


@router.post("/local/{name}", response_model=None)
async def act(name: str, request: Request, lectern: LecternDep) -> StreamingResponse | JSONResponse:
    """Carry a command's action out and send its lines as they come."""
    expected = request.app.state.local_token
    given = request.headers.get(TOKEN_HEADER, "")
    if expected is None or not secrets.compare_digest(given.encode(), expected.encode()):
        return problem(404, "Not Found")  # to a stranger the door is not there, so not even the body is looked at
    return StreamingResponse(_lines(name, await request.json(), lectern), media_type="application/x-ndjson")


async def _lines(name: str, params: dict[str, Any], lectern: Lectern) -> AsyncIterator[bytes]:
    try:
        async for line in action_named(name)(lectern, params):
            yield json.dumps({"line": line}).encode() + b"\n"
        yield b'{"end": true}\n'  # without it the answer was cut off
    except LecternError as exc:
        typed = isinstance(exc, BadInput)
        yield json.dumps({"error": str(exc), "exit_code": exc.exit_code, "typed": typed}).encode() + b"\n"
