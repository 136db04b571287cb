"""Does the index hold what the ledger says? The doctor looks at every collection, chunk by chunk and field by field,
and can mend what it finds: what nobody knows is dropped, what is wrong is read again from the book's folder and
replaced in place. It is alone with a book while it looks: a job under way would look like damage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lectern.domain.books import BookEntry
from lectern.domain.chunks import Change, StampedChunk, chunks_digest
from lectern.domain.errors import IndexDamaged, LecternError
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.ingest import IngestDeps, reread_files
from lectern.ingestion.replacing import change, collections_of, forget_changes, recover, retire, verify
from lectern.ingestion.vectors import vector_key
from lectern.ports.index import ChunkIndex, Serving

Kind = Literal[
    "orphan chunks",
    "outdated points",
    "damaged lesson",
    "stuck change",
    "lost collection",
    "unknown book",
    "left-over collection",
    "unused vectors",
    "not examined",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One disagreement, and what became of it."""

    kind: Kind
    book_id: str | None
    detail: str
    mended: bool = False


async def examine(deps: IngestDeps, *, mend: bool) -> AsyncIterator[Finding]:
    """Every disagreement between index and ledger; with `mend` each is put right."""
    books = {entry.manifest.book_id for entry in await deps.ledger.books()}
    books |= {work.book_id for work in await deps.ledger.unsettled()}
    whole = True
    try:
        books |= await _held(deps)
    except LecternError as exc:  # each book may still have something to say
        whole = False
        yield Finding(kind="not examined", book_id=None, detail=str(exc))
    for book_id in sorted(books):
        for finding in await _alone_with(deps, book_id, mend=mend):
            whole = whole and finding.mended
            yield finding
    if mend and whole:  # a lost chunk's vector looks unused, and is what its lesson will be mended with
        async for finding in _examine_vectors(deps):
            yield finding


async def _held(deps: IngestDeps) -> frozenset[str]:
    """Every book that the index holds chunks of, known or not."""
    return await deps.collections.current.index.read(lambda view: view.book_ids())


async def _alone_with(deps: IngestDeps, book_id: str, *, mend: bool) -> list[Finding]:
    """One book's findings. Its trouble is one of them, and the next book is examined all the same."""
    found: list[Finding] = []
    try:
        async with deps.locks.alone(book_id):
            entry = await deps.ledger.book(book_id)  # as it stands now: it may have come or gone meanwhile
            if entry is None:
                found += await _examine_stranger(deps, book_id, mend=mend)
            else:
                await _Examination(deps, entry, found, mend=mend).go()
    except Exception as exc:  # noqa: BLE001  # what cannot be understood here is for the operator to read
        found.append(Finding(kind="not examined", book_id=book_id, detail=_said(exc)))
    return found


async def _examine_stranger(deps: IngestDeps, book_id: str, *, mend: bool) -> list[Finding]:
    """What is left of a book that the ledger does not know: nobody can read it."""
    held = {deps.collections.current.index.collection} if book_id in await _held(deps) else set()
    left = held | await collections_of(deps.ledger, book_id)
    if mend:
        for collection in left:
            await retire(deps.ledger, deps.collections, book_id, collection)
    detail = "the index holds it, the ledger does not know it"
    return [Finding(kind="unknown book", book_id=book_id, detail=detail, mended=mend)] if left else []


class _Examination:
    """One book under the doctor's eyes."""

    def __init__(self, deps: IngestDeps, entry: BookEntry, found: list[Finding], *, mend: bool) -> None:
        self.deps = deps
        self.entry = entry
        self.book_id = entry.manifest.book_id
        self.found = found
        self.mend = mend

    def note(self, kind: Kind, detail: str, *, mended: bool) -> None:
        self.found.append(Finding(kind=kind, book_id=self.book_id, detail=detail, mended=mended))

    async def go(self) -> None:
        await self._left_overs()
        stuck = await self._stuck()
        try:
            index = await self.deps.collections.index(self.entry.collection_name)
        except IndexDamaged as exc:
            self.note("lost collection", f"{exc}; then: {self._command()}", mended=False)
            return
        if not stuck:  # of a change that is not done, both versions may be needed
            await self._remnants(index)
        await self._lessons(index, stuck)
        if self.mend and (entry := await self.deps.ledger.book(self.book_id)):
            await verify(self.deps.ledger, self.deps.collections, entry)

    async def _left_overs(self) -> None:
        """Collections that no reader is served from, and that no unfinished rebuild goes on in."""
        needed = {self.entry.collection_name, self.deps.collections.current.index.collection}
        for collection in sorted(await collections_of(self.deps.ledger, self.book_id) - needed):
            if self.mend:
                await retire(self.deps.ledger, self.deps.collections, self.book_id, collection)
            detail = f"chunks of an earlier embedder are still in {collection!r}"
            self.note("left-over collection", detail, mended=self.mend)

    async def _stuck(self) -> list[Unsettled]:
        """Changes that were written down and are not done, though no job is under way."""
        waiting = [work for work in await self.deps.ledger.unsettled() if work.book_id == self.book_id]
        if not self.mend or not waiting:
            for work in waiting:
                self.note("stuck change", f"number {work.number} could not be completed", mended=False)
            return waiting
        stuck = [one.work for one in await recover(self.deps.ledger, self.deps.collections, self.book_id)]
        for work in waiting:
            if work.number not in {one.number for one in stuck}:
                self.note("stuck change", f"number {work.number} has been completed now", mended=True)
        return [work for work in stuck if not await self._of_a_rebuild(work)]

    async def _of_a_rebuild(self, work: Unsettled) -> bool:
        """A rebuild for another embedder that got stuck is begun anew: nobody is served from it yet."""
        if work.collection == self.entry.collection_name:
            return False
        await retire(self.deps.ledger, self.deps.collections, self.book_id, work.collection)
        self.note("stuck change", f"number {work.number} is dropped; begin anew: {self._command()}", mended=True)
        return True

    async def _remnants(self, index: ChunkIndex) -> None:
        if remnants := await index.remnants(self.book_id, set(), drop=self.mend):
            detail = f"{remnants} of versions that readers no longer see"
            self.note("outdated points", detail, mended=self.mend)

    async def _lessons(self, index: ChunkIndex, stuck: Sequence[Unsettled]) -> None:
        """Compare; what is wrong is replaced in place, and only then is dropped what no lesson has."""
        records = await self.deps.ledger.records(self.book_id, self.entry.collection_name)
        where = ChunkFilter(book_id=self.book_id)
        held = {str(stored.chunk.id): stored for stored in await index.read(lambda view: view.chunks(where))}
        orphans, damaged = await asyncio.to_thread(_compare, held, records)
        trouble = None
        if self.mend and (damaged or stuck):
            trouble = await self._read_again({record.source_file for record in damaged}, stuck)
        elif self.mend and orphans:
            await _drop(self.deps, self.entry, index, orphans)
        mended = self.mend and trouble is None
        for work in stuck if self.mend else ():
            detail = f"number {work.number} is dropped, and its lessons are read again"
            self.note("stuck change", trouble or detail, mended=mended)
        if orphans:
            self.note("orphan chunks", f"{len(orphans)} that no lesson has", mended=mended)
        for record in damaged:
            detail = f"{record.source_file}: {trouble}" if trouble else record.source_file
            self.note("damaged lesson", detail, mended=mended)

    async def _read_again(self, doubted: set[str], stuck: Sequence[Unsettled]) -> str | None:
        """Ingest the book as if these files, and those that stuck changes are about, had been edited. Says why where
        that cannot be done; then nothing has been taken away, and the changes stay written down."""
        deps, entry = self.deps, self.entry
        if entry.collection_name != deps.collections.current.index.collection:
            return f"it is of another embedder; run: {self._command()}"
        for intent in (intent for work in stuck for intent in work.intents):
            doubted |= {*intent.retired, *(record.source_file for record in intent.records)}
        try:
            await reread_files(deps, Path(entry.source), self.book_id, frozenset(doubted))
        except Exception as exc:  # noqa: BLE001  # the same: an engine that refuses is a finding, not the end
            return f"it could not be read again ({_said(exc)}); run: lectern ingest PATH --book {self.book_id}"
        await forget_changes(deps.ledger, self.book_id, entry.collection_name)
        return None

    def _command(self) -> str:
        return f"lectern ingest {self.entry.source} --book {self.book_id}"


def _said(exc: Exception) -> str:
    return str(exc) if isinstance(exc, LecternError) else f"{type(exc).__name__}: {exc}"


def _compare(
    held: dict[str, StampedChunk], records: dict[str, IngestionRecord]
) -> tuple[list[str], list[IngestionRecord]]:
    """Chunks that no record names, and records whose chunks are not, or not all, as they were put there."""
    named = {chunk for record in records.values() for chunk in record.chunk_ids}
    orphans = [chunk for chunk in held if chunk not in named]
    damaged = []
    for record in records.values():
        found = [held[chunk].chunk for chunk in record.chunk_ids if chunk in held]
        if len(found) != record.chunk_count or chunks_digest(found) != record.payload_digest:
            damaged.append(record)
    return orphans, damaged


async def _drop(deps: IngestDeps, entry: BookEntry, index: ChunkIndex, chunks: Sequence[str]) -> None:
    gone = Change(put=(), drop=tuple(chunks), language=entry.manifest.language)
    await change(deps.ledger, index, entry.manifest.book_id, [Intent(change=gone, records=(), retired=())])


async def _examine_vectors(deps: IngestDeps) -> AsyncIterator[Finding]:
    """The cache keeps vectors of texts that no book has any more. Only mending looks for them: it means reading all."""
    used: set[str] = set()
    try:
        for entry in await deps.ledger.books():
            used |= await _used(await deps.collections.serving(entry), entry.manifest.book_id)
            if entry.collection_name != deps.collections.current.index.collection:
                used |= await _used(deps.collections.current, entry.manifest.book_id)  # an unfinished rebuild
    except LecternError:
        return  # an embedder that cannot run here may need its vectors elsewhere
    if deps.locks.holds_any:
        return  # a job has vectors in the cache whose chunks are still to come
    pruned = await deps.vectors.prune(used)
    if pruned:
        yield Finding(kind="unused vectors", book_id=None, detail=f"{pruned} that no chunk uses", mended=True)


async def _used(serving: Serving, book_id: str) -> set[str]:
    """The names of all vectors that a book's chunks have in a collection."""
    where = ChunkFilter(book_id=book_id)
    held = await serving.index.read(lambda view: view.chunks(where))

    def names() -> set[str]:
        found: set[str] = set()
        for stored in held:
            windows = serving.embedder.passages(stored.chunk.trail, stored.chunk.text)
            found |= {vector_key(serving.embedder.fingerprint, window) for window in windows}
        return found

    return await asyncio.to_thread(names)
