"""Checks a reader's filters against the book. If the book does not have a value, the error names the valid ones. The
search is never widened."""

from __future__ import annotations

from typing import Protocol

from lectern.domain.books import LAYERS, LEVELS, TIERS, TOP_TIER, BookEntry, Manifest
from lectern.domain.errors import BadInput, UnknownBook
from lectern.domain.scope import ChunkFilter, ResolvedScope, Scope
from lectern.schemas.scope import WIRE

MAX_NUMBER = 2**31  # of a chapter or lesson; the indexes and databases can compare it


class BookSource(Protocol):
    """What is known of the books: by the ledger, or by a search that checks it afterwards."""

    async def books(self) -> tuple[BookEntry, ...]:
        """Every indexed book."""

    async def modules(self, book_id: str) -> tuple[str, ...]:
        """The book's modules, by name."""


async def resolve_book(
    book_id: str | None, books: BookSource, default: str | None, readable: frozenset[str] | None = None
) -> BookEntry:
    """The book to use: the one named, else the only one, else the configured default. Books that the caller may not
    read do not exist here; `readable=None` means all."""
    entries = {entry.manifest.book_id: entry for entry in await books.books()}
    if readable is not None:
        entries = {book: entry for book, entry in entries.items() if book in readable}
        default = default if default in entries else None  # an error must not show its name to this caller
    name = book_id if book_id is not None else default if len(entries) != 1 else next(iter(entries))
    if name is None and entries:
        raise BadInput(f"several books are indexed, say which by book_id: {', '.join(entries)}", field="book_id")
    if name is None or name not in entries:
        raise UnknownBook(name or "", tuple(entries))
    return entries[name]


async def resolve(
    scope: Scope, books: BookSource, default_book: str | None, readable: frozenset[str] | None = None
) -> ResolvedScope:
    """A reader's scope, checked against its book."""
    entry = await resolve_book(scope.book_id, books, default_book, readable)
    return ResolvedScope(entry=entry, where=await resolve_scope(scope, entry.manifest, books))


async def resolve_scope(scope: Scope, manifest: Manifest, books: BookSource) -> ChunkFilter:
    """The filter for a reader of this book."""
    tier = scope.tier if scope.tier is not None else manifest.reader_tier
    if tier is not None and tier not in TIERS:
        raise BadInput(f"{WIRE['tier']} must be 1 to {TOP_TIER}, not {tier}", field=WIRE["tier"])
    module = scope.module
    if module is not None:
        modules = await books.modules(manifest.book_id)
        module = module if module in modules else dict(manifest.module_aliases).get(module, module)
        _check_known("module", module, modules)
    if scope.layer is not None:
        _check_known("layer", scope.layer, LAYERS)
    _check_levels(scope.levels)
    first, last = scope.chapters or (None, None)
    _check_number("chapter_min", first)
    _check_number("chapter_max", last)
    _check_number("lesson", scope.lesson)
    if first is not None and last is not None and first > last:
        raise BadInput(f"chapter_min {first} is above chapter_max {last}", field=WIRE["chapter_min"])
    return ChunkFilter(
        book_id=manifest.book_id,
        max_tier=TOP_TIER if tier is None else tier,
        module=module,
        chapter_min=first,
        chapter_max=last,
        lesson=scope.lesson,
        levels=None if scope.levels is None else frozenset(scope.levels),
        layer=scope.layer,
        parent_doc_id=scope.parent_doc_id,
    )


def _check_levels(levels: tuple[str, ...] | None) -> None:
    if levels is None:
        return
    if not levels:
        raise BadInput(f"{WIRE['levels']} is empty: name at least one, or leave it out", field=WIRE["levels"])
    for level in levels:
        _check_known("levels", level, LEVELS)


def _check_known(name: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        field = WIRE[name]
        raise BadInput(f"{field}: there is no {value!r}; known are {', '.join(valid)}", field=field)


def _check_number(name: str, value: int | None) -> None:
    if value is not None and not 0 <= value <= MAX_NUMBER:
        field = WIRE[name]
        raise BadInput(f"{field} must be 0 to {MAX_NUMBER}, not {value}", field=field)
