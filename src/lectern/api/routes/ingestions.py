"""Jobs over HTTP. A caller with the right to ingest a book can start, follow, list and cancel its jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query
from fastapi.responses import JSONResponse, Response
from sse_starlette import EventSourceResponse

from lectern.api.deps import IdempotencyKey, IngestCaller, LecternDep, StreamsDep
from lectern.api.job_events import live_events, stored_events
from lectern.schemas.common import event_stream, problems
from lectern.schemas.jobs import MAX_JOB_ID, IngestionJob, IngestionPage, IngestionPlan, IngestionRequest, before_of

EVENTS = event_stream(
    planned="{job, files}: how many files are new, modified, moved, deleted, unchanged",
    progress="{job, done, total, share, stage}: files that are in the index, of how many; the share of the work that "
    "is done, 0 to 1; and what was done last: read, embed or index",
    finished="{job}: the IngestionJob with its report; the last event",
    error="a Problem; the last event",
)
PLAN: dict[int | str, dict[str, Any]] = {200: {"model": IngestionPlan, "description": "The plan of a dry run"}}
router = APIRouter(tags=["jobs"], responses=problems(401, 403, 404, 422, 429, 503))
JobId = Annotated[int, Path(ge=1, le=MAX_JOB_ID)]


@router.post(
    "/books/{book_id}/ingestions",
    operation_id="startIngestion",
    status_code=202,
    response_model=IngestionJob,
    responses={**PLAN, **problems(408, 409, 413)},
)
async def start(
    book_id: Annotated[str, Path(max_length=64, description="A new book's id is made by this, too.")],
    lectern: LecternDep,
    caller: IngestCaller,
    body: IngestionRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Bring a book's index up to date; while a job for the same request is queued or running, it is returned."""
    request = body or IngestionRequest()
    order = await lectern.jobs.order(book_id, request.source, request.mode, replace=request.replace, caller=caller)
    if request.dry_run:
        return JSONResponse(IngestionPlan.of(await lectern.jobs.plan(order)).model_dump())
    record = await lectern.jobs.start(order, owner=caller.owner, key=idempotency_key)
    headers = {"Location": f"/ingestions/{record.job.job_id}"}
    return JSONResponse(IngestionJob.of(record).model_dump(), status_code=202, headers=headers)


@router.get("/ingestions", operation_id="listIngestions")
async def list_ingestions(
    lectern: LecternDep,
    caller: IngestCaller,
    book_id: Annotated[str | None, Query(max_length=64, description="Only this book's.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Query(max_length=20, description="`next_cursor` of the page before.")] = None,
) -> IngestionPage:
    """The jobs of the books that you may ingest, the newest first."""
    books = caller.books
    if book_id is not None:
        books = frozenset({book_id} if caller.may_read(book_id) else ())
    records = await lectern.jobs.page(books=books, limit=limit + 1, before=before_of(cursor))
    return IngestionPage.of(records, limit)


@router.get("/ingestions/{job_id}", operation_id="readIngestion")
async def read(job_id: JobId, lectern: LecternDep, caller: IngestCaller) -> IngestionJob:
    """A job with its report so far."""
    return IngestionJob.of(await lectern.jobs.record(job_id, caller.books))


@router.get(
    "/ingestions/{job_id}/events",
    operation_id="followIngestion",
    response_class=EventSourceResponse,
    responses=EVENTS,
)
async def follow(
    job_id: JobId,
    lectern: LecternDep,
    streams: StreamsDep,
    caller: IngestCaller,
    last_event_id: Annotated[str | None, Header(max_length=40, description="The last event that arrived.")] = None,
) -> Response:
    """A job as Server-Sent Events: `planned`, `progress` …, and last `finished` or `error`."""
    record = await lectern.jobs.record(job_id, caller.books)
    if (live := lectern.jobs.live(job_id)) is not None:
        return streams.open(caller, live_events(live, last_event_id))
    return streams.open(caller, stored_events(record, lectern.jobs))


@router.post("/ingestions/{job_id}/cancel", operation_id="cancelIngestion")
async def cancel(job_id: JobId, lectern: LecternDep, caller: IngestCaller) -> IngestionJob:
    """Cancel a job between two steps; what was finished is kept. A job that has ended is not changed."""
    return IngestionJob.of(await lectern.jobs.cancel(job_id, caller.books))
