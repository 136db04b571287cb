"""What routes are given."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from lectern.wiring import Lectern


def lectern_of(request: Request) -> Lectern:
    """The Lectern that the application was started with."""
    lectern = request.app.state.lectern
    assert isinstance(lectern, Lectern)
    return lectern


LecternDep = Annotated[Lectern, Depends(lectern_of)]
