"""Connections, with the database's own errors turned into ours: a store that does not answer is a 503, and nothing of
the transaction was kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.errors import StoreUnavailable
from lectern.records.inline_sqlite import LONG

OURS = (IntegrityError, DataError, ProgrammingError)  # about what was asked, not about the database


@asynccontextmanager
async def transaction(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """All of what is done with it, or nothing."""
    async with speaking(), engine.begin() as connection:
        yield connection


@asynccontextmanager
async def reading(engine: AsyncEngine, *, much: bool = False) -> AsyncIterator[AsyncConnection]:
    """For looking, not for changing. `much` says that there may be thousands of rows."""
    async with speaking(), engine.connect() as connection:
        yield await connection.execution_options(**{LONG: True}) if much else connection


@asynccontextmanager
async def speaking() -> AsyncIterator[None]:
    """Around whatever talks to the database."""
    try:
        yield
    except OURS:
        raise
    except (DBAPIError, PoolExhausted, OSError) as exc:
        raise StoreUnavailable("the database does not answer; nothing was changed, try again in a moment") from exc
