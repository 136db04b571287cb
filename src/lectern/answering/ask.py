"""The answering flow: screen the question, make it standalone, try the outline, retrieve, measure the evidence, draft,
and judge the claims of the draft. Weak evidence leads to a refusal without a draft. The draft is sent as it comes;
verdicts follow, then the reply. A draft whose claims do not rest on the passages becomes a refusal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from lectern.answering.book_answers import book_answer, book_opening
from lectern.answering.checking import Checking, finish, level_cap, sent_statement
from lectern.answering.confidential import Confidential
from lectern.answering.desk import Library, TurnDesk
from lectern.answering.draft import Draft
from lectern.answering.earlier_calls import within_budget
from lectern.answering.followups import depends_on_history, distinctive_stems, standalone_by_rules
from lectern.answering.heading_questions import heading_questions
from lectern.answering.refusals import refuse
from lectern.answering.screening import screen
from lectern.answering.small_talk import small_talk
from lectern.answering.suggestions import AnsweredQuestions, PolicyOf, answers_elsewhere, nearest_lessons
from lectern.confidence.answerability import Answerability
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.confidence.spelling import respell, unknown_words, variants
from lectern.domain.errors import LecternError, ProviderError, ProviderTimeout
from lectern.domain.evidence import ConfidenceLevel, ConfidenceMetrics, Findings, Hit
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
    Statement,
    Timings,
)
from lectern.domain.scope import ResolvedScope, Scope, SearchQuery
from lectern.domain.tracing import UNTRACED
from lectern.grounding.answer_claims import only_denies
from lectern.ports.answering import Answerer, Assignment, Cut, Judge, ModelJudge, Usage
from lectern.ports.tracing import Tracer
from lectern.text.pieces import read
from lectern.text.words import stems

SUGGESTED_LEVELS = ("high", "medium")  # of an answer that a suggested question gets
SUGGESTING_SECONDS = 1.0  # for trying what a refusal may suggest
MAX_QUESTIONS, MAX_TRIED_QUESTIONS = 3, 6  # that are suggested, and that are tried for it
CUT_ADVICE: dict[CutReason, str] = {
    "length": "was cut off before its answer could be used; raise LECTERN_MAX_TOKENS, or choose another model",
    "content_filter": "withheld the rest of its answer (content filter); ask in other words",
}
INTRODUCED = ("greeting", "identity", "help")  # kinds of small talk after which a reader is told about the book
STEP_CHARACTERS = 1_000  # of a draft that are filtered before others get their turn
JUDGING_SHARE = 0.9  # of the seconds that are left, for a language model as judge; the rest is for the reply


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringRules:
    """The settings of answers."""

    refusal: str | None = None  # the operator's own sentences; None: those of the book's language
    disclaimer: str | None = None
    top_k: int = 5
    threshold: float | None = None  # the lowest relevance of a passage; None: the policy's floor
    reading_passages: int = 0  # how many passages the answerer gets, if the request names no number; 0: `top_k`
    reading_tokens: int = 6_000  # about how many tokens these passages may have
    history_tokens: int = 3_000  # about how many tokens of passages from earlier turns the answerer gets again
    hide_doubtful: bool = False
    budget: float = 60.0  # seconds of a turn
    judge_seconds: float = 20.0  # for a language model as judge, if so much is left of the turn


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
    answers_offline: bool  # no language model writes, so that a question can be tried without cost
    rules: AnsweringRules
    answered: AnsweredQuestions = field(default_factory=AnsweredQuestions)
    tracer: Tracer = UNTRACED


async def ask(question: Question, deps: AskDeps) -> AsyncIterator[ReplyEvent]:
    """A question's events, from its first state to the reply."""
    turn = _Turn(question, deps)
    try:
        async with asyncio.timeout(deps.rules.budget), aclosing(turn.events()) as events:
            async for event in events:
                if isinstance(event, Replied) and isinstance(event.reply, Refusal):
                    with deps.tracer.span("suggest"):
                        suggestions = await turn.suggestions()
                    yield Replied(reply=replace(event.reply, suggestions=suggestions))
                else:
                    yield event
    except TimeoutError:
        raise ProviderTimeout(deps.answerer.model, f"the turn took over {deps.rules.budget:g} s; ask again") from None


async def answered_questions(texts: Sequence[str], scope: ResolvedScope, deps: AskDeps) -> AsyncIterator[str]:
    """Those of the questions that get an answer of high or medium confidence, as they are found. No language model is
    called: with one, the evidence alone decides."""
    deps = replace(deps, tracer=UNTRACED)  # nobody asked them

    async def is_answered(text: str) -> bool:
        async with aclosing(_Turn(Question(text=text, scope=scope), deps).events()) as events:
            async for event in events:
                if isinstance(event, EvidenceFound) and event.metrics.confidence_level not in SUGGESTED_LEVELS:
                    return False
                if isinstance(event, EvidenceFound) and not deps.answers_offline:
                    return True
                if isinstance(event, Replied):
                    level = event.reply.account.metrics.confidence_level
                    return isinstance(event.reply, Answer) and level in SUGGESTED_LEVELS
        return False

    async for text in deps.answered.among(texts, scope, is_answered):
        yield text


class _Turn:
    """Answers one question."""

    def __init__(self, question: Question, deps: AskDeps) -> None:
        self._question = question
        self._deps = deps
        self._tracer = deps.tracer
        self._text = question.text.strip()
        self._standalone = self._text
        self._start = time.perf_counter()
        self._tokens = 0
        self._cut: CutReason | None = None
        self._candidates: list[Hit] = []
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
        self._strings = await self._deps.library.strings(self._question.scope.entry)
        if self._desk.floor is None:
            self._desk.floor = self._policy.floor
        self._desk.scale = self._policy.relevance
        if (reason := screen(self._text)) is not None:
            refusal = self._refusal(reason, self._policy.measure(self._text, (), ()), [])
            yield Replied(reply=await self._answered_small_talk(refusal))
            return
        yield Entered(state="retrieving")
        self._standalone = self._desk.question = await self._make_standalone()
        self._is_follow_up = self._standalone != self._text
        if (reply := await self._about_the_book()) is not None:
            yield EvidenceFound(hits=tuple(cited.hit for cited in reply.citations), metrics=reply.account.metrics)
            yield Entered(state="generating")
            yield Delta(text=reply.text)
            yield Replied(reply=reply)
            return
        with self._tracer.span("retrieve"):
            candidates, hits = await self._retrieve()
            self._tracer.note({"lectern.candidates": len(candidates), "lectern.hits": len(hits)})
        with self._tracer.span("weigh"):
            metrics = await self._weigh(candidates, hits)
            self._tracer.note({"lectern.confidence_level": metrics.confidence_level})
        yield EvidenceFound(hits=tuple(hits), metrics=metrics)
        if not metrics.should_answer:
            yield await self._refuse_weak(metrics, hits, candidates)
            return
        yield Entered(state="generating")
        async with aclosing(self._draft(metrics, hits)) as events:
            async for event in events:
                yield event

    async def suggestions(self) -> tuple[str, ...]:
        """What else the reader may ask: questions from the headings of the nearest passages, then the first questions
        of the book. They are tried for a short time: the book answers them. The first questions were tried before and
        fill up what a busy machine did not get to, unless the reader's filters may hide their answers."""
        scope, chunks = self._question.scope, [hit.chunk for hit in self._candidates]
        tried = [question.text for question in heading_questions(chunks, self._strings)][:MAX_TRIED_QUESTIONS]
        answered: list[str] = []
        known: tuple[str, ...] = ()
        try:
            async with asyncio.timeout(min(SUGGESTING_SECONDS, self._seconds_left() / 2)):
                known = await self._deps.library.first_questions(scope.entry)
                unfiltered = await self._deps.library.resolve(Scope(book_id=scope.book_id))
                if scope.where != unfiltered.where:
                    tried, known = [*tried, *known], ()
                async for text in answered_questions(tried, scope, self._deps):
                    answered.append(text)
                    if len(answered) == MAX_QUESTIONS:
                        break
        except (TimeoutError, LecternError):
            pass  # those that are known by now: a refusal is a reply, also where its suggestions fail
        return tuple(dict.fromkeys((*answered, *known)))[:MAX_QUESTIONS]

    async def _weigh(self, candidates: list[Hit], hits: list[Hit]) -> ConfidenceMetrics:
        """How well the evidence covers the question; for an answerer that only quotes, also whether it answers it."""
        metrics = self._policy.measure(self._standalone, candidates, hits)
        if self._matches_history_only(hits):
            return metrics.refused()
        if metrics.should_answer and self._deps.answerability is not None:
            best = [hit for hit in candidates if hit.relevance >= self._policy.floor]
            return await self._deps.answerability.adjust(self._standalone, best, metrics, self._language, self._absent)
        return metrics

    async def _make_standalone(self) -> str:
        """The question as it is searched for, understandable without the conversation."""
        history = self._question.history
        if not history or not depends_on_history(self._text):
            return self._text
        with self._tracer.span("rewrite"):
            standalone, usage = await self._deps.answerer.standalone(self._text, history)
        self._tokens += usage.tokens
        return standalone or standalone_by_rules(self._text, history)

    async def _retrieve(self) -> tuple[list[Hit], list[Hit]]:
        """The hits that confidence is measured on, and those of them that the answerer gets."""
        reading = self._desk.top_k if self._question.top_k else max(self._deps.rules.reading_passages, self._desk.top_k)
        limit = max(CONFIDENCE_HITS, 2 * reading)
        start = time.perf_counter()
        findings = await self._search(limit)
        respelt = await self._respelt(findings)
        if respelt != self._standalone:  # what was found for a misspelt word is found better for the book's word
            self._standalone = self._desk.question = respelt
            findings = await self._search(limit)
        self._desk.seconds += time.perf_counter() - start
        self._language, self._absent = findings.language, len(findings.absent)
        floor = self._desk.floor or 0.0
        near = [hit for hit in findings.hits if hit.relevance >= floor]
        hits = near[: self._desk.top_k]
        to_read = reading_passages(near, hits, reading, self._deps.rules.reading_tokens)
        self._retrieved = self._desk.hand_out(replace(findings, query=self._standalone), to_read)
        self._candidates = list(findings.hits[:CONFIDENCE_HITS])
        return self._candidates, hits

    async def _respelt(self, findings: Findings) -> str:
        """The question as the book spells it: as the passages that were found do, or others that have a word which is
        one letter apart from a word that they lack."""
        texts = [hit.chunk.text for hit in findings.hits]
        respelt = respell(self._standalone, texts)
        if unknown := unknown_words(respelt, texts):
            words = sorted(set().union(*map(variants, unknown), unknown))
            found = await self._deps.library.texts_with(self._question.scope, findings.vector, words)
            respelt = respell(respelt, [*texts, *found])
        return respelt

    async def _search(self, limit: int) -> Findings:
        return await self._deps.library.search(
            self._question.scope,
            SearchQuery(
                text=_searchable(self._standalone), limit=limit, find_absent=self._deps.answerability is not None
            ),
        )

    def _matches_history_only(self, hits: list[Hit]) -> bool:
        """Whether the hits contain none of this question's distinctive words, but only words of the conversation."""
        if not self._is_follow_up:
            return False
        words = distinctive_stems(respell(self._text, [hit.chunk.text for hit in hits]))
        return bool(words) and not any(words & stems(" ".join((*hit.chunk.trail, hit.chunk.text))) for hit in hits)

    async def _about_the_book(self) -> Answer | None:
        """The reply to a question about the book itself. Nothing is searched for it."""
        answer = await book_answer(self._standalone, self._desk, self._strings)
        if answer is None:
            return None
        metrics = self._policy.measure(self._standalone, (), ())
        certain = replace(metrics, confidence=1.0, confidence_level="high", should_answer=True)
        highest: ConfidenceLevel = "high" if answer.is_structural else "medium"
        return Answer(
            text=answer.text,
            citations=answer.citations,
            statements=answer.statements,
            considered=(),
            removed=Removals(),
            account=self._account(certain.capped(highest, self._policy.ceiling(highest)), "completed"),
        )

    async def _draft(self, metrics: ConfidenceMetrics, hits: list[Hit]) -> AsyncGenerator[ReplyEvent, None]:
        draft = Draft(
            passages=lambda: tuple(self._desk.passages.values()),
            passage=self._desk.passage,
            confidential=self._deps.confidential,
            question=self._text,
        )
        opening = self._opening(metrics)
        async for text in self._tracer.over("draft", self._written(draft)):
            yield Delta(text=text if draft.text != text else opening + text)
        if draft.is_not_covered or not draft.text.strip():
            yield Replied(reply=await self._refuse_draft(draft, metrics, hits))
            return
        numbers = draft.numbers or self._desk.passages  # an answer without markers may get any of them
        cited = [hit for number in numbers if (hit := self._desk.passage(number)) is not None]
        text, removals = await asyncio.to_thread(draft.finished_text, cited)  # a long draft takes a while
        checking = Checking(
            text=text,
            reader_numbers=draft.numbers,
            passages=self._desk.passages,
            judge=self._deps.judge,
            question=f"{self._text} {self._standalone}",
            is_cut=self._cut is not None,
            model_seconds=lambda: min(self._deps.rules.judge_seconds, self._seconds_left() * JUDGING_SHARE),
        )
        judging = self._tracer.over("judge", checking.run(self._deps.model_judge))
        async with aclosing(judging) as checked_claims:
            async for number, checked in checked_claims:
                if text == draft.text.strip() and not self._deps.rules.hide_doubtful:  # else it is about another text
                    statement = sent_statement(text, checked, draft.numbers, len(opening))
                    yield Judged(number=number, statement=self._in_language(statement))
        self._tokens += checking.tokens
        yield Replied(reply=await self._conclude(checking, metrics, hits, removals))

    async def _written(self, draft: Draft) -> AsyncGenerator[str, None]:
        """What may be sent of the draft, as it comes; all at once at the end if doubtful claims are hidden."""
        task = Assignment(
            question=self._text if not self._question.history else self._standalone,
            retrieved=self._retrieved,
            history=within_budget(self._question.history, self._deps.rules.history_tokens),
            desk=self._desk,
            stream=self._question.stream,
        )
        async with aclosing(self._deps.answerer.write(task)) as pieces:  # type: ignore[type-var]  # a generator
            async for piece in pieces:
                if isinstance(piece, Usage):
                    self._tokens += piece.tokens
                elif isinstance(piece, Cut):
                    self._cut = piece.reason
                else:
                    for start in range(0, len(piece), STEP_CHARACTERS):
                        text = draft.feed(piece[start : start + STEP_CHARACTERS])
                        if text and not self._deps.rules.hide_doubtful:
                            yield text
                        await asyncio.sleep(0)  # a whole draft may come at once, and others are waiting
                if draft.is_full:
                    self._cut = "length"
                    break
        if (text := draft.finish()) and not self._deps.rules.hide_doubtful:
            yield text

    def _seconds_left(self) -> float:
        """Of the turn's budget."""
        return max(0.0, self._deps.rules.budget - (time.perf_counter() - self._start))

    def _opening(self, metrics: ConfidenceMetrics, *, is_lowered: bool = False) -> str:
        """The disclaimer that opens an answer of low confidence. It says why: the book has little of it, or verdicts
        lowered the level."""
        key = "answer.disclaimer_claims" if is_lowered else "answer.disclaimer"
        sentence = self._deps.rules.disclaimer or self._strings(key)
        return f"{sentence}\n\n" if metrics.confidence_level == "low" else ""

    def _in_language(self, statement: Statement) -> Statement:
        """A statement with its reason in the book's language."""
        return replace(statement, reason=self._strings.translated(statement.reason))

    async def _conclude(
        self, checking: Checking, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals
    ) -> Reply:
        """The reply to a checked draft. Its level is not above what its claims bear."""
        cap = level_cap(checking.claims, removals, is_cited=bool(checking.reader_numbers))
        if cap == "insufficient":
            return await self._withdraw(metrics, hits, removals)
        if not checking.reader_numbers and only_denies(checking.text) and self._cut is None:
            return await self._refuse_unsupported(metrics, hits, removals, withdrawn=False)
        capped = self._remeasured(metrics).capped(cap, self._policy.ceiling(cap))
        is_lowered = capped.confidence_level != metrics.confidence_level
        opening = self._opening(capped, is_lowered=is_lowered)
        text = finish(checking, hide_doubtful=self._deps.rules.hide_doubtful, before=opening)
        if not text.citations:
            return await self._withdraw(metrics, hits, removals)
        cited_ids = {citation.hit.chunk.id for citation in text.citations}
        passages = self._desk.passages.values()
        return Answer(
            text=text.text,
            citations=text.citations,
            statements=tuple(map(self._in_language, text.statements)),
            considered=tuple(hit for hit in passages if hit.chunk.id not in cited_ids),
            removed=replace(removals, hidden=text.hidden, corrected_citations=text.corrected),
            account=self._account(capped, "low_confidence" if capped.confidence_level == "low" else "completed"),
            cut=self._cut,
            lowered=is_lowered,
        )

    async def _refuse_draft(self, draft: Draft, metrics: ConfidenceMetrics, hits: list[Hit]) -> Refusal:
        """The refusal for a draft without text: the model says that the passages do not answer, or nothing is left."""
        if draft.is_not_covered:
            return await self._refuse_unsupported(metrics, hits, draft.removals, withdrawn=False)
        return await self._withdraw(metrics, hits, draft.removals)

    async def _withdraw(self, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals) -> Refusal:
        """The refusal for a draft that does not rest on the passages. Of a draft that was cut off nobody knows what it
        would have said, so that is an error of the provider."""
        if self._cut is not None:
            raise ProviderError(self._deps.answerer.model, CUT_ADVICE[self._cut])
        return await self._refuse_unsupported(metrics, hits, removals, withdrawn=True)

    async def _refuse_unsupported(
        self, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals, *, withdrawn: bool
    ) -> Refusal:
        """A refusal because the draft says that the passages do not answer, or because it is withdrawn: it does not
        rest on them."""
        outside, books = await self._elsewhere()
        reply = self._refusal("unsupported", metrics, hits, removals=removals)
        return replace(reply, outside_scope=outside, other_books=books, withdrawn=withdrawn)

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
        with self._tracer.span("elsewhere"):
            return await answers_elsewhere(self._standalone, self._desk, self._deps.policy, self._deps.answerability)

    async def _answered_small_talk(self, refusal: Refusal) -> Refusal:
        """A refusal of a greeting with what a person would say: what the book is and what to ask. Other refusals, and
        the operator's own sentence, stay as they are."""
        kind = small_talk(self._text)
        if kind is None or refusal.reason != "off_topic" or self._deps.rules.refusal:
            return refusal
        sentence = self._strings(f"talk.{kind}", title=self._question.scope.entry.manifest.title)
        about = await book_opening(self._desk) if kind in INTRODUCED else ""
        return replace(refusal, text=f"{sentence}\n\n{about}" if about else sentence)

    def _refusal(
        self, reason: RefusalReason, metrics: ConfidenceMetrics, hits: list[Hit], removals: Removals | None = None
    ) -> Refusal:
        account = self._account(metrics.refused(), "low_confidence" if hits else "no_results")
        sentence = self._deps.rules.refusal or self._strings("refusal.default")
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
            instructions=self._deps.answerer.instructions,
            tool_uses=tuple(self._desk.tool_uses),
        )


def reading_passages(near: Sequence[Hit], best: Sequence[Hit], count: int, tokens: int) -> list[Hit]:
    """The passages that the answerer reads: the best ones, then further ones up to a number and a size. Stubs and
    exercises are left out: they answer nothing."""
    passages = [hit for hit in best if _states_something(hit)] or list(best)
    size = sum(hit.chunk.token_count for hit in passages)
    for hit in near[len(best) :]:
        if len(passages) >= count or size + hit.chunk.token_count > tokens:
            break
        if _states_something(hit):
            passages.append(hit)
            size += hit.chunk.token_count
    return passages


def _states_something(hit: Hit) -> bool:
    return any(piece.states or piece.kind in ("row", "code") for piece in read(hit.chunk.text) if not piece.task)


def _searchable(text: str) -> str:
    """The text, padded to the minimum length of a search: a question may be a single character."""
    return text.ljust(3, "?")
