"""Embedders that work over a network, pointed at a scripted server: two texts a request, one request at a time, waits
that take no time, and a key that can be looked for in everything that comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lectern.models.batching import BatchOptions, RetryPolicy
from lectern.models.cohere import CohereEmbedder
from lectern.models.openai import OpenAIEmbedder
from tests.fakeai import FakeAI, fake_ai

CANARY = "sk-canary-7f3a9d1c5e8b2046af13c7d95e0b8642"
TEXTS = [
    "Nodes talk over topics.",
    "A robot is a machine.",
    "Sensors measure.",
    "Wheels turn when motors run.",
    "Stop now.",
    "A camera sees light.",
]
TRIES = 3
QUICK = RetryPolicy(attempts=TRIES, timeout=20, budget=60, first_wait=0.5, longest_wait=60)
BATCHES = [[TEXTS[4], TEXTS[2]], [TEXTS[5], TEXTS[1]], [TEXTS[0], TEXTS[3]]]  # as they are sent: by length


@dataclass(kw_only=True)
class Clock:
    """A sleep that takes no time and remembers."""

    waits: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        """Only look as if."""
        self.waits.append(seconds)
        await asyncio.sleep(0)


def options_of(policy: RetryPolicy = QUICK, **changes: Any) -> BatchOptions:
    """Two texts a request, one request at a time, so that a script's steps meet the batches in order."""
    values = {"max_texts": 2, "concurrency": 1, "sleep": Clock().sleep} | changes
    return BatchOptions(retries={"passage": policy, "question": policy}, **values)


class OverHTTP:
    """A provider that a script plays."""

    provider: str

    def make(self, url: str, options: BatchOptions | None = None, key: str = CANARY) -> OpenAIEmbedder | CohereEmbedder:
        """The adapter, as against the real one but for the address."""
        raise NotImplementedError

    @pytest.fixture
    def ai(self) -> Iterator[FakeAI]:
        """The provider."""
        with fake_ai() as ai:
            yield ai

    @pytest.fixture(autouse=True)
    def _plain_loopback(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """No proxy of this machine stands between, and no client reads a whole list of authorities for want of TLS."""
        for name in ("http_proxy", "https_proxy", "all_proxy", "ssl_cert_file"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


class AtOpenAI(OverHTTP):
    """text-embedding-3-small through OpenAI's SDK."""

    provider = "openai"

    def make(self, url: str, options: BatchOptions | None = None, key: str = CANARY) -> OpenAIEmbedder:
        """The adapter for OpenAI."""
        return OpenAIEmbedder(key, base_url=f"{url}/v1", options=options)


class AtCohere(OverHTTP):
    """embed-english-v3.0 through Cohere's SDK."""

    provider = "cohere"

    def make(self, url: str, options: BatchOptions | None = None, key: str = CANARY) -> CohereEmbedder:
        """The adapter for Cohere."""
        return CohereEmbedder(key, base_url=url, options=options)
