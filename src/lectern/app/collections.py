"""All collections, each opened when it is first needed. A book is served with the embedder that made its vectors, even
if the settings name another one now. If that embedder cannot run, nothing is changed and the error says what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from lectern.domain.books import BookEntry
from lectern.domain.errors import IndexDamaged, IndexMismatch, LecternError
from lectern.domain.scope import ChunkFilter
from lectern.ingestion.outages import is_outage
from lectern.ports.index import ChunkIndex, Embedder, Serving

OpenIndex = Callable[[str, int | None], AbstractAsyncContextManager[ChunkIndex]]  # collection, dimensions if it is new
BuildEmbedder = Callable[[str], Embedder]  # from a fingerprint; raises where it cannot run


class OpenCollections:
    """Collections and embedders, each opened once and closed with the stack."""

    def __init__(
        self, stack: AsyncExitStack, current: Serving, open_index: OpenIndex, build_embedder: BuildEmbedder
    ) -> None:
        self._stack = stack
        self._open_index = open_index
        self._build_embedder = build_embedder
        self._indexes = {current.index.collection: current.index}
        self._embedders = {current.embedder.fingerprint: current.embedder}
        self._damaged: set[str] = set()
        self.current = current

    async def serving(self, entry: BookEntry) -> Serving:
        """What this book's readers are served from."""
        if entry.manifest.book_id in self._damaged:
            raise IndexDamaged(
                f"the index of {entry.manifest.book_id!r} does not hold what it should; run: lectern doctor --mend"
            )
        if entry.collection_name == self.current.index.collection:
            return self.current
        if entry.fingerprint not in self._embedders:
            self._embedders[entry.fingerprint] = self._embedder(entry)
        index = await self.index(entry.collection_name)
        return Serving(embedder=self._embedders[entry.fingerprint], index=index)

    async def index(self, collection: str) -> ChunkIndex:
        """The index of an existing collection."""
        if collection not in self._indexes:
            opened = self._open_index(collection, None)
            self._indexes[collection] = await self._stack.enter_async_context(opened)
        return self._indexes[collection]

    async def verify(self, entry: BookEntry) -> bool:
        """Whether the index holds as many chunks as the ledger says. A book that fails is not served until it
        passes."""
        book_id = entry.manifest.book_id
        where = ChunkFilter(book_id=book_id)
        try:
            index = await self.index(entry.collection_name)
            sound = await index.read(lambda view: view.count(where)) == entry.total_chunks
        except LecternError as exc:  # a damaged book must not block the other books or the doctor
            if is_outage(exc):  # says nothing about the book
                raise
            sound = False
        (self._damaged.discard if sound else self._damaged.add)(book_id)
        return sound

    def trust(self, book_id: str) -> None:
        """Serve a book that could not be verified because another process is changing it."""
        self._damaged.discard(book_id)

    def _embedder(self, entry: BookEntry) -> Embedder:
        try:
            return self._build_embedder(entry.fingerprint)
        except LecternError as exc:
            raise IndexMismatch(
                f"{entry.manifest.book_id!r} was indexed with {entry.fingerprint!r}, which cannot run ({exc}); "
                f"rebuild it with {self.current.embedder.fingerprint!r}: lectern ingest {entry.source}"
            ) from exc
