"""Fits the two weights of `answering/confidence.py` from labelled questions, and says how well they do on the other
half.

    python scripts/fit_confidence.py BOOK_FOLDER QUERIES_JSONL

Questions are those of `qa-refusal-robolearn`: `text`, `answerable`, `tier` (in-book, far, mid; `near` is left out,
its labels are heuristic). Every second question, in the order of their ids, is fitted on; the rest is reported.
Nothing is random.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lectern import Settings, open_lectern
from lectern.answering.confidence import coverage
from lectern.domain.evidence import LOW

Row = tuple[float, float, bool, str]


def read_queries(path: Path) -> list[dict[str, Any]]:
    """The labelled questions, in the order of their ids."""
    queries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted((query for query in queries if query["tier"] != "near"), key=lambda query: str(query["_id"]))


async def signals(book: Path, queries: list[dict[str, Any]]) -> list[Row]:
    """Best similarity and coverage for each question, with its label and tier."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as home:
        async with open_lectern(Settings(home=Path(home))) as lectern:
            await lectern.ingest(book, book="fitted")
            for query in queries:
                found = await lectern.search(query["text"])
                passages = [" ".join([*hit.chunk.trail, hit.chunk.text]) for hit in found.hits]
                best = max((hit.similarity for hit in found.hits), default=0.0)
                rows.append((best, coverage(query["text"], passages), bool(query["answerable"]), query["tier"]))
    return rows


def fit(rows: list[Row]) -> tuple[float, float, float]:
    """Logistic regression by Newton's method, slightly regularised so that separable data keeps finite weights."""
    features = np.array([[1.0, best, covered] for best, covered, _, _ in rows])
    labels = np.array([float(label) for *_, label, _ in rows])
    balance = np.where(labels > 0, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))  # neither class outvotes the other
    ridge = np.diag([0.0, 0.05, 0.05])
    weights = np.zeros(3)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-features @ weights))
        gradient = features.T @ (balance * (labels - chance)) - ridge @ weights
        curvature = features.T @ (features * (balance * chance * (1 - chance))[:, None]) + ridge
        weights += np.linalg.solve(curvature, gradient)
    return float(weights[0]), float(weights[1]), float(weights[2])


def report(rows: list[Row], weights: tuple[float, float, float]) -> None:
    """Refusals by tier at the level where an answer is given."""
    for tier in sorted({row[3] for row in rows}):
        some = [row for row in rows if row[3] == tier]
        chances = [
            1 / (1 + math.exp(-(weights[0] + weights[1] * best + weights[2] * covered))) for best, covered, *_ in some
        ]
        refused = sum(chance < LOW for chance in chances)
        print(f"{tier:>8}: {refused} of {len(some)} refused ({refused / len(some):.1%})")


def main() -> None:
    """Fit on one half, report on the other."""
    rows = asyncio.run(signals(Path(sys.argv[1]), read_queries(Path(sys.argv[2]))))
    weights = fit(rows[::2])
    print("INTERCEPT, BY_SIMILARITY, BY_COVERAGE =", ", ".join(f"{weight:.3f}" for weight in weights))
    report(rows[1::2], weights)


if __name__ == "__main__":
    main()
