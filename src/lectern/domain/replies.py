"""A reply is an answer or a refusal. Both are normal outcomes, so a refusal is a value: no exception, no magic
phrase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lectern.domain.evidence import ConfidenceMetrics, Hit

RefusalReason = Literal["no_results", "weak_evidence", "unsupported", "off_topic", "blocked", "other_book"]
Verdict = Literal["supported", "contradicted", "unverified"]
ReplyState = Literal["completed", "low_confidence", "no_results"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A number in the answer, the chunk behind it and the passage a reader is shown."""

    number: int
    hit: Hit
    passage: str  # at most 500 characters around the cited sentence
    section: str  # the nearest heading above that sentence, else the lesson's title
    url: str  # opens at that heading


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether passages say what a sentence says."""

    verdict: Verdict
    support: float  # 0…1: how sure it is that they do


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestLesson:
    """A lesson a refused reader may look at instead."""

    title: str
    url: str
    parent_doc_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Where the time of one turn went, in milliseconds."""

    retrieval_time_ms: float
    generation_time_ms: float
    total_time_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the book says, each statement cited."""

    text: str
    citations: tuple[Citation, ...]
    considered: tuple[Hit, ...]  # handed out, not cited
    metrics: ConfidenceMetrics
    model: str
    tokens_used: int
    retrieval_count: int
    timings: Timings
    state: ReplyState
    invented_citations: int = 0  # markers we never issued; removed from the text
    kind: Literal["answer"] = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The book does not say, or not clearly enough."""

    text: str
    reason: RefusalReason
    nearest: tuple[NearestLesson, ...]
    considered: tuple[Hit, ...]
    metrics: ConfidenceMetrics
    model: str
    tokens_used: int
    retrieval_count: int
    timings: Timings
    state: ReplyState
    kind: Literal["refusal"] = "refusal"


Reply = Answer | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a model wrote, before we have checked a word of it."""

    text: str
    model: str
    tokens_used: int
