"""The answerability check in a turn: when it is made, what becomes of a near miss, and what is said elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.replies import Answer, EvidenceFound, Refusal, Replied, Reply
from lectern.domain.scope import Scope
from tests.answering.scripted import KEY, write_book

COVERED = "How many images does the camera publish every second?"
NEAR = "Who sells the camera, and what does the camera cost?"


async def ask_question(lectern: Lectern, text: str, scope: Scope) -> tuple[EvidenceFound | None, Reply]:
    """The evidence that was shown and the reply."""
    evidence, reply = None, None
    async for event in lectern.stream(text, scope=scope):
        evidence = event if isinstance(event, EvidenceFound) else evidence
        reply = event.reply if isinstance(event, Replied) else reply
    assert reply is not None
    return evidence, reply


async def test_a_near_miss_is_refused_before_anything_is_quoted(tmp_path: Path) -> None:
    """Level, decision and number are the same in the evidence and in the reply, and nothing near is called an answer
    elsewhere: neither in the other book that holds the same text, nor outside a filter."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        for book in ("robots", "copies"):
            await lectern.ingest(write_book(tmp_path / book), book=book)
        _, answer = await ask_question(lectern, COVERED, Scope(book_id="robots"))
        evidence, refusal = await ask_question(lectern, NEAR, Scope(book_id="robots"))
        _, filtered = await ask_question(lectern, NEAR, Scope(book_id="robots", module="ros2"))

    assert isinstance(answer, Answer)
    assert "30 images" in answer.text
    for reply in (refusal, filtered):
        assert isinstance(reply, Refusal)
        assert reply.reason == "weak_evidence"
        assert reply.nearest
        assert (reply.outside_scope, reply.other_books) == ((), ())
    assert evidence is not None
    assert evidence.metrics.confidence == refusal.account.metrics.confidence
    assert not evidence.metrics.should_answer


@pytest.mark.parametrize(
    ("settings", "checked"),
    [
        ({}, True),
        ({"confidence": "thresholds"}, False),
        ({"confidence": "relevance"}, False),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, False),
        ({"OPENAI_API_KEY": KEY, "answerer": "offline"}, True),
    ],
)
async def test_only_quoting_by_the_calibrated_policy_takes_it(
    tmp_path: Path, settings: dict[str, str], checked: bool
) -> None:
    """A language model reads the passages itself, and the design documents' rules stay as they are."""
    async with open_lectern(Settings(home=tmp_path / "home", **settings)) as lectern:  # type: ignore[arg-type]  # by name
        assert (lectern.app.ask_deps.answerability is not None) is checked


async def test_what_the_outline_answers_is_not_looked_at_again(tmp_path: Path) -> None:
    """A question about the book's structure is answered from its structure, whatever passages say."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "robots"), book="robots")
        _, reply = await ask_question(lectern, "How many modules does the book have?", Scope(book_id="robots"))

    assert isinstance(reply, Answer)
    assert reply.account.metrics.confidence == 1.0
