"""What a provider, or the way to it, can do wrong, and what the caller must get for it (RELIABILITY I3, I4, A1, G2)."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from lectern.domain.errors import (
    LecternError,
    ProviderError,
    ProviderFaulty,
    ProviderRefused,
    ProviderTimeout,
    RateLimited,
)
from tests.fakeai import Step, vector_of
from tests.remotes import CANARY


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


def in_seconds(seconds: float) -> str:
    """That time from now, as HTTP writes it."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


def failing(status: int, **headers: str) -> Step:
    """A status, with headers in Python's spelling."""
    return Step(status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})


BROKEN = "cannot be read|could not be reached"
FAULTS = {
    "429 seconds": Fault(step=failing(429, retry_after="2"), error=RateLimited, says="wait 2 s", again=True),
    "429 date": Fault(
        step=failing(429, retry_after=in_seconds(40)), error=RateLimited, says="asked us to wait", again=True
    ),
    "429 milliseconds": Fault(
        step=failing(429, retry_after_ms="2500"), error=RateLimited, says="wait 2.5 s", again=True
    ),
    "429 unsaid": Fault(step=failing(429), error=RateLimited, says="asked us to wait", again=True),
    "429 nonsense": Fault(step=failing(429, retry_after="soon"), error=RateLimited, says="asked us", again=True),
    "500": Fault(step=failing(500), error=ProviderError, says="failed .500", again=True),
    "503": Fault(step=failing(503), error=ProviderError, says="failed .503", again=True),
    "503 seconds": Fault(step=failing(503, retry_after="3"), error=RateLimited, says="wait 3 s", again=True),
    "503 page": Fault(step=Step(status=503, body=b"<html>"), error=ProviderError, says="failed .503", again=True),
    "504": Fault(step=failing(504), error=ProviderTimeout, says="in time", again=True),
    "reset": Fault(step=Step(ending="reset"), error=ProviderError, says=BROKEN, again=True),
    "cut body": Fault(step=Step(ending="cut"), error=ProviderError, says=BROKEN, again=True),
    "bad JSON": Fault(step=Step(body=b'{"data": [{"index": 0, "emb'), error=ProviderError, says=BROKEN, again=True),
    "a page": Fault(step=Step(body=b"<html>It works!</html>"), error=ProviderError, says=BROKEN, again=True),
    "no UTF-8": Fault(step=Step(body=b"\x1f\x8b\xff"), error=ProviderError, says=BROKEN, again=True),
    "no object": Fault(step=Step(body=b"[1, 2]"), error=ProviderError, says=BROKEN, again=True),
    "deep JSON": Fault(step=Step(body=b"[" * 100_000), error=ProviderError, says=BROKEN, again=True),
    "redirect": Fault(
        step=failing(307, location="/elsewhere"), error=ProviderRefused, says="rejected the request .307", again=False
    ),
    "401": Fault(step=failing(401), error=ProviderRefused, says="refused access .401.*_API_KEY", again=False),
    "403": Fault(step=failing(403), error=ProviderRefused, says="refused access .403.*_API_KEY", again=False),
    "400": Fault(step=failing(400), error=ProviderRefused, says="rejected the request .400", again=False),
    "404": Fault(step=failing(404), error=ProviderRefused, says="rejected the request .404", again=False),
    "fewer vectors": Fault(
        step=Step(spoil=lambda vectors: vectors[:-1]),
        error=ProviderFaulty,
        says="gave 1 vectors for 2 texts",
        again=False,
    ),
    "more vectors": Fault(
        step=Step(spoil=lambda vectors: [*vectors, vectors[0]]),
        error=ProviderFaulty,
        says="gave 3 vectors for 2 texts",
        again=False,
    ),
    "wrong dimension": Fault(
        step=Step(spoil=_spoilt(1, lambda vector: vector[:-1])), error=ProviderFaulty, says="instead of", again=False
    ),
    "empty vector": Fault(
        step=Step(spoil=_spoilt(0, lambda vector: [])), error=ProviderFaulty, says="0 numbers instead of", again=False
    ),
    "NaN": Fault(step=Step(spoil=_number(math.nan)), error=ProviderFaulty, says="NaN, infinite", again=False),
    "Infinity": Fault(step=Step(spoil=_number(math.inf)), error=ProviderFaulty, says="NaN, infinite", again=False),
    "-Infinity": Fault(step=Step(spoil=_number(-math.inf)), error=ProviderFaulty, says="NaN, infinite", again=False),
    "beyond single": Fault(step=Step(spoil=_number(3e38)), error=ProviderFaulty, says="or huge", again=False),
    "zero vector": Fault(
        step=Step(spoil=_spoilt(1, lambda vector: [0.0] * len(vector))), error=ProviderFaulty, says="zero", again=False
    ),
    "all but zero": Fault(
        step=Step(spoil=_spoilt(1, lambda vector: [1e-30] * len(vector))),
        error=ProviderFaulty,
        says="zero",
        again=False,
    ),
    "words in a vector": Fault(
        step=Step(spoil=_number("0.5"), plain=True), error=ProviderFaulty, says="no list of numbers", again=False
    ),
    "null in a vector": Fault(
        step=Step(spoil=_number(None), plain=True), error=ProviderFaulty, says="no list of numbers", again=False
    ),
    "no vector": Fault(
        step=Step(spoil=_spoilt(0, lambda vector: None), plain=True), error=ProviderFaulty, says="no list", again=False
    ),
    "a number for a vector": Fault(
        step=Step(spoil=_spoilt(0, lambda vector: 7), plain=True), error=ProviderFaulty, says="no list", again=False
    ),
}
OPENAI_FAULTS = {
    "no quota": Fault(
        step=Step(status=429, code="insufficient_quota"), error=ProviderRefused, says="no quota left", again=False
    ),
    "misnumbered": Fault(
        step=Step(body=_misnumbered()), error=ProviderFaulty, says="numbered its vectors", again=False
    ),
}


def assert_silent(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """The key is in nothing that anyone would print, and nothing of the SDK's hangs on to the error."""
    printed = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)) + caplog.text

    assert CANARY not in printed
    chain = error.__cause__ or error.__context__
    while chain is not None:
        assert isinstance(chain, LecternError | ExceptionGroup), chain
        chain = chain.__cause__ or chain.__context__
