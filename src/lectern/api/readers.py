"""Readers of a publishable key; each browser is one. The server stores no reader token: it checks the signature, which
covers the key, the reader and the expiry. So a token is not valid with another key."""

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
from lectern.ports.keys import KeyStore

TOKEN_HEADER = "x-reader-token"  # noqa: S105  # a header's name
TOKEN_LIFETIME_SECONDS = 30 * 24 * 3600
SECRET_NAME = "readers"  # noqa: S105  # a name, not a secret
_TOKEN = re.compile(r"([0-9a-f]{32})\.([1-9][0-9]{0,11})\.([0-9a-f]{64})", re.ASCII)  # one text for one token


@dataclass(frozen=True, slots=True)
class ReaderToken:
    """A signed token that names a reader."""

    text: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Readers:
    """Creates and checks reader tokens."""

    keys: KeyStore
    clock: Callable[[], float] = time.time

    async def token(self, key_id: str, reader: str | None = None) -> ReaderToken:
        """A token for an existing reader, or for a new one."""
        name = uuid.UUID(reader) if reader else uuid.uuid4()
        expires = int(self.clock()) + TOKEN_LIFETIME_SECONDS
        text = f"{name.hex}.{expires}.{await self._signature(key_id, name.hex, expires)}"
        return ReaderToken(text, in_utc(datetime.fromtimestamp(expires, UTC)))

    async def reader(self, key_id: str, token: str) -> str | None:
        """The reader that a token names, if it was signed here, for this key, and has not expired."""
        match = _TOKEN.fullmatch(token)
        if match is None:
            return None
        name, expires = match[1], int(match[2])
        valid = hmac.compare_digest(match[3], await self._signature(key_id, name, expires))
        return str(uuid.UUID(name)) if valid and self.clock() < expires else None

    async def _signature(self, key_id: str, name: str, expires: int) -> str:
        secret = await self.keys.server_secret(SECRET_NAME)
        return hmac.new(secret, f"{key_id}\n{name}\n{expires}".encode(), hashlib.sha256).hexdigest()
