"""The port of the ledger: which files and chunks each collection holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from lectern.domain.books import BookEntry
from lectern.domain.jobs import IngestionRecord, Intent, Unsettled
from lectern.ports.index import CountedChunk


class Ledger(Protocol):
    """Which files and chunks each collection holds, with their hashes."""

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book, as of now."""

    async def known_books(self) -> tuple[BookEntry, ...]:
        """Every indexed book as this process last read them; whoever uses them asks `are_current` afterwards."""

    def are_current(self, entries: tuple[BookEntry, ...]) -> bool:
        """Whether no change of these books has been noticed. Reading a book's term counts notices changes."""

    async def book(self, book_id: str) -> BookEntry | None:
        """One book, if it is indexed."""

    async def save_book(self, entry: BookEntry) -> None:
        """Store a book: its manifest, its collection, and when it was ingested."""

    async def remove_book(self, book_id: str) -> None:
        """Delete a book whose lessons are all gone."""

    async def records(self, book_id: str, collection: str) -> dict[str, IngestionRecord]:
        """The book's files in a collection, by `source_file`."""

    async def collections(self, book_id: str) -> tuple[str, ...]:
        """The collections that hold lessons of the book."""

    async def lessons_at(self, urls: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """The book and the `parent_doc_id` of every lesson that readers see under one of these addresses."""

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The book's modules, by name."""

    async def intend(self, book_id: str, collection: str, planned: Sequence[Intent]) -> int:
        """Write down what is about to happen; returns the number to settle it with, which is also its generation."""

    async def settle(self, work: Unsettled) -> None:
        """Note that an intent was applied: replace the records, and so what readers see, in one transaction."""

    async def forget(self, number: int) -> None:
        """Delete an intent that is settled or given up."""

    async def term_counts(self, book_id: str, collection: str) -> dict[int, int] | None:
        """In how many chunks of the book each term occurs; None if that is not known of its present state."""

    async def recount_terms(self, book_id: str, collection: str, chunks: Iterable[CountedChunk]) -> None:
        """Count the book's terms anew, from all of its chunks. The caller holds the lock of the book."""

    async def unsettled(self) -> list[Unsettled]:
        """What a killed process left unfinished, oldest first."""
