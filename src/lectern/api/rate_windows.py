"""Counting requests in moving windows, for one process or, in Redis, for several. While Redis does not answer, each
process counts for itself: nobody is turned away because a counter is missing, and nobody gets in unlimited.

How often a caller may ask: by key, whatever address it comes from; without keys, by address. A reader of a
publishable key has a share of the key's. Bad keys are counted too, by address.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from lectern.domain.errors import TooMany
from lectern.domain.extras import import_extra
from lectern.domain.keys import Caller

if TYPE_CHECKING:
    from redis.asyncio import BlockingConnectionPool

T = TypeVar("T")
ANSWERS = 0.5  # seconds in which Redis must answer: a request waits for it
CONNECTIONS = 20  # to Redis; a burst waits for one of them instead of opening hundreds
ROUNDING = 0.001  # seconds
LEFT_ALONE = 5.0  # seconds before Redis is asked again after it failed
log = logging.getLogger("lectern.limits")
WINDOW = 60  # seconds
BAD_KEYS = 20  # a minute, from one address


@dataclass(frozen=True, slots=True)
class Bucket:
    """What is counted together, and how many of it a minute may have."""

    name: tuple[str, ...]
    most: int

    @property
    def item(self) -> RateLimitItemPerMinute:
        """The same, as the library says it."""
        return RateLimitItemPerMinute(self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a bucket stands after a request."""

    admitted: bool
    most: int
    remaining: int
    reset: float  # seconds until the oldest request of the window is forgotten

    @property
    def wait(self) -> int:
        """Whole seconds after which there is room; never a moment too early, though clocks round."""
        return math.floor(self.reset + ROUNDING) + 1


class ProcessWindows(MemoryStorage):
    """The library's own store in memory looks through every bucket, in a thread each, at every request; with a thousand
    readers that takes a core. This one looks at the bucket that is asked for, and at all of them once a window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._hits: dict[str, deque[float]] = {}
        self._swept = clock()

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Take so many places, if there are."""
        now = self._clock()
        self._sweep(now, expiry)
        hits = self._live(key, now - expiry)
        if len(hits) + amount > limit:
            return False
        hits.extend([now] * amount)
        self._hits[key] = hits
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest of the window's requests came, and how many it has."""
        now = self._clock()
        hits = self._live(key, now - expiry)
        return (hits[0], len(hits)) if hits else (now, 0)

    def _live(self, key: str, since: float) -> deque[float]:
        hits = self._hits.get(key, deque())
        while hits and hits[0] < since:
            hits.popleft()
        return hits

    def _sweep(self, now: float, expiry: int) -> None:
        """Forget the buckets that nobody used in a window."""
        if now - self._swept < expiry:
            return
        self._swept = now
        self._hits = {key: hits for key, hits in self._hits.items() if hits and hits[-1] >= now - expiry}


@dataclass(frozen=True, slots=True)
class _Counter:
    """A store with the clock that its moments are read from."""

    limiter: MovingWindowRateLimiter
    clock: Callable[[], float]

    async def count(self, buckets: tuple[Bucket, ...]) -> Standing:
        """Count a request in all of its buckets, or in none that is seen to be full; how the fullest stands."""
        if len(buckets) > 1:
            for bucket in buckets:
                if not await self.limiter.test(bucket.item, *bucket.name):
                    return await self._standing(bucket, admitted=False)
        standings = []
        for bucket in buckets:
            admitted = await self.limiter.hit(bucket.item, *bucket.name)
            standings.append(await self._standing(bucket, admitted=admitted))
            if not admitted:
                return standings[-1]
        return min(standings, key=lambda one: one.remaining)

    async def _standing(self, bucket: Bucket, *, admitted: bool) -> Standing:
        reset, remaining = await self.limiter.get_window_stats(bucket.item, *bucket.name)
        left = max(0.0, reset - self.clock())
        return Standing(admitted=admitted, most=bucket.most, remaining=max(0, remaining), reset=left)


class Windows:
    """Counts, shared if a Redis is given."""

    def __init__(self, url: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._own = _Counter(MovingWindowRateLimiter(ProcessWindows(clock)), clock)
        self._pool = _pool(url) if url else None
        self._shared = _Counter(MovingWindowRateLimiter(_redis(self._pool)), time.time) if self._pool else None
        self._again_at = 0.0

    async def count(self, *buckets: Bucket) -> Standing:
        """Count a request."""
        return await self._on_a_store(lambda counter: counter.count(buckets))

    async def close(self) -> None:
        """Let go of the connections."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _on_a_store(self, work: Callable[[_Counter], Awaitable[T]]) -> T:
        if self._shared is not None and time.monotonic() >= self._again_at:
            try:
                return await work(self._shared)
            except (StorageError, OSError) as exc:
                self._again_at = time.monotonic() + LEFT_ALONE
                log.warning(
                    "LECTERN_LIMITS_URL does not answer (%s): for %g s this process counts requests on its own",
                    type(exc.__cause__ or exc).__name__,
                    LEFT_ALONE,
                )
        return await work(self._own)


def _pool(url: str) -> BlockingConnectionPool:
    import_extra("redis", extra="server", setting="LECTERN_LIMITS_URL")
    from redis.asyncio import BlockingConnectionPool

    return BlockingConnectionPool.from_url(
        url, max_connections=CONNECTIONS, timeout=ANSWERS, socket_timeout=ANSWERS, socket_connect_timeout=ANSWERS
    )


def _redis(pool: BlockingConnectionPool) -> RedisStorage:
    options: dict[str, Any] = {"connection_pool": pool}
    return RedisStorage(
        "async+redis://", wrap_exceptions=True, implementation="redispy", key_prefix="lectern", **options
    )


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
