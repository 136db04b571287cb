"""Fits the weights of `confidence/answerability.py` and writes them to `confidence/answerability.json`.

    PYTHONPATH=scripts python scripts/fit_answerability.py MANUALS

Fitted on the `fitted` books of `book_questions.py` and the `fitted` manuals of `reader_questions.py`; MANUALS has one
folder for each of these. A reply is right if it has most of the answer's words (readers who graded 185 replies to the
questions of six manuals agreed in 168 of them); what is quoted for a near miss is wrong. Nothing is random.

Logistic regression with a ridge. Near misses count half: nobody knows how often readers ask what a book does not say.
A level begins where a reply is right with the probability in LEVELS, by the answer's words. Before it writes, each book
is left out in turn, and it prints what comes of its questions.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from book_questions import by_book, lessons
from reader_questions import RIGHT_SHARE, by_manual, share_of

from lectern import Settings, open_lectern
from lectern.answering.offline.writer import OfflineWriter
from lectern.confidence.answerability import (
    MAX_PASSAGES,
    WEIGHTS,
    Answerability,
    Signals,
    passage_of,
    probability,
)
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.scope import Scope, SearchQuery
from lectern.models.local.answer_locator import LocalAnswerLocator

LEVELS = {"low": 0.40, "medium": 0.72, "high": 0.85}
NEAR_WEIGHT, RIDGE, STEPS = 0.5, 1.0, 60

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Row:
    """One question."""

    book: str
    signals: Signals
    is_right: bool
    answerable: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, with its answer."""

    text: str
    answerable: bool
    answer: str


async def rows_of(book: str, folder: Path, questions: list[Asked]) -> list[Row]:
    """The signals of each question, and whether the reply is right."""
    locator = LocalAnswerLocator()
    answerability, writer = Answerability(locator), OfflineWriter(locator)
    rows = []
    with tempfile.TemporaryDirectory() as home:
        async with open_lectern(Settings(home=Path(home))) as lectern:
            await lectern.ingest(folder, book="fitted")
            for question in questions:
                query = SearchQuery(
                    text=question.text, scope=Scope(book_id="fitted"), limit=CONFIDENCE_HITS, find_absent=True
                )
                findings = await lectern.app.search(query)
                hits = findings.hits
                if not hits:
                    continue
                passages = [passage_of(number, hit) for number, hit in enumerate(hits[:MAX_PASSAGES], start=1)]
                reply = await writer.write(question.text, passages)
                is_right = share_of(question.answer, reply) >= RIGHT_SHARE
                signals = await answerability.signals(question.text, hits, len(findings.absent))
                rows.append(Row(book, signals, is_right and question.answerable, question.answerable))
    print(f"{book}: {len(rows)} questions, {sum(row.is_right for row in rows)} right", flush=True)
    return rows


def fit(rows: list[Row]) -> dict[str, float]:
    """Newton's method, then the stretch."""
    names = sorted(rows[0].signals)
    values = np.array([[1.0, *(row.signals[name] for name in names)] for row in rows])
    right = np.array([float(row.is_right) for row in rows])
    say = np.array([1.0 if row.answerable else NEAR_WEIGHT for row in rows])
    ridge = np.diag([0.0, *[RIDGE] * len(names)])
    coefficients = np.zeros(values.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-values @ coefficients))
        gradient = values.T @ (say * (right - chance)) - ridge @ coefficients
        curvature = (values * (say * chance * (1 - chance))[:, None]).T @ values + ridge
        coefficients = coefficients + np.linalg.solve(curvature, gradient)
    return dict(zip(("intercept", *names), (round(float(value), 4) for value in coefficients), strict=True))


def figures(rows: list[Row]) -> list[str]:
    """For each level the replies to questions of books that were left out, and how many were right."""
    chances = np.zeros(len(rows))
    for book in dict.fromkeys(row.book for row in rows):
        weights = fit([row for row in rows if row.book != book])
        for at, row in enumerate(rows):
            if row.book == book:
                chances[at] = probability(row.signals, weights)
    lines, edges = list[str](), {"refused": 0.0, **LEVELS, "": 1.01}
    for level, first, last in zip(edges, edges.values(), list(edges.values())[1:], strict=False):
        inside = [row for row, chance in zip(rows, chances, strict=True) if first <= chance < last]
        covered = [row for row in inside if row.answerable]
        right = sum(row.is_right for row in covered)
        lines.append(f"{level}: {right} right of {len(covered)} covered, {len(inside) - len(covered)} near misses")
    return lines


def main() -> None:
    """Fit and write."""
    manuals = Path(sys.argv[1])
    rows: list[Row] = []
    for book, questions in by_book("fitted").items():
        with lessons(book) as folder:
            rows += asyncio.run(rows_of(book, folder, [Asked(q.text, q.answerable, q.answer) for q in questions]))
    for manual, asked in by_manual("fitted", manuals).items():
        plain = [Asked(q.text, q.answerable, q.answer) for q in asked]
        rows += asyncio.run(rows_of(manual, manuals / manual, plain))
    print("\n".join(figures(rows)))
    content = {
        "fitted_on": {
            "questions": len(rows),
            "right": sum(row.is_right for row in rows),
            "near_misses": sum(not row.answerable for row in rows),
            "weight_of_near_misses": NEAR_WEIGHT,
            "ridge": RIDGE,
        },
        "levels": LEVELS,
        "weights": fit(rows),
    }
    WEIGHTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
