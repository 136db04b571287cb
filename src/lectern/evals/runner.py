"""Evaluations, read downward: open a set's bench, ask every question in every mode, count. A document is ranked by its
best chunk."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from lectern.app.settings import Settings
from lectern.domain.clock import utc_now
from lectern.domain.evidence import Findings
from lectern.domain.scope import SEARCH_LIMIT, SearchMode
from lectern.evals.benches import Advance, Bench, open_bench
from lectern.evals.chunking import measure_chunking
from lectern.evals.datasets import Question, QuestionSet
from lectern.evals.metrics import METRICS, retrieval_scores
from lectern.evals.pacing import in_turn
from lectern.evals.recipes import Recipe, recipe
from lectern.evals.runs import Kind, Measured, Run, SetResult
from lectern.reading.rules import ReadingRules

MODES: tuple[SearchMode, ...] = get_args(SearchMode)
DEPTH = SEARCH_LIMIT  # chunks that are asked for; the protocol's 20

Measure = Callable[[Bench, QuestionSet, Advance], Awaitable[dict[str, Measured]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where an evaluation works, and who hears how far it is."""

    settings: Settings
    cache: Path  # of indexed question sets
    fresh: bool  # use nothing that was kept
    advance: Advance
    rules: ReadingRules | None = None  # other sizes of chunks than everybody's


async def evaluate(kind: Kind, sets: Sequence[QuestionSet], around: Surroundings) -> Run:
    """One run over these sets, one after the other."""
    measure: Measure = measure_retrieval if kind == "retrieval" else measure_chunking
    results: list[SetResult] = []
    made_with: Recipe = {}
    for questions in sets:
        begun = time.perf_counter()
        opened = open_bench(
            questions,
            around.settings,
            around.cache,
            fresh=around.fresh,
            advance=around.advance,
            rules=around.rules,
        )
        async with opened as bench:
            shop = bench.lectern.app.ingest_deps
            made_with = recipe(shop.collections.current.embedder.fingerprint, shop.rules)
            modes = await measure(bench, questions, around.advance)
        results.append(
            SetResult(
                name=questions.name,
                documents=sum(len(book.documents) for book in questions.books),
                chunks=bench.chunks,
                left_out=dict(questions.left_out),
                failed=bench.failed,
                kinds={question.id: question.kind for question in questions.questions if question.kind},
                modes=modes,
                seconds=round(time.perf_counter() - begun, 3),
            )
        )
    return Run(kind=kind, at=utc_now(), recipe=made_with, sets=tuple(results))


async def measure_retrieval(bench: Bench, questions: QuestionSet, advance: Advance) -> dict[str, Measured]:
    """How well documents are found, in each mode."""
    documents = {book.book_id: book.documents for book in questions.books}

    async def ask(question: Question) -> dict[str, tuple[float, ...]]:
        scores: dict[str, tuple[float, ...]] = {}
        for mode in MODES:
            found = await bench.lectern.search(question.text, book=question.book_id, limit=DEPTH, mode=mode)
            scores[mode] = retrieval_scores(ranking(found, documents[question.book_id]), question.gold)
        return scores

    title = f"Asking {questions.name}"
    rows = await in_turn(questions.questions, ask, lambda done, total: advance(title, done, total))
    asked = list(zip(questions.questions, rows, strict=True))
    return {mode: Measured(metrics=METRICS, values={one.id: row[mode] for one, row in asked}) for mode in MODES}


def ranking(found: Findings, documents: Mapping[str, str]) -> list[str]:
    """The documents behind the hits, each at its best rank."""
    return list(dict.fromkeys(documents[hit.chunk.source_file] for hit in found.hits))
