"""Ingestion, read downward: survey the folder, plan, then read, embed and replace batch by batch. Readers are served
all the time. A batch that was reported as indexed survives a kill."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lectern.domain.books import BookEntry, Survey
from lectern.domain.chunks import Change
from lectern.domain.clock import utc_now
from lectern.domain.errors import IndexDamaged, LecternError, SourceError
from lectern.domain.failpoints import reached
from lectern.domain.jobs import (
    Finished,
    Forecast,
    Intent,
    JobEvent,
    LessonsIndexed,
    Mode,
    Plan,
    Planned,
    Replacement,
    Working,
)
from lectern.domain.scope import ChunkFilter
from lectern.domain.tracing import UNTRACED
from lectern.ingestion.languages import language_warning
from lectern.ingestion.outages import NO_PATIENCE, Outage, Patience
from lectern.ingestion.plan import plan_ingestion, refuse_wrong_book, without_done
from lectern.ingestion.replacing import change, collections_of, intent_of, recover, retire, without_digests
from lectern.ingestion.report import JobProgress
from lectern.ingestion.vectors import StepSize, VectorSource
from lectern.ingestion.worker import InProcess, ReadingOrder, ReadReplacement, Worker
from lectern.ports.index import Collections, Serving, VectorCache
from lectern.ports.jobs import BookLocks
from lectern.ports.ledger import Ledger
from lectern.ports.tracing import Tracer
from lectern.reading.chunking import ReadingRules
from lectern.reading.lessons import FileChanged

MAX_SURVEYS = 3  # of one ingestion; a new survey is made if a file changes while it is read


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestRequest:
    """What to ingest, and how."""

    folder: Path
    book_id: str | None = None
    mode: Mode = "incremental"
    dry_run: bool = False
    replace: bool = False  # continue even if the folder looks like another book
    patience: Patience = NO_PATIENCE  # with servers that do not answer
    bound: bool = False  # a caller named the folder, not the operator
    reread: frozenset[str] | None = None  # set by the doctor: files to read again even if they are unchanged
    job_id: int = 0  # of the stored job, if there is one
    queued_at: str | None = None  # of the stored job
    started_at: str | None = None  # of the stored job, if it runs already


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestDeps:
    """What an ingestion works with."""

    ledger: Ledger
    collections: Collections
    vectors: VectorCache
    rules: ReadingRules
    locks: BookLocks
    worker: Worker = field(default_factory=InProcess)
    tracer: Tracer = UNTRACED


async def ingest(request: IngestRequest, deps: IngestDeps) -> AsyncIterator[JobEvent]:
    """Make the index hold what the folder holds. `Finished` is the last event, failed or not; a dry run ends with its
    plan."""
    survey = await survey_folder(request, deps)
    async with deps.locks.hold(survey.manifest.book_id):
        async for event in run_ingestion(request, deps, survey):
            yield event


async def reread_files(deps: IngestDeps, folder: Path, book_id: str, files: frozenset[str]) -> None:
    """Read these files again, and every other file that changed. The caller holds the lock of the book. No chunk is
    removed before its replacement is there; chunks that no lesson has are removed last."""
    request = IngestRequest(folder=folder, book_id=book_id, reread=files)
    async for _ in run_ingestion(request, deps, await survey_folder(request, deps)):
        pass


async def survey_folder(request: IngestRequest, deps: IngestDeps) -> Survey:
    """The folder as it is now."""
    return await deps.worker.survey(request.folder, request.book_id, deps.rules)


async def run_ingestion(request: IngestRequest, deps: IngestDeps, survey: Survey) -> AsyncIterator[JobEvent]:
    """Ingest a folder that was surveyed. The caller holds the lock of the book. `Finished` is the last event, except in
    a dry run."""
    progress = JobProgress(
        job_id=request.job_id,
        book_id=survey.manifest.book_id,
        mode=request.mode,
        started_at=request.started_at or utc_now(),
    )
    progress.queued_at = request.queued_at or progress.queued_at
    try:
        async for event in _rounds(request, deps, survey, progress):
            yield event
    except LecternError as exc:
        yield Finished(job=progress.job("failed", str(exc)))
        raise
    except asyncio.CancelledError:
        yield Finished(job=progress.job("cancelled"))  # with what was applied after the last event
        raise
    if not request.dry_run:
        yield Finished(job=progress.job("completed"))


async def _rounds(
    request: IngestRequest, deps: IngestDeps, survey: Survey, progress: JobProgress
) -> AsyncIterator[JobEvent]:
    """Plan and apply the plan; what was indexed stays. If a file changes meanwhile, survey and plan again. If a server
    that is needed does not answer, wait, and plan what is left."""
    surveys, is_planned, outage = 1, False, Outage(request.patience)
    last: JobEvent | None = None
    while True:
        raise_on_change = surveys < MAX_SURVEYS and not request.dry_run
        try:
            async for event in _round(request, deps, survey, progress, raise_on_change=raise_on_change):
                if isinstance(event, LessonsIndexed):
                    outage.end()
                    progress.waiting = None
                if not (isinstance(event, Planned) and is_planned):  # the plan of what is left is no news
                    last = event
                    yield event
                is_planned = is_planned or isinstance(event, Planned)
        except FileChanged:
            survey, is_planned = await survey_folder(request, deps), False
            surveys += 1
        except LecternError as exc:
            wait = outage.wait_seconds(exc)
            progress.waiting = (outage.since or "", outage.reason or "")
            yield _waiting(progress, last)
            await asyncio.sleep(wait)
        else:
            return


def _waiting(progress: JobProgress, last: JobEvent | None) -> Working:
    """That the run waits, and how far it has come."""
    if isinstance(last, Working | LessonsIndexed):
        return Working(job=progress.job(), stage="read", done=last.done, total=last.total, share=last.share)
    return Working(job=progress.job(), stage="read", done=0, total=0, share=0.0)


async def _round(
    request: IngestRequest, deps: IngestDeps, survey: Survey, progress: JobProgress, *, raise_on_change: bool
) -> AsyncIterator[JobEvent]:
    run = await _begin(request, deps, survey, progress, raise_on_change=raise_on_change)
    if request.dry_run:
        async for event in run.forecast():
            yield event
        return
    yield Planned(job=progress.job(), plan=run.plan)
    reached("ingest.planned")
    async for event in run.events():
        yield event


async def _begin(
    request: IngestRequest, deps: IngestDeps, survey: Survey, progress: JobProgress, *, raise_on_change: bool
) -> _Run:
    """Apply unfinished changes, plan, and refuse a plan that would remove most of the book."""
    book_id, serving = survey.manifest.book_id, deps.collections.current
    for stuck in await recover(deps.ledger, deps.collections, book_id):
        if stuck.work.collection == serving.index.collection and request.reread is None:
            raise stuck.error  # applied later, it would undo the changes of this ingestion
    records = without_digests(await deps.ledger.records(book_id, serving.index.collection), request.reread)
    plan = plan_ingestion(survey, records, request.mode)
    entry = await deps.ledger.book(book_id)
    if entry is None and not survey.lessons and survey.problems:
        problem = survey.problems[0]
        raise SourceError(f"none of the {survey.files_discovered} files can be read; {problem.file}: {problem.message}")
    if not request.replace:
        visible_records = records
        if entry and entry.collection_name != serving.index.collection:  # the book as readers see it
            visible_records = await deps.ledger.records(book_id, entry.collection_name)
        refuse_wrong_book(survey, visible_records, plan_ingestion(survey, visible_records, request.mode))
    progress.begin(survey, records, plan)
    plan = without_done(plan, records, progress.processed)
    progress.problems += language_warning(survey.manifest, serving.embedder)
    return _Run(
        request=request,
        deps=deps,
        serving=serving,
        survey=survey,
        plan=plan,
        progress=progress,
        raise_on_change=raise_on_change,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One round of an ingestion, with its plan."""

    request: IngestRequest
    deps: IngestDeps
    serving: Serving
    survey: Survey
    plan: Plan
    progress: JobProgress
    raise_on_change: bool  # so that the folder is surveyed again; in the last round the file is skipped
    step: StepSize = field(default_factory=StepSize)

    async def events(self) -> AsyncIterator[JobEvent]:
        if self.plan.replacements:
            await self.serving.index.check_room()  # before anything is stored or embedded
        await self._save_book(finished=False)
        files_indexed = 0
        yield self._working("read", files_indexed)
        async for batch in self._batches():
            reached("ingest.read")
            await self.serving.index.check_room()
            files_read = sum(_files(read.replacement) for read in batch)
            vectors = VectorSource(
                self.serving.embedder,
                self.deps.vectors,
                self.deps.worker,
                self.step,
                trust_cache=self.request.mode != "recreate",
            )
            embedded_before = self.progress.embedded
            with self.progress.stage("embed"):
                async for share in vectors.prepare([chunk for read in batch for chunk in read.chunks]):
                    self.progress.embedded = embedded_before + vectors.embedded
                    yield self._working("embed", files_indexed, share * files_read)
            reached("ingest.embedded")
            await self._replace(batch, vectors)
            reached("ingest.replaced")
            files_indexed += files_read
            working = self._working("read", files_indexed)
            yield LessonsIndexed(job=working.job, done=working.done, total=working.total)
        if self.request.mode == "recreate" or self.request.reread is not None:
            await self._sweep()
        await self._save_book(finished=True)
        await self._check()
        await self._retire_other_collections()

    async def forecast(self) -> AsyncIterator[JobEvent]:
        """What the plan would do to the chunks; the last event has it. Every changed lesson is read, and nothing is
        embedded."""
        before = set(self.progress.after)
        after = set(before)
        files_read = 0
        yield self._working("read", files_read)
        async for batch in self._batches():
            files_read += sum(_files(read.replacement) for read in batch)
            yield self._working("read", files_read)
            for read in batch:
                after -= {chunk for record in read.replacement.retired for chunk in record.chunk_ids}
                after |= {chunk.id for chunk in read.chunks}
                self.progress.problems += [problem for lesson in read.lessons.values() for problem in lesson.problems]
        forecast = Forecast(add=len(after - before), keep=len(after & before), remove=len(before - after))
        yield Planned(job=self.progress.job(), plan=self.plan, forecast=forecast)

    def _working(self, stage: Literal["read", "embed"], done: int, begun: float = 0.0) -> Working:
        """How far the run is: how many files are done, and how many more the texts amount to that were embedded."""
        total = sum(_files(replacement) for replacement in self.plan.replacements)
        share = (done + begun) / total if total else 1.0
        return Working(job=self.progress.job(), stage=stage, done=done, total=total, share=share)

    async def _batches(self) -> AsyncIterator[list[ReadReplacement]]:
        """Replacements in batches of about as many chunks as the worker takes; each batch is read when it is needed."""
        worker, replacements, position = self.deps.worker, self.plan.replacements, 0
        while position < len(replacements):
            order = ReadingOrder(
                folder=self.request.folder,
                manifest=self.survey.manifest,
                rules=self.deps.rules,
                replacements=replacements[position : position + worker.batch],  # not the whole book for every batch
                enough=worker.batch,
                raise_on_change=self.raise_on_change,
            )
            with self.progress.stage("read"):
                result = await worker.read(order)
            position += result.consumed
            self.progress.problems += result.problems
            yield result.replacements

    async def _replace(self, batch: list[ReadReplacement], vectors: VectorSource) -> None:
        """Change the index, with vectors that are prepared."""
        book_id, count_change = self.survey.manifest.book_id, self.progress.count_change
        with self.progress.stage("index"):
            intents = [await self._intent(read, vectors) for read in batch]
            await self.deps.locks.confirm(book_id)
            self.progress.applying = intents
            await change(self.deps.ledger, self.serving.index, book_id, intents, applied=count_change)
            self.progress.applying = []
        for read in batch:
            self.progress.problems += [problem for lesson in read.lessons.values() for problem in lesson.problems]

    async def _intent(self, read: ReadReplacement, vectors: VectorSource) -> Intent:
        book_id, ids = self.survey.manifest.book_id, [chunk.id for chunk in read.chunks]
        stored = {}
        if self.request.mode != "recreate":  # which starts every stamp again
            stored = await self.serving.index.read(lambda view: view.by_ids(book_id, ids))
        await asyncio.sleep(0)  # an index in this process never yields to other tasks
        return intent_of(read, stored, vectors, self.serving, self.survey.manifest.language)

    async def _sweep(self) -> None:
        """Remove the chunks that no lesson has, after a recreate or for the doctor."""
        book_id = self.survey.manifest.book_id
        where = ChunkFilter(book_id=book_id)
        chunk_ids = [stored.chunk.id for stored in await self.serving.index.read(lambda view: view.chunks(where))]
        drop = tuple(chunk_id for chunk_id in chunk_ids if chunk_id not in self.progress.after)
        reached("ingest.before-sweep")
        if drop:
            sweep = Change(put=(), drop=drop, language=self.survey.manifest.language)
            intent = Intent(change=sweep, records=(), retired=())
            await change(self.deps.ledger, self.serving.index, book_id, [intent])

    async def _save_book(self, *, finished: bool) -> None:
        """Store the book: a new one before its first lesson, a rebuilt one after its last, so that readers then switch
        to it."""
        old = await self.deps.ledger.book(self.survey.manifest.book_id)
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
                manifest=self.survey.manifest,
                source=source,
                bound=self.request.bound or (old is not None and old.bound and old.source == source),
                fingerprint=self.serving.embedder.fingerprint,
                collection_name=self.serving.index.collection,
                total_chunks=0,  # counted from the lessons when it is read
                last_full_ingest=full,
                last_incremental_update=incremental,
            )
        )

    async def _check(self) -> None:
        """Raise if the index does not hold what was written, before a reader notices."""
        entry = await self.deps.ledger.book(self.survey.manifest.book_id)
        assert entry is not None  # it was saved a moment ago
        if self.request.reread is None and not await self.deps.collections.verify(entry):
            raise IndexDamaged(
                f"the index does not hold the {entry.total_chunks} chunks of {entry.manifest.book_id!r} it should; "
                "run: lectern doctor --mend"
            )

    async def _retire_other_collections(self) -> None:
        """Remove the book from the collections of other embedders: its readers are served from this one now."""
        book_id = self.survey.manifest.book_id
        for collection in await collections_of(self.deps.ledger, book_id):
            if collection != self.serving.index.collection:
                await retire(self.deps.ledger, self.deps.collections, book_id, collection)


def _files(replacement: Replacement) -> int:
    """How many files a replacement counts as: its new files, or else its old ones."""
    return len(replacement.lessons) or len(replacement.retired)
