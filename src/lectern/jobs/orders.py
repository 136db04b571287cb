"""What becomes of an order before anybody carries it out: whether the caller may give it, what it would do, and whether
one that lost its process is worth another attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lectern.domain.errors import BadInput, SourceError, UnknownBook
from lectern.domain.jobs import IngestionJob, JobOrder, JobRecord, Planned
from lectern.ingestion.ingest import IngestRequest, Workshop, ingest
from lectern.jobs.carrying import ended
from lectern.jobs.sources import allowed_folder, still_allowed
from lectern.ports import Ledger
from lectern.reading.slugs import slugged

MOST_ATTEMPTS = 3  # a job whose process died so often would kill the next one, too


async def folder_of(
    book_id: str, source: str | None, readable: frozenset[str] | None, ledger: Ledger, roots: Sequence[Path]
) -> str:
    """Where the book is to be read from. A book that the caller may not read is an unknown one; a folder that the
    operator ingested before is always allowed."""
    known = {entry.manifest.book_id: entry.source for entry in await ledger.books()}
    if readable is not None and book_id not in readable:
        raise UnknownBook(book_id, tuple(name for name in known if name in readable))
    if slugged(book_id) != book_id:
        raise BadInput(f"{book_id!r} is no book id; write {slugged(book_id)!r}", field="book_id")
    if source is not None:
        return str(await asyncio.to_thread(allowed_folder, source, roots))
    if book_id not in known:
        raise BadInput(f"{book_id!r} is not indexed yet; say in `source` which folder holds it", field="source")
    return known[book_id]


async def plan_of(order: JobOrder, shop: Workshop) -> Planned:
    """What a job would do; nothing is changed."""
    request = IngestRequest(
        folder=Path(order.folder), book_id=order.book_id, mode=order.mode, replace=order.replace, dry_run=True
    )
    plan: Planned | None = None
    try:
        async for event in ingest(request, shop):
            plan = event if isinstance(event, Planned) else plan
    except SourceError as exc:
        raise type(exc)(order.in_words(str(exc))) from None
    assert plan is not None  # a dry run ends with its plan
    return plan


async def verdict_on(record: JobRecord, roots: Sequence[Path] | None) -> IngestionJob | None:
    """How a job ends that nobody carries on; None where it is to be taken up again. Only a server that is about to do
    that has `roots`: a command may have been started without that setting."""
    job, order = record.job, record.order
    if record.cancelling:
        return ended(job, "cancelled")
    if record.origin == "terminal":
        return ended(job, "failed", "its process was ended before it was done; ingest again")
    if record.attempts >= MOST_ATTEMPTS:
        return ended(
            job,
            "failed",
            f"it was begun {record.attempts} times, and each time the server died before it was done; look for a file "
            "of unusual size or shape, or too little memory, then start it again",
        )
    if roots is None or order.source is None:
        return None
    if not await asyncio.to_thread(still_allowed, order.folder, roots):
        return ended(job, "failed", f"{order.source!r} may not be read from any more; see LECTERN_BOOKS")
    return None
