"""Fits the sums and the thresholds in `grounding/weights.json`.

    PYTHONPATH=scripts python scripts/fit_judge.py WORK_FOLDER PASSAGES_FOLDER ANSWERS.jsonl...

The weights are a ridge logistic regression on the signals of `grounding/features.py`, the share of words and the
network's log-odds. WORK_FOLDER holds `log_odds.json` by `judge.train`: for each row by its texts, the log-odds of a
network that has not learnt from the row's passage or answer. The rows are

- claims of answers with the passages that they cite, or with all that the model was given if they cite none;
- the written statements and those about the sample book, which count 0.05 each: they are many, and shorter;
- true claims with passages of another answer about the same book, as false ones, which count 0.1 each: without them
  the sum would not learn that words must be there.

The thresholds come from five folds by answer: 2.5 % of the false claims are supported, 3 % of the true ones doubtful.
What is written to `supported_from` was raised by hand to .964 afterwards, see docs/benchmarks/judge.md.
Quotations and claims with another number are judged by rules; they count with these in the thresholds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from judge.answers import said_in
from judge.cases import Stated, golden, written_cases

from lectern.evals.grounding import auroc
from lectern.grounding.claims import units_of
from lectern.grounding.evidence import evidence_for, with_evidence_measures
from lectern.grounding.judge import EXPECTED_COVERAGE, LocalJudge, has_another_number, quotation
from lectern.grounding.weights import WEIGHTS
from lectern.models.local.entailment import LocalEntailment

SUPPORTED_FALSE, DOUBTFUL_TRUE = 0.025, 0.03
WRITTEN_WEIGHT, FOREIGN_WEIGHT = 0.05, 0.1
FOREIGN_ROWS = 1_400
FOLDS, SEED = 5, 5
RIDGE = 10.0  # on standardised columns, against the summed loss
NEWTON_STEPS = 40
UNWEIGHED = "copied"  # only a rule uses it

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Row(NamedTuple):
    """What was measured of one claim."""

    values: dict[str, float]
    coverage: float
    true: bool
    weight: float
    fold: int  # of its answer; -1 for rows that are always learnt from
    by_rule: str  # "quoted", "number" or nothing


class Rows:
    """Measures claims, with log-odds that were kept, or by the shipped network where that has not learnt the row."""

    def __init__(self, log_odds: dict[str, float]) -> None:
        self._log_odds = log_odds
        self._rules, self._network = LocalJudge(), LocalEntailment()

    async def row(self, case: Stated, weight: float, fold: int, *, unseen: bool = False) -> Row | None:
        """The row of a claim; None if nothing can be compared or no log-odds were kept."""
        reading = await self._rules.read(case.text, case.passages)
        if reading is None:
            return None
        units = [unit for passage in case.passages for unit in units_of(passage)]
        statement, evidence = with_evidence_measures(reading.claim, units), evidence_for(reading.claim, units)
        odds = self._log_odds.get(f"{statement}\n{evidence}", self._log_odds.get(f"{case.text}\n{evidence}"))
        if odds is None and unseen:
            odds = await self._network.log_odds(statement, evidence)
        if odds is None:
            return None
        quoted = any(quotation(case.text, passage) == "whole" for passage in case.passages)
        by_rule = "quoted" if quoted else "number" if has_another_number(reading.signals) else ""
        values = {name: value for name, value in {**reading.weighed, "entailed": odds}.items() if name != UNWEIGHED}
        return Row(values, reading.word_coverage, case.true, weight, fold, by_rule)


def answer_cases(passages_folder: Path, files: Sequence[Path]) -> Iterator[tuple[str, str, Stated]]:
    """The claims of all answers, each with its answer's id and book."""
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            answer = json.loads(line)
            passages = passages_of(passages_folder, answer["id"])
            for said in said_in(answer):
                cited = [passages[number - 1] for number in said.claim.citations if 1 <= number <= len(passages)]
                case = Stated(said.claim.text, tuple(cited or passages), said.kind, true=said.true)
                if said.claim.kind != "listing":
                    yield answer["id"], answer["book"], case


def passages_of(folder: Path, name: str) -> list[str]:
    """The passages that a model was given, with their headings."""
    rows = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))["passages"]
    return [f"{row['breadcrumb']}\n\n{row['text']}" for row in rows]


async def all_rows(log_odds: dict[str, float], folder: Path, files: Sequence[Path]) -> list[Row]:
    """The rows of all three kinds."""
    rows, measure = list[Row | None](), Rows(log_odds)
    claims = list(answer_cases(folder, files))
    names = sorted({name for name, _, _ in claims})
    fold_of = {name: place % FOLDS for place, name in enumerate(names)}
    rows += [await measure.row(case, 1.0, fold_of[name]) for name, _, case in claims]
    rows += [
        await measure.row(case, WRITTEN_WEIGHT, -1)
        for case in (*written_cases(), *golden())
        if quotation(case.text, case.passages[0]) == "none"
    ]
    chance = Random(SEED)
    true = [claim for claim in claims if claim[2].true and len(claim[2].passages) < len(passages_of(folder, claim[0]))]
    for name, book, case in chance.sample(true, min(FOREIGN_ROWS, len(true))):
        other = chance.choice([other for other, title, _ in claims if title == book and other != name])
        own = set(passages_of(folder, name))
        passages = chance.sample(passages_of(folder, other), len(case.passages))
        foreign = case._replace(passages=tuple(text for text in passages if text not in own), true=False)
        if foreign.passages:
            rows.append(await measure.row(foreign, FOREIGN_WEIGHT, fold_of[name], unseen=True))
    return [row for row in rows if row is not None]


def fit(columns: Floats, truth: Floats, weight: Floats) -> Floats:
    """Ridge logistic regression by Newton's method: the intercept, then a weight for each column."""
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    spread[spread == 0] = 1
    standard = np.hstack([np.ones((len(columns), 1)), (columns - mean) / spread])
    ridge = np.array([0.0, *[RIDGE] * columns.shape[1]])
    weights = np.zeros(standard.shape[1])
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(-standard @ weights))
        slope = standard.T @ (weight * (chance - truth)) + ridge * weights
        bend = (standard * (weight * chance * (1 - chance))[:, None]).T @ standard + np.diag(ridge)
        weights = weights - np.linalg.solve(bend, slope)
    scaled = weights[1:] / spread
    return np.array([weights[0] - scaled @ mean, *scaled])


def fitted(rows: Sequence[Row], names: Sequence[str]) -> dict[str, Any]:
    """One set of weights and thresholds, with figures on the way."""
    columns = np.array([[row.values[name] for name in names] for row in rows])
    truth, weight = np.array([float(row.true) for row in rows]), np.array([row.weight for row in rows])
    fold, of_answers = np.array([row.fold for row in rows]), np.array([row.weight == 1.0 for row in rows])
    chance = np.zeros(len(rows))
    for number in range(FOLDS):
        held_out = fold == number
        weights = fit(columns[~held_out], truth[~held_out], weight[~held_out])
        chance[held_out] = 1 / (1 + np.exp(-(weights[0] + columns[held_out] @ weights[1:])))
    rule = np.array([row.by_rule for row in rows])
    coverage = np.minimum(1, np.array([row.coverage for row in rows]) / EXPECTED_COVERAGE)
    bearing = np.where(rule == "quoted", 1, np.where(rule == "number", 0, chance * coverage))
    doubted = np.where(rule == "quoted", 1, np.where(rule == "number", 0, chance))
    true, false = of_answers & (truth == 1), of_answers & (truth == 0)
    supported_from = float(np.quantile(bearing[false], 1 - SUPPORTED_FALSE))
    doubtful_below = float(np.quantile(doubted[true], DOUBTFUL_TRUE))
    shares = [(bearing[part] >= supported_from).mean() for part in (true, false)]
    shares += [(doubted[part] < doubtful_below).mean() for part in (true, false)]
    print(f"  n {of_answers.sum()}: true supported {shares[0]:.3f}, false {shares[1]:.3f}")
    area = auroc(chance[of_answers], truth[of_answers] == 1)
    print(f"  true doubtful {shares[2]:.3f}, false {shares[3]:.3f}; AUROC {area:.4f}")
    intercept, *weights = fit(columns, truth, weight).tolist()
    total = {"intercept": round(intercept, 4)}
    total |= {name: round(value, 4) for name, value in zip(names, weights, strict=True)}
    return {"sum": total, "supported_from": round(supported_from, 3), "doubtful_below": round(doubtful_below, 3)}


def main() -> None:
    """Fit both sets of weights and write them."""
    work, folder, *files = map(Path, sys.argv[1:])
    log_odds = json.loads((work / "log_odds.json").read_text(encoding="utf-8"))
    rows = asyncio.run(all_rows(log_odds, folder, files))
    names = list(rows[0].values)
    result = {}
    for kind, chosen in (("network", names), ("rules", [name for name in names if name != "entailed"])):
        print(kind)
        result[kind] = fitted(rows, chosen)
    WEIGHTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
