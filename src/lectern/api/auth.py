"""Who asks. Until keys exist, whoever reaches the server is the local owner."""

from __future__ import annotations

from lectern.domain.callers import LOCAL, Caller


async def caller_of() -> Caller:
    """The caller behind a request."""
    return LOCAL
