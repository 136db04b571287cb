"""Health checks: whether the process answers, and whether it can serve requests."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from lectern.api.deps import LecternDep
from lectern.api.errors import problem, problem_of
from lectern.app.lectern import Lectern
from lectern.domain.books import BookEntry
from lectern.domain.errors import IndexDamaged, LecternError
from lectern.ports.index import ChunkIndex
from lectern.schemas.common import Health, Problem

router = APIRouter(prefix="/health", tags=["operations"])
NOT_READY = HTTPStatus.SERVICE_UNAVAILABLE
BOOK_NOT_READY = "a book cannot be served; the server's log names it, and `lectern doctor` says what is wrong"
log = logging.getLogger("lectern.health")


@router.get("/live", operation_id="healthLive")
async def live() -> Health:
    """Say that the process answers."""
    return Health()


@router.get("/ready", operation_id="healthReady", response_model=Health, responses={503: {"model": Problem}})
async def ready(lectern: LecternDep) -> Health | JSONResponse:
    """Say whether the database and every book's index can be read; both are really tried. A 503 names no book: this
    path needs no key."""
    entries: Sequence[BookEntry] = ()
    try:
        await lectern.app.ingest_deps.ledger.collections("")  # reads the database: the list of books may be cached
        entries = await lectern.books()
        await _check_indexes(lectern, entries)
    except LecternError as exc:
        log.warning("not ready: %s", exc)
        if any(entry.manifest.book_id in str(exc) for entry in entries):
            return problem(NOT_READY, BOOK_NOT_READY, kind=type(exc))
        return problem_of(exc, NOT_READY)  # a load balancer needs one status, whatever the error's own is
    except Exception as exc:  # noqa: BLE001  # a database has its own exceptions; after any of them no request can be served
        log.warning("not ready: %s", exc)
        return problem(NOT_READY, "the database or the index does not answer; the server's log has the details")
    return Health()


async def _check_indexes(lectern: Lectern, entries: Sequence[BookEntry]) -> None:
    indexes: dict[str, ChunkIndex] = {}
    for entry in entries:
        indexes[entry.collection_name] = (await lectern.app.ingest_deps.collections.serving(entry)).index
    current = lectern.app.ingest_deps.collections.current.index
    indexes.setdefault(current.collection, current)  # the collection of the next book
    book_ids = {name: await index.read(lambda view: view.book_ids()) for name, index in indexes.items()}
    for entry in entries:
        if entry.total_chunks and entry.manifest.book_id not in book_ids[entry.collection_name]:
            raise IndexDamaged(f"the index holds nothing of {entry.manifest.book_id!r}; run: lectern doctor --mend")
