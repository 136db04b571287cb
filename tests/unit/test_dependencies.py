"""Calls of other servers are reported to whoever counts and logs them."""

from __future__ import annotations

import asyncio

import pytest

from lectern.domain.dependencies import Call, calling, watch
from lectern.domain.errors import ProviderTimeout


def test_a_watcher_hears_of_every_call_until_it_stops() -> None:
    """Its time, and the error of a call that failed; the error goes on to the caller."""
    calls: list[Call] = []
    unwatch = watch(calls.append)
    with calling("redis"):
        pass
    with pytest.raises(ProviderTimeout), calling("qdrant"):
        raise ProviderTimeout("qdrant", "did not answer in time")
    unwatch()
    with calling("redis"):
        pass

    assert [call.dependency for call in calls] == ["redis", "qdrant"]
    assert calls[0].error is None
    assert isinstance(calls[1].error, ProviderTimeout)
    assert all(call.seconds >= 0 for call in calls)


def test_a_cancelled_call_is_no_failure() -> None:
    """A reader who goes away says nothing about the server."""
    calls: list[Call] = []
    unwatch = watch(calls.append)
    try:
        with pytest.raises(asyncio.CancelledError), calling("embedder"):
            raise asyncio.CancelledError
    finally:
        unwatch()

    assert [call.error for call in calls] == [None]
