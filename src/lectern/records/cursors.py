"""Where a list goes on: the last row's moment and number, as text that nobody has to understand."""

from __future__ import annotations

import base64
import binascii
import re

from lectern.domain.errors import BadInput

_PLACE = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]{8,15}Z) (\d{1,18})")  # what every database can compare


def cursor_of(moment: str, number: int) -> str:
    """The cursor behind a row."""
    return base64.urlsafe_b64encode(f"{moment} {number}".encode()).decode()


def place_of(cursor: str) -> tuple[str, int]:
    """The row behind a cursor."""
    try:
        found = _PLACE.fullmatch(base64.urlsafe_b64decode(cursor.encode()).decode())
    except (binascii.Error, ValueError):
        found = None
    if found is None:
        raise BadInput("cursor is not one that was given out; begin without it", field="cursor")
    return found[1], int(found[2])
