"""What embedders promise when the provider, or the way to it, fails (RELIABILITY I3, I4, A1, G2): a scripted server
plays every fault at every batch, over real HTTP and through the provider's own SDK."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing
from dataclasses import replace
from itertools import product

import httpx
import pytest

from lectern.domain.errors import ProviderError, ProviderRefused, ProviderTimeout, RateLimited
from tests.fakeai import NORMAL, FakeAI, Step, fake_ai
from tests.faults import FAULTS, OPENAI_FAULTS, Fault, assert_silent, failing, in_seconds
from tests.ports import closed_port
from tests.remotes import BATCHES, CANARY, QUICK, TEXTS, TRIES, AtCohere, AtOpenAI, Clock, OverHTTP, options_of

NEVER = 600.0  # seconds, longer than any of these tests takes
TIMEOUT = (
    2.0  # that a request gets where one is meant to take too long; the others must be quicker on a busy machine too
)


class FaultContract(OverHTTP):
    """A clear error or the right vectors, in bounded time, and never a word of the key."""

    @pytest.mark.parametrize("name", FAULTS)
    async def test_a_lasting_fault_is_a_clear_error(
        self, name: str, ai: FakeAI, caplog: pytest.LogCaptureFixture
    ) -> None:
        """At whichever batch it strikes: the right class and words, as many requests as it is worth, later batches
        never sent, nothing given out, no key in any text; and the embedder works again once the provider does."""
        await self.strike(FAULTS[name], ai, caplog)

    async def strike(self, fault: Fault, ai: FakeAI, caplog: pytest.LogCaptureFixture) -> None:
        """One fault, at every batch."""
        caplog.set_level(logging.DEBUG)
        finished: list[int] = []
        async with aclosing(
            self.make(ai.url, options_of(progress=lambda count, _: finished.append(count)))
        ) as embedder:
            for place in range(len(BATCHES)):
                finished.clear()
                ai.received.clear()
                ai.script(*[NORMAL] * place, then=fault.step)
                with pytest.raises(ProviderError, match=fault.says) as caught:
                    await embedder.embed(TEXTS, purpose="passage")

                assert type(caught.value) is fault.error
                assert caught.value.provider == self.provider
                sent_texts = [received.texts for received in ai.received]
                assert sent_texts == BATCHES[:place] + [BATCHES[place]] * (TRIES if fault.again else 1)
                assert finished == [2, 4, 6][:place]
                assert_silent(caught.value, caplog)

            ai.script()
            assert len(await embedder.embed(TEXTS, purpose="passage")) == len(TEXTS)
        assert {received.key for received in ai.received} == {CANARY}

    async def test_a_passing_fault_changes_nothing(self, ai: FakeAI) -> None:
        """Whichever it is and at whichever batch: that batch alone is sent again, after a wait, and the vectors are
        those of a calm day."""
        clock = Clock()
        async with aclosing(self.make(ai.url, options_of(sleep=clock.sleep))) as embedder:
            calm = await embedder.embed(TEXTS, purpose="passage")
            for place, (name, fault) in product(range(len(BATCHES)), FAULTS.items()):
                if not fault.again:
                    continue
                clock.waits.clear()
                ai.received.clear()
                ai.script(*[NORMAL] * place, *[fault.step] * (TRIES - 1))
                vectors = await embedder.embed(TEXTS, purpose="passage")
                ai.assert_exhausted()

                assert vectors == calm, name
                expected = BATCHES[:place] + [BATCHES[place]] * (TRIES - 1) + BATCHES[place:]
                assert [received.texts for received in ai.received] == expected, name
                assert len(clock.waits) == TRIES - 1, name

    async def test_waits_grow_and_vary(self, ai: FakeAI) -> None:
        """Each wait is about twice the one before, and no two callers keep step."""
        clock = Clock()
        policy = replace(QUICK, attempts=8, first_wait=1.0, longest_wait=20.0)
        ai.script(then=failing(503))
        async with aclosing(self.make(ai.url, options_of(policy, sleep=clock.sleep))) as embedder:
            with pytest.raises(ProviderError):
                await embedder.embed(["Stop."], purpose="passage")

        bounds = [1, 2, 4, 8, 16, 20, 20]
        assert len(clock.waits) == len(bounds)
        assert all(bound / 2 <= wait <= bound for wait, bound in zip(clock.waits, bounds, strict=True))
        assert len({wait / bound for wait, bound in zip(clock.waits, bounds, strict=True)}) > 1

    @pytest.mark.parametrize(("header", "low", "high"), [("7", 7, 7), ("0", 0.25, 0.5), (None, 10, 50)])
    async def test_retry_after_is_honoured(self, header: str | None, low: float, high: float, ai: FakeAI) -> None:
        """Seconds or a date: as long as was asked, and never at once."""
        clock = Clock()
        ai.script(failing(429, retry_after=header or in_seconds(50)))
        async with aclosing(self.make(ai.url, options_of(sleep=clock.sleep))) as embedder:
            await embedder.embed(["Stop."], purpose="passage")

        [wait] = clock.waits
        assert low <= wait <= high

    @pytest.mark.parametrize("bound", ["longest_wait", "budget"])
    async def test_whoever_asks_for_too_long_is_left_alone(self, bound: str, ai: FakeAI) -> None:
        """Asked to come back in an hour we give up at once, and the error says when to try again."""
        clock = Clock()
        policy = replace(QUICK, **({"longest_wait": 9999, "budget": 9999} | {bound: 60}))
        ai.script(then=failing(429, retry_after="3600"))
        async with aclosing(self.make(ai.url, options_of(policy, sleep=clock.sleep))) as embedder:
            with pytest.raises(RateLimited, match="3600 s") as caught:
                await embedder.embed(TEXTS, purpose="passage")

        assert caught.value.retry_after == 3600
        assert caught.value.retryable
        assert len(ai.received) == 1
        assert clock.waits == []

    async def test_slowness_is_a_time_out(self, caplog: pytest.LogCaptureFixture) -> None:
        """At whichever batch: no answer, or one that drips in without end, is given up in time and tried again."""
        caplog.set_level(logging.DEBUG)
        policy = replace(QUICK, attempts=2, timeout=TIMEOUT)

        async def strike(place: int, step: Step) -> None:
            with fake_ai() as ai:
                ai.script(*[NORMAL] * place, then=step)
                async with aclosing(self.make(ai.url, options_of(policy))) as embedder:
                    began = time.monotonic()
                    with pytest.raises(ProviderTimeout, match="in time") as caught:
                        await embedder.embed(TEXTS, purpose="passage")
                    took = time.monotonic() - began

            assert 2 * TIMEOUT <= took < NEVER
            assert [received.texts for received in ai.received] == BATCHES[:place] + [BATCHES[place]] * 2
            assert_silent(caught.value, caplog)

        steps = [(place, Step(delay=NEVER)) for place in range(len(BATCHES))] + [(0, Step(drip=TIMEOUT / 3))]
        await asyncio.gather(*(strike(place, step) for place, step in steps))

    async def test_a_batch_has_a_time_of_its_own(self, ai: FakeAI) -> None:
        """Tries and waits together end with the budget, however many tries are left."""
        ai.script(then=failing(503))
        policy = replace(QUICK, attempts=10_000, budget=2.0, first_wait=0.01, longest_wait=0.02)
        async with aclosing(self.make(ai.url, options_of(policy, sleep=asyncio.sleep))) as embedder:
            with pytest.raises(ProviderError):
                await embedder.embed(TEXTS, purpose="passage")

        assert 1 < len(ai.received) < 10_000

    async def test_one_failure_ends_the_call(self, ai: FakeAI) -> None:
        """With several batches under way the others are called off: nothing is left running."""
        ai.script(Step(delay=NEVER), failing(401), then=Step(delay=NEVER))
        async with aclosing(self.make(ai.url, options_of(concurrency=3))) as embedder:
            with pytest.raises(ProviderRefused):
                await asyncio.wait_for(embedder.embed(TEXTS, purpose="passage"), timeout=NEVER / 2)

            assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_a_call_can_be_called_off(self, ai: FakeAI) -> None:
        """Cancelling ends it, and leaves nothing running."""
        ai.script(then=Step(delay=NEVER))
        async with aclosing(self.make(ai.url, options_of())) as embedder:
            call = asyncio.create_task(embedder.embed(TEXTS, purpose="passage"))
            while not ai.received:  # noqa: ASYNC110  # the server is another thread
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

            assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_nobody_there_is_a_clear_error(self, caplog: pytest.LogCaptureFixture) -> None:
        """A refused connection is tried again and then named."""
        caplog.set_level(logging.DEBUG)
        clock = Clock()
        with closed_port() as port:
            async with aclosing(self.make(f"http://127.0.0.1:{port}", options_of(sleep=clock.sleep))) as embedder:
                with pytest.raises(ProviderError, match="could not be reached") as caught:
                    await embedder.embed(TEXTS, purpose="passage")

        assert len(clock.waits) == TRIES - 1
        assert_silent(caught.value, caplog)

    async def test_the_canary_sings(self, ai: FakeAI) -> None:
        """The check for leaks can fail: the provider's own errors do repeat the key."""
        ai.script(failing(401))
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{ai.url}/v2/embed", json={}, headers={"Authorization": f"Bearer {CANARY}"})

        assert CANARY in answer.text


class TestOpenAIFaults(AtOpenAI, FaultContract):
    """OpenAI has faults of its own."""

    @pytest.mark.parametrize("name", OPENAI_FAULTS)
    async def test_a_lasting_fault_of_its_own(self, name: str, ai: FakeAI, caplog: pytest.LogCaptureFixture) -> None:
        """A plan that is used up is not waited for; vectors that are numbered wrongly are not guessed at."""
        await self.strike(OPENAI_FAULTS[name], ai, caplog)


class TestCohereFaults(AtCohere, FaultContract):
    """All faults are shared ones."""
