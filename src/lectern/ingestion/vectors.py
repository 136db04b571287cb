"""Vectors and stamps for chunks that go into the index. A cached text is not embedded again, a stamp changes only with
its payload, and a language that the embedder does not know gives a warning."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from lectern.domain.books import Manifest, Problem
from lectern.domain.chunks import Chunk, Stamp, StampedChunk, Vector
from lectern.domain.clock import utc_now
from lectern.domain.errors import ProviderError
from lectern.ingestion.worker import Worker
from lectern.ports.index import Embedder, VectorCache


def vector_key(fingerprint: str, text: str) -> str:
    """A vector's key in the cache: the same embedder and the same text give the same vector."""
    return hashlib.sha256(f"{fingerprint}\n{text}".encode()).hexdigest()


class VectorSource:
    """The vectors of a batch: from the cache if they are there, else from the embedder."""

    def __init__(self, embedder: Embedder, cache: VectorCache, worker: Worker, *, trust_cache: bool) -> None:
        self._embedder = embedder
        self._cache = cache
        self._worker = worker
        self._trust_cache = trust_cache
        self._windows: dict[str, tuple[str, ...]] = {}
        self._vectors: dict[str, Vector] = {}
        self.embedded = 0  # texts sent to the embedder

    async def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Get every vector that these chunks need."""
        texts = await self._cut(chunks)
        cached = await self._cache.vectors(list(texts)) if self._trust_cache else {}
        missing = {key: text for key, text in texts.items() if key not in cached}
        vectors = await self._worker.embed(self._embedder, list(missing.values()))
        if len(vectors) != len(missing):
            raise ProviderError(
                self._embedder.fingerprint, f"gave {len(vectors)} vectors for {len(missing)} texts; nothing was indexed"
            )
        fresh = dict(zip(missing, vectors, strict=True))
        await self._cache.remember(fresh)
        self._vectors |= cached | fresh
        self.embedded += len(missing)

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


def language_warning(manifest: Manifest, embedder: Embedder) -> list[Problem]:
    """A warning if the embedder does not read the book's language: its vectors would say little, and nothing else would
    show it."""
    spoken, language = embedder.languages, manifest.language
    if spoken is None or language.partition("-")[0].lower() in spoken:
        return []
    message = (
        f"the book's language is {language!r}, which {embedder.fingerprint!r} does not read: search will rest on "
        "shared words alone. Choose another LECTERN_EMBEDDER, or set `language` if it is wrong"
    )
    return [Problem(file="lectern.toml", line=None, message=message, severity="warning")]
