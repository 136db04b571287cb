"""The seams. One narrow Protocol for each thing that has, or will have, more than one implementation; no code
here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from lectern.domain.books import Manifest
from lectern.domain.chunks import StampedChunk
from lectern.domain.evidence import Candidate
from lectern.domain.filters import ChunkFilter
from lectern.domain.jobs import IngestionRecord

Purpose = Literal["passage", "question"]
Vector = list[float]
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
        """Those of `keys` that are known."""

    async def remember(self, vectors: Mapping[str, Vector]) -> None:
        """Keep these; a known key gets the new vector."""

    async def prune(self, used: AbstractSet[str]) -> int:
        """Forget every vector but these; how many that were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk ready for the index."""

    stored: StampedChunk
    vectors: tuple[Vector, ...]  # one a window; the best window counts


class IndexView(Protocol):
    """The index as it stands for one response: no lesson in it is half replaced. Every read names a book."""

    async def find(
        self, vector: Vector, text: str, *, language: str, where: ChunkFilter, limit: int
    ) -> list[Candidate]:
        """The union of the `limit` nearest by cosine and the `limit` best by BM25, each with both scores."""

    async def chunks(self, where: ChunkFilter) -> list[StampedChunk]:
        """Every chunk in scope, by source_file and chunk_index: what the index really holds."""

    async def by_ids(self, book_id: str, ids: Sequence[str]) -> dict[str, StampedChunk]:
        """Those of `ids` that this book has."""

    async def with_vectors(self, book_id: str, ids: Sequence[str]) -> dict[str, IndexedChunk]:
        """The same, each with its dense vectors."""

    async def count(self, where: ChunkFilter) -> int:
        """How many chunks are in scope."""

    async def book_ids(self) -> frozenset[str]:
        """The books that have any chunk here; for the operator's eyes, never a reader's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One replacement as the index sees it: readers see all of it or nothing."""

    put: tuple[IndexedChunk, ...]  # every chunk of the lessons that will stand there, changed or not
    drop: tuple[str, ...]  # ids that stood there and will not
    language: str


class ChunkIndex(Protocol):
    """Where chunks are found."""

    @property
    def collection(self) -> str:
        """The collection's name, fingerprint included."""

    async def read(self, work: Callable[[IndexView], Awaitable[T]]) -> T:
        """Do `work` on a view that no replacement disturbs; it may be done again from the start, so it only reads."""

    async def replace(self, book_id: str, generation: int, changes: Sequence[Change], commit: Commit) -> None:
        """Carry changes out, durably, and commit them to the ledger; doing it all again changes nothing."""

    async def remnants(self, book_id: str, pending: AbstractSet[int], *, drop: bool) -> int:
        """How many points of the book are of a generation that is neither live nor about to be; gone with `drop`."""


class Generations(Protocol):
    """Which version of each lesson readers are to see, for an index that holds two while one replaces the other."""

    async def epoch(self, book_id: str) -> int:
        """A number that changes with every committed replacement in the book."""

    async def live(self, book_id: str, parents: Sequence[str]) -> dict[str, int]:
        """The live generation of those of these lessons that the book has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookEntry:
    """What the ledger knows of one book."""

    manifest: Manifest
    source: str  # the folder it was last read from
    bound: bool = False  # a caller named that folder, not the operator: it is read only while LECTERN_BOOKS allows it
    fingerprint: str  # of the embedder that readers are served with
    collection_name: str
    total_chunks: int
    last_full_ingest: str | None
    last_incremental_update: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A replacement written down before the index is touched, complete enough to be carried out again after a crash."""

    change: Change
    records: tuple[IngestionRecord, ...]
    retired: tuple[str, ...]  # source files whose records go


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Intents that a killed process may have carried out, or not."""

    number: int
    book_id: str
    collection: str
    intents: tuple[Intent, ...]


class Ledger(Protocol):
    """Which files and chunks each collection holds, with their hashes."""

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""

    async def book(self, book_id: str) -> BookEntry | None:
        """One book, if it is indexed."""

    async def save_book(self, entry: BookEntry) -> None:
        """Remember a book: its manifest, where readers are served from, when it was ingested."""

    async def remove_book(self, book_id: str) -> None:
        """Forget a book whose lessons are all gone."""

    async def records(self, book_id: str, collection: str) -> dict[str, IngestionRecord]:
        """The book's files in a collection, by `source_file`."""

    async def collections(self, book_id: str) -> tuple[str, ...]:
        """The collections that hold lessons of the book."""

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The book's modules, by name."""

    async def intend(self, book_id: str, collection: str, planned: Sequence[Intent]) -> int:
        """Write down what is about to happen; gives the number to settle it with, which is also its generation."""

    async def settle(self, done: Unsettled) -> None:
        """It has happened: move the records, and with them what readers see, in one transaction."""

    async def forget(self, number: int) -> None:
        """Nothing of this intent is left to do."""

    async def unsettled(self) -> list[Unsettled]:
        """What a killed process left half done, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a book stands: the embedder that its vectors are of, and the index that holds them."""

    embedder: Embedder
    index: ChunkIndex


class Shelf(Protocol):
    """Every collection there is."""

    @property
    def current(self) -> Stand:
        """What the settings name: where ingestions go."""

    async def stand(self, entry: BookEntry) -> Stand:
        """Where this book's readers are served from."""

    async def index(self, collection: str) -> ChunkIndex:
        """The index of a collection that exists."""

    async def verify(self, entry: BookEntry) -> bool:
        """Whether the index holds as many chunks as the ledger says; a book that fails is not served until it does."""

    def trust(self, book_id: str) -> None:
        """Serve a book although it could not be verified: somebody else is changing it."""
