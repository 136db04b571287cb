"""What a filter means, worked out once for every engine: a list of conditions that all have to hold, the book's
always first. An adapter only translates; it cannot leave the book out, and cannot end up with an empty filter."""

from __future__ import annotations

from dataclasses import dataclass

from lectern.domain.filters import ChunkFilter
from lectern.index.schema import TENANT_FIELD


@dataclass(frozen=True, slots=True)
class Equals:
    """The field has this value."""

    key: str
    value: str | int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field has one of these values."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Within:
    """The field lies between these bounds, both included; None is no bound."""

    key: str
    low: int | None
    high: int | None


Condition = Equals | AnyOf | Within


def conditions_of(where: ChunkFilter) -> list[Condition]:
    """All that has to hold for a chunk to be in scope."""
    found: list[Condition] = [Equals(TENANT_FIELD, where.book_id), Within("hardware_tier", None, where.max_tier)]
    for key, value in (
        ("module", where.module),
        ("lesson", where.lesson),
        ("layer", where.layer),
        ("parent_doc_id", where.parent_doc_id),
    ):
        if value is not None:
            found.append(Equals(key, value))
    if where.chapter_min is not None or where.chapter_max is not None:
        found.append(Within("chapter", where.chapter_min, where.chapter_max))
    if where.levels is not None:
        found.append(AnyOf("proficiency_level", tuple(sorted(where.levels))))
    return found
