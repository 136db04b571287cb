"""The one shape in which Lectern writes a moment: UTC, ISO 8601, milliseconds, `Z`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def utc_now() -> str:
    """This moment, as every payload, record and reply writes it."""
    return in_utc(datetime.now(UTC))


def in_utc(moment: datetime) -> str:
    """`moment` in the shape `2025-12-17T14:23:45.123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def days_ago(days: float) -> str:
    """The moment so many days before this one."""
    return in_utc(datetime.now(UTC) - timedelta(days=days))


def in_days(days: float) -> str:
    """The moment so many days after this one."""
    return in_utc(datetime.now(UTC) + timedelta(days=days))


def seconds_between(first: str, last: str) -> float:
    """How long it is from one moment to another, as they are written here."""
    begun, ended = (datetime.fromisoformat(moment) for moment in (first, last))
    return max(0.0, (ended - begun).total_seconds())
