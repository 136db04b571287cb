"""A model may write anything, in one piece or in many: its draft takes processor time in proportion to its length, and
nobody else waits for it long. `make fuzz` tries 2,000 drafts of 1 to 256 kB."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lectern.answering.page_view import MAX_VIEWED, PageView
from lectern.domain.errors import ProviderError
from tests.answering.scripted import open_scripted
from tests.fakeai import Step, fake_ai, saying
from tests.properties.test_drafts import FRAGMENTS, HOSTILE, PASSAGES, drafted

SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)  # characters; of a draft, 80,000 are read
SMALL, LARGE = 5_000, 40_000  # that are compared
SPARE_SECONDS = 0.05  # for what does not depend on the size
SEEDS = (23968184, 285970256)  # of drafts that once took more than linear time
HELD_SECONDS = 0.05  # of processor time that the event loop may do nothing else
QUESTION = "How fast is the camera?"
OPENING = "The camera topic publishes 30 images every second. [1] "


def hostile(chance: random.Random, size: int) -> str:
    """One sign again and again, a short sequence of signs again and again, or anything."""
    kind, signs = chance.random(), FRAGMENTS + HOSTILE
    if kind < 0.4:
        unit = chance.choice(HOSTILE)
    elif kind < 0.7:
        unit = "".join(chance.choice(signs) for _ in range(chance.randint(2, 12)))
    else:
        unit = "".join(chance.choice(signs) * chance.choice([1, 1, 1, 50]) for _ in range(size // 4))[:size]
    return (unit * (size // len(unit) + 1))[:size]


def _seconds(seed: int, size: int, piece: int) -> float:
    """Processor time for a draft that comes in such pieces, and for its finished text."""
    text = hostile(random.Random(seed), size)
    start = time.process_time()
    drafted(text, tuple(range(0, size, piece))).finished_text(list(PASSAGES.values()))
    return time.process_time() - start


@pytest.mark.parametrize("seed", SEEDS)
def test_a_draft_that_grows_takes_time_in_proportion(seed: int) -> None:
    """A kB of a long draft takes at most twice the processor time of a kB of a short one."""
    for piece in (7, LARGE):
        few, many = (min(_seconds(seed, size, piece) for _ in range(2)) for size in (SMALL, LARGE))
        assert many <= 2 * LARGE / SMALL * few + SPARE_SECONDS, (piece, few, many)


def test_views_of_a_text_cost_in_proportion_to_it() -> None:
    """However often a draft makes the filter ask Markdown's parser, what is parsed is a fixed multiple of the text."""
    for size in (1_000, 10_000, 40_000):
        page, parsed = PageView(), 0
        for _ in range(size // 100):
            page.add("x" * 100)
            parsed += sum(len(page._with("`<b>`") or "") for _ in range(5))
        assert parsed <= MAX_VIEWED * size + 50_000


@contextmanager
def _held(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The processor times of all callbacks that this thread's event loop runs meanwhile."""
    times: list[float] = []
    run, thread = asyncio.events.Handle._run, threading.get_ident()

    def timed(self: Any) -> None:
        start = time.thread_time()
        run(self)
        if threading.get_ident() == thread:  # the scripted model has a loop in another one
            times.append(time.thread_time() - start)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio.events.Handle, "_run", timed)
        yield times


@pytest.mark.parametrize("whole", [True, False])
async def test_no_draft_holds_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drafts: int, seed: int, *, whole: bool
) -> None:
    """While drafts of 1 to 256 kB are handled, in one piece or streamed, other requests get their turn: no step takes
    more than 50 ms of processor time, but for one in a hundred."""
    chance, held = random.Random(seed), list[float]()
    with fake_ai() as ai:
        async with open_scripted(tmp_path, ai, LECTERN_JUDGE="local") as lectern:
            ai.script(then=Step(say=saying(OPENING)))
            await _answer(lectern, stream=not whole)  # everything that is made once is made
            for _ in range(drafts):
                text = OPENING + hostile(chance, chance.choice(SIZES))
                ai.script(then=Step(say=saying(text), whole=whole))
                ai.received.clear()
                with _held(monkeypatch) as times:
                    await _answer(lectern, stream=not whole)
                held += [seconds for seconds in times if seconds > 0.001]

    slow = [seconds for seconds in held if seconds > HELD_SECONDS]
    assert len(slow) <= len(held) / 100, sorted(slow)[-10:]


async def _answer(lectern: Any, *, stream: bool) -> None:
    try:
        if stream:
            async for _ in lectern.stream(QUESTION):
                pass
        else:
            await lectern.ask(QUESTION)
    except ProviderError:
        pass  # a draft that was cut off and says nothing


@pytest.fixture
def drafts(request: pytest.FixtureRequest) -> int:
    """How many drafts to try each way; `make fuzz` asks for more."""
    return int(request.config.getoption("--drafts"))
