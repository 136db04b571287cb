"""What becomes of an order before anybody carries it out: whether the caller may give it, what it would do, and whether
one that lost its process is worth another attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lectern.domain.errors import BadInput, SourceError, UnknownBook
from lectern.domain.jobs import IngestionJob, JobOrder, JobRecord, Planned
from lectern.ingestion.ingest import IngestRequest, Workshop, ingest
from lectern.jobs.carrying import ended
from lectern.jobs.sources import VARIABLE, allowed_folder, still_allowed
from lectern.ports import BookEntry, Ledger
from lectern.reading.slugs import slugged

MOST_ATTEMPTS = 3  # a job whose process died so often would kill the next one, too


async def order_of(asked: JobOrder, readable: frozenset[str] | None, ledger: Ledger, roots: Sequence[Path]) -> JobOrder:
    """What a caller asks for, with the folder that it means. A book that the caller may not read is an unknown one. A
    folder that the operator ingested before is always allowed, one that came in over HTTP only where it still may be
    named."""
    book_id, source = asked.book_id, asked.source
    known = {entry.manifest.book_id: entry for entry in await ledger.books()}
    if readable is not None and book_id not in readable:
        raise UnknownBook(book_id, tuple(name for name in known if name in readable))
    if slugged(book_id) != book_id:
        raise BadInput(f"{book_id!r} is no book id; write {slugged(book_id)!r}", field="book_id")
    entry = known.get(book_id)
    if source is not None:
        folder = str(await asyncio.to_thread(allowed_folder, source, roots))
        operators = entry is not None and entry.source == folder and not entry.bound
        return replace(asked, folder=folder, bound=not operators)
    if entry is None:
        raise BadInput(f"{book_id!r} is not indexed yet; say in `source` which folder holds it", field="source")
    if not await may_read(entry, roots):
        raise BadInput(
            f"the folder of {book_id!r} may not be read from any more, though the book stays as it is; name another in "
            f"`source`, or have the operator list it in {VARIABLE}",
            field="source",
        )
    return replace(asked, folder=entry.source, bound=entry.bound)


async def may_read(entry: BookEntry, roots: Sequence[Path]) -> bool:
    """Whether a book may be read again from where it was."""
    return not entry.bound or await asyncio.to_thread(still_allowed, entry.source, roots)


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
    if roots is None or not order.bound:
        return None
    if not await asyncio.to_thread(still_allowed, order.folder, roots):
        named = repr(order.source) if order.source else "the book's folder"
        return ended(job, "failed", f"{named} may not be read from any more; see {VARIABLE}")
    return None
