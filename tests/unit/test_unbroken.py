"""Work that is not broken off in the middle."""

import asyncio

import pytest

from lectern.domain.unbroken import whole

SECONDS = 0.1


class Work:
    """Takes a moment, then is done or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ended = False
        self._error = error

    async def __call__(self) -> str:
        """Do it."""
        await asyncio.sleep(SECONDS)
        self.ended = True
        if self._error is not None:
            raise self._error
        return "done"


async def cancelled(work: Work, times: int, *, late: bool = False) -> asyncio.Task[str]:
    """A task that waits for the work and is cancelled so often meanwhile; its end."""
    waiting = asyncio.create_task(whole(work(), late=late))
    for _ in range(times):
        await asyncio.sleep(SECONDS / 10)
        waiting.cancel()
    await asyncio.wait([waiting])
    return waiting


async def test_undisturbed_it_gives_its_result_or_its_error() -> None:
    """Nothing is added to work that nobody cancels."""
    assert await whole(Work()()) == "done"
    with pytest.raises(ValueError, match="no"):
        await whole(Work(ValueError("no"))())


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_however_often_it_is_cancelled_the_work_ends_first(times: int) -> None:
    """Whoever waits is cancelled, and not before the work has ended."""
    work = Work()
    waiting = await cancelled(work, times)

    assert work.ended
    assert waiting.cancelled()


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_what_succeeded_late_is_not_cancelled(times: int) -> None:
    """Who asks for it gets the result in spite of all."""
    waiting = await cancelled(Work(), times, late=True)

    assert waiting.result() == "done"


async def test_what_failed_late_is_cancelled() -> None:
    """A failure that nobody waits for any more is no result."""
    assert (await cancelled(Work(ValueError("no")), 1, late=True)).cancelled()
