"""Vectors and stamps for chunks that go into the index. A cached text is not embedded again, and a stamp changes only
with its payload."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from lectern.domain.chunks import Chunk, Stamp, StampedChunk, Vector
from lectern.domain.clock import utc_now
from lectern.domain.errors import ProviderFaulty
from lectern.ingestion.worker import Worker
from lectern.ports.index import Embedder, VectorCache

MIN_STEP_TEXTS = 8
MIN_STEP_SECONDS, MAX_STEP_SECONDS = 0.5, 2.0


def vector_key(fingerprint: str, text: str) -> str:
    """A vector's key in the cache: the same embedder and the same text give the same vector."""
    return hashlib.sha256(f"{fingerprint}\n{text}".encode()).hexdigest()


@dataclass(slots=True)
class StepSize:
    """How many texts are embedded between two reports of progress: about a second's worth, whatever the embedder."""

    texts: int = MIN_STEP_TEXTS

    def adapt(self, seconds: float) -> None:
        """Double or halve the size after a step that was too short or too long."""
        if seconds < MIN_STEP_SECONDS:
            self.texts *= 2
        elif seconds > MAX_STEP_SECONDS:
            self.texts = max(self.texts // 2, MIN_STEP_TEXTS)


class VectorSource:
    """The vectors of a batch: from the cache if they are there, else from the embedder."""

    def __init__(
        self, embedder: Embedder, cache: VectorCache, worker: Worker, step: StepSize, *, trust_cache: bool
    ) -> None:
        self._embedder = embedder
        self._cache = cache
        self._worker = worker
        self._step = step
        self._trust_cache = trust_cache
        self._windows: dict[str, tuple[str, ...]] = {}
        self._vectors: dict[str, Vector] = {}
        self.embedded = 0  # texts sent to the embedder

    async def prepare(self, chunks: Sequence[Chunk]) -> AsyncIterator[float]:
        """Get every vector that these chunks need. After each step the share of them that is there is yielded, and what
        was embedded is in the cache."""
        texts = await self._cut(chunks)
        cached = await self._cache.vectors(list(texts)) if self._trust_cache else {}
        self._vectors |= cached
        missing = [key for key in texts if key not in cached]
        done = 0
        while done < len(missing):
            keys = missing[done : done + self._step.texts]
            start = time.monotonic()
            fresh = await self._embed(keys, [texts[key] for key in keys])
            self._step.adapt(time.monotonic() - start)
            await self._cache.remember(fresh)
            self._vectors |= fresh
            self.embedded += len(keys)
            done += len(keys)
            yield done / len(missing)

    async def _embed(self, keys: Sequence[str], texts: Sequence[str]) -> dict[str, Vector]:
        vectors = await self._worker.embed(self._embedder, texts)
        if len(vectors) != len(texts):
            raise ProviderFaulty(
                self._embedder.fingerprint, f"gave {len(vectors)} vectors for {len(texts)} texts; nothing was indexed"
            )
        return dict(zip(keys, vectors, strict=True))

    async def _cut(self, chunks: Sequence[Chunk]) -> dict[str, str]:
        """Every window of these chunks, by its vector's key."""
        passages = [(chunk.trail, chunk.text) for chunk in chunks]
        texts: dict[str, str] = {}
        for chunk, windows in zip(chunks, await self._worker.windows(self._embedder, passages), strict=True):
            keys = tuple(vector_key(self._embedder.fingerprint, window) for window in windows)
            self._windows[chunk.id] = keys
            texts |= zip(keys, windows, strict=True)
        return texts

    def vectors(self, chunk: Chunk) -> tuple[Vector, ...]:
        """The vectors of a prepared chunk, one for each window."""
        return tuple(self._vectors[key] for key in self._windows[chunk.id])


def stamp_chunks(fresh: Sequence[Chunk], stored: Mapping[str, StampedChunk], model: str) -> list[StampedChunk]:
    """Stamp chunks: an unchanged chunk keeps its stamp, a changed one gets the next version, a new one version 1."""
    now = utc_now()
    stamped = []
    for chunk in fresh:
        old = stored.get(chunk.id)
        if old is None:
            stamp = Stamp(version=1, created_at=now, updated_at=now, embedded_at=now, embedding_model=model)
        elif old.chunk == chunk:
            stamp = old.stamp
        else:
            stamp = Stamp(
                version=old.stamp.version + 1,
                created_at=old.stamp.created_at,
                updated_at=now,
                embedded_at=old.stamp.embedded_at,
                embedding_model=model,
            )
        stamped.append(StampedChunk(chunk=chunk, stamp=stamp))
    return stamped
