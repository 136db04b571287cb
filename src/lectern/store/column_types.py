"""Column types that are native on PostgreSQL, so that its own SQL can be used on them, and text on SQLite. The program
sees the same values on both: moments as text, JSON as objects."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Dialect, String, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP, UUID
from sqlalchemy.types import TypeEngine

from lectern.domain.clock import in_utc

log = logging.getLogger("lectern.store")

ThreadId = String(36).with_variant(UUID(as_uuid=False), "postgresql")


class Moment(TypeDecorator[str]):
    """A moment in the form `2025-12-17T14:23:45.123Z`. On PostgreSQL it has milliseconds too, so that a moment that
    the database itself filled in reads as it is compared."""

    impl = String(30)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """`timestamptz` on PostgreSQL."""
        native = TIMESTAMP(timezone=True, precision=3) if dialect.name == "postgresql" else String(30)
        return dialect.type_descriptor(native)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ANN401  # by the dialect
        """A value for the driver."""
        return datetime.fromisoformat(value) if value is not None and dialect.name == "postgresql" else value

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ANN401  # the base's type
        """A value from the driver."""
        return in_utc(value) if isinstance(value, datetime) else value


class JsonObject(TypeDecorator[Mapping[str, Any]]):
    """A JSON object. A damaged one reads as an empty one, and the log says so."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """`jsonb` on PostgreSQL."""
        return dialect.type_descriptor(JSONB() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Mapping[str, Any] | None, dialect: Dialect) -> Any:  # noqa: ANN401  # the base's type
        """A value for the driver."""
        fields = dict(value or {})
        return fields if dialect.name == "postgresql" else json.dumps(fields)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Mapping[str, Any]:  # noqa: ANN401  # the base's type
        """A value from the driver."""
        return object_of(value)


def object_of(value: object) -> dict[str, Any]:
    """The JSON object in a column's value; empty if it is damaged."""
    try:
        fields = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        fields = None
    if isinstance(fields, dict):
        return fields
    if value is not None:
        log.warning("a stored JSON object cannot be read; it is shown empty")
    return {}
