"""What belongs to a key: whatever its owner has, and each reader of a publishable one. A key that was revoked begins
nothing and keeps nothing any more, however long ago its request was let in."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from lectern.domain.errors import Unauthorised
from lectern.domain.threads import LOCAL_OWNER
from lectern.store.tables import api_keys

_REVOKED = select(api_keys.c.revoked_at).where(api_keys.c.owner == bindparam("of_owner")).with_for_update(read=True)


def belongs(column: Column[Any], owner: str) -> ColumnElement[bool]:
    """Of a column of owners: this one, or a reader of its key."""
    return (column == owner) | column.startswith(f"{owner}/", autoescape=True)


async def refuse_revoked(connection: AsyncConnection, owner: str) -> None:
    """Within the transaction that writes something of an owner's. The key's row is held until it ends, so whoever
    revokes the key finds afterwards all that was written before."""
    if owner == LOCAL_OWNER:
        return
    if (await connection.execute(_REVOKED, {"of_owner": owner.partition("/")[0]})).scalar() is not None:
        raise Unauthorised("the key was revoked meanwhile; nothing was kept")
