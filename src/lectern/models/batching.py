"""Embeds texts over a network in batches, in the same way for every provider. A batch holds texts of similar length,
within the provider's limits. Each batch has several attempts and its own time limit; the first batch that fails ends
the call. The result is all vectors, checked, or an error.

The time limit is for a batch and not for the call: a large book may take an hour as long as batches succeed, but a
provider that does not answer fails the call after `budget` seconds.
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
from lectern.domain.dependencies import calling
from lectern.domain.errors import BadInput, ProviderError, ProviderFaulty, ProviderTimeout, RateLimited
from lectern.ports.index import Purpose

NumberedVectors = Sequence[tuple[object, object]]  # position in the batch and vector, both as the provider gave them
Send = Callable[[Sequence[str]], Awaitable[NumberedVectors]]
Sleep = Callable[[float], Awaitable[None]]
Progress = Callable[[int, int], None]  # texts done, texts in all

PROBE = "dimensions"  # the text whose vector shows how long a model's vectors are

# The index stores single precision: the squares of shorter or longer vectors would be zero or infinite.
MIN_VECTOR_LENGTH, MAX_VECTOR_LENGTH = 1e-6, 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is tried and how long a provider may take. All values except `attempts` are seconds."""

    attempts: int
    timeout: float  # of one attempt, to the last byte
    budget: float  # of one batch: attempts and waits together
    first_wait: float
    longest_wait: float  # if a provider asks for more, the call fails; the error says how long the provider asks for


# for passages: longer than a rate limit per minute lasts
INGEST_RETRIES = RetryPolicy(attempts=7, timeout=60, budget=300, first_wait=1, longest_wait=60)
# for questions: a reader is waiting
QUESTION_RETRIES = RetryPolicy(attempts=3, timeout=10, budget=20, first_wait=0.25, longest_wait=5)


def _default_retries() -> Mapping[Purpose, RetryPolicy]:
    return {"passage": INGEST_RETRIES, "question": QUESTION_RETRIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The options that do not depend on the provider: retries, batches at the same time, and a progress callback."""

    retries: Mapping[Purpose, RetryPolicy] = field(default_factory=_default_retries)
    concurrency: int = 4
    max_texts: int | None = None  # of a request, if it should be less than the provider's limit
    sleep: Sleep = asyncio.sleep
    progress: Progress | None = None

    @property
    def longest_timeout(self) -> float:
        """The time-out for a client that serves all purposes."""
        return max(policy.timeout for policy in self.retries.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEmbedding:
    """Embeds texts within the limits of one provider."""

    provider: str
    dimensions: int | None  # None: not known yet, any length is taken
    max_texts: int  # of a request
    max_bytes: int  # of a request, as UTF-8
    options: BatchOptions

    async def embed(self, texts: Sequence[str], send: Send, purpose: Purpose) -> list[Vector]:
        """One vector for each text, in the same order. A text that occurs twice is sent once."""
        sizes = {text: utf8_bytes(text) for text in texts}
        vectors: dict[str, Vector] = {}
        slots = asyncio.Semaphore(self.options.concurrency)

        async def fetch(batch: Sequence[str]) -> None:
            await slots.acquire()
            numbered = await self._send_with_retries(partial(send, batch), self.options.retries[purpose])
            ordered = in_order(self.provider, numbered, len(batch))
            checked = check_vectors(self.provider, ordered, count=len(batch), dimensions=self.dimensions)
            vectors.update(zip(batch, checked, strict=True))
            slots.release()  # not after a failure, so that no further batch starts
            if self.options.progress:
                self.options.progress(len(vectors), len(sizes))

        try:
            async with asyncio.TaskGroup() as group:
                max_texts = min(self.max_texts, self.options.max_texts or self.max_texts)
                for batch in in_batches(sizes, max_texts=max_texts, max_bytes=self.max_bytes):
                    group.create_task(fetch(batch))
        except ExceptionGroup as group_error:  # the other batches were cancelled
            raise group_error.exceptions[0] from None
        return [vectors[text] for text in texts]

    async def _send_with_retries(
        self, send: Callable[[], Awaitable[NumberedVectors]], policy: RetryPolicy
    ) -> NumberedVectors:
        end = time.monotonic() + policy.budget
        for attempt in count(1):
            try:
                with calling("embedder"):
                    async with asyncio.timeout(min(policy.timeout, end - time.monotonic())):
                        return await send()
            except TimeoutError:
                error: ProviderError = ProviderTimeout(self.provider, "did not answer in time; try again")
            except ProviderError as exc:
                error = exc
            wait = _wait(error, attempt, policy)
            if not error.retryable or attempt == policy.attempts or wait > policy.longest_wait:
                break
            if time.monotonic() + wait >= end:
                break
            await self.options.sleep(wait)
        raise error


def _wait(error: ProviderError, attempt: int, policy: RetryPolicy) -> float:
    backoff = min(policy.first_wait * 2.0 ** (attempt - 1), policy.longest_wait)
    backoff *= random.uniform(0.5, 1)  # noqa: S311  # so that many callers do not retry at the same moment
    return max(backoff, error.retry_after) if isinstance(error, RateLimited) else backoff


def utf8_bytes(text: str) -> int:
    """A text's size in a request. It is never less than its number of tokens, because no token is shorter than a
    byte."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise BadInput("the text holds half a character (a lone surrogate), which no provider takes") from None


def in_batches(sizes: Mapping[str, int], *, max_texts: int, max_bytes: int) -> Iterator[list[str]]:
    """Batches of texts of similar size. A text that is larger than the limit is a batch of its own; the provider
    decides about it."""
    batch: list[str] = []
    batch_bytes = 0
    for text, size in sorted(sizes.items(), key=lambda item: item[1]):
        if batch and (len(batch) == max_texts or batch_bytes + size > max_bytes):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(text)
        batch_bytes += size
    if batch:
        yield batch


def in_order(provider: str, numbered: NumberedVectors, count: int) -> list[object]:
    """The vectors in the order of the positions that the provider gave; each position must occur once."""
    if len(numbered) != count:
        raise ProviderFaulty(provider, f"gave {len(numbered)} vectors for {count} texts; none was used")
    by_position = {position: vector for position, vector in numbered if type(position) is int}
    if by_position.keys() != set(range(count)):
        raise ProviderFaulty(provider, "numbered its vectors so that they fit no texts; none was used")
    return [by_position[position] for position in range(count)]


def check_vectors(provider: str, vectors: Sequence[object], *, count: int, dimensions: int | None) -> list[Vector]:
    """The vectors, if the index can store all of them: right in number and length, finite, not zero."""
    if len(vectors) != count:
        raise ProviderFaulty(provider, f"gave {len(vectors)} vectors for {count} texts; none was used")
    return [_check_vector(provider, vector, dimensions) for vector in vectors]


def _check_vector(provider: str, vector: object, dimensions: int | None) -> Vector:
    if not isinstance(vector, list) or not {*map(type, vector)} <= {float, int}:
        raise ProviderFaulty(provider, "gave a vector that is no list of numbers; no vector was used")
    if dimensions is not None and len(vector) != dimensions:
        raise ProviderFaulty(
            provider, f"gave a vector of {len(vector)} numbers instead of {dimensions}; check the model's name"
        )
    try:
        length = math.hypot(*vector)
    except OverflowError:  # an integer beyond any float
        length = math.inf
    if not math.isfinite(length) or length > MAX_VECTOR_LENGTH:
        raise ProviderFaulty(provider, "gave a vector with NaN, infinite or huge numbers; no vector was used")
    if length < MIN_VECTOR_LENGTH:
        raise ProviderFaulty(provider, "gave a zero vector; no vector was used")
    return [float(number) for number in vector]
