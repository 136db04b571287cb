"""The answering flow: screen the question, make it standalone, try the outline, retrieve, measure the evidence, draft,
and judge the claims of the draft. Weak evidence leads to a refusal without a draft. The draft is sent as it comes;
verdicts follow, then the reply. A draft whose claims do not rest on the passages becomes a refusal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from lectern.answering.checking import Checking, finish, level_cap, sent_statement
from lectern.answering.confidential import Confidential
from lectern.answering.desk import Library, TurnDesk
from lectern.answering.draft import Draft
from lectern.answering.followups import depends_on_history, distinctive_stems, standalone_by_rules
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
    CutReason,
    Delta,
    Entered,
    EvidenceFound,
    Judged,
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
from lectern.ports.answering import Answerer, Assignment, Cut, Judge, ModelJudge, Usage
from lectern.text.pieces import read
from lectern.text.words import stems

JUDGING_SHARE = 0.9  # of the seconds that are left, for a language model as judge; the rest is for the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringRules:
    """The settings of answers."""

    refusal: str
    disclaimer: str
    top_k: int = 5
    threshold: float | None = None  # the lowest cosine of a passage; None: the policy's floor
    reading_passages: int = 0  # how many passages the answerer gets, if the request names no number; 0: `top_k`
    reading_tokens: int = 6_000  # about how many tokens these passages may have
    hide_doubtful: bool = False
    budget: float = 60.0  # seconds of a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class AskDeps:
    """What a turn depends on."""

    library: Library
    answerer: Answerer
    judge: Judge
    model_judge: ModelJudge | None  # asked about claims that the local judge leaves unconfirmed
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
        self._cut: CutReason | None = None
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
        reading = self._desk.top_k if self._question.top_k else max(self._deps.rules.reading_passages, self._desk.top_k)
        query = SearchQuery(text=_searchable(self._standalone), limit=max(CONFIDENCE_HITS, 2 * reading))
        start = time.perf_counter()
        findings: Findings = await self._deps.library.search(self._question.scope, query)
        self._desk.seconds += time.perf_counter() - start
        self._language = findings.language
        floor = self._desk.floor or 0.0
        near = [hit for hit in findings.hits if hit.similarity >= floor]
        hits = near[: self._desk.top_k]
        to_read = reading_passages(near, hits, reading, self._deps.rules.reading_tokens)
        self._retrieved = self._desk.hand_out(replace(findings, query=self._standalone), to_read)
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
        draft = Draft(
            passages=lambda: tuple(self._desk.passages.values()),
            passage=self._desk.passage,
            confidential=self._deps.confidential,
            question=self._text,
        )
        opening = self._opening(metrics)
        async for text in self._written(draft):
            yield Delta(text=text if draft.text != text else opening + text)
        if draft.is_not_covered or not draft.text.strip():
            yield Replied(reply=await self._refuse_unsupported(metrics, hits, draft.removals))
            return
        numbers = draft.numbers or self._desk.passages  # an answer without markers may get any of them
        cited = [hit for number in numbers if (hit := self._desk.passage(number)) is not None]
        text, removals = draft.finished_text(cited)
        checking = Checking(
            text=text,
            shown=draft.numbers,
            passages=self._desk.passages,
            judge=self._deps.judge,
            model_seconds=lambda: self._seconds_left() * JUDGING_SHARE,
        )
        async with aclosing(checking.run(self._deps.model_judge)) as checked_claims:
            async for number, checked in checked_claims:
                if text == draft.text.strip() and not self._deps.rules.hide_doubtful:  # else it is about another text
                    statement = sent_statement(text, checked, draft.numbers, len(opening))
                    yield Judged(number=number, statement=statement)
        self._tokens += checking.tokens
        yield Replied(reply=await self._conclude(checking, metrics, hits, removals))

    async def _written(self, draft: Draft) -> AsyncGenerator[str, None]:
        """What may be sent of the draft, as it comes; all at once at the end if doubtful claims are hidden."""
        task = Assignment(
            question=self._text if not self._question.history else self._standalone,
            retrieved=self._retrieved,
            history=self._question.history,
            desk=self._desk,
            stream=self._question.stream,
        )
        async with aclosing(self._deps.answerer.write(task)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, Usage):
                    self._tokens += piece.tokens
                elif isinstance(piece, Cut):
                    self._cut = piece.reason
                elif (text := draft.feed(piece)) and not self._deps.rules.hide_doubtful:
                    yield text
                if draft.is_full:
                    self._cut = "length"
                    break
        if (text := draft.finish()) and not self._deps.rules.hide_doubtful:
            yield text

    def _seconds_left(self) -> float:
        """Of the turn's budget."""
        return max(0.0, self._deps.rules.budget - (time.perf_counter() - self._start))

    def _opening(self, metrics: ConfidenceMetrics) -> str:
        """The disclaimer that opens an answer of low confidence."""
        return f"{self._deps.rules.disclaimer}\n\n" if metrics.confidence_level == "low" else ""

    async def _conclude(
        self, checking: Checking, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals
    ) -> Reply:
        """The reply to a checked draft. Its level is not above what its claims bear."""
        cap = level_cap(checking.claims, removals)
        if cap == "insufficient":
            return await self._refuse_unsupported(metrics, hits, removals)
        metrics = self._remeasured(metrics).capped(cap, self._policy.ceiling(cap))
        text = finish(checking, hide_doubtful=self._deps.rules.hide_doubtful, before=self._opening(metrics))
        if not text.citations:
            return await self._refuse_unsupported(metrics, hits, removals)
        cited_ids = {citation.hit.chunk.id for citation in text.citations}
        passages = self._desk.passages.values()
        return Answer(
            text=text.text,
            citations=text.citations,
            statements=text.statements,
            considered=tuple(hit for hit in passages if hit.chunk.id not in cited_ids),
            removed=replace(removals, hidden=text.hidden, corrected_citations=text.corrected),
            account=self._account(metrics, "low_confidence" if metrics.confidence_level == "low" else "completed"),
            cut=self._cut,
        )

    async def _refuse_unsupported(self, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals) -> Refusal:
        """A refusal because the draft says that the passages do not answer, or does not rest on them."""
        outside, books = await self._elsewhere()
        reply = self._refusal("unsupported", metrics, hits, removals=removals)
        return replace(reply, outside_scope=outside, other_books=books)

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


def reading_passages(near: Sequence[Hit], best: Sequence[Hit], count: int, tokens: int) -> list[Hit]:
    """The passages that the answerer reads: the best ones, then further ones up to a number and a size. Stubs and
    exercises are left out of the further ones: they answer nothing."""
    passages = list(best)
    size = sum(hit.chunk.token_count for hit in passages)
    for hit in near[len(best) :]:
        if len(passages) >= count or size + hit.chunk.token_count > tokens:
            break
        if any(piece.states or piece.kind in ("row", "code") for piece in read(hit.chunk.text) if not piece.task):
            passages.append(hit)
            size += hit.chunk.token_count
    return passages


def _searchable(text: str) -> str:
    """The text, padded to the minimum length of a search: a question may be a single character."""
    return text.ljust(3, "?")
