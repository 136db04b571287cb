"""The port of traces: how the flows say what took how long. A span has a name and attributes: counts, ids and names
that the operator chose, never text of a reader or a book."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from lectern.domain.tracing import Attributes

T = TypeVar("T")


class Tracer(Protocol):
    """Records the spans of one process."""

    def span(
        self, name: str, attributes: Attributes | None = None, *, caller: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """A span of the time that a block takes, below the current one. A block with `yield` in it needs `over`.
        `caller` has the headers of a request that this process answers; the span then belongs to the caller's trace."""

    def over(
        self, name: str, events: AsyncIterator[T], attributes: Attributes | None = None
    ) -> AsyncGenerator[T, None]:
        """The same events, with a span of the time from the first to the last. It is the current span while an event is
        made, not while the receiver works with it."""

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Add attributes to the current span, and give it a better name. With `error.type` the span has failed."""

    def headers(self) -> dict[str, str]:
        """The headers that tell another service which span its request belongs to."""

    def trace_id(self) -> str | None:
        """The id of the current trace, for log lines; None outside of any."""
