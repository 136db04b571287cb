"""The answering flow: screen the question, make it standalone, try the outline, retrieve, measure the evidence, draft,
and check the draft sentence by sentence. Weak evidence leads to a refusal without a draft. Only checked sentences are
sent. A draft without a supported sentence becomes a refusal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from lectern.answering.checking import Checker
from lectern.answering.desk import Library, TurnDesk
from lectern.answering.followups import depends_on_history, distinctive_stems, standalone_by_rules
from lectern.answering.outgoing import Confidential
from lectern.answering.outline_answers import outline_answer
from lectern.answering.refusals import refuse
from lectern.answering.screening import screen
from lectern.answering.suggestions import PolicyOf, answers_elsewhere, nearest_lessons
from lectern.confidence.answerability import Answerability
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.errors import ProviderTimeout
from lectern.domain.evidence import ConfidenceMetrics, Findings, Hit
from lectern.domain.replies import (
    Account,
    Answer,
    Delta,
    Entered,
    EvidenceFound,
    NearestLesson,
    Question,
    Refusal,
    RefusalReason,
    Removals,
    Replied,
    Reply,
    ReplyEvent,
    ReplyState,
    Timings,
)
from lectern.domain.scope import SearchQuery
from lectern.ports.answering import Answerer, Assignment, Judge, Usage
from lectern.text.words import stems


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringRules:
    """The settings of answers."""

    refusal: str
    disclaimer: str
    top_k: int = 5
    threshold: float | None = None  # the lowest cosine of a passage; None: the policy's floor
    budget: float = 60.0  # seconds of a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class AskDeps:
    """What a turn depends on."""

    library: Library
    answerer: Answerer
    judge: Judge
    policy: PolicyOf
    answerability: Answerability | None  # where the answerer cannot tell by itself that passages do not answer
    confidential: Confidential
    rules: AnsweringRules


async def ask(question: Question, deps: AskDeps) -> AsyncIterator[ReplyEvent]:
    """A question's events, from its first state to the reply."""
    turn = _Turn(question, deps)
    try:
        async with asyncio.timeout(deps.rules.budget), aclosing(turn.events()) as events:
            async for event in events:
                yield event
    except TimeoutError:
        raise ProviderTimeout(deps.answerer.model, f"the turn took over {deps.rules.budget:g} s; ask again") from None


class _Turn:
    """Answers one question."""

    def __init__(self, question: Question, deps: AskDeps) -> None:
        self._question = question
        self._deps = deps
        self._text = question.text.strip()
        self._standalone = self._text
        self._start = time.perf_counter()
        self._tokens = 0
        threshold = question.similarity_threshold
        self._desk = TurnDesk(
            library=deps.library,
            scope=question.scope,
            top_k=question.top_k or deps.rules.top_k,
            floor=threshold if threshold is not None else deps.rules.threshold,
            question=self._text,
        )

    async def events(self) -> AsyncGenerator[ReplyEvent, None]:
        """The events of the turn, from the state `pending` to the reply."""
        yield Entered(state="pending")
        self._policy = await self._deps.policy(self._question.scope.book_id)
        if self._desk.floor is None:
            self._desk.floor = self._policy.floor
        if (reason := screen(self._text)) is not None:
            yield self._refused_reply(reason, self._policy.measure(self._text, (), ()), ())
            return
        yield Entered(state="retrieving")
        self._standalone = self._desk.question = await self._make_standalone()
        if (reply := await self._from_outline()) is not None:
            yield EvidenceFound(hits=tuple(cited.hit for cited in reply.citations), metrics=reply.account.metrics)
            yield Entered(state="generating")
            yield Delta(text=reply.text)
            yield Replied(reply=reply)
            return
        candidates, hits = await self._retrieve()
        metrics = await self._weigh(candidates, hits)
        yield EvidenceFound(hits=tuple(hits), metrics=metrics)
        if not metrics.should_answer:
            yield await self._refuse_weak(metrics, hits, candidates)
            return
        yield Entered(state="generating")
        async with aclosing(self._draft(metrics, hits)) as events:
            async for event in events:
                yield event

    async def _weigh(self, candidates: list[Hit], hits: list[Hit]) -> ConfidenceMetrics:
        """How well the evidence covers the question; for an answerer that only quotes, also whether it answers it."""
        metrics = self._policy.measure(self._standalone, candidates, hits)
        if self._matches_history_only(hits):
            return metrics.refused()
        if metrics.should_answer and self._deps.answerability is not None:
            best = [hit for hit in candidates if hit.similarity >= (self._policy.floor or 0.0)]
            return await self._deps.answerability.adjust(self._standalone, best, metrics, self._language)
        return metrics

    async def _make_standalone(self) -> str:
        """The question as it is searched for, understandable without the conversation."""
        history = self._question.history
        if not history or not depends_on_history(self._text):
            return self._text
        standalone, usage = await self._deps.answerer.standalone(self._text, history)
        self._tokens += usage.tokens
        return standalone or standalone_by_rules(self._text, history)

    async def _retrieve(self) -> tuple[list[Hit], list[Hit]]:
        """The hits that confidence is measured on, and those of them that the answerer gets."""
        query = SearchQuery(text=_searchable(self._standalone), limit=max(CONFIDENCE_HITS, self._desk.top_k))
        start = time.perf_counter()
        findings: Findings = await self._deps.library.search(self._question.scope, query)
        self._desk.seconds += time.perf_counter() - start
        self._language = findings.language
        floor = self._desk.floor or 0.0
        hits = [hit for hit in findings.hits if hit.similarity >= floor][: self._desk.top_k]
        self._retrieved = self._desk.hand_out(replace(findings, query=self._standalone), hits)
        return list(findings.hits[:CONFIDENCE_HITS]), hits

    def _matches_history_only(self, hits: list[Hit]) -> bool:
        """Whether the hits contain none of this question's distinctive words, but only words of the conversation."""
        if self._standalone == self._text:
            return False
        words = distinctive_stems(self._text)
        return bool(words) and not any(words & stems(" ".join((*hit.chunk.trail, hit.chunk.text))) for hit in hits)

    async def _from_outline(self) -> Answer | None:
        """The reply to a question about the book's structure, from the outline. Nothing is searched for it."""
        answer = await outline_answer(self._standalone, self._desk)
        if answer is None:
            return None
        metrics = self._policy.measure(self._standalone, (), ())
        certain = replace(metrics, confidence=1.0, confidence_level="high", should_answer=True)
        return Answer(
            text=answer.text,
            citations=answer.citations,
            statements=answer.statements,
            considered=(),
            removed=Removals(),
            account=self._account(certain, "completed"),
        )

    async def _draft(self, metrics: ConfidenceMetrics, hits: list[Hit]) -> AsyncGenerator[ReplyEvent, None]:
        checker = Checker(judge=self._deps.judge, passage=self._desk.passage, confidential=self._deps.confidential)
        task = Assignment(
            question=self._text if not self._question.history else self._standalone,
            retrieved=self._retrieved,
            history=self._question.history,
            desk=self._desk,
            stream=self._question.stream,
        )
        low = metrics.confidence_level == "low"
        opening = f"{self._deps.rules.disclaimer}\n\n" if low else ""
        async with aclosing(self._deps.answerer.write(task)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, Usage):
                    self._tokens += piece.tokens
                elif text := await checker.feed(piece):
                    yield Delta(text=opening + text)
                    opening = ""
        if text := await checker.finish():
            yield Delta(text=opening + text)
        reply = self._conclude(checker, metrics, hits, low=low)
        if isinstance(reply, Refusal):
            outside, books = await self._elsewhere()
            reply = replace(reply, outside_scope=outside, other_books=books)
        yield Replied(reply=reply)

    def _conclude(self, checker: Checker, metrics: ConfidenceMetrics, hits: list[Hit], *, low: bool) -> Reply:
        if not checker.supported:
            return self._refusal("unsupported", metrics, hits, removals=checker.removals)
        citations = checker.citations()
        cited_ids = {citation.hit.chunk.id for citation in citations}
        passages = list(self._desk.passages.values())
        return Answer(
            text=f"{self._deps.rules.disclaimer}\n\n{checker.text}" if low else checker.text,
            citations=citations,
            statements=tuple(checker.statements),
            considered=tuple(hit for hit in passages if hit.chunk.id not in cited_ids),
            removed=checker.removals,
            account=self._account(self._remeasured(metrics), "low_confidence" if low else "completed"),
        )

    def _remeasured(self, metrics: ConfidenceMetrics) -> ConfidenceMetrics:
        """The metrics over all retrieved passages, if the model searched again. The decision stays the same."""
        if self._desk.retrievals == 1:
            return metrics
        metrics_of_all = self._policy.measure(self._standalone, (), self._desk.best())
        return replace(
            metrics_of_all,
            confidence=metrics.confidence,
            confidence_level=metrics.confidence_level,
            should_answer=metrics.should_answer,
        )

    async def _refuse_weak(self, metrics: ConfidenceMetrics, hits: list[Hit], field_: list[Hit]) -> Replied:
        """A refusal that says where else the answer may be. The nearest lessons may be below the floor."""
        reason: RefusalReason = "weak_evidence" if hits else "no_results"
        outside, books = await self._elsewhere()
        reply = self._refusal("other_book" if books and not outside else reason, metrics, hits)
        return Replied(reply=replace(reply, nearest=nearest_lessons(field_), outside_scope=outside, other_books=books))

    async def _elsewhere(self) -> tuple[tuple[NearestLesson, ...], tuple[str, ...]]:
        """Lessons that the reader's filters hide, and other books, that answer the question."""
        return await answers_elsewhere(self._standalone, self._desk, self._deps.policy, self._deps.answerability)

    def _refused_reply(self, reason: RefusalReason, metrics: ConfidenceMetrics, hits: tuple[Hit, ...]) -> Replied:
        return Replied(reply=self._refusal(reason, metrics, list(hits)))

    def _refusal(
        self, reason: RefusalReason, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals | None = None
    ) -> Refusal:
        account = self._account(metrics.refused(), "low_confidence" if hits else "no_results")
        sentence = self._deps.rules.refusal
        return refuse(reason, account, hits, sentence=sentence, nearest=nearest_lessons(hits), removals=removals)

    def _account(self, metrics: ConfidenceMetrics, state: ReplyState) -> Account:
        total = time.perf_counter() - self._start
        return Account(
            question=self._text,
            standalone=self._standalone,
            metrics=metrics,
            model=self._deps.answerer.model,
            tokens_used=self._tokens,
            retrieval_count=len(self._desk.passages),
            look_ups=tuple(self._desk.look_ups),
            timings=Timings(
                retrieval_time_ms=round(self._desk.seconds * 1000, 3),
                generation_time_ms=round((total - self._desk.seconds) * 1000, 3),
                total_time_ms=round(total * 1000, 3),
            ),
            state=state,
            where=self._question.scope.where,
        )


def _searchable(text: str) -> str:
    """The text, padded to the minimum length of a search: a question may be a single character."""
    return text.ljust(3, "?")
