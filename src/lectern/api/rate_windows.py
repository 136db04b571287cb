"""Rate limits over moving windows, counted in one process or, with Redis, for several. While Redis does not answer,
each process counts on its own: requests are still served, and still limited.

Requests are counted by key, whatever address they come from, and by address if there is no key. A reader of a
publishable key has a limit within the key's. Bad keys are counted by address.
"""

from __future__ import annotations

import asyncio
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

from lectern.domain.dependencies import calling
from lectern.domain.errors import TooMany
from lectern.domain.extras import import_extra
from lectern.domain.keys import Caller

if TYPE_CHECKING:
    from redis.asyncio import BlockingConnectionPool

T = TypeVar("T")
REDIS_TIMEOUT = 0.5  # seconds; a request waits for the answer
REDIS_CONNECTIONS = 20  # a burst waits for one of them instead of opening hundreds
CLOCK_ROUNDING = 0.001  # seconds
REDIS_RETRY_SECONDS = 5.0  # after a failure
log = logging.getLogger("lectern.limits")
WINDOW_SECONDS = 60
MAX_BAD_KEYS = 20  # a minute, from one address


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A limit on the requests that are counted under one key."""

    key: tuple[str, ...]
    per_minute: int

    @property
    def item(self) -> RateLimitItemPerMinute:
        """The limit as a value of the `limits` library."""
        return RateLimitItemPerMinute(self.per_minute)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitState:
    """The state of a limit after a request."""

    admitted: bool
    limit: int
    remaining: int
    reset: float  # seconds until the oldest request leaves the window

    @property
    def wait(self) -> int:
        """Whole seconds until a request is admitted again. It is never too short, although clocks round."""
        return math.floor(self.reset + CLOCK_ROUNDING) + 1


class MemoryWindows(MemoryStorage):
    """Counts requests in memory. The library's own memory store checks all its keys at every request, each in a thread;
    with a thousand readers that uses a whole core. This one checks the key of the request, and all keys once a
    window."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._hits: dict[str, deque[float]] = {}
        self._last_sweep = clock()

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` requests under a key if the limit allows it."""
        now = self._clock()
        self._sweep(now, expiry)
        hits = self._hits_since(key, now - expiry)
        if len(hits) + amount > limit:
            return False
        hits.extend([now] * amount)
        self._hits[key] = hits
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """The time of the oldest request in the window, and the number of requests in it."""
        now = self._clock()
        hits = self._hits_since(key, now - expiry)
        return (hits[0], len(hits)) if hits else (now, 0)

    def _hits_since(self, key: str, since: float) -> deque[float]:
        hits = self._hits.get(key, deque())
        while hits and hits[0] < since:
            hits.popleft()
        return hits

    def _sweep(self, now: float, expiry: int) -> None:
        """Delete the keys that had no request within the last window."""
        if now - self._last_sweep < expiry:
            return
        self._last_sweep = now
        self._hits = {key: hits for key, hits in self._hits.items() if hits and hits[-1] >= now - expiry}


@dataclass(frozen=True, slots=True)
class _Counter:
    """A rate limiter with the clock of its store."""

    limiter: MovingWindowRateLimiter
    clock: Callable[[], float]

    async def count(self, limits: tuple[RateLimit, ...]) -> LimitState:
        """Count a request under all its limits. If one of several limits is full already, nothing is counted. Returns
        the state of the full limit, else of the limit with the fewest requests remaining."""
        if len(limits) > 1:
            for limit in limits:
                if not await self.limiter.test(limit.item, *limit.key):
                    return await self._state(limit, admitted=False)
        states = []
        for limit in limits:
            admitted = await self.limiter.hit(limit.item, *limit.key)
            states.append(await self._state(limit, admitted=admitted))
            if not admitted:
                return states[-1]
        return min(states, key=lambda state: state.remaining)

    async def _state(self, limit: RateLimit, *, admitted: bool) -> LimitState:
        reset, remaining = await self.limiter.get_window_stats(limit.item, *limit.key)
        seconds = max(0.0, reset - self.clock())
        return LimitState(admitted=admitted, limit=limit.per_minute, remaining=max(0, remaining), reset=seconds)


class RateWindows:
    """Counts requests, shared with other processes if a Redis is given."""

    def __init__(self, url: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._local = _Counter(MovingWindowRateLimiter(MemoryWindows(clock)), clock)
        self._pool = _pool(url) if url else None
        self._shared = _Counter(MovingWindowRateLimiter(_redis(self._pool)), time.time) if self._pool else None
        self._slots = asyncio.Semaphore(REDIS_CONNECTIONS)
        self._retry_at = 0.0

    async def count(self, *limits: RateLimit) -> LimitState:
        """Count a request under these limits; the state of the full limit, else of the one with the fewest
        remaining."""
        return await self._with_counter(lambda counter: counter.count(limits))

    async def close(self) -> None:
        """Close the connections to Redis."""
        if self._pool is not None:
            await self._pool.aclose()

    async def _with_counter(self, work: Callable[[_Counter], Awaitable[T]]) -> T:
        if self._shared is not None and self._may_ask:
            async with self._slots:  # to wait for a connection is no sign of a Redis that does not answer
                if self._may_ask:  # no request before this one found that it does not
                    try:
                        with calling("redis"):
                            return await work(self._shared)
                    except (StorageError, OSError) as exc:
                        self._pause(exc)
        return await work(self._local)

    @property
    def _may_ask(self) -> bool:
        return time.monotonic() >= self._retry_at

    def _pause(self, exc: Exception) -> None:
        """Do not ask Redis for a while, and say so once, although many requests may fail at the same time."""
        if self._may_ask:
            log.warning(
                "LECTERN_LIMITS_URL does not answer (%s): for %g s this process counts requests on its own",
                type(exc.__cause__ or exc).__name__,
                REDIS_RETRY_SECONDS,
            )
        self._retry_at = time.monotonic() + REDIS_RETRY_SECONDS


def _pool(url: str) -> BlockingConnectionPool:
    import_extra("redis", extra="server", setting="LECTERN_LIMITS_URL")
    from redis.asyncio import BlockingConnectionPool

    return BlockingConnectionPool.from_url(
        url,
        max_connections=REDIS_CONNECTIONS,
        timeout=REDIS_TIMEOUT,
        socket_timeout=REDIS_TIMEOUT,
        socket_connect_timeout=REDIS_TIMEOUT,
    )


def _redis(pool: BlockingConnectionPool) -> RedisStorage:
    options: dict[str, Any] = {"connection_pool": pool}
    return RedisStorage(
        "async+redis://", wrap_exceptions=True, implementation="redispy", key_prefix="lectern", **options
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """The rate limits of a server."""

    windows: RateWindows
    per_key: int  # requests a minute; 0 for no limits at all
    per_reader: int  # requests a minute of one reader; 0 for the key's limit alone

    async def admit(self, caller: Caller, peer: str) -> LimitState | None:
        """Count a request; the state of the caller's limit, or None if nothing is limited."""
        return await self.windows.count(*self._limits_of(caller, peer)) if self.per_key else None

    async def refuse_guessing(self, peer: str) -> None:
        """Count a bad key, and raise if too many came from one address. Requests with good keys from there still pass:
        many readers may share an address with someone who guesses keys."""
        if not self.per_key:
            return
        state = await self.windows.count(RateLimit(("bad", peer), MAX_BAD_KEYS))
        if not state.admitted:
            raise TooMany(f"too many bad keys from {peer}; try again in {state.wait} s", state.wait)

    def _limits_of(self, caller: Caller, peer: str) -> tuple[RateLimit, ...]:
        if caller.key_id is None:
            return (RateLimit(("peer", peer), self.per_key),)
        key_limit = RateLimit(("key", caller.key_id), self.per_key)
        share = min(self.per_reader, self.per_key)
        if not share or not (caller.reader or caller.nameless):
            return (key_limit,)
        reader_key = ("reader", caller.key_id, caller.reader) if caller.reader else ("visitor", caller.key_id, peer)
        return RateLimit(reader_key, share), key_limit


def limit_headers(state: LimitState) -> list[tuple[bytes, bytes]]:
    """The state of a limit as headers, after the IETF draft httpapi-ratelimit-headers-06."""
    values = {
        "ratelimit-limit": state.limit,
        "ratelimit-remaining": state.remaining,
        "ratelimit-reset": math.ceil(state.reset),
        "ratelimit-policy": f"{state.limit};w={WINDOW_SECONDS}",
    }
    return [(name.encode(), str(value).encode()) for name, value in values.items()]


def too_many(state: LimitState) -> TooMany:
    """The error for a caller over the limit."""
    return TooMany(f"{state.limit} requests a minute are allowed; there is room again in {state.wait} s", state.wait)
