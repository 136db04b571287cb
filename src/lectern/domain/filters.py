"""What a reader may see. A filter always names its book: there is no way to write one that spans books, and an
adapter that compiles it cannot produce an empty condition."""

from __future__ import annotations

from dataclasses import dataclass

from lectern.domain.books import TOP_TIER


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFilter:
    """All conditions are ANDed; `levels` is any-of. Values are checked against the book before one is built."""

    book_id: str
    max_tier: int = TOP_TIER
    module: str | None = None
    chapter_min: int | None = None
    chapter_max: int | None = None
    lesson: int | None = None
    levels: frozenset[str] | None = None
    layer: str | None = None
    parent_doc_id: str | None = None

    def __post_init__(self) -> None:
        if not self.book_id.strip():
            raise ValueError("a filter needs a book")
        if self.levels is not None and not self.levels:
            raise ValueError("an empty set of levels would match nothing; leave it out to match every level")
