"""From what a reader asked for to what the index may show. Filters fail closed: a value the book does not have is an
error that names what exists, never a broader search."""

from __future__ import annotations

from lectern.domain.books import LAYERS, LEVELS, TIERS, TOP_TIER, BookEntry, Manifest
from lectern.domain.errors import BadInput, UnknownBook
from lectern.domain.scope import ChunkFilter, Scope
from lectern.ports.ledger import Ledger

MOST = 2**31  # of a chapter or lesson number: what every engine and database can compare


async def resolve_book(
    book_id: str | None, ledger: Ledger, default: str | None, readable: frozenset[str] | None = None
) -> BookEntry:
    """The book that is meant: the one named, else the only one, else the configured default. Books that the caller may
    not read are not there; None for all."""
    known = {entry.manifest.book_id: entry for entry in await ledger.books()}
    if readable is not None:
        known = {name: entry for name, entry in known.items() if name in readable}
        default = default if default in known else None  # not even its name is for everybody
    wanted = book_id if book_id is not None else default if len(known) != 1 else next(iter(known))
    if wanted is None and known:
        raise BadInput(f"several books are indexed, say which by book_id: {', '.join(known)}", field="book_id")
    if wanted is None or wanted not in known:
        raise UnknownBook(wanted or "", tuple(known))
    return known[wanted]


async def resolve_scope(scope: Scope, manifest: Manifest, ledger: Ledger) -> ChunkFilter:
    """The filter for a reader of this book."""
    tier = scope.hardware_tier_filter if scope.hardware_tier_filter is not None else manifest.reader_tier
    if tier is not None and tier not in TIERS:
        raise BadInput(f"hardware_tier_filter must be 1 to {TOP_TIER}, not {tier}", field="hardware_tier_filter")
    if scope.module_filter is not None:
        _known("module_filter", scope.module_filter, await ledger.modules(manifest.book_id))
    if scope.layer_filter is not None:
        _known("layer_filter", scope.layer_filter, LAYERS)
    if scope.proficiency_levels is not None:
        if not scope.proficiency_levels:
            raise BadInput(
                "proficiency_levels is empty: name at least one, or leave it out", field="proficiency_levels"
            )
        for level in scope.proficiency_levels:
            _known("proficiency_levels", level, LEVELS)
    _whole("chapter_min", scope.chapter_min)
    _whole("chapter_max", scope.chapter_max)
    _whole("lesson_filter", scope.lesson_filter)
    if scope.chapter_min is not None and scope.chapter_max is not None and scope.chapter_min > scope.chapter_max:
        raise BadInput(f"chapter_min {scope.chapter_min} is above chapter_max {scope.chapter_max}", field="chapter_min")
    return ChunkFilter(
        book_id=manifest.book_id,
        max_tier=TOP_TIER if tier is None else tier,
        module=scope.module_filter,
        chapter_min=scope.chapter_min,
        chapter_max=scope.chapter_max,
        lesson=scope.lesson_filter,
        levels=None if scope.proficiency_levels is None else frozenset(scope.proficiency_levels),
        layer=scope.layer_filter,
        parent_doc_id=scope.parent_doc_id,
    )


def _known(field: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise BadInput(f"{field}: there is no {value!r}; known are {', '.join(known)}", field=field)


def _whole(field: str, value: int | None) -> None:
    if value is not None and not 0 <= value <= MOST:
        raise BadInput(f"{field} must be 0 to {MOST}, not {value}", field=field)
