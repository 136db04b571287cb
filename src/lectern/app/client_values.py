"""Rebuilds values from what a server sends. A server sends less of a chunk than the index contains: a field that it
does not send is empty (no text, no vector, zero)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lectern.domain.book_details import BookDetails
from lectern.domain.books import BookEntry, Manifest, Problem
from lectern.domain.chunks import Chunk, SectionMark
from lectern.domain.conversation import tool_uses_of
from lectern.domain.errors import JobCancelled
from lectern.domain.evidence import ConfidenceMetrics, Findings, Hit
from lectern.domain.insights import BookSection, CitedSection, DayCount, Insights, QuestionGroup, Thumbs
from lectern.domain.jobs import (
    Finished,
    IngestionJob,
    JobEvent,
    JobOrder,
    JobRecord,
    LessonsIndexed,
    Plan,
    Planned,
    Working,
)
from lectern.domain.outline import Outline, OutlineChapter, OutlineLesson, OutlineModule
from lectern.domain.replies import (
    Account,
    Answer,
    Citation,
    Delta,
    Entered,
    EvidenceFound,
    Judged,
    LookUp,
    NearestLesson,
    Refusal,
    Removals,
    Replied,
    Reply,
    ReplyEvent,
    Statement,
    Timings,
)
from lectern.domain.threads import Feedback, Message, Thread, ThreadHead, Turn
from lectern.schemas import chat as wire_chat
from lectern.schemas import jobs as wire_jobs
from lectern.schemas import threads as wire_threads
from lectern.schemas.books import BookDetailsOut, BookOut, OutlineOut
from lectern.schemas.chat import ChatResponse, ConsideredOut, NearestLessonOut, Source, StatementOut
from lectern.schemas.insights import InsightsOut, QuestionGroupOut
from lectern.schemas.scope import filter_from
from lectern.schemas.search import Neighbour, SearchResponse, SearchResult
from lectern.schemas.threads import ConversationThread, ExportOut, ThreadHeadOut

if TYPE_CHECKING:
    from lectern.confidence.calibration import Calibration, CalibrationReport, Figures
    from lectern.schemas.maintenance import CalibrationOut, CalibrationReportOut, FiguresOut

_EMPTY_CHUNK: dict[str, Any] = {
    "text": "",
    "book_id": "",
    "module": "",
    "chapter": 0,
    "lesson": 0,
    "source_file": "",
    "parent_doc_id": "",
    "section_title": None,
    "trail": (),
    "breadcrumb": "",
    "line_start": 0,
    "line_end": 0,
    "hardware_tier": 0,
    "proficiency_level": "",
    "layer": "",
    "chunk_index": 0,
    "total_chunks": 0,
    "prev_chunk_id": None,
    "next_chunk_id": None,
    "page_title": "",
    "module_title": "",
    "chapter_title": "",
    "lesson_title": "",
    "url": "",
    "sections": (),
    "content_hash": "",
    "source_file_hash": "",
    "word_count": 0,
    "token_count": 0,
    "char_count": 0,
}
_LESSON_FIELDS = (
    "book_id module chapter lesson source_file parent_doc_id hardware_tier proficiency_level layer total_chunks "
    "page_title lesson_title"
).split()  # fields that all chunks of a lesson share


def _chunk(**fields: Any) -> Chunk:  # noqa: ANN401  # fields of a chunk by name
    return Chunk(**{**_EMPTY_CHUNK, **fields})


def _hit(chunk: Chunk, scores: SearchResult | Source | ConsideredOut, **fields: Any) -> Hit:  # noqa: ANN401  # fields of a hit by name
    defaults = {"rank": 0, "score": 0.0, "lexical": 0.0, "windows": ()}
    return Hit(chunk=chunk, similarity=scores.similarity, relevance=scores.relevance, **{**defaults, **fields})


def findings_from(response: SearchResponse) -> Findings:
    """A search; without the book's language and the query's vector."""
    return Findings(
        query=response.query,
        mode=response.mode,
        where=filter_from(response.filters),
        language="",
        hits=tuple(_search_hit(result, response.book_id) for result in response.results),
        vector=(),
        total_found=response.total_found,
        query_time_ms=response.query_time_ms,
    )


def _search_hit(result: SearchResult, book_id: str) -> Hit:
    fields = {name: getattr(result, name) for name in _EMPTY_CHUNK if hasattr(result, name)}
    fields["sections"] = tuple(SectionMark(at=mark.at, title=mark.title, url=mark.url) for mark in result.sections)
    chunk = _chunk(id=result.id, **{**fields, "book_id": book_id})
    return _hit(
        chunk,
        result,
        rank=result.rank,
        score=result.score,
        lexical=result.lexical,
        before=tuple(_neighbour(neighbour, chunk) for neighbour in result.before),
        after=tuple(_neighbour(neighbour, chunk) for neighbour in result.after),
    )


def _neighbour(neighbour: Neighbour, beside: Chunk) -> Chunk:
    shared = {name: getattr(beside, name) for name in _LESSON_FIELDS}
    return _chunk(**shared, **neighbour.model_dump())


def reply_from(response: ChatResponse, question: str) -> Reply:
    """An answer or a refusal. The chunks of its citations have no text; the citations have the passages."""
    account = _account(response, question)
    removals = Removals(**response.removed.model_dump())
    considered = tuple(_considered(hit, response.book_id) for hit in response.considered)
    if response.reason is not None:
        return Refusal(
            text=response.response,
            reason=response.reason,
            nearest=_nearest(response.nearest),
            outside_scope=_nearest(response.outside_scope),
            other_books=tuple(response.other_books),
            suggestions=tuple(response.suggestions),
            withdrawn=response.withdrawn,
            considered=considered,
            removed=removals,
            account=account,
        )
    return Answer(
        text=response.response,
        citations=tuple(_citation(source, response.book_id) for source in response.sources),
        statements=tuple(_statement(row) for row in response.statements),
        considered=considered,
        removed=removals,
        account=account,
        cut=response.cut,
        lowered=response.lowered,
    )


def _statement(row: StatementOut) -> Statement:
    return Statement(**{**row.model_dump(), "citations": tuple(row.citations)})


def _account(response: ChatResponse, question: str) -> Account:
    return Account(
        question=question,
        standalone=response.standalone,
        metrics=_metrics(response.metrics, response.confidence),
        model=response.model,
        tokens_used=response.tokens_used,
        retrieval_count=response.retrieval_count,
        look_ups=(),
        timings=Timings(
            retrieval_time_ms=response.retrieval_time_ms,
            generation_time_ms=response.generation_time_ms,
            total_time_ms=response.total_time_ms,
        ),
        state=response.state,
        where=filter_from(response.filters) if response.filters else None,
        created_at=response.timestamp,
    )


def _metrics(metrics: wire_chat.ConfidenceMetrics, confidence: float) -> ConfidenceMetrics:
    return ConfidenceMetrics(**metrics.model_dump(), confidence=confidence)


def _nearest(lessons: Sequence[NearestLessonOut]) -> tuple[NearestLesson, ...]:
    return tuple(NearestLesson(**lesson.model_dump()) for lesson in lessons)


def _citation(source: Source, book_id: str) -> Citation:
    chunk = _chunk(
        id=source.chunk_id,
        book_id=book_id,
        source_file=source.source_file,
        module=source.module_name,
        parent_doc_id=source.parent_doc_id,
        breadcrumb=source.breadcrumb,
        chunk_index=source.chunk_index,
        page_title=source.page_title,
        chapter_title=source.chapter,
        url=source.url,  # of the cited section; the chunk may begin in an earlier section
    )
    return Citation(
        number=source.number,
        hit=_hit(chunk, source),
        passage=source.chunk_text,
        section=source.section,
        url=source.url,
        fragment_url=source.fragment_url,
        source_file=source.source_file,
        line_start=source.line_start,
        line_end=source.line_end,
    )


def _considered(hit: ConsideredOut, book_id: str) -> Hit:
    chunk = _chunk(id=hit.chunk_id, book_id=book_id, page_title=hit.page_title, section_title=hit.section, url=hit.url)
    return _hit(chunk, hit)


def reply_event_from(name: str, body: dict[str, Any], question: str, book_id: str) -> ReplyEvent | None:
    """An event of an answer; None if this version does not know its kind."""
    match name:
        case "status":
            return Entered(state=body["state"])
        case "sources":
            hits = tuple(_considered(ConsideredOut.model_validate(hit), book_id) for hit in body["sources"])
            metrics = _metrics(wire_chat.ConfidenceMetrics.model_validate(body["metrics"]), body["confidence"])
            return EvidenceFound(hits=hits, metrics=metrics)
        case "delta":
            return Delta(text=body["text"])
        case "verdict":
            return Judged(number=body["claim"], statement=_statement(StatementOut.model_validate(body)))
        case "reply":
            return Replied(reply=reply_from(ChatResponse.model_validate(body), question))
        case _:
            return None


def book_from(book: BookOut) -> BookEntry:
    """A book as the server lists it: only the id and title of its manifest, and not its folder."""
    return BookEntry(
        manifest=Manifest(book_id=book.book_id, title=book.title),
        source="",
        fingerprint=book.fingerprint,
        collection_name=book.collection_name,
        total_chunks=book.total_chunks,
        last_full_ingest=book.last_full_ingest,
        last_incremental_update=book.last_incremental_update,
    )


def details_from(book: BookDetailsOut) -> BookDetails:
    """A book as a reader meets it, whole but for its manifest."""
    return BookDetails(
        entry=book_from(book),
        description=book.description,
        language=book.language,
        lessons=book.lessons,
        filters=book.filters.choices(),
        suggestions=tuple(book.suggestions),
    )


def outline_from(outline: OutlineOut) -> Outline:
    """A book's table of contents, whole."""
    modules = (
        OutlineModule(
            module=module.module,
            title=module.title,
            chapters=tuple(
                OutlineChapter(
                    chapter=chapter.chapter,
                    title=chapter.title,
                    lessons=tuple(OutlineLesson(**lesson.model_dump()) for lesson in chapter.lessons),
                )
                for chapter in module.chapters
            ),
        )
        for module in outline.modules
    )
    return Outline(book_id=outline.book_id, title=outline.title, modules=tuple(modules))


def job_from(job: wire_jobs.IngestionJob) -> IngestionJob:
    """A job with its report, whole."""
    fields = job.model_dump(exclude={"attempts", "warnings", "errors"})
    return IngestionJob(
        **fields,
        warnings=tuple(Problem(**problem.model_dump()) for problem in job.warnings),
        errors=tuple(Problem(**problem.model_dump()) for problem in job.errors),
    )


def record_from(job: wire_jobs.IngestionJob) -> JobRecord:
    """A job's record, without its folder, its owner, and whether it was asked to end."""
    order = JobOrder(book_id=job.book_id, folder="", mode=job.mode)
    return JobRecord(job=job_from(job), order=order, owner="", origin="server", attempts=job.attempts)


def job_event_from(name: str, body: dict[str, Any]) -> JobEvent | None:
    """An event of a job; None if this version does not know its kind."""
    job = job_from(wire_jobs.IngestionJob.model_validate(body["job"])) if "job" in body else None
    match name:
        case "planned" if job is not None:
            return Planned(job=job, plan=_plan(job, body["files"]))
        case "progress" if job is not None:
            count, total = body.get("done", job.files_processed), body.get("total", job.files_discovered)
            if (stage := body.get("stage", "index")) in ("read", "embed"):
                return Working(job=job, stage=stage, done=count, total=total, share=body["share"])
            return LessonsIndexed(job=job, done=count, total=total)
        case "finished" | "error" if job is not None:
            return Finished(job=job)
        case _:
            return None


def _plan(job: IngestionJob, counts: dict[str, int]) -> Plan:
    """A plan with as many files as the server counted; their names stay there."""
    files = {name: ("",) * counts[name] for name in ("new", "modified", "deleted", "unchanged")}
    return Plan(mode=job.mode, replacements=(), moved=(("", ""),) * counts["moved"], **files)


def cancelled(job: IngestionJob) -> JobCancelled:
    """The error for a caller that waited for a job that was cancelled."""
    return JobCancelled(f"job {job.job_id} was cancelled; what was finished is kept")


def head_from(head: ThreadHeadOut) -> ThreadHead:
    """A thread in a list, without the filters of its last turn."""
    return ThreadHead(**head.model_dump(include=set(ThreadHeadOut.model_fields)), filters={})


def thread_from(thread: ConversationThread) -> Thread:
    """A thread with a page of its messages, whole."""
    return Thread(
        head=replace(head_from(thread), filters=thread.filters),
        messages=tuple(map(_message, thread.messages)),
        retrieval_history=tuple(LookUp(**look_up.model_dump()) for look_up in thread.retrieval_history),
        earlier=thread.before,
    )


def _message(message: wire_threads.Message) -> Message:
    calls = None if message.tool_calls is None else tuple(message.tool_calls)
    return Message(**{**message.model_dump(), "tool_calls": calls})


def turns_from(export: ExportOut) -> tuple[Turn, ...]:
    """Every turn, without its look-ups, which the server sends only for the whole thread."""
    times = {message.seq: message.timestamp for message in export.messages}
    return tuple(
        Turn(
            run_id=turn.run_id,
            question=turn.question,
            standalone=turn.reply["standalone"],
            answer=turn.reply["response"],
            refused=turn.reply["reason"] is not None,
            confidence=turn.reply["confidence"],
            asked_at=times.get(2 * turn.number - 1, ""),  # every turn is two messages
            replied_at=times.get(2 * turn.number, ""),
            reply=turn.reply,
            instructions=next((message.content for message in turn.messages if message.role == "system"), ""),
            tool_uses=tool_uses_of([*map(_message, turn.messages)]),
            number=turn.number,
            feedback=Feedback(**turn.feedback.model_dump()) if turn.feedback else None,
        )
        for turn in export.turns
    )


def insights_from(insights: InsightsOut) -> Insights:
    """Insights, whole."""
    fields = insights.model_dump()
    return Insights(
        **{
            **fields,
            "thumbs": Thumbs(**{**fields["thumbs"], "comments": _tuple(insights.thumbs.comments)}),
            "per_day": tuple(DayCount(**day) for day in fields["per_day"]),
            "refused_questions": tuple(_question_group(group) for group in insights.refused_questions),
            "low_questions": tuple(_question_group(group) for group in insights.low_questions),
            "most_cited": tuple(CitedSection(**section) for section in fields["most_cited"]),
            "never_cited": tuple(BookSection(**section) for section in fields["never_cited"]),
        }
    )


def _question_group(group: QuestionGroupOut) -> QuestionGroup:
    return QuestionGroup(**{**group.model_dump(), "questions": _tuple(group.questions)})


def _tuple(texts: list[str] | None) -> tuple[str, ...] | None:
    return None if texts is None else tuple(texts)


def report_from(report: CalibrationReportOut) -> CalibrationReport:
    """The report of a calibration; `stored` is the name of a file on the server."""
    from lectern.confidence.calibration import CalibrationReport

    return CalibrationReport(
        book_id=report.book_id,
        fingerprint=report.fingerprint,
        source=report.source,
        covered=report.covered,
        uncovered=report.uncovered,
        before=_figures(report.before),
        after=_figures(report.after),
        was=_calibration(report.was),
        now=_calibration(report.now),
        stored=report.stored,
    )


def _figures(figures: FiguresOut) -> Figures:
    from lectern.confidence.calibration import Figures

    return Figures(**{name: math.nan if value is None else value for name, value in figures.model_dump().items()})


def _calibration(calibration: CalibrationOut) -> Calibration:
    from lectern.confidence.calibration import Calibration
    from lectern.confidence.relevance import RelevanceScale

    fields = calibration.model_dump()
    return Calibration(**{**fields, "scale": RelevanceScale(**fields["scale"])})
