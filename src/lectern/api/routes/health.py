"""Health checks: whether the process answers, whether it can serve requests, and whether a book can be served."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from lectern.api.deps import LecternDep, ReadCaller
from lectern.api.errors import problem, problem_of
from lectern.app.lectern import Lectern
from lectern.app.readiness import Faults, faults_of
from lectern.domain.errors import LecternError, Overloaded
from lectern.schemas.common import Health, Problem, Readiness, problems

router = APIRouter(tags=["operations"])
NOT_READY = HTTPStatus.SERVICE_UNAVAILABLE
NO_BOOK_READY = "no book can be served; the server's log names them, and `lectern doctor` says what is wrong"
NO_ANSWER = "the database or the index does not answer; the server's log has the details"
log = logging.getLogger("lectern.health")


@router.get("/health/live", operation_id="healthLive")
async def live() -> Health:
    """Say that the process answers."""
    return Health()


@router.get("/health/ready", operation_id="healthReady", response_model=Readiness, responses={503: {"model": Problem}})
async def ready(lectern: LecternDep, request: Request) -> Readiness | JSONResponse:
    """Say whether this process can serve: the database and the index of every book are really read. It can while one
    book can be served. No book is named: this path needs no key."""
    if request.app.state.stopping:
        return problem_of(Overloaded("the server is stopping"), NOT_READY)
    try:
        await lectern.app.ingest_deps.ledger.collections("")  # reads the database: the list of books may be cached
        faults, count = await _faults(lectern)
    except LecternError as exc:
        log.warning("not ready: %s", exc)
        return problem_of(exc, NOT_READY)  # a load balancer needs one status, whatever the error's own is
    except Exception as exc:  # noqa: BLE001  # a database has its own exceptions; after any of them no request can be served
        log.warning("not ready: %s", exc)
        return problem(NOT_READY, NO_ANSWER)
    _log_changes(request.app.state.book_faults, faults)
    request.app.state.book_faults = faults
    if count and len(faults) == count:
        return _nothing_ready(faults)
    return Readiness(books=count, books_not_ready=len(faults))


@router.get(
    "/books/{book_id}/ready",
    operation_id="bookReady",
    response_model=Health,
    responses=problems(401, 403, 404, 422, 429, 503),
)
async def book_ready(book_id: str, lectern: LecternDep, caller: ReadCaller) -> Health | JSONResponse:
    """Say whether this book can be served; a 503 says why not."""
    entry = await lectern.app.library.book(book_id, caller.books)
    faults = await faults_of([entry], lectern.app.ingest_deps.collections)
    for error in faults.values():
        return problem_of(error, NOT_READY)
    return Health()


async def _faults(lectern: Lectern) -> tuple[Faults, int]:
    """Why books cannot be served, and how many books there are. Without any, the index of the next one is read."""
    entries, collections = await lectern.books(), lectern.app.ingest_deps.collections
    if not entries:
        await collections.current.index.read(lambda view: view.book_ids())
    return await faults_of(entries, collections), len(entries)


def _nothing_ready(faults: Faults) -> JSONResponse:
    """The problem of a process that can serve no book. What they have in common is said, unless it names one."""
    errors = list(faults.values())
    texts = {str(error) for error in errors}
    if len(texts) == 1 and not any(book_id in str(errors[0]) for book_id in faults):
        return problem_of(errors[0], NOT_READY)
    return problem(NOT_READY, NO_BOOK_READY, kind=type(errors[0]))


def _log_changes(before: Mapping[str, LecternError], now: Mapping[str, LecternError]) -> None:
    """Log each book that cannot be served any more, and each that can be again; probes come every few seconds."""
    for book_id in now.keys() - before.keys():
        log.warning("not ready: %r: %s", book_id, now[book_id])
    for book_id in before.keys() - now.keys():
        log.warning("ready again: %r", book_id)
