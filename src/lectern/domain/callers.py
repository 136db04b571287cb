"""Who asks, and what they may do. Decided once, at the door; everything behind it only compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lectern.domain.threads import LOCAL_OWNER

Right = Literal["read", "chat", "ingest", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "chat", "ingest", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever stands behind a request."""

    owner: str  # of threads and runs; survives a key's rotation
    rights: frozenset[Right]
    books: frozenset[str] | None  # that may be read; None for all
    key_id: str | None = None  # None: no key exists, or a command on this machine
    reader: str | None = None  # of a publishable key: one browser
    nameless: bool = False  # a publishable key without a reader: may read, but no conversation is its own

    def may_read(self, book_id: str) -> bool:
        """Whether a book is there, as far as this caller can tell."""
        return self.books is None or book_id in self.books


LOCAL = Caller(owner=LOCAL_OWNER, rights=frozenset(RIGHTS), books=None)
