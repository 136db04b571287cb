"""What a level of confidence does to a reply: low ones open with the disclaimer, and a refusal sends readers to another
book only where that one answers with some confidence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.confidence.policies import level_of, policy_for
from lectern.domain.evidence import ConfidenceLevel, ConfidenceMetrics, Hit
from lectern.domain.replies import Answer, Delta, Refusal, Replied, Reply
from tests.answering.scripted import write_book

CAMERA_QUESTION = "How many images does the camera publish every second?"


@dataclass(frozen=True)
class Sure:
    """A policy that is as sure as it was told."""

    confidence: float
    floor: float = 0.0

    def relevance(self, cosine: float) -> float:
        """The cosine itself."""
        return cosine

    def ceiling(self, level: ConfidenceLevel) -> float:
        """As of a calibrated policy."""
        return {"high": 1.0, "medium": 0.8499, "low": 0.7499, "insufficient": 0.5999}[level]

    def measure(self, question: str, field: Sequence[Hit], hits: Sequence[Hit]) -> ConfidenceMetrics:
        """The evidence's own metrics, but for the decision."""
        level = level_of(self.confidence)
        measured = policy_for("relevance", "any").measure(question, field, hits)
        sure = level != "insufficient"
        return replace(measured, confidence=self.confidence, confidence_level=level, should_answer=sure)


@asynccontextmanager
async def collections(tmp_path: Path, **sure: float) -> AsyncIterator[Lectern]:
    """The same book under several names, with a confidence for each."""
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        for book in sure:
            await lectern.ingest(write_book(tmp_path / book), book=book)

        async def policy(book: str) -> Sure:
            return Sure(sure[book])

        lectern.app.ask_deps = replace(lectern.app.ask_deps, policy=policy, answerability=None)
        yield lectern


async def ask_question(lectern: Lectern, book: str) -> tuple[str, Reply]:
    """What was streamed, and the reply."""
    streamed, reply = "", None
    async for event in lectern.stream(CAMERA_QUESTION, book=book):
        streamed += event.text if isinstance(event, Delta) else ""
        reply = event.reply if isinstance(event, Replied) else reply
    assert reply is not None
    return streamed, reply


@pytest.mark.parametrize(("confidence", "warned"), [(0.6, True), (0.749, True), (0.75, False), (0.9, False)])
async def test_the_disclaimer_stands_above_a_low_answer(tmp_path: Path, confidence: float, warned: bool) -> None:
    """A paragraph of its own, streamed as it is kept: glued to a row or a list it would break both."""
    async with collections(tmp_path, own=confidence) as lectern:
        streamed, reply = await ask_question(lectern, "own")
        opening = f"{lectern.app.settings.disclaimer}\n\n"

    assert isinstance(reply, Answer)
    assert "30 images" in reply.text
    assert reply.text.startswith(opening) == warned
    assert streamed.strip() == reply.text.strip()


@pytest.mark.parametrize(
    ("confidence", "suggested"), [(0.9, True), (0.75, True), (0.74, False), (0.6, False), (0.1, False)]
)
async def test_another_book_is_named_where_it_answers_well(tmp_path: Path, confidence: float, suggested: bool) -> None:
    """Whoever is sent to another book must find the answer there, not a guess with a warning."""
    async with collections(tmp_path, own=0.1, other=confidence) as lectern:
        _, reply = await ask_question(lectern, "own")

    assert isinstance(reply, Refusal)
    assert reply.other_books == (("other",) if suggested else ())
    assert (reply.reason == "other_book") == suggested
