"""Readers as programs see them."""

from __future__ import annotations

from pydantic import Field

from lectern.schemas.common import Response


class ReaderOut(Response):
    """A reader's token."""

    reader_token: str = Field(description="To be sent back as `X-Reader-Token`.")
    expires_at: str
