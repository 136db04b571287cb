"""Ingestion, read downward: survey the folder, plan, then batch by batch read, embed and replace. Readers are served
throughout, and whatever is acknowledged survives a kill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from lectern.domain.books import BookEntry, Survey
from lectern.domain.chunks import Change
from lectern.domain.clock import utc_now
from lectern.domain.errors import IndexDamaged, LecternError, SourceError
from lectern.domain.failpoints import reached
from lectern.domain.jobs import Finished, Forecast, Intent, JobEvent, LessonsIndexed, Mode, Plan, Planned, Replacement
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.plan import plan_ingestion, refuse_wrong_book
from lectern.ingestion.replacing import change, collections_of, intent_of, recover, retire, trusted
from lectern.ingestion.report import Tally
from lectern.ingestion.vectors import VectorSource, language_warning
from lectern.ingestion.worker import InProcess, ReadingOrder, ReadReplacement, Worker
from lectern.ports.index import Collections, Serving, VectorCache
from lectern.ports.jobs import BookLocks
from lectern.ports.ledger import Ledger
from lectern.reading.lessons import FileChanged
from lectern.reading.rules import ReadingRules

ROUNDS = 3  # how often a folder is surveyed when files change under our hands


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """What to ingest, and how."""

    folder: Path
    book_id: str | None = None
    mode: Mode = "incremental"
    dry_run: bool = False
    replace: bool = False  # go on although the folder looks like another book
    bound: bool = False  # the folder is a caller's choice, not the operator's
    doubted: frozenset[str] | None = None  # the doctor's: files to read again whatever the ledger says of them
    job_id: int = 0  # of the record, where one is kept
    queued_at: str | None = None  # when that was written


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestDeps:
    """What an ingestion works with."""

    ledger: Ledger
    collections: Collections
    vectors: VectorCache
    rules: ReadingRules
    locks: BookLocks
    worker: Worker = field(default_factory=InProcess)


async def ingest(request: IngestRequest, deps: IngestDeps) -> AsyncIterator[JobEvent]:
    """Bring the index to what the folder says. `Finished` comes last, failed or not; a dry run ends with its plan."""
    found = await survey_folder(request, deps)
    async with deps.locks.alone(found.manifest.book_id):
        async for event in run_ingestion(request, deps, found):
            yield event


async def reread_files(deps: IngestDeps, folder: Path, book_id: str, doubted: frozenset[str]) -> None:
    """For whoever is alone with the book already: read these files again, and whatever else has changed. Nothing is
    taken away before its replacement is there; what no lesson has is swept last."""
    request = IngestRequest(folder=folder, book_id=book_id, doubted=doubted)
    async for _ in run_ingestion(request, deps, await survey_folder(request, deps)):
        pass


async def survey_folder(request: IngestRequest, deps: IngestDeps) -> Survey:
    """The folder as it is now."""
    return await deps.worker.survey(request.folder, request.book_id, deps.rules)


async def run_ingestion(request: IngestRequest, deps: IngestDeps, found: Survey) -> AsyncIterator[JobEvent]:
    """`ingest` for whoever has looked at the folder and is alone with the book."""
    tally = Tally(job_id=request.job_id, book_id=found.manifest.book_id, mode=request.mode, started_at=utc_now())
    tally.queued_at = request.queued_at or tally.queued_at
    try:
        async for event in _rounds(request, deps, found, tally):
            yield event
    except LecternError as exc:
        yield Finished(job=tally.job("failed", str(exc)))
        raise
    if not request.dry_run:
        yield Finished(job=tally.job("completed"))


async def _rounds(request: IngestRequest, deps: IngestDeps, found: Survey, tally: Tally) -> AsyncIterator[JobEvent]:
    """Plan and carry out, again where files changed meanwhile: what was done is done, the rest is planned anew."""
    for rounds_left in reversed(range(ROUNDS)):
        run = await _begin(request, deps, found, tally, patient=rounds_left > 0 and not request.dry_run)
        if request.dry_run:
            forecast = await run.forecast()
            yield Planned(job=tally.job(), plan=run.plan, forecast=forecast)
            return
        yield Planned(job=tally.job(), plan=run.plan)
        reached("ingest.planned")
        try:
            async for event in run.events():
                yield event
        except FileChanged:
            found = await survey_folder(request, deps)
        else:
            return


async def _begin(request: IngestRequest, deps: IngestDeps, found: Survey, tally: Tally, *, patient: bool) -> _Run:
    """Finish what was left half done, plan, and refuse what would wipe the book out."""
    book_id, serving = found.manifest.book_id, deps.collections.current
    for stuck in await recover(deps.ledger, deps.collections, book_id):
        if stuck.work.collection == serving.index.collection and request.doubted is None:
            raise stuck.error  # carried out later, it would undo what is done now
    records = trusted(await deps.ledger.records(book_id, serving.index.collection), request.doubted)
    plan = plan_ingestion(found, records, request.mode)
    entry = await deps.ledger.book(book_id)
    if entry is None and not found.lessons and found.problems:
        first = found.problems[0]
        raise SourceError(f"none of the {found.files_discovered} files can be read; {first.file}: {first.message}")
    if not request.replace:
        known = records
        if entry and entry.collection_name != serving.index.collection:  # the book as readers know it
            known = await deps.ledger.records(book_id, entry.collection_name)
        refuse_wrong_book(found, known, plan_ingestion(found, known, request.mode))
    tally.begin(found, records, plan)
    tally.problems += language_warning(found.manifest, serving.embedder)
    return _Run(request=request, deps=deps, serving=serving, found=found, plan=plan, tally=tally, patient=patient)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One ingestion under way."""

    request: IngestRequest
    deps: IngestDeps
    serving: Serving
    found: Survey
    plan: Plan
    tally: Tally
    patient: bool  # a file that changes while it is read is worth another round

    async def events(self) -> AsyncIterator[JobEvent]:
        await self._save_book(finished=False)
        total = sum(_files(replacement) for replacement in self.plan.replacements)
        done = 0
        async for read in self._batches():
            reached("ingest.read")
            await self._replace(read)
            reached("ingest.replaced")
            done += sum(_files(one.replacement) for one in read)
            yield LessonsIndexed(job=self.tally.job(), done=done, total=total)
        if self.request.mode == "recreate" or self.request.doubted is not None:
            await self._sweep()
        await self._save_book(finished=True)
        await self._check()
        await self._retire_others()

    async def forecast(self) -> Forecast:
        """What the plan would do to the chunks; every changed lesson is read, nothing is embedded."""
        before = set(self.tally.after)
        after = set(before)
        async for batch in self._batches():
            for one in batch:
                after -= {chunk for record in one.replacement.retired for chunk in record.chunk_ids}
                after |= {chunk.id for chunk in one.chunks}
                self.tally.problems += [problem for lesson in one.lessons.values() for problem in lesson.problems]
        return Forecast(add=len(after - before), keep=len(after & before), remove=len(before - after))

    async def _batches(self) -> AsyncIterator[list[ReadReplacement]]:
        """Replacements in batches of about as many chunks as the bench takes; each is read when it is asked for."""
        worker, waiting, done = self.deps.worker, self.plan.replacements, 0
        while done < len(waiting):
            order = ReadingOrder(
                folder=self.request.folder,
                manifest=self.found.manifest,
                rules=self.deps.rules,
                replacements=waiting[done : done + worker.batch],  # not all of a large book at every turn
                enough=worker.batch,
                patient=self.patient,
            )
            with self.tally.stage("read"):
                got = await worker.read(order)
            done += got.taken
            self.tally.problems += got.problems
            yield got.read

    async def _replace(self, batch: list[ReadReplacement]) -> None:
        """Embed what is new, then change the index."""
        deps, trust = self.deps, self.request.mode != "recreate"
        vectors = VectorSource(self.serving.embedder, deps.vectors, deps.worker, trust_cache=trust)
        with self.tally.stage("embed"):
            await vectors.prepare([chunk for one in batch for chunk in one.chunks])
        reached("ingest.embedded")
        with self.tally.stage("index"):
            intents = [await self._intent(one, vectors) for one in batch]
            await self.deps.locks.confirm(self.found.manifest.book_id)
            await change(self.deps.ledger, self.serving.index, self.found.manifest.book_id, intents)
        self.tally.embedded += vectors.embedded
        for one in batch:
            self.tally.problems += [problem for lesson in one.lessons.values() for problem in lesson.problems]
        for intent in intents:
            self.tally.changed(intent)

    async def _intent(self, read: ReadReplacement, vectors: VectorSource) -> Intent:
        book_id, ids = self.found.manifest.book_id, [chunk.id for chunk in read.chunks]
        known = {}
        if self.request.mode != "recreate":  # which begins every stamp anew
            known = await self.serving.index.read(lambda view: view.by_ids(book_id, ids))
        await asyncio.sleep(0)  # an index in this process answers without pause; others wait for their turn, too
        return intent_of(read, known, vectors, self.serving.embedder.fingerprint, self.found.manifest.language)

    async def _sweep(self) -> None:
        """After a recreate, or for the doctor, nothing of the book may remain that no lesson has."""
        book_id = self.found.manifest.book_id
        where = ChunkFilter(book_id=book_id)
        held = [stored.chunk.id for stored in await self.serving.index.read(lambda view: view.chunks(where))]
        drop = tuple(chunk for chunk in held if chunk not in self.tally.after)
        reached("ingest.before-sweep")
        if drop:
            sweep = Change(put=(), drop=drop, language=self.found.manifest.language)
            intent = Intent(change=sweep, records=(), retired=())
            await change(self.deps.ledger, self.serving.index, book_id, [intent])

    async def _save_book(self, *, finished: bool) -> None:
        """Remember a new book before its first lesson; let readers go over to a rebuilt one after its last."""
        old = await self.deps.ledger.book(self.found.manifest.book_id)
        if old and not finished and old.collection_name != self.serving.index.collection:
            return  # until the new collection is complete, readers are served from the old one
        full = old.last_full_ingest if old else None
        incremental = old.last_incremental_update if old else None
        if finished and self.request.mode == "incremental":
            incremental = utc_now()
        elif finished:
            full = utc_now()
        source = str(self.request.folder.resolve())
        await self.deps.ledger.save_book(
            BookEntry(
                manifest=self.found.manifest,
                source=source,
                bound=self.request.bound or (old is not None and old.bound and old.source == source),
                fingerprint=self.serving.embedder.fingerprint,
                collection_name=self.serving.index.collection,
                total_chunks=0,  # derived from the lessons whenever it is read
                last_full_ingest=full,
                last_incremental_update=incremental,
            )
        )

    async def _check(self) -> None:
        """An engine that holds something else than it was given is found out here, not by a reader."""
        entry = await self.deps.ledger.book(self.found.manifest.book_id)
        assert entry is not None  # it was saved a moment ago
        if self.request.doubted is None and not await self.deps.collections.verify(entry):
            raise IndexDamaged(
                f"the index does not hold the {entry.total_chunks} chunks of {entry.manifest.book_id!r} it should; "
                "run: lectern doctor --mend"
            )

    async def _retire_others(self) -> None:
        """Once readers have gone over, what another embedder's collection holds of the book is dead weight."""
        book_id = self.found.manifest.book_id
        for collection in await collections_of(self.deps.ledger, book_id):
            if collection != self.serving.index.collection:
                await retire(self.deps.ledger, self.deps.collections, book_id, collection)


def _files(replacement: Replacement) -> int:
    """How many files a replacement is counted as: those that come, or else those that go."""
    return len(replacement.lessons) or len(replacement.retired)
