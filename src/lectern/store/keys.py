"""Keys, stored as digests. What was read of a key is cached for two seconds. So a key that another process revokes or
rotates stops working here within that time, and in the same process at once."""

from __future__ import annotations

import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import RowMapping, insert, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from lectern.domain.clock import days_ago, in_days, utc_now
from lectern.domain.errors import BadInput, Conflict, StoreUnavailable, UnknownKey
from lectern.domain.keys import (
    MOST_HOURS,
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
from lectern.store.database import reading, transaction
from lectern.store.tables import api_keys, server_secrets

FRESH = 2.0  # seconds for which what was read is believed; the docs promise that revocation takes at most 5
NOTED = 60.0  # seconds between two notes of a key's use: not every request may write
MINUTE = 1 / (24 * 60)  # of a day
NOBODY = "0" * 64  # compared with where there is no key, so that an unknown id takes as long as a wrong secret


@dataclass(frozen=True, slots=True)
class _Held:
    """A key with the digests that its text is compared with."""

    key: Key
    digest: str
    old_digest: str
    old_until: str

    def opens(self, digest: str, now: str) -> bool:
        """Whether this is its text, or the one before while that still counts."""
        current = secrets.compare_digest(digest, self.digest)
        former = secrets.compare_digest(digest, self.old_digest)
        return current or (former and now < self.old_until)


class SqlKeys:
    """Every key of a database."""

    def __init__(self, engine: AsyncEngine, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock
        self._held: dict[str, tuple[float, _Held]] = {}  # by id; only ids that exist, so strangers cannot fill it
        self._noted: dict[str, float] = {}
        self._exist: tuple[float, bool] | None = None
        self._origins: tuple[float, frozenset[str]] | None = None
        self._secrets: dict[str, bytes] = {}

    async def create(self, wanted: KeyRequest) -> IssuedKey:
        """Make a key; its text is in the answer and nowhere else."""
        key = Key(
            key_id=new_key_id(),
            name=wanted.name,
            kind=wanted.kind,
            owner=str(uuid.uuid4()),
            rights=wanted.rights,
            books=wanted.books,
            origins=wanted.origins,
            created_at=utc_now(),
            expires_at=None if wanted.days is None else in_days(wanted.days),
        )
        text = new_text(key.kind, key.key_id)
        async with transaction(self._engine) as connection:
            await connection.execute(insert(api_keys).values(digest=digest_of(text), **_columns(key)))
        self._forget(key.key_id)
        return IssuedKey(key=key, text=text)

    async def all(self) -> tuple[Key, ...]:
        """Every key that was ever made and not deleted, the oldest first."""
        query = select(api_keys).where(api_keys.c.name != "").order_by(api_keys.c.created_at, api_keys.c.key_id)
        async with reading(self._engine) as connection:
            rows = await connection.execute(query)
            return tuple(_key(row) for row in rows.mappings())

    async def rotate(self, key_id: str, *, grace: float = 0, days: float | None = None) -> IssuedKey:
        """Give a key a new text; owner, rights and threads stay. The old text stops at once, or after `grace` hours.
        With `days` the key expires that many days from now."""
        if not 0 <= grace <= MOST_HOURS:
            raise BadInput(f"the grace must be 0 to {MOST_HOURS} hours, not {grace:g}", field="grace")
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
        gone = {"name": "", "digest": NOBODY, "old_digest": None, "old_until": None, "rights": "[]", "books": None}
        times = {"origins": "[]", "expires_at": None, "last_used_at": None}
        await self._change(key_id, {**gone, **times})

    async def stands(self, key_id: str) -> bool:
        """Whether a key is known and not revoked. If the database does not answer, the key counts as not revoked."""
        try:
            held = await self._look_up(key_id)
        except StoreUnavailable:
            return True
        return held is not None and held.key.revoked_at is None

    async def verified(self, text: str) -> Key | None:
        """The key with this text, if it is valid now."""
        key_id = key_id_in(text)
        held = await self._look_up(key_id) if key_id else None
        now, digest = utc_now(), digest_of(text)
        if held is None:
            secrets.compare_digest(digest, NOBODY)
            return None
        return held.key if held.opens(digest, now) and held.key.state(now) == "active" else None

    async def exist(self) -> bool:
        """Whether a key was ever made. Revoked keys count: revoking the last key must not open the server."""
        if self._exist is None or not (self._exist[1] or self._is_fresh(self._exist[0])):
            begun = self._clock()
            async with reading(self._engine) as connection:
                found = (await connection.execute(select(api_keys.c.key_id).limit(1))).first()
            self._exist = begun, found is not None
        return self._exist[1]

    async def origins(self) -> frozenset[str]:
        """The origins of every publishable key that is valid."""
        if self._origins is None or not self._is_fresh(self._origins[0]):
            begun, now = self._clock(), utc_now()
            live = [key for key in await self.all() if key.state(now) == "active"]
            self._origins = begun, frozenset(origin for key in live for origin in key.origins)
        return self._origins[1]

    async def note_use(self, key: Key) -> None:
        """Remember when a key was last used, to the minute."""
        now = self._clock()
        if now - self._noted.get(key.key_id, -NOTED) < NOTED:
            return
        self._noted[key.key_id] = now
        stale = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < days_ago(MINUTE))
        noting = update(api_keys).where(api_keys.c.key_id == key.key_id, stale).values(last_used_at=utc_now())
        with suppress(StoreUnavailable):  # the request itself will say whether the database answers
            async with transaction(self._engine) as connection:
                await connection.execute(noting)

    async def server_secret(self, name: str) -> bytes:
        """A secret that every process on this database shares; made when it is first asked for."""
        if name not in self._secrets:
            with suppress(IntegrityError):  # another process, or an earlier start, was first
                async with transaction(self._engine) as connection:
                    await connection.execute(insert(server_secrets).values(name=name, value=secrets.token_hex(32)))
            async with reading(self._engine) as connection:
                wanted = select(server_secrets.c.value).where(server_secrets.c.name == name)
                self._secrets[name] = bytes.fromhex((await connection.execute(wanted)).scalar_one())
        return self._secrets[name]

    async def _look_up(self, key_id: str) -> _Held | None:
        begun = self._clock()
        if (known := self._held.get(key_id)) and self._is_fresh(known[0]):
            return known[1]
        async with reading(self._engine) as connection:
            there = (api_keys.c.key_id == key_id) & (api_keys.c.name != "")  # no key is made without a name
            found = await connection.execute(select(api_keys).where(there))
            row = found.mappings().first()
        if row is None:
            self._held.pop(key_id, None)
            return None
        held = _Held(_key(row), row["digest"], row["old_digest"] or NOBODY, row["old_until"] or "")
        self._held[key_id] = begun, held
        return held

    async def _key(self, key_id: str) -> Key:
        self._forget(key_id)
        if (held := await self._look_up(key_id)) is None:
            raise UnknownKey(f"there is no key {key_id!r}; see: lectern keys list", field="key_id")
        return held.key

    async def _change(self, key_id: str, values: Mapping[str, Any]) -> None:
        async with transaction(self._engine) as connection:
            await connection.execute(update(api_keys).where(api_keys.c.key_id == key_id).values(**values))
        self._forget(key_id)

    def _forget(self, key_id: str) -> None:
        self._held.pop(key_id, None)
        self._exist = self._origins = None

    def _is_fresh(self, read_at: float) -> bool:
        return self._clock() - read_at < FRESH


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
