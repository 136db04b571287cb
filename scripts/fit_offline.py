"""Fits the weights of `confidence/ranking.py` and writes them to `ranking.json` beside it.

    PYTHONPATH=scripts python scripts/fit_offline.py MANUALS

MANUALS has one folder for each `fitted` manual of `examples/golden/readers/questions.jsonl`. Nothing is random.

An excerpt is right when it has most of the words of the known answer, as many as any other has. The weights make the
right excerpts of each question as likely as possible among all of its excerpts (conditional logit with a ridge on
standardised signals). Before it writes, each manual is left out in turn, and it prints how often the first excerpt, the
first two and the first three have the answer of the manual that was left out.
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
from reader_questions import RIGHT_SHARE, ReaderQuestion, by_manual, share_of

from lectern import Settings, open_lectern
from lectern.confidence.answerability import MAX_PASSAGES, passage_of
from lectern.confidence.locating import locate
from lectern.confidence.ranking import WEIGHTS, Shortlist, candidates_of
from lectern.models.local.answer_locator import LocalAnswerLocator

RIDGE, STEPS, RATE = 30.0, 300, 0.3
MIN_SHARE, NEAR_BEST = 0.4, 0.1  # of the answer's words that a right excerpt has, and how far below the best

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Row:
    """One question."""

    manual: str
    answer: str
    texts: list[str]  # of its excerpts
    values: Array  # their signals
    right: Array  # which are right, adding up to one; all 0 if none is


async def rows_of(manual: str, folder: Path, questions: list[ReaderQuestion]) -> tuple[list[str], list[Row]]:
    """For each covered question the signals of its excerpts, and which of them answer."""
    rows, names = list[Row](), list[str]()
    locator = LocalAnswerLocator()
    with tempfile.TemporaryDirectory() as home:
        async with open_lectern(Settings(home=Path(home))) as lectern:
            await lectern.ingest(folder, book="fitted")
            for question in (question for question in questions if question.answerable):
                hits = (await lectern.search(question.text, book="fitted", limit=MAX_PASSAGES)).hits
                passages = [passage_of(number, hit) for number, hit in enumerate(hits, start=1)]
                odds = await locate(locator, question.text, passages)
                shortlist = Shortlist(question.text, candidates_of(question.text, passages, odds))
                signals = shortlist.signals()
                if not signals:
                    continue
                names = sorted(signals[0])
                texts = [candidate.excerpt.text for candidate in shortlist.candidates]
                shares = np.array([share_of(question.answer, text) for text in texts])
                right = ((shares >= shares.max() - NEAR_BEST) & (shares >= MIN_SHARE)).astype(float)
                values = np.array([[entry[name] for name in names] for entry in signals])
                rows.append(Row(manual, question.answer, texts, values, right / max(right.sum(), 1.0)))
    print(f"{manual}: {len(rows)} questions", flush=True)
    return names, rows


def fit(rows: list[Row]) -> Array:
    """Gradient descent; the function has one minimum."""
    learnt = [row for row in rows if row.right.any()]
    scale = np.concatenate([row.values for row in learnt]).std(0) + 1e-6
    weights = np.zeros(len(scale))
    for _ in range(STEPS):
        gradient = RIDGE * weights / len(learnt)
        for row in learnt:
            values = row.values / scale
            raised = np.exp(values @ weights - (values @ weights).max())
            gradient -= values.T @ (row.right - raised / raised.sum()) / len(learnt)
        weights = weights - RATE * gradient
    result: Array = weights / scale
    return result


def figures(rows: list[Row]) -> str:
    """How often the first excerpts have the answer, each manual left out in turn."""
    found = np.zeros(3)
    for manual in sorted({row.manual for row in rows}):
        weights = fit([row for row in rows if row.manual != manual])
        for row in (row for row in rows if row.manual == manual):
            order = np.argsort(-(row.values @ weights))
            for count in (1, 2, 3):
                text = "\n".join(row.texts[at] for at in order[:count])
                found[count - 1] += share_of(row.answer, text) >= RIGHT_SHARE
    return ", ".join(f"{share:.3f}" for share in found / len(rows))


def main() -> None:
    """Fit, say how well, write."""
    manuals = Path(sys.argv[1])
    names, rows = list[str](), list[Row]()
    for manual, questions in by_manual("fitted", manuals).items():
        names, manual_rows = asyncio.run(rows_of(manual, manuals / manual, questions))
        rows += manual_rows
    print("the first excerpt, two, three have the answer:", figures(rows))
    weights = {name: round(float(weight), 3) for name, weight in zip(names, fit(rows), strict=True)}
    content = {"fitted_on": {"questions": len(rows), "ridge": RIDGE}, "weights": weights}
    WEIGHTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
