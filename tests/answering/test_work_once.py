"""A turn does no work twice, and none that it has no use for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.replies import Answer
from lectern.domain.scope import Scope
from lectern.models.local import answer_locator
from lectern.retrieval import scope as scopes
from lectern.retrieval.search import HybridSearch
from tests.answering.scripted import write_book

COVERED = "How many images does the camera topic publish every second?"


def counting(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of every call of a function, which does what it did before."""
    calls: list[tuple[Any, ...]] = []
    real = getattr(owner, name)

    def counting(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(owner, name, counting)
    return calls


async def test_the_network_reads_a_passage_once_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the answerability check has read, the offline writer does not read again."""
    calls = counting(monkeypatch, answer_locator, "log_odds")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots"), book="robots")
        reply = await lectern.ask(COVERED, book="robots")

    assert isinstance(reply, Answer)
    read = Counter((question, passage) for _, question, passage in calls)
    assert len(read) > 1
    assert set(read.values()) == {1}


@pytest.mark.parametrize("thread", [None, "0b9e2c61-3c0f-4b1e-9a53-1f6f0f3f6a11"])
async def test_a_scope_is_resolved_once_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread: str | None
) -> None:
    """Filters are checked against the book once, in a conversation or without one."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots"), book="robots")
        calls = counting(monkeypatch, scopes, "resolve_scope")
        reply = await lectern.ask(COVERED, scope=Scope(book_id="robots", tier=4), thread=thread)

    assert isinstance(reply, Answer)
    assert len(calls) == 1


async def test_the_outline_answers_before_anything_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question about the book's structure costs no search, and says so."""
    calls = counting(monkeypatch, HybridSearch, "within")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots"), book="robots")
        reply = await lectern.ask("How many modules does the book have?", book="robots")

    assert isinstance(reply, Answer)
    assert reply.citations
    assert (calls, reply.account.retrieval_count) == ([], 0)
