"""The workbench of a server: one process, spawned when it is first needed, that reads folders and embeds passages while
the server answers. It is a guest on the machine (nice), holds nothing that could be lost, and goes when the server
does. Should it die or hang, the job that needed it fails with a reason and the next job gets a new one."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from lectern.domain.books import Survey
from lectern.domain.chunks import Vector
from lectern.domain.errors import WorkerLost
from lectern.ingestion.worker import BatchRead, InProcess, Passage, ReadingOrder, cut, read_batch
from lectern.ports.index import Embedder
from lectern.reading.rules import ReadingRules
from lectern.reading.survey import survey

BATCH_CHUNKS = 96  # between two commits: what stays in the server is done in small steps
TEXTS = 32  # embedded in one call: about half a second, so that a cancelled job does not keep the next one waiting
NICE = 10  # whoever asks the server something goes first
LONGEST = 900.0  # seconds that one call may take; far above a survey of ten thousand files
UNSTARTED = "the process that reads and embeds cannot be started; the server's log has the details"
GRACE = 5.0  # seconds that a call nobody waits for any more may go on

P = ParamSpec("P")
T = TypeVar("T")


class Subprocess:
    """Does the heavy part of ingestions in a process of its own; `portable` says which embedders can go there."""

    batch = BATCH_CHUNKS

    def __init__(self, portable: Callable[[Embedder], bool]) -> None:
        self._portable = portable
        self._here = InProcess()
        self._pool: ProcessPoolExecutor | None = None
        self._process = 0  # its id, once it has begun
        self._opening = asyncio.Lock()
        self._waiting: set[Future[Any]] = set()
        self._ended_for: Future[Any] | None = None  # the step because of which we killed the last worker

    @property
    def process(self) -> int:
        """The worker's process id; 0 while there is none."""
        return self._process

    async def survey(self, folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
        """Survey a folder."""
        return await self._do(_survey, folder, book_id, rules)

    async def read(self, order: ReadingOrder) -> BatchRead:
        """Read lessons and cut them into chunks."""
        return await self._do(read_batch, order)

    async def windows(self, embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
        """The texts that are embedded for each passage."""
        if not self._portable(embedder):
            return await self._here.windows(embedder, passages)
        return await self._do(cut, embedder, passages)

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """One vector a text; an embedder that only waits for a provider does that in the server."""
        if not self._portable(embedder):
            return await self._here.embed(embedder, texts)
        vectors: list[Vector] = []
        for start in range(0, len(texts), TEXTS):
            vectors += await self._do(_embed, embedder, texts[start : start + TEXTS])
        return vectors

    async def close(self) -> None:
        """End the process; a call that is under way is broken off."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._waiting:
            self._kill()
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        self._process = 0

    async def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        pool, future = await self._submit(partial(_portably, work, *args, **kwargs))
        try:
            async with asyncio.timeout(LONGEST):
                return await asyncio.wrap_future(future)
        except BrokenProcessPool as exc:
            self._forget(pool)
            if self._ended_for not in (None, future):  # killed for another's step, before this one's turn came
                return await self._do(work, *args, **kwargs)
            raise WorkerLost(
                "the process that reads and embeds ended unexpectedly (was it killed, or out of memory?); "
                "what was finished is kept, start the ingestion again"
            ) from exc
        except TimeoutError as exc:
            self._end_if_stuck(pool, future)
            raise WorkerLost(
                f"the process that reads and embeds was busy with one step for {LONGEST:g} s and was ended; "
                "look for a file of unusual size or shape"
            ) from exc
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(GRACE, self._end_if_stuck, pool, future)
            raise

    async def _submit(self, work: Callable[[], T]) -> tuple[ProcessPoolExecutor, Future[T]]:
        """Hand a step over; to a new process where the last one died while it had nothing to do."""
        for tries_left in (1, 0):
            pool = await self._open()
            try:
                future = pool.submit(work)
            except BrokenProcessPool:
                self._forget(pool)
                if not tries_left:
                    raise WorkerLost(UNSTARTED) from None
            else:
                self._waiting.add(future)
                future.add_done_callback(self._waiting.discard)
                return pool, future
        raise AssertionError("the last try returns or raises")

    async def _open(self) -> ProcessPoolExecutor:
        async with self._opening:
            if self._pool is None:
                # Spawned, not forked: a server has threads, and a fork of it could find their locks held for ever.
                spawn = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_settle_in)
                self._ended_for = None
            pool = self._pool
            if not self._process:
                try:
                    self._process = await asyncio.to_thread(lambda: pool.submit(os.getpid).result())
                except BrokenProcessPool as exc:
                    self._forget(pool)
                    raise WorkerLost(UNSTARTED) from exc
            return pool

    def _end_if_stuck(self, pool: ProcessPoolExecutor, future: Future[Any]) -> None:
        """A step that hangs must not keep the next job waiting because nobody waits for it any more."""
        if pool is self._pool and not future.done():
            self._ended_for = future
            self._kill()
            self._forget(pool)

    def _kill(self) -> None:
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)

    def _forget(self, pool: ProcessPoolExecutor) -> None:
        if self._pool is pool:
            self._pool, self._process = None, 0
            pool.shutdown(wait=False)


def _settle_in() -> None:
    """In the worker: give way to the server, leave Ctrl-C to it, and go when it has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICE)
    server = multiprocessing.parent_process()
    assert server is not None  # we were spawned

    def follow() -> None:
        server.join()
        os._exit(1)  # nothing here is worth keeping

    threading.Thread(target=follow, daemon=True).start()


def _portably(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """In the worker: an error that does not survive the journey would look like the worker's death."""
    try:
        return work(*args, **kwargs)
    except Exception as exc:
        try:
            pickle.loads(pickle.dumps(exc))  # noqa: S301  # our own bytes of a moment ago
        except Exception:  # noqa: BLE001  # whatever it holds that cannot travel
            raise RuntimeError(f"{type(exc).__name__}: {exc}") from None
        raise


def _survey(folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
    return survey(folder, book_id=book_id, rules=rules)


def _embed(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    return asyncio.run(embedder.embed(texts, purpose="passage"))
