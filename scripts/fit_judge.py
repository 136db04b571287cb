"""Fits the sum and the thresholds in `answering/support.json`.

    python scripts/fit_judge.py LOG_ODDS_JSON

The file is what `judge/train.py` writes: the network's log-odds for every statement of `judge/cases.py`, each from a
network that had not seen it. Weights are a ridge logistic regression on the written pairs and the sentences about the
sample book, which count twice: they are what the judge is for, and few. Verbatim sentences are left out; the judge
never weighs them. The threshold comes from eight folds by passage: the least at which 3.5 % of the falsified are
supported, written pairs and the sample book's counting the same, whatever their number. Nothing is random.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from judge.cases import Stated, golden, written

from lectern.answering.support import LocalJudge, quotation
from lectern.answering.weighing import WEIGHTS
from lectern.evals.grounding import auroc

LET_IN = 0.035  # of the falsified, in cross-validation
KINDS = ("number", "unit", "name", "negation", "swap")  # that are counted as falsified; the others are vaguer
FOLDS = 8
RIDGE = 10.0  # on standardised columns, against the summed loss
GOLDEN_COUNTS = 2.0
NEWTON_STEPS = 30  # ten are enough
LEAST = 1e-3  # smaller weights are left out

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


async def table(cases: Sequence[Stated], log_odds: Sequence[float]) -> Table:
    """Read every statement that is not quoted."""
    judge, kept, found = LocalJudge(), [], []
    for place, case in enumerate(cases):
        if case.kind == "verbatim" or quotation(case.text, case.passages[0]) != "none":
            continue
        reading = await judge.read(case.text, case.passages)
        if reading is not None:
            kept.append(case)
            found.append({**reading.found, "entailed": log_odds[place]})
    names = [*sorted(name for name in found[0] if name != "entailed"), "entailed"]
    truth = np.array([case.true for case in kept])
    source = ["golden" if case.part in {"pairs", "fresh"} else "late" if case.part == "3" else "early" for case in kept]
    return Table(
        names=names,
        rows=np.array([[one[name] for name in names] for one in found]),
        truth=truth,
        falsified=~truth & np.isin([case.kind for case in kept], KINDS),
        source=np.array(source),
        fold=folds([case.group for case in kept]),
    )


def folds(groups: Sequence[str]) -> np.ndarray[Any, Any]:
    """Groups dealt out by size, each to the fold that has least."""
    _, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    fold_of, held = np.zeros(len(sizes), dtype=int), np.zeros(FOLDS)
    for group in np.argsort(sizes)[::-1]:
        fold_of[group] = np.argmin(held)
        held[fold_of[group]] += sizes[group]
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
    own = weights[1:] / spread
    return np.array([weights[0] - own @ mean, *own])


def score(rows: Floats, weights: Floats) -> Floats:
    """The logistic sum of each row."""
    result: Floats = 1 / (1 + np.exp(-(weights[0] + rows @ weights[1:])))
    return result


def crosswise(rows: Floats, data: Table) -> Floats:
    """Each row's sum by weights that were fitted without its fold."""
    made = np.zeros(len(rows))
    for fold in range(FOLDS):
        mine = data.fold == fold
        made[mine] = score(rows[mine], fit(rows[~mine], data.truth[~mine], data.counts[~mine]))
    return made


def threshold(scores: Floats, data: Table) -> float:
    """The least that lets in few enough of the falsified."""
    ours = scores[data.falsified & (data.source == "golden")]
    others = scores[data.falsified & (data.source != "golden")]
    cuts = np.unique(scores.round(3))
    return float(min(cut for cut in cuts if ((ours >= cut).mean() + (others >= cut).mean()) / 2 <= LET_IN))


def fitted(data: Table, *, network: bool) -> dict[str, Any]:
    """One set of parameters, with figures on the way."""
    width = len(data.names) - (not network)
    rows = data.rows[:, :width]
    scores = crosswise(rows, data)
    cut = threshold(scores, data)
    for source in ("golden", "early", "late"):
        mine = data.source == source
        shares = [(scores[mine & part] >= cut).mean() for part in (data.truth, data.falsified)]
        area = auroc(scores[mine], data.truth[mine])
        print(f"  {source:<7} n {mine.sum():>5}  true supported {shares[0]:.3f}  falsified {shares[1]:.3f}  {area:.3f}")
    intercept, *weights = fit(rows, data.truth, data.counts).tolist()
    chosen = {name: round(weight, 4) for name, weight in zip(data.names, weights, strict=False) if abs(weight) > LEAST}
    return {"sum": {"intercept": round(intercept, 4), **chosen}, "supported_from": round(cut, 3)}


def main() -> None:
    """Fit both sets of weights and write them."""
    log_odds = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    data = asyncio.run(table([*written(), *golden()], [*log_odds["written"], *log_odds["golden"]]))
    result = {}
    for name in ("network", "rules"):
        print(name)
        result[name] = fitted(data, network=name == "network")
    WEIGHTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
