"""What belongs to a key: everything of its owner and of each reader of a publishable key. A revoked key starts and
stores nothing any more, even for a request that was accepted before."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from lectern.domain.errors import Unauthorised
from lectern.domain.threads import LOCAL_OWNER
from lectern.store.tables import api_keys

_REVOKED = select(api_keys.c.revoked_at).where(api_keys.c.owner == bindparam("of_owner")).with_for_update(read=True)


def belongs(column: Column[Any], owner: str) -> ColumnElement[bool]:
    """A condition on a column of owners: this owner, or a reader of its key."""
    return (column == owner) | column.startswith(f"{owner}/", autoescape=True)


async def refuse_revoked(connection: AsyncConnection, owner: str) -> None:
    """Within a transaction that writes for an owner: raise if its key is revoked. The key's row is locked until the
    transaction ends, so a process that revokes the key finds everything that was written before."""
    if owner == LOCAL_OWNER:
        return
    if (await connection.execute(_REVOKED, {"of_owner": owner.partition("/")[0]})).scalar() is not None:
        raise Unauthorised("the key was revoked meanwhile; nothing was kept")
