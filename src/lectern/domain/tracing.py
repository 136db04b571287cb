"""The attributes of spans, and what a process without a collector does with spans: nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import TypeVar

T = TypeVar("T")
Attributes = Mapping[str, str | int | float | bool]  # never text of a reader or a book


class Untraced:
    """Records no span."""

    def span(
        self, name: str, attributes: Attributes | None = None, *, caller: Mapping[str, str] | None = None
    ) -> AbstractContextManager[None]:
        """Nothing around the block."""
        return nullcontext()

    async def over(
        self, name: str, events: AsyncIterator[T], attributes: Attributes | None = None
    ) -> AsyncGenerator[T, None]:
        """The events as they are."""
        async with aclosing(events):  # type: ignore[type-var]  # an async generator
            async for event in events:
                yield event

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Nothing."""

    def headers(self) -> dict[str, str]:
        """None."""
        return {}

    def trace_id(self) -> str | None:
        """None."""
        return None


UNTRACED = Untraced()
