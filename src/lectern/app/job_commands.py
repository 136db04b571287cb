"""What the terminal can ask of jobs. Whoever sits there may name any folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from lectern.app.open import Lectern
from lectern.domain.errors import BadInput
from lectern.domain.jobs import JobOrder, JobRecord
from lectern.domain.threads import LOCAL_OWNER
from lectern.reading.names import slugged
from lectern.schemas.jobs import IngestionJob

Params = dict[str, Any]
Lines = AsyncIterator[dict[str, Any]]
PAGE = 100


async def jobs(lectern: Lectern, params: Params) -> Lines:
    """Jobs, the newest first, a line each, without their warnings and errors."""
    if not lectern.serving:
        await lectern.jobs.take_up()  # what a killed process left is not running, whatever its record says
    books = None if params["book"] is None else frozenset({params["book"]})
    before, left = None, params["limit"]
    while left > 0:
        page = await lectern.jobs.page(books=books, limit=min(left, PAGE), before=before)
        for record in page:
            yield _shown(record)
        if len(page) < min(left, PAGE):
            return
        before, left = page[-1].job.job_id, left - len(page)


async def job(lectern: Lectern, params: Params) -> Lines:
    """One job with its report."""
    if not lectern.serving:
        await lectern.jobs.take_up()
    yield _shown(await lectern.jobs.record(params["job_id"], None))


async def cancel_job(lectern: Lectern, params: Params) -> Lines:
    """A job that was ended, or had ended before."""
    yield _shown(await lectern.jobs.cancel(params["job_id"], None))


async def start_job(lectern: Lectern, params: Params) -> Lines:
    """A job that a server goes on with; without one it is done here and now."""
    started = await lectern.jobs.start(await _order(lectern, params), owner=LOCAL_OWNER)
    live = lectern.jobs.live(started.job.job_id)
    if not lectern.serving and live is not None:
        await live.over()
        if live.error is not None:
            raise live.error
    yield _shown(await lectern.jobs.record(started.job.job_id, None))


async def _order(lectern: Lectern, params: Params) -> JobOrder:
    book, folder = params["book"], params["source"]
    if slugged(book) != book:
        raise BadInput(f"{book!r} is no book id; write {slugged(book)!r}", field="book_id")
    if folder is None:
        folder = next((entry.source for entry in await lectern.books() if entry.manifest.book_id == book), None)
    if folder is None:
        raise BadInput(f"{book!r} is not indexed yet; say with --source which folder holds it", field="source")
    return JobOrder(book_id=book, folder=folder, mode=params["mode"], replace=params["replace"])


def _shown(record: JobRecord) -> dict[str, Any]:
    return IngestionJob.of(record).model_dump()
