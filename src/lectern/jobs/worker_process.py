"""The worker of a server: one process, started when it is first needed, that reads folders and embeds passages while
the server answers. It has a low priority (nice), holds no state, and ends with the server. If it dies or hangs, the job
that needed it fails with a reason and the next job gets a new process. It counts the seconds, so that the server
notices one that was stopped."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from ctypes import c_uint64
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from lectern.domain.books import Survey
from lectern.domain.chunks import Vector
from lectern.domain.errors import WorkerLost
from lectern.ingestion.worker import BatchRead, InProcess, Passage, ReadingOrder, cut, read_batch, survey_book
from lectern.ports.index import Embedder
from lectern.reading.chunking import ReadingRules

BATCH_CHUNKS = 96  # between two commits: the server writes them to the index, in small steps
TEXTS_PER_CALL = 32  # about half a second, so that the next job does not wait long for a cancelled one
NICENESS = 10  # requests to the server have priority
MAX_CALL_SECONDS = 900.0  # far more than a survey of ten thousand files takes
SILENT = (
    "the process that reads and embeds gave no sign of life and was ended (was it stopped?); "
    "what was finished is kept, start the ingestion again"
)
START_ERROR = "the process that reads and embeds cannot be started; the server's log has the details"
GRACE_SECONDS = 5.0  # how long a call may continue after it was cancelled
COUNT_SECONDS = 1.0  # between two signs of life of the process
LOOK_SECONDS, MAX_SILENT_LOOKS = 5.0, 9  # the server looks for them so often; without one the process is ended

P = ParamSpec("P")
T = TypeVar("T")


class Subprocess:
    """Does the heavy part of ingestions in a separate process; `portable` says which embedders can be sent to it."""

    batch = BATCH_CHUNKS

    def __init__(self, portable: Callable[[Embedder], bool]) -> None:
        self._portable = portable
        self._in_process = InProcess()
        self._pool: ProcessPoolExecutor | None = None
        self._process = 0  # its id, once it has started
        self._seconds: c_uint64 | None = None  # that the process has counted
        self._opening = asyncio.Lock()
        self._calls: set[Future[Any]] = set()
        self._killed_for: Future[Any] | None = None  # the call because of which the last process was killed

    @property
    def process(self) -> int:
        """The worker's process id; 0 while there is none."""
        return self._process

    async def survey(self, folder: Path, book_id: str | None, rules: ReadingRules) -> Survey:
        """Survey a folder."""
        return await self._call(survey_book, folder, book_id, rules)

    async def read(self, order: ReadingOrder) -> BatchRead:
        """Read lessons and cut them into chunks."""
        return await self._call(read_batch, order)

    async def windows(self, embedder: Embedder, passages: Sequence[Passage]) -> list[tuple[str, ...]]:
        """The texts that are embedded for each passage."""
        if not self._portable(embedder):
            return await self._in_process.windows(embedder, passages)
        return await self._call(cut, embedder, passages)

    async def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text. An embedder that cannot be sent to the process works in the server."""
        if not self._portable(embedder):
            return await self._in_process.embed(embedder, texts)
        vectors: list[Vector] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            vectors += await self._call(_embed, embedder, texts[start : start + TEXTS_PER_CALL])
        return vectors

    async def close(self) -> None:
        """End the process; a running call fails."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if self._calls or not self._process:  # one that has not started holds nothing either
            _kill(pool)
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        self._process = 0

    async def _call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        pool, future = await self._submit(partial(_with_portable_errors, work, *args, **kwargs))
        try:
            async with asyncio.timeout(MAX_CALL_SECONDS):
                return await self._result(pool, future)
        except BrokenProcessPool as exc:
            self._forget(pool)
            if self._killed_for not in (None, future):  # killed because of another call, before this one began
                return await self._call(work, *args, **kwargs)
            raise WorkerLost(
                "the process that reads and embeds ended unexpectedly (was it killed, or out of memory?); "
                "what was finished is kept, start the ingestion again"
            ) from exc
        except TimeoutError as exc:
            self._kill_if_running(pool, future)
            raise WorkerLost(
                f"the process that reads and embeds was busy with one step for {MAX_CALL_SECONDS:g} s and was ended; "
                "look for a file of unusual size or shape"
            ) from exc
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill_if_running, pool, future)
            raise

    async def _result(self, pool: ProcessPoolExecutor, future: Future[T]) -> T:
        """The result of a call. A process that shows no sign of life meanwhile is ended."""
        result, seconds = asyncio.wrap_future(future), self._seconds
        counted, silent_looks = -1, 0
        try:
            while not (await asyncio.wait([result], timeout=LOOK_SECONDS))[0]:
                current = seconds.value if seconds is not None else -1
                silent_looks, counted = (silent_looks + 1 if current == counted else 0), current
                if silent_looks >= MAX_SILENT_LOOKS:
                    self._kill_if_running(pool, future)
                    raise WorkerLost(SILENT)
            return result.result()
        finally:
            result.cancel()

    async def _submit(self, work: Callable[[], T]) -> tuple[ProcessPoolExecutor, Future[T]]:
        """Send a call to the process; to a new one if the last died while it was idle."""
        for tries_left in (1, 0):
            pool = await self._open()
            try:
                future = pool.submit(work)
            except BrokenProcessPool:
                self._forget(pool)
                if not tries_left:
                    raise WorkerLost(START_ERROR) from None
            else:
                self._calls.add(future)
                future.add_done_callback(self._calls.discard)
                return pool, future
        raise AssertionError("the last try returns or raises")

    async def _open(self) -> ProcessPoolExecutor:
        async with self._opening:
            if self._pool is None:
                # Spawned, not forked: a server has threads, and in a fork their locks could stay held for ever.
                spawn = multiprocessing.get_context("spawn")
                self._seconds = spawn.RawValue(c_uint64, 0)  # a lock could be held for ever
                self._pool = ProcessPoolExecutor(
                    1, mp_context=spawn, initializer=_prepare_worker, initargs=(self._seconds,)
                )
                self._killed_for = None
            pool = self._pool
            if not self._process:
                try:
                    first = await asyncio.to_thread(pool.submit, os.getpid)
                    async with asyncio.timeout(MAX_CALL_SECONDS):  # it may be stopped before it counts seconds
                        self._process = await asyncio.wrap_future(first)
                except (BrokenProcessPool, TimeoutError) as exc:
                    _kill(pool)
                    self._forget(pool)
                    raise WorkerLost(START_ERROR) from exc
            return pool

    def _kill_if_running(self, pool: ProcessPoolExecutor, future: Future[Any]) -> None:
        """Kill the process if the call still runs, so that the next job does not wait for it."""
        if pool is self._pool and not future.done():
            self._killed_for = future
            _kill(pool)
            self._forget(pool)

    def _forget(self, pool: ProcessPoolExecutor) -> None:
        if self._pool is pool:
            self._pool, self._process = None, 0
            pool.shutdown(wait=False)


def _kill(pool: ProcessPoolExecutor) -> None:
    """Kill the process, also one that has not told its id yet; nothing public of the pool names it."""
    for process in tuple((pool._processes or {}).values()):
        process.kill()


def _prepare_worker(seconds: c_uint64) -> None:
    """In the worker: lower the priority, ignore Ctrl-C, count seconds, and exit when the server has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    server = multiprocessing.parent_process()
    assert server is not None  # this process was spawned

    def exit_with_server() -> None:
        server.join()
        os._exit(1)  # the worker holds no state

    def count() -> None:
        while True:
            seconds.value += 1
            time.sleep(COUNT_SECONDS)

    threading.Thread(target=exit_with_server, daemon=True).start()
    threading.Thread(target=count, daemon=True).start()


def _with_portable_errors(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """In the worker: replace an error that cannot be pickled, which would look like the death of the worker."""
    try:
        return work(*args, **kwargs)
    except Exception as exc:
        try:
            pickle.loads(pickle.dumps(exc))  # noqa: S301  # bytes that were made here
        except Exception:  # noqa: BLE001  # pickling runs any code of the error
            raise RuntimeError(f"{type(exc).__name__}: {exc}") from None
        raise


def _embed(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    return asyncio.run(embedder.embed(texts, purpose="passage"))
