"""Texts to vectors over a network, alike for every provider. Batches hold texts of like length within the provider's
limits; each has several tries and a time of its own, and the first that fails ends the call. What comes back is every
vector, checked, or an error; never a part.

The time belongs to a batch and not to the call: a large book that goes forward may take its hour, a provider that does
not answer is given up after `budget` seconds whatever the size of the book.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from lectern.domain.chunks import Vector
from lectern.domain.errors import BadInput, ProviderError, ProviderTimeout, RateLimited
from lectern.ports.index import Purpose

Numbered = Sequence[tuple[object, object]]  # place in the batch and vector, both as the provider gave them
Send = Callable[[Sequence[str]], Awaitable[Numbered]]
Sleep = Callable[[float], Awaitable[None]]
Progress = Callable[[int, int], None]  # texts done, texts in all

# The index keeps single precision: squares of what is shorter or longer than this are zero or infinite there.
SHORTEST, LONGEST = 1e-6, 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a provider is waited for. All figures but the first are seconds."""

    attempts: int
    timeout: float  # one try, to its last byte
    budget: float  # one batch: tries and waits together
    first_wait: float
    longest_wait: float  # a provider that asks for more is not asked again: the error says how long it wants


INGESTING = Patience(attempts=7, timeout=60, budget=300, first_wait=1, longest_wait=60)  # outlasts a limit per minute
ASKING = Patience(attempts=3, timeout=10, budget=20, first_wait=0.25, longest_wait=5)  # a reader is waiting


def _patience() -> Mapping[Purpose, Patience]:
    return {"passage": INGESTING, "question": ASKING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What does not depend on the provider: how patient, how many batches at once, and who wants to know."""

    patience: Mapping[Purpose, Patience] = field(default_factory=_patience)
    concurrency: int = 4
    most_texts: int | None = None  # a request, where the provider's own limit is too many
    sleep: Sleep = asyncio.sleep
    progress: Progress | None = None

    @property
    def longest_try(self) -> float:
        """The time-out for a client that serves all purposes."""
        return max(one.timeout for one in self.patience.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """One provider's limits, and the way through them."""

    provider: str
    dimensions: int
    most_texts: int  # a request
    most_bytes: int  # a request, as UTF-8
    pace: Pace

    async def embed(self, texts: Sequence[str], send: Send, purpose: Purpose) -> list[Vector]:
        """One vector a text, in the same order; a text that occurs twice is sent once."""
        sizes = {text: utf8_bytes(text) for text in texts}
        vectors: dict[str, Vector] = {}
        turns = asyncio.Semaphore(self.pace.concurrency)

        async def fetch(batch: Sequence[str]) -> None:
            await turns.acquire()
            numbered = await self._persist(partial(send, batch), self.pace.patience[purpose])
            raw = in_order(self.provider, numbered, len(batch))
            checked = check_vectors(self.provider, raw, count=len(batch), dimensions=self.dimensions)
            vectors.update(zip(batch, checked, strict=True))
            turns.release()  # by no means after a failure: no batch may begin then
            if self.pace.progress:
                self.pace.progress(len(vectors), len(sizes))

        try:
            async with asyncio.TaskGroup() as group:
                most_texts = min(self.most_texts, self.pace.most_texts or self.most_texts)
                for batch in in_batches(sizes, most_texts=most_texts, most_bytes=self.most_bytes):
                    group.create_task(fetch(batch))
        except ExceptionGroup as failed:  # the others were cancelled
            raise failed.exceptions[0] from None
        return [vectors[text] for text in texts]

    async def _persist(self, send: Callable[[], Awaitable[Numbered]], patience: Patience) -> Numbered:
        end = time.monotonic() + patience.budget
        for attempt in count(1):
            try:
                async with asyncio.timeout(min(patience.timeout, end - time.monotonic())):
                    return await send()
            except TimeoutError:
                error: ProviderError = ProviderTimeout(self.provider, "did not answer in time; try again")
            except ProviderError as exc:
                error = exc
            wait = _wait(error, attempt, patience)
            if not error.retryable or attempt == patience.attempts or wait > patience.longest_wait:
                break
            if time.monotonic() + wait >= end:
                break
            await self.pace.sleep(wait)
        raise error


def _wait(error: ProviderError, attempt: int, patience: Patience) -> float:
    backoff = min(patience.first_wait * 2.0 ** (attempt - 1), patience.longest_wait)
    backoff *= random.uniform(0.5, 1)  # noqa: S311  # so that many callers do not come back at the same moment
    return max(backoff, error.retry_after) if isinstance(error, RateLimited) else backoff


def utf8_bytes(text: str) -> int:
    """A text's size on the wire, and never less than its tokens: no token is shorter than a byte."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise BadInput("the text holds half a character (a lone surrogate), which no provider takes") from None


def in_batches(sizes: Mapping[str, int], *, most_texts: int, most_bytes: int) -> Iterator[list[str]]:
    """Texts of like size together; one that is larger than a request may be goes alone, for the provider to judge."""
    batch: list[str] = []
    held = 0
    for text, size in sorted(sizes.items(), key=lambda item: item[1]):
        if batch and (len(batch) == most_texts or held + size > most_bytes):
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += size
    if batch:
        yield batch


def in_order(provider: str, numbered: Numbered, count: int) -> list[object]:
    """The vectors by the places that the provider gave them; each place must be there once."""
    if len(numbered) != count:
        raise ProviderError(provider, f"gave {len(numbered)} vectors for {count} texts; none was used")
    placed = {place: vector for place, vector in numbered if type(place) is int}
    if placed.keys() != set(range(count)):
        raise ProviderError(provider, "numbered its vectors so that they fit no texts; none was used")
    return [placed[place] for place in range(count)]


def check_vectors(provider: str, vectors: Sequence[object], *, count: int, dimensions: int) -> list[Vector]:
    """The vectors, if all of them are fit for the index: right in number and length, finite, not zero."""
    if len(vectors) != count:
        raise ProviderError(provider, f"gave {len(vectors)} vectors for {count} texts; none was used")
    return [_checked(provider, vector, dimensions) for vector in vectors]


def _checked(provider: str, vector: object, dimensions: int) -> Vector:
    if not isinstance(vector, list) or not {*map(type, vector)} <= {float, int}:
        raise ProviderError(provider, "gave a vector that is no list of numbers; no vector was used")
    if len(vector) != dimensions:
        raise ProviderError(
            provider, f"gave a vector of {len(vector)} numbers instead of {dimensions}; check the model's name"
        )
    try:
        length = math.hypot(*vector)
    except OverflowError:  # an integer beyond any float
        length = math.inf
    if not math.isfinite(length) or length > LONGEST:
        raise ProviderError(provider, "gave a vector with NaN, infinite or huge numbers; no vector was used")
    if length < SHORTEST:
        raise ProviderError(provider, "gave a zero vector; no vector was used")
    return [float(number) for number in vector]
