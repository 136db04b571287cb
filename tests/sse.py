"""A strict reader of Server-Sent Events, as a browser reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One event as a client sees it."""

    name: str
    data: str
    id: str

    @property
    def body(self) -> Any:
        """Its JSON."""
        return json.loads(self.data)


def events(lines: Iterable[str]) -> Iterator[Event]:
    """The events in a stream of lines; comments are keep-alives."""
    name, data, last = "message", [], ""
    for raw in lines:
        line = raw.rstrip("\n")
        if not line:
            if data:
                yield Event(name, "\n".join(data), last)
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last = value
        else:
            assert not field or field == "retry", f"no such field: {line!r}"
