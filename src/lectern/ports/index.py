"""Ports of the index: what embeds texts, where vectors are cached, and where chunks are found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from lectern.domain.books import BookEntry
from lectern.domain.chunks import Change, Chunk, ChunkId, IndexedChunk, StampedChunk, Vector
from lectern.domain.evidence import Candidate
from lectern.domain.scope import ChunkFilter

Purpose = Literal["passage", "question"]
Commit = Callable[[], Awaitable[None]]
T = TypeVar("T")


class Embedder(Protocol):
    """Turns text into vectors. A vector is a function of its text alone."""

    @property
    def fingerprint(self) -> str:
        """`provider/model/dimensions`; part of the collection's name, so vectors of two models never mix."""

    @property
    def dimensions(self) -> int:
        """The length of every vector."""

    @property
    def languages(self) -> frozenset[str] | None:
        """The languages it reads, by their codes; None for many."""

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """What is embedded for one chunk: trail and text, in as many windows as the model needs to read all of it."""

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[Vector]:
        """One vector a text, in the same order."""


class VectorCache(Protocol):
    """Vectors by the hash of fingerprint and embedded text, shared by all books."""

    async def vectors(self, keys: Sequence[str]) -> dict[str, Vector]:
        """The known vectors among these keys."""

    async def remember(self, vectors: Mapping[str, Vector]) -> None:
        """Store these; a known key gets the new vector."""

    async def prune(self, needed_keys: AbstractSet[str]) -> int:
        """Delete every vector but these; returns how many were deleted."""


class IndexView(Protocol):
    """The index as it is for one response: no lesson in it is half replaced. Chunks are read within one book."""

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the `limit` nearest by cosine and the `limit` best by BM25, each with both scores."""

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope that the index actually holds, by source_file and chunk_index."""

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """The chunks of this book among these ids."""

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The chunks of this book among these ids, each with its dense vectors."""

    async def count(self, where: ChunkFilter) -> int:
        """How many chunks are in scope."""

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here; for the doctor and the health check."""


class ChunkIndex(Protocol):
    """Where chunks are found."""

    @property
    def collection(self) -> str:
        """The collection's name, fingerprint included."""

    async def read(self, work: Callable[[IndexView], Awaitable[T]]) -> T:
        """Run `work` on a view that no replacement disturbs. It may be run again from the start, so it must only
        read."""

    def count_terms(self, chunks: Sequence[Chunk], language: str) -> dict[int, int]:
        """In how many of these chunks each term occurs, as this index finds them."""

    async def faults(self, *, mend: bool) -> list[str]:
        """What of the collection is not as it is configured; with `mend` it is made so."""

    async def check_room(self) -> None:
        """Raise if there is too little room for a batch of changes."""

    async def replace(self, book_id: str, generation: int, changes: Sequence[Change], commit: Commit) -> None:
        """Apply changes durably and commit them to the ledger; applying them again changes nothing."""

    async def remnants(self, book_id: str, pending: AbstractSet[int], *, drop: bool) -> int:
        """How many points of the book have a generation that is neither live nor pending; `drop` deletes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermCounts:
    """In how many chunks of a book terms occur, at one epoch."""

    epoch: int
    complete: bool  # False if the book was changed by a version that does not count, or was not counted yet
    chunks: int  # of the book
    by_term: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLessons:
    """The live generation of lessons, at one epoch."""

    epoch: int
    generations: Mapping[str, int]  # by parent_doc_id


CountedChunk = tuple[ChunkId, Sequence[int]]  # a chunk and its terms, each once


class Lexicon(Protocol):
    """In how many chunks of a book each term occurs, in one collection. It changes in the commits that change the
    lessons."""

    async def counts(self, book_id: str, terms: Sequence[int]) -> TermCounts:
        """The counts of these terms, and the epoch of the book."""

    async def recount(self, book_id: str, epoch: int, chunks: Iterable[CountedChunk]) -> None:
        """Count a book anew, from all of its chunks; nothing is done if it has changed since that epoch."""


class Generations(Lexicon, Protocol):
    """What the ledger says of a collection: which version of each lesson readers see, where the index holds two while
    one replaces the other, and in how many chunks each term occurs."""

    async def epoch(self, book_id: str) -> int:
        """A number that changes with every committed replacement in the book."""

    async def live(self, book_id: str, parents: Sequence[str]) -> LiveLessons:
        """The live generation of each of these lessons that the book has."""

    async def chunk_counts(self, book_id: str) -> tuple[int, Mapping[int, int]]:
        """The epoch of the book, and how many live chunks each generation has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What a book is served from: the embedder that made its vectors, and the index that holds them."""

    embedder: Embedder
    index: ChunkIndex


class Collections(Protocol):
    """All collections."""

    @property
    def current(self) -> Serving:
        """What the settings name; ingestions write here."""

    async def serving(self, entry: BookEntry) -> Serving:
        """What this book's readers are served from."""

    async def index(self, collection: str) -> ChunkIndex:
        """The index of an existing collection."""

    async def verify(self, entry: BookEntry) -> bool:
        """Whether the index holds as many chunks as the ledger says. A book that fails is not served until it
        passes. Raises if the index does not answer now."""

    def trust(self, book_id: str) -> None:
        """Serve a book that could not be verified because another process is changing it."""
