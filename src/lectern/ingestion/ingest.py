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
from lectern.ingestion.worker import Bench, Here, ReadingOrder, ReadReplacement
from lectern.ports.index import Shelf, Stand, VectorCache
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
class Workshop:
    """What an ingestion works with."""

    ledger: Ledger
    shelf: Shelf
    vectors: VectorCache
    rules: ReadingRules
    locks: BookLocks
    bench: Bench = field(default_factory=Here)


async def ingest(request: IngestRequest, shop: Workshop) -> AsyncIterator[JobEvent]:
    """Bring the index to what the folder says. `Finished` comes last, failed or not; a dry run ends with its plan."""
    found = await look_at(request, shop)
    async with shop.locks.alone(found.manifest.book_id):
        async for event in carry_out(request, shop, found):
            yield event


async def ingest_again(shop: Workshop, folder: Path, book_id: str, doubted: frozenset[str]) -> None:
    """For whoever is alone with the book already: read these files again, and whatever else has changed. Nothing is
    taken away before its replacement is there; what no lesson has is swept last."""
    request = IngestRequest(folder=folder, book_id=book_id, doubted=doubted)
    async for _ in carry_out(request, shop, await look_at(request, shop)):
        pass


async def look_at(request: IngestRequest, shop: Workshop) -> Survey:
    """The folder as it is now."""
    return await shop.bench.survey(request.folder, request.book_id, shop.rules)


async def carry_out(request: IngestRequest, shop: Workshop, found: Survey) -> AsyncIterator[JobEvent]:
    """`ingest` for whoever has looked at the folder and is alone with the book."""
    tally = Tally(job_id=request.job_id, book_id=found.manifest.book_id, mode=request.mode, started_at=utc_now())
    tally.queued_at = request.queued_at or tally.queued_at
    try:
        async for event in _rounds(request, shop, found, tally):
            yield event
    except LecternError as exc:
        yield Finished(job=tally.job("failed", str(exc)))
        raise
    if not request.dry_run:
        yield Finished(job=tally.job("completed"))


async def _rounds(request: IngestRequest, shop: Workshop, found: Survey, tally: Tally) -> AsyncIterator[JobEvent]:
    """Plan and carry out, again where files changed meanwhile: what was done is done, the rest is planned anew."""
    for rounds_left in reversed(range(ROUNDS)):
        run = await _begin(request, shop, found, tally, patient=rounds_left > 0 and not request.dry_run)
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
            found = await look_at(request, shop)
        else:
            return


async def _begin(request: IngestRequest, shop: Workshop, found: Survey, tally: Tally, *, patient: bool) -> _Run:
    """Finish what was left half done, plan, and refuse what would wipe the book out."""
    book_id, stand = found.manifest.book_id, shop.shelf.current
    for stuck in await recover(shop.ledger, shop.shelf, book_id):
        if stuck.work.collection == stand.index.collection and request.doubted is None:
            raise stuck.error  # carried out later, it would undo what is done now
    records = trusted(await shop.ledger.records(book_id, stand.index.collection), request.doubted)
    plan = plan_ingestion(found, records, request.mode)
    entry = await shop.ledger.book(book_id)
    if entry is None and not found.lessons and found.problems:
        first = found.problems[0]
        raise SourceError(f"none of the {found.files_discovered} files can be read; {first.file}: {first.message}")
    if not request.replace:
        known = records
        if entry and entry.collection_name != stand.index.collection:  # the book as readers know it
            known = await shop.ledger.records(book_id, entry.collection_name)
        refuse_wrong_book(found, known, plan_ingestion(found, known, request.mode))
    tally.begin(found, records, plan)
    tally.problems += language_warning(found.manifest, stand.embedder)
    return _Run(request=request, shop=shop, stand=stand, found=found, plan=plan, tally=tally, patient=patient)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One ingestion under way."""

    request: IngestRequest
    shop: Workshop
    stand: Stand
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
        bench, waiting, done = self.shop.bench, self.plan.replacements, 0
        while done < len(waiting):
            order = ReadingOrder(
                folder=self.request.folder,
                manifest=self.found.manifest,
                rules=self.shop.rules,
                replacements=waiting[done : done + bench.batch],  # not all of a large book at every turn
                enough=bench.batch,
                patient=self.patient,
            )
            with self.tally.stage("read"):
                got = await bench.read(order)
            done += got.taken
            self.tally.problems += got.problems
            yield got.read

    async def _replace(self, batch: list[ReadReplacement]) -> None:
        """Embed what is new, then change the index."""
        shop, trust = self.shop, self.request.mode != "recreate"
        vectors = VectorSource(self.stand.embedder, shop.vectors, shop.bench, trust_cache=trust)
        with self.tally.stage("embed"):
            await vectors.prepare([chunk for one in batch for chunk in one.chunks])
        reached("ingest.embedded")
        with self.tally.stage("index"):
            intents = [await self._intent(one, vectors) for one in batch]
            await self.shop.locks.confirm(self.found.manifest.book_id)
            await change(self.shop.ledger, self.stand.index, self.found.manifest.book_id, intents)
        self.tally.embedded += vectors.embedded
        for one in batch:
            self.tally.problems += [problem for lesson in one.lessons.values() for problem in lesson.problems]
        for intent in intents:
            self.tally.changed(intent)

    async def _intent(self, read: ReadReplacement, vectors: VectorSource) -> Intent:
        book_id, ids = self.found.manifest.book_id, [chunk.id for chunk in read.chunks]
        known = {}
        if self.request.mode != "recreate":  # which begins every stamp anew
            known = await self.stand.index.read(lambda view: view.by_ids(book_id, ids))
        await asyncio.sleep(0)  # an index in this process answers without pause; others wait for their turn, too
        return intent_of(read, known, vectors, self.stand.embedder.fingerprint, self.found.manifest.language)

    async def _sweep(self) -> None:
        """After a recreate, or for the doctor, nothing of the book may remain that no lesson has."""
        book_id = self.found.manifest.book_id
        where = ChunkFilter(book_id=book_id)
        held = [stored.chunk.id for stored in await self.stand.index.read(lambda view: view.chunks(where))]
        drop = tuple(chunk for chunk in held if chunk not in self.tally.after)
        reached("ingest.before-sweep")
        if drop:
            sweep = Change(put=(), drop=drop, language=self.found.manifest.language)
            intent = Intent(change=sweep, records=(), retired=())
            await change(self.shop.ledger, self.stand.index, book_id, [intent])

    async def _save_book(self, *, finished: bool) -> None:
        """Remember a new book before its first lesson; let readers go over to a rebuilt one after its last."""
        old = await self.shop.ledger.book(self.found.manifest.book_id)
        if old and not finished and old.collection_name != self.stand.index.collection:
            return  # until the new collection is complete, readers are served from the old one
        full = old.last_full_ingest if old else None
        incremental = old.last_incremental_update if old else None
        if finished and self.request.mode == "incremental":
            incremental = utc_now()
        elif finished:
            full = utc_now()
        source = str(self.request.folder.resolve())
        await self.shop.ledger.save_book(
            BookEntry(
                manifest=self.found.manifest,
                source=source,
                bound=self.request.bound or (old is not None and old.bound and old.source == source),
                fingerprint=self.stand.embedder.fingerprint,
                collection_name=self.stand.index.collection,
                total_chunks=0,  # derived from the lessons whenever it is read
                last_full_ingest=full,
                last_incremental_update=incremental,
            )
        )

    async def _check(self) -> None:
        """An engine that holds something else than it was given is found out here, not by a reader."""
        entry = await self.shop.ledger.book(self.found.manifest.book_id)
        assert entry is not None  # it was saved a moment ago
        if self.request.doubted is None and not await self.shop.shelf.verify(entry):
            raise IndexDamaged(
                f"the index does not hold the {entry.total_chunks} chunks of {entry.manifest.book_id!r} it should; "
                "run: lectern doctor --mend"
            )

    async def _retire_others(self) -> None:
        """Once readers have gone over, what another embedder's collection holds of the book is dead weight."""
        book_id = self.found.manifest.book_id
        for collection in await collections_of(self.shop.ledger, book_id):
            if collection != self.stand.index.collection:
                await retire(self.shop.ledger, self.shop.shelf, book_id, collection)


def _files(replacement: Replacement) -> int:
    """How many files a replacement is counted as: those that come, or else those that go."""
    return len(replacement.lessons) or len(replacement.retired)
