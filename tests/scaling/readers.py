"""Readers who ask one question after another through the proxy, and repeat a request once if it fails: after the time
that the server names, under the same Idempotency-Key."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.sse import events

ANSWER_SECONDS = 120.0  # on a busy machine
MAX_WAIT_SECONDS = 10.0  # before a request is repeated
FAILED = (500, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer to a question, as far as two of them can be compared."""

    text: str
    cited: tuple[str, ...]

    @classmethod
    def of(cls, body: dict[str, Any]) -> Reply:
        """The reply in a ChatResponse."""
        return cls(text=body["response"], cited=tuple(source["chunk_id"] for source in body["sources"]))


@dataclass(slots=True, kw_only=True)
class Reader:
    """One conversation. Every second reader takes the answers as streams."""

    proxy: str
    key: str
    streams: bool
    thread_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    replies: list[Reply] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)  # why
    failed: list[str] = field(default_factory=list)  # after the repetition, too

    def ask(self, question: str) -> None:
        """Ask, and ask once more if that fails."""
        request_key = str(uuid.uuid4())
        for attempt in (1, 2):
            outcome, wait = self._attempt(question, request_key)
            if isinstance(outcome, Reply):
                self.replies.append(outcome)
                return
            (self.repeated if attempt == 1 else self.failed).append(outcome)
            if attempt == 1:
                threading.Event().wait(min(wait, MAX_WAIT_SECONDS))

    def _attempt(self, question: str, request_key: str) -> tuple[Reply | str, float]:
        body = {"message": question, "session_id": self.thread_id}
        headers = {"X-API-Key": self.key, "Idempotency-Key": request_key}
        path = "/chat/stream" if self.streams else "/chat/run"
        try:
            with (
                httpx.Client(timeout=ANSWER_SECONDS) as client,
                client.stream("POST", f"{self.proxy}{path}", json=body, headers=headers) as response,
            ):
                text = response.read().decode()
        except httpx.TransportError as exc:
            return type(exc).__name__, 1.0
        if response.status_code != 200:
            assert response.status_code in FAILED, (response.status_code, text)
            return f"{response.status_code}", float(response.headers.get("Retry-After", 1))
        if not self.streams:
            return Reply.of(json.loads(text)), 0.0
        last = list(events(text.splitlines()))[-1]
        return (Reply.of(last.body), 0.0) if last.name == "reply" else (f"stream: {last.name}", 1.0)


def ask_all(readers: Sequence[Reader], questions: Sequence[str], after: int, act: Callable[[], None]) -> None:
    """Let every reader ask every question, all readers at once; `act` when so many questions were answered."""
    answered = threading.Semaphore(0)

    def read(reader: Reader) -> None:
        for question in questions:
            try:
                reader.ask(question)
            finally:
                answered.release()

    with ThreadPoolExecutor(len(readers)) as pool:
        work = [pool.submit(read, reader) for reader in readers]
        for _ in range(after):
            answered.acquire()
        act()
        for one in work:
            one.result()
