"""The names of a scope's fields, in one table: in Python, in requests (the design's names), and as options of
commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lectern.domain.scope import ChunkFilter, Scope


class ScopeField(NamedTuple):
    """One filter under its three names."""

    name: str  # of the argument of `Scope`; the two ends of `chapters` have names of their own
    wire: str  # in requests, responses and stored threads
    option: str  # of a command


SCOPE_FIELDS = (
    ScopeField("tier", "hardware_tier_filter", "tier"),
    ScopeField("module", "module_filter", "module"),
    ScopeField("chapter_min", "chapter_min", "chapter-min"),
    ScopeField("chapter_max", "chapter_max", "chapter-max"),
    ScopeField("lesson", "lesson_filter", "lesson"),
    ScopeField("levels", "proficiency_levels", "level"),
    ScopeField("layer", "layer_filter", "layer"),
    ScopeField("parent_doc_id", "parent_doc_id", "parent-doc-id"),
)
WIRE = {field.name: field.wire for field in SCOPE_FIELDS}
OPTIONS = {field.option: field.wire for field in SCOPE_FIELDS if field.name != "parent_doc_id"}


def scope_from(fields: Mapping[str, Any], book_id: str | None = None) -> Scope:
    """The scope that a request's fields describe."""
    values = {field.name: fields.get(field.wire) for field in SCOPE_FIELDS}
    ends = (values.pop("chapter_min"), values.pop("chapter_max"))
    levels = values.pop("levels")
    return Scope(
        book_id=book_id if book_id is not None else fields.get("book_id"),
        chapters=None if ends == (None, None) else ends,
        levels=None if levels is None else tuple(levels),  # JSON knows no tuples
        **values,
    )


def fields_of(scope: Scope) -> dict[str, Any]:
    """A scope under the names of a request, without its book and without fields that were not given."""
    first, last = scope.chapters or (None, None)
    values = {
        **{name: getattr(scope, name) for name in ("tier", "module", "lesson", "layer", "parent_doc_id")},
        "chapter_min": first,
        "chapter_max": last,
        "levels": None if scope.levels is None else list(scope.levels),
    }
    return {field.wire: values[field.name] for field in SCOPE_FIELDS if values[field.name] is not None}


def filter_from(fields: Mapping[str, Any]) -> ChunkFilter:
    """The filter that `applied` wrote down."""
    levels = fields[WIRE["levels"]]
    return ChunkFilter(
        book_id=fields["book_id"],
        max_tier=fields[WIRE["tier"]],
        module=fields[WIRE["module"]],
        chapter_min=fields[WIRE["chapter_min"]],
        chapter_max=fields[WIRE["chapter_max"]],
        lesson=fields[WIRE["lesson"]],
        levels=None if levels is None else frozenset(levels),
        layer=fields[WIRE["layer"]],
        parent_doc_id=fields[WIRE["parent_doc_id"]],
    )


def applied(where: ChunkFilter) -> dict[str, Any]:
    """The filters that were applied, under the names of a request."""
    return {
        "book_id": where.book_id,
        WIRE["tier"]: where.max_tier,
        WIRE["module"]: where.module,
        WIRE["chapter_min"]: where.chapter_min,
        WIRE["chapter_max"]: where.chapter_max,
        WIRE["lesson"]: where.lesson,
        WIRE["levels"]: None if where.levels is None else sorted(where.levels),
        WIRE["layer"]: where.layer,
        WIRE["parent_doc_id"]: where.parent_doc_id,
    }
