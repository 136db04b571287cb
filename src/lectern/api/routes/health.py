"""Whether the server lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter

from lectern.api.deps import LecternDep
from lectern.api.schemas.common import Health, Problem

router = APIRouter(prefix="/health", tags=["operations"])


@router.get("/live", operation_id="healthLive")
async def live() -> Health:
    """Say that the process answers."""
    return Health()


@router.get("/ready", operation_id="healthReady", responses={503: {"model": Problem}})
async def ready(lectern: LecternDep) -> Health:
    """Say that the database and every book's index can be read."""
    for entry in await lectern.books():
        await lectern.workshop.shelf.stand(entry)
    return Health()
