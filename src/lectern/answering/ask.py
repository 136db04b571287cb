"""Answering, read downward: retrieve, weigh the evidence, draft, check. Nothing is drafted on weak evidence, and a
draft that cites nothing we handed out becomes a refusal."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from lectern.answering.citations import Cited, cite
from lectern.answering.confidence import measure
from lectern.domain.errors import BadInput
from lectern.domain.evidence import ConfidenceMetrics, Dossier, Findings, Hit
from lectern.domain.queries import Scope, SearchQuery, refuse_undecodable
from lectern.domain.replies import Answer, Draft, NearestLesson, Refusal, RefusalReason, Reply, Timings
from lectern.ports import Answerer

MESSAGE_LENGTH = (1, 1000)  # characters after strip
NEAREST = 3
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

Search = Callable[[SearchQuery], Awaitable[Findings]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question by one reader."""

    text: str
    scope: Scope = field(default_factory=Scope)
    top_k: int = 5
    similarity_threshold: float | None = None

    def __post_init__(self) -> None:
        refuse_undecodable(self.text, "message")
        low, high = MESSAGE_LENGTH
        length = len(self.text.strip())
        if not low <= length <= high:
            raise BadInput(f"a question has {low} to {high} characters, this one has {length}", field="message")
        if _CONTROL.search(self.text):
            raise BadInput("the question contains control characters; send plain text", field="message")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringRules:
    """The fixed sentences of a reply."""

    refusal: str
    disclaimer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """Retrieval is over; nothing has been written yet."""

    dossier: Dossier
    metrics: ConfidenceMetrics
    kind: Literal["evidence"] = "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The reply; the only authoritative event."""

    reply: Reply
    kind: Literal["replied"] = "replied"


ReplyEvent = EvidenceFound | Replied


async def ask(
    question: Question, *, search: Search, answerer: Answerer, rules: AnsweringRules
) -> AsyncIterator[ReplyEvent]:
    """A question's events, from evidence to reply."""
    clock = _Clock()
    text = question.text.strip()
    query = SearchQuery(
        text=_searchable(text),
        scope=question.scope,
        limit=question.top_k,
        similarity_threshold=question.similarity_threshold,
    )
    findings = await search(query)
    dossier = Dossier(question=text, hits=findings.hits)
    metrics = measure(dossier)
    clock.retrieved()
    yield EvidenceFound(dossier=dossier, metrics=metrics)
    if not metrics.should_answer:
        reason: RefusalReason = "weak_evidence" if dossier.hits else "no_results"
        yield Replied(reply=_refuse(dossier, metrics, reason, answerer.model, clock, rules))
        return
    draft = await answerer.draft(text, dossier)
    yield Replied(reply=_conclude(draft, dossier, metrics, clock, rules))


def _conclude(
    draft: Draft, dossier: Dossier, metrics: ConfidenceMetrics, clock: _Clock, rules: AnsweringRules
) -> Reply:
    cited: Cited = cite(draft.text, dossier)
    if not cited.citations:
        return _refuse(dossier, metrics, "unsupported", draft.model, clock, rules, draft.tokens_used)
    low = metrics.confidence_level == "low"
    used = {citation.hit.chunk.id for citation in cited.citations}
    return Answer(
        text=f"{rules.disclaimer} {cited.text}" if low else cited.text,
        citations=cited.citations,
        considered=tuple(hit for hit in dossier.hits if hit.chunk.id not in used),
        metrics=metrics,
        model=draft.model,
        tokens_used=draft.tokens_used,
        retrieval_count=len(dossier.hits),
        timings=clock.timings(),
        state="low_confidence" if low else "completed",
        invented_citations=cited.invented,
    )


def _refuse(  # noqa: PLR0913  # a refusal carries all that an answer would
    dossier: Dossier,
    metrics: ConfidenceMetrics,
    reason: RefusalReason,
    model: str,
    clock: _Clock,
    rules: AnsweringRules,
    tokens_used: int = 0,
) -> Refusal:
    return Refusal(
        text=rules.refusal,
        reason=reason,
        nearest=_nearest(dossier.hits),
        considered=dossier.hits,
        metrics=metrics.refused(),
        model=model,
        tokens_used=tokens_used,
        retrieval_count=len(dossier.hits),
        timings=clock.timings(),
        state="low_confidence" if dossier.hits else "no_results",
    )


def _nearest(hits: tuple[Hit, ...]) -> tuple[NearestLesson, ...]:
    lessons: dict[str, NearestLesson] = {}
    for hit in hits:
        page = hit.chunk.url.partition("#")[0]
        lesson = NearestLesson(title=hit.chunk.lesson_title, url=page, parent_doc_id=hit.chunk.parent_doc_id)
        lessons.setdefault(hit.chunk.parent_doc_id, lesson)
    return tuple(lessons.values())[:NEAREST]


def _searchable(text: str) -> str:
    """A question may be one character long; a search text may not."""
    return text.ljust(3, "?")


class _Clock:
    """Where the time went."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._found = self._begun

    def retrieved(self) -> None:
        self._found = time.perf_counter()

    def timings(self) -> Timings:
        now = time.perf_counter()
        return Timings(
            retrieval_time_ms=round((self._found - self._begun) * 1000, 3),
            generation_time_ms=round((now - self._found) * 1000, 3),
            total_time_ms=round((now - self._begun) * 1000, 3),
        )
