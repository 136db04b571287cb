"""A run, for whoever asks how it ended."""

from __future__ import annotations

from typing import Self

from lectern.domain.threads import Run, RunState
from lectern.schemas.common import Response


class RunOut(Response):
    """One attempt at a turn."""

    run_id: str
    session_id: str
    state: RunState
    error: str | None

    @classmethod
    def of(cls, run: Run) -> Self:
        """The run as the turn log has it."""
        return cls(run_id=run.run_id, session_id=run.thread_id, state=run.state, error=run.error)
