"""Evaluates retrieval and chunking: opens each indexed question set, asks every question in every mode and computes the
figures. A document is ranked by its best chunk."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lectern.app.settings import Settings
from lectern.domain.clock import utc_now
from lectern.domain.evidence import Findings
from lectern.domain.scope import SEARCH_LIMIT, SearchMode
from lectern.evals.chunking import measure_chunking
from lectern.evals.concurrency import run_concurrently
from lectern.evals.datasets import Question, QuestionSet
from lectern.evals.indexed_sets import Advance, IndexedSet, open_indexed_set
from lectern.evals.metrics import METRICS, retrieval_scores
from lectern.evals.recipes import Recipe, recipe
from lectern.evals.runs import Kind, MetricValues, Run, SetResult
from lectern.reading.chunking import ReadingRules

MODES: tuple[SearchMode, ...] = ("hybrid", "dense", "lexical")  # `reranked` takes many times as long: only if asked for
DEPTH = SEARCH_LIMIT  # chunks that each search returns

Measure = Callable[[IndexedSet, QuestionSet, Advance], Awaitable[dict[str, MetricValues]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalContext:
    """The settings, folders and progress callback of an evaluation."""

    settings: Settings
    cache: Path  # of indexed question sets
    fresh: bool  # use no stored index
    advance: Advance
    rules: ReadingRules | None = None  # None: the usual chunk sizes
    modes: Sequence[SearchMode] = MODES


async def evaluate(kind: Kind, sets: Sequence[QuestionSet], context: EvalContext) -> Run:
    """Evaluate these sets, one after the other, as one run."""
    measure: Measure = partial(measure_retrieval, modes=context.modes) if kind == "retrieval" else measure_chunking
    results: list[SetResult] = []
    made_with: Recipe = {}
    for questions in sets:
        start = time.perf_counter()
        opened = open_indexed_set(
            questions,
            context.settings,
            context.cache,
            fresh=context.fresh,
            advance=context.advance,
            rules=context.rules,
        )
        async with opened as indexed_set:
            deps = indexed_set.lectern.app.ingest_deps
            made_with = recipe(deps.collections.current.embedder.fingerprint, deps.rules)
            modes = await measure(indexed_set, questions, context.advance)
        results.append(
            SetResult(
                name=questions.name,
                documents=sum(len(book.documents) for book in questions.books),
                chunks=indexed_set.chunks,
                left_out=dict(questions.left_out),
                failed=indexed_set.failed,
                kinds={question.id: question.kind for question in questions.questions if question.kind},
                modes=modes,
                seconds=round(time.perf_counter() - start, 3),
            )
        )
    return Run(kind=kind, at=utc_now(), recipe=made_with, sets=tuple(results))


async def measure_retrieval(
    indexed_set: IndexedSet, questions: QuestionSet, advance: Advance, *, modes: Sequence[SearchMode] = MODES
) -> dict[str, MetricValues]:
    """Score the ranking of documents in each search mode."""
    documents = {book.book_id: book.documents for book in questions.books}

    async def ask(question: Question) -> dict[str, tuple[float, ...]]:
        scores: dict[str, tuple[float, ...]] = {}
        for mode in modes:
            findings = await indexed_set.lectern.search(question.text, book=question.book_id, limit=DEPTH, mode=mode)
            scores[mode] = retrieval_scores(ranking(findings, documents[question.book_id]), question.gold)
        return scores

    title = f"Asking {questions.name}"
    rows = await run_concurrently(questions.questions, ask, lambda count, total: advance(title, count, total))
    scored_questions = list(zip(questions.questions, rows, strict=True))
    return {
        mode: MetricValues(metrics=METRICS, values={question.id: row[mode] for question, row in scored_questions})
        for mode in modes
    }


def ranking(findings: Findings, documents: Mapping[str, str]) -> list[str]:
    """The documents of the hits, each at its best rank."""
    return list(dict.fromkeys(documents[hit.chunk.source_file] for hit in findings.hits))
