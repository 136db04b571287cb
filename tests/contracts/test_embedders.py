"""What every embedder promises; each adapter inherits the suite. Those that work over a network also inherit what they
promise when the network or the provider fails (RELIABILITY I3, I4, A1, G2): a scripted server plays every fault at
every batch, over real HTTP and through the provider's own SDK."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import socket
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from lectern.domain.errors import (
    BadInput,
    ConfigError,
    LecternError,
    ProviderError,
    ProviderRefused,
    ProviderTimeout,
    RateLimited,
)
from lectern.embedders.batching import Pace, Patience
from lectern.embedders.cohere import CohereEmbedder
from lectern.embedders.minilm import LocalEmbedder
from lectern.embedders.openai import OpenAIEmbedder
from lectern.ports import Embedder
from tests.fakeai import NORMAL, FakeAI, Step, fake_ai, vector_of

CANARY = "sk-canary-7f3a9d1c5e8b2046af13c7d95e0b8642"
TEXTS = [
    "Nodes talk over topics.",
    "A robot is a machine.",
    "Sensors measure.",
    "Wheels turn when motors run.",
    "Stop now.",
    "A camera sees light.",
]
LONG_TEXT = "\n\n".join(f"Paragraph {n}: the arm moves joint {n} by {n * 7} degrees, then waits." for n in range(700))


def words(text: str) -> list[str]:
    """What a reader would call words."""
    return re.findall(r"\w+", text)


@pytest.fixture(autouse=True)
def _plain_loopback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy of this machine stands between, and no client reads a whole list of authorities for want of TLS."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "ssl_cert_file"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


class EmbedderContract:
    """One vector a text, in order, a function of the text alone; and no text is cut."""

    async def test_the_fingerprint_names_provider_model_and_dimensions(self, embedder: Embedder) -> None:
        """Collections are named by it, so two models can never share one."""
        provider, model, dimensions = embedder.fingerprint.split("/")

        assert provider
        assert model
        assert int(dimensions) == embedder.dimensions

    async def test_vectors_are_fit_for_the_index(self, embedder: Embedder) -> None:
        """Right in number and length, finite and not zero."""
        vectors = await embedder.embed(TEXTS, purpose="passage")

        assert len(vectors) == len(TEXTS)
        assert {len(vector) for vector in vectors} == {embedder.dimensions}
        assert all(isinstance(number, float) and math.isfinite(number) for vector in vectors for number in vector)
        assert all(math.hypot(*vector) > 0 for vector in vectors)

    async def test_order_is_kept(self, embedder: Embedder) -> None:
        """Whatever is done to batches inside, the third vector is the third text's."""
        forward = await embedder.embed(TEXTS, purpose="passage")
        backward = await embedder.embed(TEXTS[::-1], purpose="passage")

        assert forward == backward[::-1]
        assert len({tuple(vector) for vector in forward}) == len(TEXTS)

    async def test_a_vector_is_a_function_of_its_text(self, embedder: Embedder) -> None:
        """Bit-equal alone, beside others, and twice in one call."""
        [alone] = await embedder.embed([TEXTS[1]], purpose="passage")
        among = await embedder.embed([*TEXTS, TEXTS[1]], purpose="passage")

        assert among[1] == alone
        assert among[-1] == alone

    async def test_nothing_gives_nothing(self, embedder: Embedder) -> None:
        """No text, no vector, no error."""
        assert await embedder.embed([], purpose="passage") == []

    async def test_a_short_chunk_is_one_window(self, embedder: Embedder) -> None:
        """Trail and text are read together."""
        [window] = embedder.passages(("Robots", "Joints"), "An arm has joints.")

        assert words(window) == ["Robots", "Joints", "An", "arm", "has", "joints"]

    async def test_windows_lose_no_word(self, embedder: Embedder) -> None:
        """However long a chunk is, every word is in a window, in order, under its trail; and no window is refused."""
        windows = embedder.passages(("Robots", "Joints"), LONG_TEXT)
        read = [words(window) for window in windows]

        assert len(windows) > 1
        assert all(found[:2] == ["Robots", "Joints"] for found in read)
        assert [word for found in read for word in found[2:]] == words(LONG_TEXT)
        assert len(await embedder.embed(windows[:3], purpose="passage")) == 3

    async def test_questions_are_embedded_too(self, embedder: Embedder) -> None:
        """The nearest passage to a question is the one that shares its words."""
        [question] = await embedder.embed(["Which machine is a robot?"], purpose="question")
        passages = await embedder.embed(TEXTS, purpose="passage")
        near = [sum(a * b for a, b in zip(question, passage, strict=True)) for passage in passages]

        assert near.index(max(near)) == 1


# ---------------------------------------------------------------------------------------------------------- faults


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What the provider does, what the caller gets, and whether asking again is worth it."""

    step: Step
    error: type[ProviderError]
    says: str
    again: bool


def _spoilt(place: int, make: Callable[[list[float]], Any]) -> Callable[[list[list[float]]], list[Any]]:
    return lambda vectors: [make(vector) if at == place else vector for at, vector in enumerate(vectors)]


def _number(value: object) -> Callable[[list[list[float]]], list[Any]]:
    return _spoilt(1, lambda vector: [*vector[:-1], value])


def _misnumbered() -> bytes:
    rows = [{"object": "embedding", "index": 0, "embedding": vector_of(text, 1536)} for text in "ab"]
    return json.dumps({"object": "list", "data": rows}).encode()


def _in(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


def _failing(status: int, **headers: str) -> Step:
    return Step(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})


BROKEN = "cannot be read|could not be reached"
FAULTS = {
    "429 seconds": Fault(step=_failing(429, retry_after="2"), error=RateLimited, says="wait 2 s", again=True),
    "429 date": Fault(step=_failing(429, retry_after=_in(40)), error=RateLimited, says="asked us to wait", again=True),
    "429 milliseconds": Fault(
        step=_failing(429, retry_after_ms="2500"), error=RateLimited, says="wait 2.5 s", again=True
    ),
    "429 unsaid": Fault(step=_failing(429), error=RateLimited, says="asked us to wait", again=True),
    "429 nonsense": Fault(step=_failing(429, retry_after="soon"), error=RateLimited, says="asked us", again=True),
    "500": Fault(step=_failing(500), error=ProviderError, says="failed .500", again=True),
    "503": Fault(step=_failing(503), error=ProviderError, says="failed .503", again=True),
    "503 seconds": Fault(step=_failing(503, retry_after="3"), error=RateLimited, says="wait 3 s", again=True),
    "503 page": Fault(step=Step(status=503, body=b"<html>"), error=ProviderError, says="failed .503", again=True),
    "504": Fault(step=_failing(504), error=ProviderTimeout, says="in time", again=True),
    "reset": Fault(step=Step(ending="reset"), error=ProviderError, says=BROKEN, again=True),
    "cut body": Fault(step=Step(ending="cut"), error=ProviderError, says=BROKEN, again=True),
    "bad JSON": Fault(step=Step(body=b'{"data": [{"index": 0, "emb'), error=ProviderError, says=BROKEN, again=True),
    "a page": Fault(step=Step(body=b"<html>It works!</html>"), error=ProviderError, says=BROKEN, again=True),
    "no UTF-8": Fault(step=Step(body=b"\x1f\x8b\xff"), error=ProviderError, says=BROKEN, again=True),
    "no object": Fault(step=Step(body=b"[1, 2]"), error=ProviderError, says=BROKEN, again=True),
    "deep JSON": Fault(step=Step(body=b"[" * 100_000), error=ProviderError, says=BROKEN, again=True),
    "401": Fault(step=_failing(401), error=ProviderRefused, says="refused access .401.*_API_KEY", again=False),
    "403": Fault(step=_failing(403), error=ProviderRefused, says="refused access .403.*_API_KEY", again=False),
    "400": Fault(step=_failing(400), error=ProviderRefused, says="rejected the request .400", again=False),
    "404": Fault(step=_failing(404), error=ProviderRefused, says="rejected the request .404", again=False),
    "fewer vectors": Fault(
        step=Step(spoil=lambda vectors: vectors[:-1]),
        error=ProviderError,
        says="gave 1 vectors for 2 texts",
        again=False,
    ),
    "more vectors": Fault(
        step=Step(spoil=lambda vectors: [*vectors, vectors[0]]),
        error=ProviderError,
        says="gave 3 vectors for 2 texts",
        again=False,
    ),
    "wrong dimension": Fault(
        step=Step(spoil=_spoilt(1, lambda vector: vector[:-1])), error=ProviderError, says="instead of", again=False
    ),
    "empty vector": Fault(
        step=Step(spoil=_spoilt(0, lambda vector: [])), error=ProviderError, says="0 numbers instead of", again=False
    ),
    "NaN": Fault(step=Step(spoil=_number(math.nan)), error=ProviderError, says="NaN, infinite", again=False),
    "Infinity": Fault(step=Step(spoil=_number(math.inf)), error=ProviderError, says="NaN, infinite", again=False),
    "-Infinity": Fault(step=Step(spoil=_number(-math.inf)), error=ProviderError, says="NaN, infinite", again=False),
    "beyond single": Fault(step=Step(spoil=_number(3e38)), error=ProviderError, says="or huge", again=False),
    "zero vector": Fault(
        step=Step(spoil=_spoilt(1, lambda vector: [0.0] * len(vector))), error=ProviderError, says="zero", again=False
    ),
    "all but zero": Fault(
        step=Step(spoil=_spoilt(1, lambda vector: [1e-30] * len(vector))), error=ProviderError, says="zero", again=False
    ),
    "words in a vector": Fault(
        step=Step(spoil=_number("0.5"), plain=True), error=ProviderError, says="no list of numbers", again=False
    ),
    "null in a vector": Fault(
        step=Step(spoil=_number(None), plain=True), error=ProviderError, says="no list of numbers", again=False
    ),
    "no vector": Fault(
        step=Step(spoil=_spoilt(0, lambda vector: None), plain=True), error=ProviderError, says="no list", again=False
    ),
    "a number for a vector": Fault(
        step=Step(spoil=_spoilt(0, lambda vector: 7), plain=True), error=ProviderError, says="no list", again=False
    ),
}
OPENAI_FAULTS = {
    "no quota": Fault(
        step=Step(status=429, code="insufficient_quota"), error=ProviderRefused, says="no quota left", again=False
    ),
    "misnumbered": Fault(step=Step(body=_misnumbered()), error=ProviderError, says="numbered its vectors", again=False),
}
TRIES = 3
QUICK = Patience(attempts=TRIES, timeout=20, budget=60, first_wait=0.5, longest_wait=60)
BATCHES = [[TEXTS[4], TEXTS[2]], [TEXTS[5], TEXTS[1]], [TEXTS[0], TEXTS[3]]]  # as they are sent: by length


@dataclass(kw_only=True)
class Clock:
    """A sleep that takes no time and remembers."""

    waits: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """Only look as if."""
        self.waits.append(seconds)
        await asyncio.sleep(0)


def pace_of(patience: Patience = QUICK, **changes: Any) -> Pace:
    """Two texts a request, one request at a time, so that a script's steps meet the batches in order."""
    given = {"most_texts": 2, "concurrency": 1, "sleep": Clock().sleep} | changes
    return Pace(patience={"passage": patience, "question": patience}, **given)


def assert_silent(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """The key is in nothing that anyone would print, and nothing of the SDK's hangs on to the error."""
    printed = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)) + caplog.text

    assert CANARY not in printed
    chain = error.__cause__ or error.__context__
    while chain is not None:
        assert isinstance(chain, LecternError | ExceptionGroup), chain
        chain = chain.__cause__ or chain.__context__


class RemoteContract(EmbedderContract):
    """Faults of the provider and the way there."""

    provider: str

    def make(self, url: str, pace: Pace | None = None, key: str = CANARY) -> OpenAIEmbedder | CohereEmbedder:
        """The adapter under test."""
        raise NotImplementedError

    @pytest.fixture
    def ai(self) -> Iterator[FakeAI]:
        """The provider."""
        with fake_ai() as ai:
            yield ai

    @pytest.fixture
    async def embedder(self, ai: FakeAI) -> AsyncIterator[Embedder]:
        """The adapter as it ships."""
        async with aclosing(self.make(ai.url)) as embedder:
            yield embedder

    async def test_texts_of_like_length_go_together(self, ai: FakeAI) -> None:
        """Requests are sorted by length and hold no more texts than they may; a text that comes twice is sent once."""
        async with aclosing(self.make(ai.url, pace_of())) as embedder:
            await embedder.embed([*TEXTS, *TEXTS], purpose="passage")

        assert [received.texts for received in ai.received] == BATCHES

    async def test_no_more_at_once_than_agreed(self, ai: FakeAI) -> None:
        """Concurrency is used, and bounded."""
        ai.script(then=Step(delay=0.05))
        async with aclosing(self.make(ai.url, pace_of(concurrency=2, most_texts=1))) as embedder:
            await embedder.embed(TEXTS, purpose="passage")

        assert ai.most_at_once == 2
        assert len(ai.received) == len(TEXTS)

    async def test_progress_is_reported(self, ai: FakeAI) -> None:
        """After every request, how many texts of how many are done."""
        seen: list[tuple[int, int]] = []
        pace = pace_of(progress=lambda done, total: seen.append((done, total)))
        async with aclosing(self.make(ai.url, pace)) as embedder:
            await embedder.embed(TEXTS, purpose="passage")

        assert seen == [(2, 6), (4, 6), (6, 6)]

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
        done: list[int] = []
        async with aclosing(self.make(ai.url, pace_of(progress=lambda count, _: done.append(count)))) as embedder:
            for place in range(len(BATCHES)):
                done.clear()
                ai.received.clear()
                ai.script(*[NORMAL] * place, then=fault.step)
                with pytest.raises(ProviderError, match=fault.says) as caught:
                    await embedder.embed(TEXTS, purpose="passage")

                assert type(caught.value) is fault.error
                assert caught.value.provider == self.provider
                sent = [received.texts for received in ai.received]
                assert sent == BATCHES[:place] + [BATCHES[place]] * (TRIES if fault.again else 1)
                assert done == [2, 4, 6][:place]
                assert_silent(caught.value, caplog)

            ai.script()
            assert len(await embedder.embed(TEXTS, purpose="passage")) == len(TEXTS)
        assert {received.key for received in ai.received} == {CANARY}

    async def test_a_passing_fault_changes_nothing(self, ai: FakeAI) -> None:
        """Whichever it is and at whichever batch: that batch alone is sent again, after a wait, and the vectors are
        those of a calm day."""
        clock = Clock()
        async with aclosing(self.make(ai.url, pace_of(sleep=clock.sleep))) as embedder:
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
        patience = replace(QUICK, attempts=8, first_wait=1.0, longest_wait=20.0)
        ai.script(then=_failing(503))
        async with aclosing(self.make(ai.url, pace_of(patience, sleep=clock.sleep))) as embedder:
            with pytest.raises(ProviderError):
                await embedder.embed(["Stop."], purpose="passage")

        bounds = [1, 2, 4, 8, 16, 20, 20]
        assert len(clock.waits) == len(bounds)
        assert all(bound / 2 <= wait <= bound for wait, bound in zip(clock.waits, bounds, strict=True))
        assert len({wait / bound for wait, bound in zip(clock.waits, bounds, strict=True)}) > 1

    @pytest.mark.parametrize(("header", "low", "high"), [("7", 7, 7), ("0", 0.25, 0.5), (None, 5, 9)])
    async def test_retry_after_is_honoured(self, header: str | None, low: float, high: float, ai: FakeAI) -> None:
        """Seconds or a date: as long as was asked, and never at once."""
        clock = Clock()
        ai.script(_failing(429, retry_after=header or _in(9)))
        async with aclosing(self.make(ai.url, pace_of(sleep=clock.sleep))) as embedder:
            await embedder.embed(["Stop."], purpose="passage")

        [wait] = clock.waits
        assert low <= wait <= high

    async def test_whoever_asks_for_too_long_is_left_alone(self, ai: FakeAI) -> None:
        """Asked to come back in an hour we give up at once, and the error says when to try again."""
        clock = Clock()
        ai.script(then=_failing(429, retry_after="3600"))
        async with aclosing(self.make(ai.url, pace_of(sleep=clock.sleep))) as embedder:
            with pytest.raises(RateLimited, match="3600 s") as caught:
                await embedder.embed(TEXTS, purpose="passage")

        assert caught.value.retry_after == 3600
        assert caught.value.retryable
        assert len(ai.received) == 1
        assert clock.waits == []

    async def test_slowness_is_a_time_out(self, caplog: pytest.LogCaptureFixture) -> None:
        """At whichever batch: no answer, or one that drips in without end, is given up in time and tried again."""
        caplog.set_level(logging.DEBUG)
        patience = replace(QUICK, attempts=2, timeout=1.0)

        async def strike(place: int, step: Step) -> None:
            with fake_ai() as ai:
                ai.script(*[NORMAL] * place, then=step)
                async with aclosing(self.make(ai.url, pace_of(patience))) as embedder:
                    began = time.monotonic()
                    with pytest.raises(ProviderTimeout, match="in time") as caught:
                        await embedder.embed(TEXTS, purpose="passage")
                    took = time.monotonic() - began

            assert 2 <= took < 10
            assert [received.texts for received in ai.received] == BATCHES[:place] + [BATCHES[place]] * 2
            assert_silent(caught.value, caplog)

        steps = [(place, Step(delay=60)) for place in range(len(BATCHES))] + [(0, Step(drip=0.3))]
        await asyncio.gather(*(strike(place, step) for place, step in steps))

    async def test_a_batch_has_a_time_of_its_own(self, ai: FakeAI) -> None:
        """Tries and waits together end with the budget, however many tries are left."""
        ai.script(then=_failing(503))
        patience = replace(QUICK, attempts=10_000, budget=0.5, first_wait=0.01, longest_wait=0.02)
        async with aclosing(self.make(ai.url, pace_of(patience, sleep=asyncio.sleep))) as embedder:
            began = time.monotonic()
            with pytest.raises(ProviderError):
                await embedder.embed(TEXTS, purpose="passage")

        assert time.monotonic() - began < 5
        assert len(ai.received) > 1

    async def test_one_failure_ends_the_call(self, ai: FakeAI) -> None:
        """With several batches under way the others are called off: nothing is left running."""
        ai.script(Step(delay=60), _failing(401), then=Step(delay=60))
        async with aclosing(self.make(ai.url, pace_of(concurrency=3))) as embedder:
            with pytest.raises(ProviderRefused):
                await asyncio.wait_for(embedder.embed(TEXTS, purpose="passage"), timeout=15)

            assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_a_call_can_be_called_off(self, ai: FakeAI) -> None:
        """Cancelling ends it, and leaves nothing running."""
        ai.script(then=Step(delay=60))
        async with aclosing(self.make(ai.url, pace_of())) as embedder:
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
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        clock = Clock()
        async with aclosing(self.make(f"http://127.0.0.1:{port}", pace_of(sleep=clock.sleep))) as embedder:
            with pytest.raises(ProviderError, match="could not be reached") as caught:
                await embedder.embed(TEXTS, purpose="passage")

        assert len(clock.waits) == TRIES - 1
        assert_silent(caught.value, caplog)

    async def test_a_lone_surrogate_is_bad_input(self, embedder: Embedder, ai: FakeAI) -> None:
        """What cannot be written as UTF-8 is the caller's to mend, and is never sent."""
        with pytest.raises(BadInput, match="surrogate"):
            await embedder.embed([*TEXTS, "half a \ud800 character"], purpose="question")

        assert ai.received == []

    @pytest.mark.parametrize("key", ["", "  ", f"{CANARY}\nX: 1", f"{CANARY}é", f"{CANARY} {CANARY}"])
    def test_a_key_that_cannot_be_sent_is_refused(self, key: str) -> None:
        """Before anything is sent, by the name of its setting, and without repeating it."""
        with pytest.raises(ConfigError, match="_API_KEY") as caught:
            self.make("http://127.0.0.1:1", key=key)

        assert CANARY not in str(caught.value)

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "api.example.com",
            "ftp://example.com",
            f"http://me:{CANARY}@[::1]",
            f"http://[::1]?k={CANARY}",
            "http://[",
        ],
    )
    def test_an_address_that_cannot_be_logged_is_refused(self, url: str) -> None:
        """HTTP libraries log addresses, so one with a password in it is never used, nor repeated."""
        with pytest.raises(ConfigError, match=r"http|password") as caught:
            self.make(url)

        assert CANARY not in str(caught.value)

    async def test_the_canary_sings(self, ai: FakeAI) -> None:
        """The check for leaks can fail: the provider's own errors do repeat the key."""
        ai.script(_failing(401))
        async with httpx.AsyncClient() as client:
            answer = await client.post(f"{ai.url}/v2/embed", json={}, headers={"Authorization": f"Bearer {CANARY}"})

        assert CANARY in answer.text


class TestOpenAI(RemoteContract):
    """text-embedding-3-small through OpenAI's SDK."""

    provider = "openai"

    def make(self, url: str, pace: Pace | None = None, key: str = CANARY) -> OpenAIEmbedder:
        """As against api.openai.com, but for the address."""
        return OpenAIEmbedder(key, base_url=f"{url}/v1" if url.endswith(tuple("0123456789")) else url, pace=pace)

    async def test_what_is_sent(self, embedder: Embedder, ai: FakeAI) -> None:
        """The model's name and the texts; passages and questions are alike to it."""
        passage = await embedder.embed(TEXTS, purpose="passage")
        question = await embedder.embed(TEXTS, purpose="question")

        assert embedder.fingerprint == "openai/text-embedding-3-small/1536"
        assert passage == question
        assert [received.path for received in ai.received] == ["/v1/embeddings"] * 2
        assert {received.body["model"] for received in ai.received} == {"text-embedding-3-small"}

    @pytest.mark.parametrize("name", OPENAI_FAULTS)
    async def test_a_lasting_fault_of_its_own(self, name: str, ai: FakeAI, caplog: pytest.LogCaptureFixture) -> None:
        """A plan that is used up is not waited for; vectors that are numbered wrongly are not guessed at."""
        await self.strike(OPENAI_FAULTS[name], ai, caplog)

    async def test_vectors_are_placed_by_their_index(self, embedder: Embedder, ai: FakeAI) -> None:
        """A server may answer in another order, as long as it says which vector is whose."""
        calm = await embedder.embed(TEXTS, purpose="passage")
        ai.script(Step(shuffled=True))

        assert await embedder.embed(TEXTS, purpose="passage") == calm

    async def test_servers_without_base64_will_do(self, embedder: Embedder, ai: FakeAI) -> None:
        """Numbers are read as well as packed ones."""
        packed = await embedder.embed(TEXTS, purpose="passage")
        ai.script(Step(plain=True))
        plain = await embedder.embed(TEXTS, purpose="passage")

        assert all(a == pytest.approx(b, abs=1e-6) for a, b in zip(packed, plain, strict=True))

    async def test_a_request_stays_within_the_providers_limit(self, embedder: Embedder, ai: FakeAI) -> None:
        """300,000 tokens a request, counted as bytes, which are never fewer."""
        await embedder.embed([f"{n:03} " * 2_000 for n in range(45)], purpose="passage")

        assert len(ai.received) == 2
        assert all(sum(len(text.encode()) for text in received.texts) <= 300_000 for received in ai.received)


class TestCohere(RemoteContract):
    """embed-english-v3.0 through Cohere's SDK."""

    provider = "cohere"

    def make(self, url: str, pace: Pace | None = None, key: str = CANARY) -> CohereEmbedder:
        """As against api.cohere.com, but for the address."""
        return CohereEmbedder(key, base_url=url, pace=pace)

    async def test_what_is_sent(self, embedder: Embedder, ai: FakeAI) -> None:
        """The purpose reaches the model, and no text may be cut."""
        passage = await embedder.embed(TEXTS, purpose="passage")
        question = await embedder.embed(TEXTS, purpose="question")

        assert embedder.fingerprint == "cohere/embed-english-v3.0/1024"
        assert passage != question
        assert [received.path for received in ai.received] == ["/v2/embed"] * 2
        assert [received.body["input_type"] for received in ai.received] == ["search_document", "search_query"]
        assert {received.body["truncate"] for received in ai.received} == {"NONE"}
        assert {received.body["model"] for received in ai.received} == {"embed-english-v3.0"}
        assert {tuple(received.body["embedding_types"]) for received in ai.received} == {("float",)}

    async def test_a_request_stays_within_the_providers_limit(self, embedder: Embedder, ai: FakeAI) -> None:
        """96 texts a request."""
        await embedder.embed([f"Step {n}." for n in range(200)], purpose="passage")

        assert sorted(len(received.texts) for received in ai.received) == [8, 96, 96]

    async def test_a_long_question_is_read_to_its_end(self, embedder: Embedder, ai: FakeAI) -> None:
        """Beyond one window a question is still one vector, and its last words count."""
        long = "Why does the arm shake when " + "the wheel turns and " * 150
        [one] = await embedder.embed([f"{long} gravity pulls?"], purpose="question")
        [other] = await embedder.embed([f"{long} friction slows?"], purpose="question")

        assert len(ai.received[0].texts) > 1
        assert one != other
        assert len(one) == 1024


class TestLocal(EmbedderContract):
    """all-MiniLM-L6-v2 on this machine."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        """As it ships."""
        return LocalEmbedder()
