"""Keys, stored as digests. A key that was read is cached for two seconds. So a key that another process revokes or
rotates stops working here within that time, and in the same process at once.

What belongs to a key: everything of its owner and of each reader of a publishable key. A revoked key starts and
stores nothing any more, even for a request that was accepted before.
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import Column, ColumnElement, RowMapping, bindparam, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.clock import days_ago, in_days, utc_now
from lectern.domain.errors import BadInput, Conflict, StoreUnavailable, Unauthorised, UnknownKey
from lectern.domain.keys import (
    MAX_GRACE_HOURS,
    IssuedKey,
    Key,
    KeyKind,
    KeyRequest,
    Right,
    digest_of,
    key_id_in,
    new_key_id,
    new_text,
    refuse_days,
)
from lectern.domain.threads import LOCAL_OWNER
from lectern.store.database import reading, transaction
from lectern.store.tables import api_keys, server_secrets

CACHE_SECONDS = 2.0  # the docs promise that revocation takes at most 5 seconds
USE_NOTE_SECONDS = 60.0  # between two writes of a key's last use: not every request may write
MINUTE_IN_DAYS = 1 / (24 * 60)
NO_DIGEST = "0" * 64  # compared with if there is no key, so that an unknown id takes as long as a wrong secret
_REVOKED = select(api_keys.c.revoked_at).where(api_keys.c.owner == bindparam("of_owner")).with_for_update(read=True)


@dataclass(frozen=True, slots=True)
class _StoredKey:
    """A key with the digests that its text is compared with."""

    key: Key
    digest: str
    old_digest: str
    old_until: str

    def matches(self, digest: str, now: str) -> bool:
        """Whether the digest is of the key's text, or of the text before it while that is still valid."""
        current = secrets.compare_digest(digest, self.digest)
        former = secrets.compare_digest(digest, self.old_digest)
        return current or (former and now < self.old_until)


class SqlKeys:
    """The keys in the SQL database."""

    def __init__(self, engine: AsyncEngine, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._cache: dict[str, tuple[float, _StoredKey]] = {}  # by id; only ids that exist, so it stays small
        self._noted: dict[str, float] = {}
        self._exist: tuple[float, bool] | None = None
        self._origins: tuple[float, frozenset[str]] | None = None
        self._secrets: dict[str, bytes] = {}

    async def create(self, request: KeyRequest) -> IssuedKey:
        """Make a key. Its text is returned and stored nowhere."""
        key = Key(
            key_id=new_key_id(),
            name=request.name,
            kind=request.kind,
            owner=str(uuid.uuid4()),
            rights=request.rights,
            books=request.books,
            origins=request.origins,
            created_at=utc_now(),
            expires_at=None if request.days is None else in_days(request.days),
        )
        text = new_text(key.kind, key.key_id)
        async with transaction(self._engine) as connection:
            await connection.execute(insert(api_keys).values(digest=digest_of(text), **_columns(key)))
        self._forget(key.key_id)
        return IssuedKey(key=key, text=text)

    async def list_keys(self) -> tuple[Key, ...]:
        """Every key that was ever made and not deleted, the oldest first."""
        query = select(api_keys).where(api_keys.c.name != "").order_by(api_keys.c.created_at, api_keys.c.key_id)
        async with reading(self._engine) as connection:
            rows = await connection.execute(query)
            return tuple(_key(row) for row in rows.mappings())

    async def rotate(self, key_id: str, *, grace: float = 0, days: float | None = None) -> IssuedKey:
        """Give a key a new text; owner, rights and threads stay. The old text stops at once, or after `grace` hours.
        With `days` the key expires that many days from now."""
        if not 0 <= grace <= MAX_GRACE_HOURS:
            raise BadInput(f"the grace must be 0 to {MAX_GRACE_HOURS} hours, not {grace:g}", field="grace")
        refuse_days(days)
        key = await self._key(key_id)
        if days is not None:
            key = replace(key, expires_at=in_days(days))
        if (state := key.state(utc_now())) != "active":
            mend = "make a new one: lectern keys create" if state == "revoked" else "give it more time: --expires DAYS"
            raise Conflict(f"key {key_id!r} is {state}; {mend}")
        text = new_text(key.kind, key_id)
        old = {"old_digest": api_keys.c.digest, "old_until": in_days(grace / 24)} if grace else {}
        changes = {"old_digest": None, "old_until": None, **old, "expires_at": key.expires_at}
        await self._change(key_id, {"digest": digest_of(text), **changes})
        return IssuedKey(key=key, text=text)

    async def revoke(self, key_id: str) -> Key:
        """Revoke a key; revoking it again changes nothing."""
        key = await self._key(key_id)
        if key.revoked_at is not None:
            return key
        key = replace(key, revoked_at=utc_now())
        await self._change(key_id, {"revoked_at": key.revoked_at, "old_digest": None, "old_until": None})
        return key

    async def forget(self, key_id: str) -> None:
        """Delete a revoked key except for its id and owner name, so that nobody gets either again. The server still
        needs a key, even if none is left."""
        emptied = {
            "name": "",
            "digest": NO_DIGEST,
            "old_digest": None,
            "old_until": None,
            "rights": "[]",
            "books": None,
        }
        times = {"origins": "[]", "expires_at": None, "last_used_at": None}
        await self._change(key_id, {**emptied, **times})

    async def is_unrevoked(self, key_id: str) -> bool:
        """Whether a key is known and not revoked. If the database does not answer, the key counts as not revoked."""
        try:
            stored = await self._look_up(key_id)
        except StoreUnavailable:
            return True
        return stored is not None and stored.key.revoked_at is None

    async def verify(self, text: str) -> Key | None:
        """The key with this text, if it is valid now."""
        key_id = key_id_in(text)
        if key_id is None:
            return None
        stored, now, digest = self._cached(key_id), utc_now(), digest_of(text)
        if stored is None or not stored.matches(digest, now):  # a wrong secret is read like an id that does not exist
            stored = await self._read(key_id)
        if stored is None:
            secrets.compare_digest(digest, NO_DIGEST)
            return None
        return stored.key if stored.matches(digest, now) and stored.key.state(now) == "active" else None

    async def exist(self) -> bool:
        """Whether a key was ever made. Revoked keys count: revoking the last key must not open the server."""
        if self._exist is None or not (self._exist[1] or self._is_fresh(self._exist[0])):
            read_at = self._clock()
            async with reading(self._engine) as connection:
                row = (await connection.execute(select(api_keys.c.key_id).limit(1))).first()
            self._exist = read_at, row is not None
        return self._exist[1]

    async def origins(self) -> frozenset[str]:
        """The origins of every publishable key that is valid."""
        if self._origins is None or not self._is_fresh(self._origins[0]):
            read_at, now = self._clock(), utc_now()
            live = [key for key in await self.list_keys() if key.state(now) == "active"]
            self._origins = read_at, frozenset(origin for key in live for origin in key.origins)
        return self._origins[1]

    async def note_use(self, key: Key) -> None:
        """Remember when a key was last used, to the minute."""
        now = self._clock()
        if now - self._noted.get(key.key_id, -USE_NOTE_SECONDS) < USE_NOTE_SECONDS:
            return
        self._noted[key.key_id] = now
        stale = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < days_ago(MINUTE_IN_DAYS))
        statement = update(api_keys).where(api_keys.c.key_id == key.key_id, stale).values(last_used_at=utc_now())
        with suppress(StoreUnavailable):  # the request itself will say whether the database answers
            async with transaction(self._engine) as connection:
                await connection.execute(statement)

    async def server_secret(self, name: str) -> bytes:
        """A secret that every process on this database shares. The first call makes it."""
        if name not in self._secrets:
            with suppress(IntegrityError):  # another process, or an earlier start, was first
                async with transaction(self._engine) as connection:
                    await connection.execute(insert(server_secrets).values(name=name, value=secrets.token_hex(32)))
            async with reading(self._engine) as connection:
                query = select(server_secrets.c.value).where(server_secrets.c.name == name)
                self._secrets[name] = bytes.fromhex((await connection.execute(query)).scalar_one())
        return self._secrets[name]

    async def _look_up(self, key_id: str) -> _StoredKey | None:
        return self._cached(key_id) or await self._read(key_id)

    def _cached(self, key_id: str) -> _StoredKey | None:
        entry = self._cache.get(key_id)
        return entry[1] if entry is not None and self._is_fresh(entry[0]) else None

    async def _read(self, key_id: str) -> _StoredKey | None:
        read_at = self._clock()
        async with reading(self._engine) as connection:
            exists = (api_keys.c.key_id == key_id) & (api_keys.c.name != "")  # no key is made without a name
            rows = await connection.execute(select(api_keys).where(exists))
            row = rows.mappings().first()
        if row is None:
            self._cache.pop(key_id, None)
            return None
        stored = _StoredKey(_key(row), row["digest"], row["old_digest"] or NO_DIGEST, row["old_until"] or "")
        self._cache[key_id] = read_at, stored
        return stored

    async def _key(self, key_id: str) -> Key:
        self._forget(key_id)
        if (stored := await self._look_up(key_id)) is None:
            raise UnknownKey(f"there is no key {key_id!r}; see: lectern keys list", field="key_id")
        return stored.key

    async def _change(self, key_id: str, values: Mapping[str, Any]) -> None:
        async with transaction(self._engine) as connection:
            await connection.execute(update(api_keys).where(api_keys.c.key_id == key_id).values(**values))
        self._forget(key_id)

    def _forget(self, key_id: str) -> None:
        self._cache.pop(key_id, None)
        self._exist = self._origins = None

    def _is_fresh(self, read_at: float) -> bool:
        return self._clock() - read_at < CACHE_SECONDS


def _columns(key: Key) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "owner": key.owner,
        "kind": key.kind,
        "rights": json.dumps(sorted(key.rights)),
        "books": None if key.books is None else json.dumps(sorted(key.books)),
        "origins": json.dumps(sorted(key.origins)),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
    }


def _key(row: RowMapping) -> Key:
    return Key(
        key_id=row["key_id"],
        name=row["name"],
        kind=cast("KeyKind", row["kind"]),
        owner=row["owner"],
        rights=frozenset(cast("list[Right]", json.loads(row["rights"]))),
        books=None if row["books"] is None else frozenset(json.loads(row["books"])),
        origins=frozenset(json.loads(row["origins"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )


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
