"""The doctor: compares the index with the ledger, chunk by chunk and field by field, and can mend the differences.
Chunks that no lesson has are dropped; damaged lessons are read again from the book's folder and replaced. It holds the
lock of a book while it compares, because a running job would look like damage."""

from __future__ import annotations

import asyncio
import logging
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

log = logging.getLogger("lectern.doctor")

Kind = Literal[
    "orphan chunks",
    "outdated points",
    "damaged lesson",
    "term counts",
    "stuck change",
    "lost collection",
    "collection",
    "unknown book",
    "left-over collection",
    "unused vectors",
    "not examined",
    "damaged database",
    "model list",  # these are about the language model, which the doctor tries too
    "model answer",
    "model markers",
    "model stream",
    "model tools",
]
Severity = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference between index and ledger, and whether it was mended; or what the language model can do."""

    kind: Kind
    book_id: str | None
    detail: str
    mended: bool = False
    severity: Severity = "problem"


async def examine(deps: IngestDeps, *, mend: bool) -> AsyncIterator[Finding]:
    """Every difference between index and ledger; with `mend` each is mended if that is possible."""
    books = {entry.manifest.book_id for entry in await deps.ledger.books()}
    books |= {work.book_id for work in await deps.ledger.unsettled()}
    all_mended = True
    async for finding in _examine_collection(deps, mend=mend):
        yield finding
    try:
        books |= await _book_ids_in_index(deps)
    except LecternError as exc:  # each book may still have findings
        all_mended = False
        yield Finding(kind="not examined", book_id=None, detail=str(exc))
    for book_id in sorted(books):
        for finding in await _examine_book(deps, book_id, mend=mend):
            all_mended = all_mended and finding.mended
            yield finding
    if mend and all_mended:  # the vector of a lost chunk looks unused, and is needed to mend its lesson
        async for finding in _examine_vectors(deps):
            yield finding


async def _examine_collection(deps: IngestDeps, *, mend: bool) -> AsyncIterator[Finding]:
    """What the current collection has otherwise than it is configured. A missing index keeps readers out; the rest is
    for the operator to know."""
    index = deps.collections.current.index
    try:
        for fault in await index.faults(mend=mend):
            severity: Severity = "problem" if "missing" in fault else "note"
            yield Finding(kind="collection", book_id=None, detail=fault, mended=mend, severity=severity)
    except LecternError as exc:
        yield Finding(kind="not examined", book_id=None, detail=str(exc))


async def _book_ids_in_index(deps: IngestDeps) -> frozenset[str]:
    """The books that have chunks in the current collection, whether the ledger knows them or not."""
    return await deps.collections.current.index.read(lambda view: view.book_ids())


async def _examine_book(deps: IngestDeps, book_id: str, *, mend: bool) -> list[Finding]:
    """The findings of one book. An error is one of them, so that the next book is examined too."""
    findings: list[Finding] = []
    try:
        async with deps.locks.hold(book_id):
            entry = await deps.ledger.book(book_id)  # read again: it may have been added or removed meanwhile
            if entry is None:
                findings += await _examine_unknown_book(deps, book_id, mend=mend)
            else:
                await _Examination(deps, entry, findings, mend=mend).run()
    except Exception as exc:  # noqa: BLE001  # the operator reads it in the finding
        findings.append(Finding(kind="not examined", book_id=book_id, detail=_message_of(exc)))
    return findings


async def _examine_unknown_book(deps: IngestDeps, book_id: str, *, mend: bool) -> list[Finding]:
    """Chunks of a book that the ledger does not know, which no reader is served."""
    in_index = {deps.collections.current.index.collection} if book_id in await _book_ids_in_index(deps) else set()
    collections = in_index | await collections_of(deps.ledger, book_id)
    if mend:
        for collection in collections:
            await retire(deps.ledger, deps.collections, book_id, collection)
    detail = "the index holds it, the ledger does not know it"
    return [Finding(kind="unknown book", book_id=book_id, detail=detail, mended=mend)] if collections else []


class _Examination:
    """The examination of one book."""

    def __init__(self, deps: IngestDeps, entry: BookEntry, findings: list[Finding], *, mend: bool) -> None:
        self.deps = deps
        self.entry = entry
        self.book_id = entry.manifest.book_id
        self.findings = findings
        self.mend = mend

    def note(self, kind: Kind, detail: str, *, mended: bool) -> None:
        self.findings.append(Finding(kind=kind, book_id=self.book_id, detail=detail, mended=mended))

    async def run(self) -> None:
        await self._left_overs()
        stuck = await self._stuck()
        try:
            index = await self.deps.collections.index(self.entry.collection_name)
        except IndexDamaged as exc:
            self.note("lost collection", f"{exc}; then: {self._command()}", mended=False)
            return
        if not stuck:  # while a change is unfinished, both versions may be needed
            await self._remnants(index)
        before = len(self.findings)
        await self._lessons(index, stuck)
        if all(finding.mended for finding in self.findings[before:]):  # damaged lessons have other terms
            await self._terms(index)
        if self.mend and (entry := await self.deps.ledger.book(self.book_id)):
            await verify(self.deps.ledger, self.deps.collections, entry)

    async def _left_overs(self) -> None:
        """Find collections of the book that neither its readers nor an unfinished rebuild use."""
        collections_in_use = {self.entry.collection_name, self.deps.collections.current.index.collection}
        for collection in sorted(await collections_of(self.deps.ledger, self.book_id) - collections_in_use):
            if self.mend:
                await retire(self.deps.ledger, self.deps.collections, self.book_id, collection)
            detail = f"chunks of an earlier embedder are still in {collection!r}"
            self.note("left-over collection", detail, mended=self.mend)

    async def _stuck(self) -> list[Unsettled]:
        """Find unfinished changes of the book, although no job is running; with `mend`, try to apply them first."""
        waiting = [work for work in await self.deps.ledger.unsettled() if work.book_id == self.book_id]
        if not self.mend or not waiting:
            for work in waiting:
                self.note("stuck change", f"number {work.number} could not be completed", mended=False)
            return waiting
        failures = await recover(self.deps.ledger, self.deps.collections, self.book_id)
        stuck = [failure.work for failure in failures]
        for work in waiting:
            if work.number not in {unsettled.number for unsettled in stuck}:
                self.note("stuck change", f"number {work.number} has been completed now", mended=True)
        return [work for work in stuck if not await self._drop_if_rebuild(work)]

    async def _drop_if_rebuild(self, work: Unsettled) -> bool:
        """Drop a stuck change of a rebuild for another embedder: no reader is served from it yet, so it can start
        again."""
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
        """Compare the book's chunks with its records. Damaged lessons are replaced before chunks that no lesson has are
        dropped."""
        records = await self.deps.ledger.records(self.book_id, self.entry.collection_name)
        where = ChunkFilter(book_id=self.book_id)
        stored_chunks = {str(stored.chunk.id): stored for stored in await index.read(lambda view: view.chunks(where))}
        orphans, damaged = await asyncio.to_thread(_compare, stored_chunks, records)
        failure = None
        if self.mend and (damaged or stuck):
            failure = await self._read_again({record.source_file for record in damaged}, stuck)
        elif self.mend and orphans:
            await _drop(self.deps, self.entry, index, orphans)
        mended = self.mend and failure is None
        for work in stuck if self.mend else ():
            detail = f"number {work.number} is dropped, and its lessons are read again"
            self.note("stuck change", failure or detail, mended=mended)
        if orphans:
            self.note("orphan chunks", f"{len(orphans)} that no lesson has", mended=mended)
        for record in damaged:
            detail = f"{record.source_file}: {failure}" if failure else record.source_file
            self.note("damaged lesson", detail, mended=mended)

    async def _terms(self, index: ChunkIndex) -> None:
        """Compare the term counts, which words are weighed by, with the book's chunks."""
        records = await self.deps.ledger.records(self.book_id, index.collection)
        known_ids = {chunk_id for record in records.values() for chunk_id in record.chunk_ids}
        where, language = ChunkFilter(book_id=self.book_id), self.entry.manifest.language
        stored_chunks = await index.read(lambda view: view.chunks(where))
        chunks = [stored.chunk for stored in stored_chunks if stored.chunk.id in known_ids]
        counts = await asyncio.to_thread(index.count_terms, chunks, language)
        known = await self.deps.ledger.term_counts(self.book_id, index.collection)
        if counts == known or (known is None and not chunks):  # nothing was indexed before an interruption
            return
        if self.mend:
            by_chunk = ((chunk.id, list(index.count_terms([chunk], language))) for chunk in chunks)
            await self.deps.ledger.recount_terms(self.book_id, index.collection, by_chunk)
        self.note("term counts", "in how many chunks a term occurs is not as it was counted", mended=self.mend)

    async def _read_again(self, files: set[str], stuck: Sequence[Unsettled]) -> str | None:
        """Ingest the book as if these files, and those of the stuck changes, had been edited. Returns the reason if
        that fails; then nothing was removed, and the changes stay in the ledger."""
        deps, entry = self.deps, self.entry
        if entry.collection_name != deps.collections.current.index.collection:
            return f"it is of another embedder; run: {self._command()}"
        for intent in (intent for work in stuck for intent in work.intents):
            files |= {*intent.retired, *(record.source_file for record in intent.records)}
        try:
            await reread_files(deps, Path(entry.source), self.book_id, frozenset(files))
        except Exception as exc:  # noqa: BLE001  # an index that refuses is a finding, not the end of the examination
            return f"it could not be read again ({_message_of(exc)}); run: lectern ingest PATH --book {self.book_id}"
        await forget_changes(deps.ledger, self.book_id, entry.collection_name)
        return None

    def _command(self) -> str:
        return f"lectern ingest {self.entry.source} --book {self.book_id}"


def damaged_database(fault: str) -> Finding:
    """The finding of a fault of the database itself, which only a copy can mend."""
    detail = (
        f"{fault}; put a copy of the database back, with the index folder of the same moment. Without one, export the "
        "conversations that can be read, move both to another place and ingest the books again"
    )
    return Finding(kind="damaged database", book_id=None, detail=detail)


def unexamined(exc: Exception) -> Finding:
    """The finding of an examination that could not go on."""
    return Finding(kind="not examined", book_id=None, detail=_message_of(exc))


def _message_of(exc: Exception) -> str:
    """What a finding says of an error. Only the log has the text of a foreign exception, because it may hold addresses
    and paths."""
    if isinstance(exc, LecternError):
        return str(exc)
    log.error("an examination failed", exc_info=exc)
    return f"{type(exc).__name__}; the log has the details, then try again: lectern doctor"


def _compare(
    stored_chunks: dict[str, StampedChunk], records: dict[str, IngestionRecord]
) -> tuple[list[str], list[IngestionRecord]]:
    """Chunks that no record names, and records whose chunks are missing or changed."""
    ledger_ids = {chunk_id for record in records.values() for chunk_id in record.chunk_ids}
    orphans = [chunk_id for chunk_id in stored_chunks if chunk_id not in ledger_ids]
    damaged = []
    for record in records.values():
        chunks = [stored_chunks[chunk_id].chunk for chunk_id in record.chunk_ids if chunk_id in stored_chunks]
        if len(chunks) != record.chunk_count or chunks_digest(chunks) != record.payload_digest:
            damaged.append(record)
    return orphans, damaged


async def _drop(deps: IngestDeps, entry: BookEntry, index: ChunkIndex, chunks: Sequence[str]) -> None:
    removal = Change(put=(), drop=tuple(chunks), language=entry.manifest.language)
    await change(deps.ledger, index, entry.manifest.book_id, [Intent(change=removal, records=(), retired=())])


async def _examine_vectors(deps: IngestDeps) -> AsyncIterator[Finding]:
    """Delete cached vectors of texts that no book has any more. This reads every chunk, so it is done only with
    `mend`."""
    needed_keys: set[str] = set()
    try:
        for entry in await deps.ledger.books():
            needed_keys |= await _vector_keys(await deps.collections.serving(entry), entry.manifest.book_id)
            if entry.collection_name != deps.collections.current.index.collection:
                # an unfinished rebuild
                needed_keys |= await _vector_keys(deps.collections.current, entry.manifest.book_id)
    except LecternError:
        return  # an embedder that cannot run here may need its vectors in another process
    if deps.locks.holds_any:
        return  # a job may have cached vectors whose chunks are not written yet
    pruned = await deps.vectors.prune(needed_keys)
    if pruned:
        yield Finding(kind="unused vectors", book_id=None, detail=f"{pruned} that no chunk uses", mended=True)


async def _vector_keys(serving: Serving, book_id: str) -> set[str]:
    """The cache keys of all vectors of a book's chunks in a collection."""
    where = ChunkFilter(book_id=book_id)
    stored_chunks = await serving.index.read(lambda view: view.chunks(where))

    def read_keys() -> set[str]:
        keys: set[str] = set()
        for stored in stored_chunks:
            windows = serving.embedder.passages(stored.chunk.trail, stored.chunk.text)
            keys |= {vector_key(serving.embedder.fingerprint, window) for window in windows}
        return keys

    return await asyncio.to_thread(read_keys)
