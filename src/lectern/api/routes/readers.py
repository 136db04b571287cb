"""Readers of a publishable key over HTTP. The widget creates one before its first question."""

from __future__ import annotations

from fastapi import APIRouter

from lectern.api.deps import KnownCaller, LecternDep
from lectern.api.readers import Readers
from lectern.domain.errors import Forbidden
from lectern.schemas.common import ReaderOut, problems

router = APIRouter(prefix="/readers", tags=["readers"], responses=problems(401, 403, 429, 503))


@router.post("", operation_id="createReader", status_code=201)
async def create_reader(lectern: LecternDep, caller: KnownCaller) -> ReaderOut:
    """Create a reader, so that a browser has its own conversations; a valid token is replaced by a new one."""
    if caller.key_id is None or not (caller.reader or caller.nameless):
        raise Forbidden("readers are of publishable keys; everybody else's conversations are their own without")
    token = await Readers(lectern.app.keys).token(caller.key_id, caller.reader)
    return ReaderOut(reader_token=token.text, expires_at=token.expires_at)
