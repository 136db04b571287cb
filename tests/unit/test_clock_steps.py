"""The wall clock jumps: nothing that counts seconds, admits requests or signs tokens may depend on it more than it
must (RELIABILITY C4, K4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest

from lectern.api.rate_windows import MemoryWindows
from lectern.api.readers import TOKEN_LIFETIME_SECONDS, Readers
from lectern.domain import clock
from tests.books import Author
from tests.ingest_parts import agreement, content, counts_are_right, open_ingest_parts, run

DAY = 24 * 3600.0
STEPS = (0.0, -400 * DAY, 3600.0, -3600.0, 400 * DAY, -0.001)  # seconds by which it is wrong, one after the other


class JumpingClock(dt.datetime):
    """A wall clock that is wrong by another step every time it is read."""

    reads = 0

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> JumpingClock:
        """The time, and a step."""
        cls.reads += 1
        moment = dt.datetime.now(tz) + dt.timedelta(seconds=STEPS[cls.reads % len(STEPS)])
        return cls.fromisoformat(moment.isoformat())


@pytest.fixture
def jumping(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[JumpingClock]]:
    """Whatever reads the wall clock gets one that jumps."""
    monkeypatch.setattr(clock, "datetime", JumpingClock)
    JumpingClock.reads = 0
    yield JumpingClock
    assert JumpingClock.reads > 0, "nothing read the clock"


async def test_ingestions_do_not_depend_on_the_wall_clock(tmp_path: Path, jumping: type[JumpingClock]) -> None:
    """Edits are neither missed nor applied twice, durations are not negative, and the index is what a fresh one is."""
    author = Author(tmp_path / "book", 6)
    async with open_ingest_parts(tmp_path / "home") as deps:
        for _ in range(4):
            job = await run(deps, author.folder)
            assert job.status == "completed"
            assert job.duration_seconds is None or job.duration_seconds >= 0
            await agreement(deps)
            again = await run(deps, author.folder)
            assert (again.files_processed, again.chunks_created) == (0, 0)
            author.edit()
        await run(deps, author.folder)
        actual, counts = await content(deps), await counts_are_right(deps)
    async with open_ingest_parts(tmp_path / "fresh") as deps:
        await run(deps, author.folder)
        assert actual == await content(deps)
        assert counts == await counts_are_right(deps)


def test_written_moments_give_no_negative_duration() -> None:
    """A job that ended before it began, by the clock, took no time."""
    assert clock.whole_seconds("2026-01-02T00:00:00.000Z", "2026-01-01T00:00:00.000Z") == 0
    assert clock.whole_seconds("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:07.400Z") == 7


class _Secrets:
    async def server_secret(self, name: str) -> bytes:
        """The same secret, always."""
        return name.encode()


async def test_a_reader_token_survives_a_clock_that_was_put_back() -> None:
    """It is valid while the clock is behind, and once more when it is right again; it ends when the clock says so."""
    now = [1_000_000_000.0]
    readers = Readers(_Secrets(), clock=lambda: now[0])  # type: ignore[arg-type]  # only the secret is asked for
    token = (await readers.token("key")).text
    for step, valid in (
        (-10 * DAY, True),
        (0.0, True),
        (TOKEN_LIFETIME_SECONDS - 1, True),
        (TOKEN_LIFETIME_SECONDS, False),
    ):
        now[0] = 1_000_000_000.0 + step
        assert (await readers.reader("key", token) is not None) is valid, step
    now[0] = 1_000_000_000.0
    assert await readers.reader("key", token) is not None


def test_rate_windows_do_not_read_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that was put back or forward neither locks anybody out nor lets anybody through: they count monotonic
    seconds."""
    import time

    monkeypatch.setattr(time, "time", lambda: pytest.fail("the wall clock was read"))
    windows = MemoryWindows()
    assert windows._clock is time.monotonic
