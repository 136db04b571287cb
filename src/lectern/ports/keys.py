"""The port of keys: who may use the API over HTTP, as requests ask it."""

from __future__ import annotations

from typing import Protocol

from lectern.domain.keys import Key


class KeyStore(Protocol):
    """The keys that an operator has made, without their texts."""

    async def exist(self) -> bool:
        """Whether a key was ever made; until then nobody on this machine needs one."""

    async def verify(self, text: str) -> Key | None:
        """The key with this text, if it opens anything now."""

    async def is_unrevoked(self, key_id: str) -> bool:
        """Whether a key still exists and was not revoked."""

    async def origins(self) -> frozenset[str]:
        """The origins of every publishable key that is valid."""

    async def note_use(self, key: Key) -> None:
        """Store when a key was last used."""

    async def server_secret(self, name: str) -> bytes:
        """The secret of this name that all servers on one database share; made when it is first asked for."""
