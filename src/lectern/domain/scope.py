"""What a reader asks for, before and after it is checked against the book. A `ChunkFilter` always names its book: no
filter can span books, and an adapter cannot compile it to an empty condition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lectern.domain.books import TOP_TIER, BookEntry
from lectern.domain.errors import BadInput

SearchMode = Literal["hybrid", "dense", "lexical", "reranked"]
QUERY_LENGTH = (3, 1000)  # characters after strip
SEARCH_LIMIT = 20  # results of a search
MAX_HITS = 100  # passages that a question may be answered from, and results that can be paged through
MAX_NEIGHBOURS = 5  # on either side of a hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a reader narrows a search or a question to. None means "not given"; all given values must hold."""

    book_id: str | None = None
    tier: int | None = None  # hardware tier: this one or lower
    module: str | None = None
    chapters: tuple[int | None, int | None] | None = None  # the first and the last; None at an end leaves it open
    lesson: int | None = None
    levels: tuple[str, ...] | None = None  # any of these
    layer: str | None = None
    parent_doc_id: str | None = None  # one lesson only


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """One search. Out of range is an error, never a silent cap."""

    text: str
    scope: Scope = field(default_factory=Scope)
    limit: int = 5
    mode: SearchMode = "hybrid"
    similarity_threshold: float | None = None  # a relevance; hits below it are left out
    offset: int = 0  # results to pass over: the pages before this one
    expand: int = 0  # neighbours to read before and after each hit, within its lesson
    find_absent: bool = False  # whether to find out which rare words of the text the scope lacks

    def __post_init__(self) -> None:
        refuse_undecodable(self.text, "text")
        low, high = QUERY_LENGTH
        if not low <= len(self.text.strip()) <= high:
            raise BadInput(
                f"the query must have {low} to {high} characters, not {len(self.text.strip())}", field="text"
            )
        if not 1 <= self.limit <= MAX_HITS:
            raise BadInput(f"limit (top_k) must be 1 to {MAX_HITS}, not {self.limit}", field="top_k")
        if not 0 <= self.offset < MAX_HITS:
            raise BadInput(f"offset must be 0 to {MAX_HITS - 1}, not {self.offset}", field="offset")
        if not 0 <= self.expand <= MAX_NEIGHBOURS:
            raise BadInput(f"expand must be 0 to {MAX_NEIGHBOURS}, not {self.expand}", field="expand")
        if self.similarity_threshold is not None and not 0 <= self.similarity_threshold <= 1:
            raise BadInput(
                f"similarity_threshold must be 0 to 1, not {self.similarity_threshold}", field="similarity_threshold"
            )


def refuse_undecodable(text: str, field: str) -> None:
    """Refuse text with lone surrogates, which stand for bytes that were not UTF-8 and cannot be stored or sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput("the text is not valid UTF-8; send plain text", field=field) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFilter:
    """Conditions that must all hold; `levels` is any-of. `retrieval/scope.py` checks a reader's values against the book
    before it builds one."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedScope:
    """A scope that was checked: the book, and what the reader may see of it. Made once a turn."""

    entry: BookEntry
    where: ChunkFilter

    @property
    def book_id(self) -> str:
        """The book's name."""
        return self.where.book_id
