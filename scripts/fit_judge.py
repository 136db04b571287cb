"""Fits the sums and the thresholds in `grounding/weights.json`.

    PYTHONPATH=scripts python scripts/fit_judge.py

Weights are a ridge logistic regression on the signals of `grounding/features.py`. Verbatim sentences are left out; the
judge never weighs them. Nothing is random.

With the network: on round 3 of the written pairs, the only statements of the training set that the shipped network has
not learnt from. Its log-odds are its own, on the evidence that the judge gives it. The threshold comes from eight folds
by passage: the least at which 5.5 % of the falsified are supported.

Without it: on all written pairs and the sentences about the sample book, which count twice: they are what the judge is
for, and few. The threshold lets 3.5 % of the falsified through, written pairs and the sample book's counting the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from judge.cases import Stated, golden, written_cases

from lectern.evals.grounding import auroc
from lectern.grounding.judge import LocalJudge, quotation
from lectern.grounding.weights import WEIGHTS
from lectern.models.local.entailment import LocalEntailment

LET_IN = {"network": 0.055, "rules": 0.035}  # of the falsified, in cross-validation
KINDS = ("number", "unit", "name", "negation", "swap")  # that are counted as falsified; the others are vaguer
FOLDS = 8
RIDGE = 10.0  # on standardised columns, against the summed loss
GOLDEN_COUNTS = 2.0
NEWTON_STEPS = 30  # ten are enough

Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What was found of each statement that is weighed."""

    names: list[str]
    rows: Floats
    truth: Bools
    falsified: Bools
    source: np.ndarray[Any, Any]  # golden: the sample book; early and late: rounds 1 and 2, and 3, of writing
    fold: np.ndarray[Any, Any]

    @property
    def counts(self) -> Floats:
        """How much each is worth."""
        return np.where(self.source == "golden", GOLDEN_COUNTS, 1.0)


async def table(cases: Sequence[Stated], judge: LocalJudge, *, network: bool) -> Table:
    """Read every statement that is not quoted; with a network, every one that it can read."""
    cases_measured, measured = [], []
    for case in cases:
        if case.kind == "verbatim" or quotation(case.text, case.passages[0]) != "none":
            continue
        reading = await judge.read(case.text, case.passages)
        if reading is not None and network == (reading.entailed is not None):
            cases_measured.append(case)
            measured.append(reading.weighed)
    names = list(measured[0])
    truth = np.array([case.true for case in cases_measured])
    source = [
        "golden" if case.part in {"pairs", "fresh"} else "late" if case.part == "3" else "early"
        for case in cases_measured
    ]
    return Table(
        names=names,
        rows=np.array([[row[name] for name in names] for row in measured]),
        truth=truth,
        falsified=~truth & np.isin([case.kind for case in cases_measured], KINDS),
        source=np.array(source),
        fold=folds([case.group for case in cases_measured]),
    )


def folds(groups: Sequence[str]) -> np.ndarray[Any, Any]:
    """Groups dealt out by size, each to the fold that has least."""
    _, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    fold_of, fold_sizes = np.zeros(len(sizes), dtype=int), np.zeros(FOLDS)
    for group in np.argsort(sizes)[::-1]:
        fold_of[group] = np.argmin(fold_sizes)
        fold_sizes[fold_of[group]] += sizes[group]
    return fold_of[place]


def fit(rows: Floats, truth: Bools, counts: Floats) -> Floats:
    """Ridge logistic regression by Newton's method: the intercept, then a weight for each column as it stands."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread == 0] = 1
    columns = np.hstack([np.ones((len(rows), 1)), (rows - mean) / spread])
    ridge = np.array([0.0, *[RIDGE] * rows.shape[1]])
    weights = np.zeros(columns.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-columns @ weights))
        slope = columns.T @ (counts * (chance - truth)) + ridge * weights
        bend = (columns * (counts * chance * (1 - chance))[:, None]).T @ columns + np.diag(ridge)
        weights = weights - np.linalg.solve(bend, slope)
    scaled = weights[1:] / spread
    return np.array([weights[0] - scaled @ mean, *scaled])


def score(rows: Floats, weights: Floats) -> Floats:
    """The logistic sum of each row."""
    result: Floats = 1 / (1 + np.exp(-(weights[0] + rows @ weights[1:])))
    return result


def crosswise(rows: Floats, data: Table) -> Floats:
    """Each row's sum by weights that were fitted without its fold."""
    predictions = np.zeros(len(rows))
    for fold in range(FOLDS):
        in_fold = data.fold == fold
        predictions[in_fold] = score(rows[in_fold], fit(rows[~in_fold], data.truth[~in_fold], data.counts[~in_fold]))
    return predictions


def threshold(scores: Floats, data: Table, let_in: float) -> float:
    """The least that lets in few enough of the falsified; the sample book's and the written ones count the same."""
    parts = [scores[data.falsified & part] for part in (data.source == "golden", data.source != "golden")]
    parts = [part for part in parts if len(part)]
    cuts = np.unique(scores.round(3))
    return float(min(cut for cut in cuts if np.mean([(part >= cut).mean() for part in parts]) <= let_in))


def fitted(data: Table, let_in: float) -> dict[str, Any]:
    """One set of parameters, with figures on the way."""
    scores = crosswise(data.rows, data)
    cut = threshold(scores, data, let_in)
    for source in sorted(set(data.source)):
        part = data.source == source
        shares = [(scores[part & selected] >= cut).mean() for selected in (data.truth, data.falsified)]
        area = auroc(scores[part], data.truth[part])
        print(f"  {source:<7} n {part.sum():>5}  true supported {shares[0]:.3f}  falsified {shares[1]:.3f}  {area:.4f}")
    intercept, *weights = fit(data.rows, data.truth, data.counts).tolist()
    chosen_weights = {name: round(weight, 4) for name, weight in zip(data.names, weights, strict=True)}
    return {"sum": {"intercept": round(intercept, 4), **chosen_weights}, "supported_from": round(cut, 3)}


def main() -> None:
    """Fit both sets of weights and write them."""
    cases = [*written_cases(), *golden()]
    unseen = [case for case in cases if case.part == "3"]
    result = {}
    for name, judge, selected in (
        ("network", LocalJudge(LocalEntailment()), unseen),
        ("rules", LocalJudge(), cases),
    ):
        print(name)
        result[name] = fitted(asyncio.run(table(selected, judge, network=name == "network")), LET_IN[name])
    WEIGHTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
