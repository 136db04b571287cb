"""Who asks, over HTTP. The page offers what the caller may do, and nothing else."""

from __future__ import annotations

from fastapi import APIRouter

from lectern.api.deps import KnownCaller
from lectern.domain.keys import RIGHTS
from lectern.schemas.common import CallerOut, problems

router = APIRouter(tags=["readers"], responses=problems(401, 403, 429, 503))


@router.get("/caller", operation_id="readCaller")
async def read_caller(caller: KnownCaller) -> CallerOut:
    """What the caller may do: the rights of the key, or all rights while no key exists."""
    return CallerOut(rights=[right for right in RIGHTS if right in caller.rights])
