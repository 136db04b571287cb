"""Readers of a publishable key: one a browser. A reader token is not kept anywhere; the server knows its own by their
signature, which covers the key, the reader and the expiry. So a token is worth nothing with another key."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from lectern.domain.clock import in_utc
from lectern.store.keys import SqlKeys

TOKEN_HEADER = "x-reader-token"  # noqa: S105  # a header's name
LIVES = 30 * 24 * 3600  # seconds
SECRET = "readers"  # noqa: S105  # the name of one
_TOKEN = re.compile(r"([0-9a-f]{32})\.([0-9]{1,12})\.([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReaderToken:
    """A signed reader."""

    text: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Readers:
    """Signs readers and knows them again."""

    keys: SqlKeys
    clock: Callable[[], float] = time.time

    async def token(self, key_id: str, reader: str | None = None) -> ReaderToken:
        """A token for a reader that is known already, or for a new one."""
        name = uuid.UUID(reader) if reader else uuid.uuid4()
        expires = int(self.clock()) + LIVES
        text = f"{name.hex}.{expires}.{await self._signature(key_id, name.hex, expires)}"
        return ReaderToken(text, in_utc(datetime.fromtimestamp(expires, UTC)))

    async def reader(self, key_id: str, token: str) -> str | None:
        """The reader that a token names, if it was signed here, for this key, and has not expired."""
        found = _TOKEN.fullmatch(token)
        if found is None:
            return None
        name, expires = found[1], int(found[2])
        signed = hmac.compare_digest(found[3], await self._signature(key_id, name, expires))
        return str(uuid.UUID(name)) if signed and self.clock() < expires else None

    async def _signature(self, key_id: str, name: str, expires: int) -> str:
        secret = await self.keys.server_secret(SECRET)
        return hmac.new(secret, f"{key_id}\n{name}\n{expires}".encode(), hashlib.sha256).hexdigest()
