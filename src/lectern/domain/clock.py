"""Moments as Lectern writes them: UTC, ISO 8601, milliseconds, `Z`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def utc_now() -> str:
    """This moment, in the form of payloads, records and replies."""
    return in_utc(datetime.now(UTC))


def in_utc(moment: datetime) -> str:
    """`moment` in the form `2025-12-17T14:23:45.123Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def days_ago(days: float) -> str:
    """The moment this many days ago."""
    return in_utc(datetime.now(UTC) - timedelta(days=days))


def in_days(days: float) -> str:
    """The moment in this many days."""
    return in_utc(datetime.now(UTC) + timedelta(days=days))


def whole_seconds(first: str, last: str) -> int:
    """The seconds from one written moment to another; 0 if the clock was put back in between."""
    start, end = (datetime.fromisoformat(moment) for moment in (first, last))
    return max(0, round((end - start).total_seconds()))
