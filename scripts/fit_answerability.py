"""Fits the weights of `confidence/answerability.py` and writes them to `confidence/answerability.json`.

    PYTHONPATH=scripts python scripts/fit_answerability.py

Fitted on the `fitted` books of `book_questions.py`, measured on those `reported`, with the local embedder and its
shipped calibration. Questions that the policy refuses, and texts that ask nothing, are left out, as they are when
readers ask.
Nothing is random.

Logistic regression with a ridge, covered and uncovered questions counting alike. How often readers ask what a book does
not say is not known; the intercept is moved so that SHARE of the covered questions of the fitted sets fall under the
last cut.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from book_questions import BookQuestion, by_book, lessons

from lectern import Settings, open_lectern
from lectern.confidence.answerability import WEIGHTS, Answerability, Signals, asks, probability
from lectern.confidence.policies import policy_for
from lectern.confidence.scores import auroc
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.evidence import LOW
from lectern.models.local.answer_locator import LocalAnswerLocator

SHARE = 0.05  # as many false refusals as are borne: they annoy, but a wrong answer costs trust
RIDGE = 1.0
STEPS = 60

Row = tuple[Signals, bool]
Array = np.ndarray[Any, np.dtype[np.float64]]


async def rows_of(book: str, questions: list[BookQuestion]) -> list[Row]:
    """For each question that the policy lets pass its signals and whether it is covered."""
    look, rows, lost = Answerability(LocalAnswerLocator()), list[Row](), 0
    with tempfile.TemporaryDirectory() as home, lessons(book) as folder:
        async with open_lectern(Settings(home=Path(home))) as lectern:
            await lectern.ingest(folder, book="fitted")
            policy = policy_for("calibrated", lectern.app.ingest_deps.collections.current.embedder.fingerprint)
            for question in questions:
                if not asks(question.text):
                    continue
                field = (await lectern.search(question.text, book="fitted", limit=CONFIDENCE_HITS)).hits
                handed = [hit for hit in field if hit.similarity >= (policy.floor or 0.0)]
                metrics = policy.measure(question.text, field, handed)
                if metrics.should_answer:
                    rows.append((await look.signals(question.text, handed, metrics.confidence), question.answerable))
                else:
                    lost += question.answerable
    print(f"{book}: {len(rows)} of {len(questions)} questions, {lost} covered ones refused before")
    return rows


def fit(rows: list[Row]) -> dict[str, float]:
    """Newton's method."""
    names = sorted(rows[0][0])
    values = np.array([[1.0, *(signals[name] for name in names)] for signals, _ in rows])
    labels = np.array([float(covered) for _, covered in rows])
    say = np.where(labels == 1, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
    ridge = np.diag([0.0, *[RIDGE] * len(names)])
    coefficients = np.zeros(values.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-values @ coefficients))
        gradient = values.T @ (say * (labels - chance)) - ridge @ coefficients
        curvature = (values * (say * chance * (1 - chance))[:, None]).T @ values + ridge
        coefficients = coefficients + np.linalg.solve(curvature, gradient)
    cut = float(np.quantile((values @ coefficients)[labels == 1], SHARE))
    coefficients[0] += np.log(LOW / (1 - LOW)) - cut
    return dict(zip(("intercept", *names), (round(float(value), 4) for value in coefficients), strict=True))


def refusal_figures(name: str, rows: list[Row], weights: dict[str, float]) -> dict[str, float]:
    """What the weights do to a set."""
    chances = np.array([probability(signals, weights) for signals, _ in rows])
    covered = np.array([label for _, label in rows])
    figures = {
        "covered": int(covered.sum()),
        "uncovered": int((~covered).sum()),
        "auroc": round(auroc(chances, covered), 3),
        "covered_refused": round(float((chances[covered] < LOW).mean()), 3),
        "uncovered_refused": round(float((chances[~covered] < LOW).mean()), 3),
    }
    print(name, figures)
    return figures


def main() -> None:
    """Fit, measure, write."""
    fitted = {book: asyncio.run(rows_of(book, questions)) for book, questions in by_book("fitted").items()}
    rows = [row for book_rows in fitted.values() for row in book_rows]
    weights = fit(rows)
    figures = {"books": list(fitted), "share": SHARE, "ridge": RIDGE, **refusal_figures("fitted", rows, weights)}
    all_rows: list[Row] = []
    for book, questions in by_book("reported").items():
        book_rows = asyncio.run(rows_of(book, questions))
        refusal_figures(book, book_rows, weights)
        all_rows += book_rows
    refusal_figures("all reported", all_rows, weights)
    WEIGHTS.write_text(json.dumps({"fitted_on": figures, "weights": weights}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(weights, indent=2))


if __name__ == "__main__":
    main()
