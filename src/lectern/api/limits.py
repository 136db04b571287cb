"""How often a caller may ask: by key, whatever address it comes from; without keys, by address. A reader of a
publishable key has a share of the key's. Bad keys are counted too, by address."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lectern.api.windows import Bucket, Standing, Windows
from lectern.domain.callers import Caller
from lectern.domain.errors import TooMany

WINDOW = 60  # seconds
BAD_KEYS = 20  # a minute, from one address


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server."""

    windows: Windows
    per_key: int  # requests a minute; 0 for no limits at all
    per_reader: int  # the same, of one reader; 0 for no more than the key's

    async def admit(self, caller: Caller, peer: str) -> Standing | None:
        """Count a request; how its caller stands, or None where nothing is limited."""
        return await self.windows.count(*self._buckets(caller, peer)) if self.per_key else None

    async def refuse_guessing(self, peer: str) -> None:
        """Count a bad key; too many from one address are told to wait. Good ones from there pass all the same: many
        readers may share an address with one who guesses."""
        if not self.per_key:
            return
        standing = await self.windows.count(Bucket(("bad", peer), BAD_KEYS))
        if not standing.admitted:
            raise TooMany(f"too many bad keys from {peer}; try again in {standing.wait} s", standing.wait)

    def _buckets(self, caller: Caller, peer: str) -> tuple[Bucket, ...]:
        if caller.key_id is None:
            return (Bucket(("peer", peer), self.per_key),)
        whole = Bucket(("key", caller.key_id), self.per_key)
        share = min(self.per_reader, self.per_key)
        if not share or not (caller.reader or caller.nameless):
            return (whole,)
        who = ("reader", caller.key_id, caller.reader) if caller.reader else ("visitor", caller.key_id, peer)
        return Bucket(who, share), whole


def limit_headers(standing: Standing) -> list[tuple[bytes, bytes]]:
    """The standing as headers, in the manner of the IETF's draft (httpapi-ratelimit-headers-06)."""
    values = {
        "ratelimit-limit": standing.most,
        "ratelimit-remaining": standing.remaining,
        "ratelimit-reset": math.ceil(standing.reset),
        "ratelimit-policy": f"{standing.most};w={WINDOW}",
    }
    return [(name.encode(), str(value).encode()) for name, value in values.items()]


def too_many(standing: Standing) -> TooMany:
    """The error of a caller who asks too often."""
    return TooMany(
        f"{standing.most} requests a minute are allowed; there is room again in {standing.wait} s", standing.wait
    )
