"""A server that does not answer is not asked by everybody."""

import pytest

from lectern.domain.errors import BadInput, ProviderError, ProviderRefused
from lectern.index.server import MAX_FAILURES, RETRY_SECONDS, CircuitBreaker


class Clock:
    """A clock that stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        """The moment."""
        return self.now


def fail(breaker: CircuitBreaker, error: Exception) -> None:
    """A request that gets through and fails."""
    with pytest.raises(type(error)), breaker.request():
        raise error


def refused(breaker: CircuitBreaker) -> bool:
    """Whether the next request is turned away."""
    try:
        with breaker.request():
            return False
    except ProviderError:
        return True


def test_after_failures_in_a_row_one_at_a_time_tries() -> None:
    """Some failures pass; then all are turned away at once, one tries after the rest, and its success opens the way."""
    clock = Clock()
    breaker = CircuitBreaker("qdrant", clock)
    for _ in range(MAX_FAILURES):
        fail(breaker, ProviderError("qdrant", "down"))

    assert refused(breaker)
    clock.now += RETRY_SECONDS
    fail(breaker, ProviderError("qdrant", "still down"))
    assert refused(breaker)
    clock.now += RETRY_SECONDS
    assert not refused(breaker)
    assert not refused(breaker)


def test_while_one_tries_the_others_wait() -> None:
    """The request that tries for everybody does so alone."""
    clock = Clock()
    breaker = CircuitBreaker("qdrant", clock)
    for _ in range(MAX_FAILURES):
        fail(breaker, ProviderError("qdrant", "down"))
    clock.now += RETRY_SECONDS

    with breaker.request():
        assert refused(breaker)

    assert not refused(breaker)


def test_what_is_the_callers_own_fault_does_not_count() -> None:
    """A refused key or a bad request says nothing about the server; a success in between starts anew."""
    breaker = CircuitBreaker("qdrant", Clock())
    for _ in range(MAX_FAILURES + 1):
        fail(breaker, ProviderRefused("qdrant", "bad key"))
        fail(breaker, BadInput("no"))
    assert not refused(breaker)
    for _ in range(MAX_FAILURES - 1):
        fail(breaker, ProviderError("qdrant", "down"))
    assert not refused(breaker)
    fail(breaker, ProviderError("qdrant", "down"))
    assert not refused(breaker)
