"""Fits the weights and thresholds in `answering/support.json`.

    python scripts/fit_judge.py PAIRS_JSONL GROUND_FOLDER...

`truth` is fitted on the `dev` sentences of PAIRS_JSONL (true paraphrases against falsified ones), on the same true
sentences against another passage, and on sentences of these passages with harmless edits; `cover` on the `fit` half of
each folder's data.jsonl, every set counting the same. Each weight keeps the sign that its meaning demands. The
threshold comes from five-fold cross-validation by passage on `dev`. Nothing is random.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lectern.answering.plain import unattributed
from lectern.answering.sentences import sentences_of
from lectern.answering.support import RuleJudge, against, barred, decodable
from lectern.answering.weighing import FEATURES, WEIGHTS, features
from lectern.embedders.minilm import LocalEmbedder
from lectern.evals.grounding import Case, load_grounding

FALSIFIED_KEPT_OUT = 0.965  # of the dev sentences; the bar is 95 % of others
COVERED_FROM = 0.35  # keeps out what is about something else; 0 of the foreign passages pass
FOLDS = 5
RIDGE = 0.3
HELPS = {"covered", "covered_by_evidence", "covered_anywhere", "soft_cover", "weakest_clause", "used", "run"}
HELPS |= {"number_same", "name_same", "cosine"}
EITHER = {"sequence"}  # a close copy is true, or was changed on purpose
TRUTH = [name for name in FEATURES if name not in ("words", "not_prose")]  # length and form are no evidence
COVER = ["soft_cover", "name_missing", "number_missing", "number_rival"]

Matrix = np.ndarray[Any, np.dtype[np.float64]]


def harmless(passages: Sequence[str]) -> list[Case]:
    """Sentences of the passages as a careful writer would use them: nothing of their meaning is changed."""
    cases = []
    for passage in passages:
        for number, sentence in enumerate(sentences_of(passage)):
            variants = [
                re.sub(r"\s*\([^()]*\)", "", sentence),
                re.sub(r"\b(simply|also|therefore|however|already|still|really|quite|very|then|even)\s+", "", sentence),
                re.sub(r"\b(do|does|is|are) not\b", r"\1n't", sentence.replace("cannot", "can't")),
            ]
            if number % 3 == 0:
                variants.append(f"According to the lesson, {sentence[:1].lower()}{sentence[1:]}")
            if number % 4 == 1:
                variants.append(re.sub(r"\bthe\b", "this", sentence, count=1))
            fronted = re.match(r"^(If|When|With|In|For|After|Before)\b([^,;]{8,60}),\s+(.{15,})\.$", sentence)
            if fronted:
                head, rest, main = fronted.groups()
                variants.append(f"{main[:1].upper()}{main[1:]} {head.lower()}{rest}.")
            cases += [
                Case(sentence=variant, passages=(passage,), true=True, kind="harmless", part="dev")
                for variant in dict.fromkeys(variants)
                if variant != sentence
            ]
    return cases


def foreign(cases: Sequence[Case]) -> list[Case]:
    """True sentences, each with two passages that it is not about."""
    passages = sorted({case.passages[0] for case in cases})
    return [
        replace(case, passages=(passages[(passages.index(case.passages[0]) + step) % len(passages)],), true=False)
        for case in cases
        if case.true
        for step in (1, 7)
    ]


async def matrix(judge: RuleJudge, cases: Sequence[Case]) -> tuple[Matrix, list[tuple[bool, bool]]]:
    """One row of features a case, and whether anything bars it or stands against it."""
    rows, rules = [], []
    for case in cases:
        reading = await judge.read(unattributed(decodable(case.sentence)), case.passages)
        if reading is None:
            rows.append([0.0] * len(FEATURES))
            rules.append((True, False))
            continue
        found = features(reading.alignment.signals, reading.cosine)
        rows.append([found[name] for name in FEATURES])
        rules.append((barred(reading.alignment.signals), against(reading.alignment.signals)))
    return np.array(rows), rules


def fit(rows: Matrix, truth: Matrix, weight: Matrix, names: Sequence[str]) -> Matrix:
    """Logistic regression with signs, by accelerated projected gradients."""
    columns = np.hstack([np.ones((len(rows), 1)), rows])
    share = weight / weight.sum()
    signs = np.array([0, *(0 if name in EITHER else 1 if name in HELPS else -1 for name in names)])
    ridge = np.array([0.0, *([RIDGE / len(rows)] * len(names))])
    step = 1 / (0.25 * np.linalg.norm(columns * np.sqrt(share)[:, None], 2) ** 2 + RIDGE / len(rows))
    weights = ahead = np.zeros(columns.shape[1])
    pace = 1.0
    for _ in range(4000):
        chance = 1 / (1 + np.exp(-np.clip(columns @ ahead, -30, 30)))
        moved = ahead - step * (columns.T @ (share * (chance - truth)) + ridge * ahead)
        moved = np.where(signs * moved < 0, 0.0, moved)
        faster = (1 + np.sqrt(1 + 4 * pace * pace)) / 2
        ahead = moved + (pace - 1) / faster * (moved - weights)
        weights, pace = moved, faster
    return weights


def score(rows: Matrix, weights: Matrix) -> Matrix:
    """The logistic sum of each row."""
    result: Matrix = 1 / (1 + np.exp(-np.clip(weights[0] + rows @ weights[1:], -30, 30)))
    return result


def balanced(truth: Matrix, weight: Matrix) -> Matrix:
    """Weights under which neither class outvotes the other."""
    result: Matrix = weight * np.where(truth > 0, 1 / weight[truth > 0].sum(), 1 / weight[truth == 0].sum())
    return result


async def fit_truth(judge: RuleJudge, pairs: Sequence[Case]) -> tuple[dict[str, float], float]:
    """Weights on `dev`, and the threshold from cross-validation."""
    edits, others = harmless(sorted({case.passages[0] for case in pairs})), foreign(pairs)
    cases = [*pairs, *edits, *others]
    chosen = [FEATURES.index(name) for name in TRUTH]
    everything, rules = await matrix(judge, cases)
    rows = everything[:, chosen]
    truth = np.array([float(case.true) for case in cases])
    weight = np.array([1.0] * len(pairs) + [70 / len(edits)] * len(edits) + [0.5] * len(others))
    passages = sorted({case.passages[0] for case in pairs})
    fold = np.array([passages.index(case.passages[0]) % FOLDS for case in cases])
    held_out = np.zeros(len(cases))
    for number in range(FOLDS):
        kept = fold != number
        weights = fit(rows[kept], truth[kept], balanced(truth[kept], weight[kept]), TRUTH)
        held_out[~kept] = score(rows[~kept], weights)
    free = np.array([not bars for bars, _ in rules])
    own = np.arange(len(cases)) < len(pairs)
    false = own & (truth == 0)
    supported_from = (
        float(np.quantile(np.where(free, held_out, 0.0)[false], FALSIFIED_KEPT_OUT, method="higher")) + 1e-6
    )
    _report(cases, (held_out >= supported_from) & free, np.array([opposed for _, opposed in rules]))
    weights = fit(rows, truth, balanced(truth, weight), TRUTH)
    return dict(zip(["intercept", *TRUTH], weights.tolist(), strict=True)), supported_from


def _report(cases: Sequence[Case], supported: Matrix, opposed: Matrix) -> None:
    for kind in dict.fromkeys((case.kind, case.true) for case in cases):
        mine = np.array([(case.kind, case.true) == kind for case in cases])
        print(f"  {kind!s:<24} n {mine.sum():>4}  supported {(supported & mine).sum() / mine.sum():.3f}", end="")
        print(f"  contradicted {(opposed & ~supported & mine).sum() / mine.sum():.3f}")


async def fit_cover(judge: RuleJudge, folders: Sequence[Path]) -> dict[str, float]:
    """Weights on the fit halves, every set counting the same."""
    chosen = [FEATURES.index(name) for name in COVER]
    rows, truths, weights = [], [], []
    for folder in folders:
        cases = [case for case in load_grounding(folder).cases if case.part == "fit"]
        found, _ = await matrix(judge, cases)
        truth = np.array([float(case.true) for case in cases])
        rows.append(found[:, chosen])
        truths.append(truth)
        weights.append(balanced(truth, np.ones(len(cases))))
    fitted = fit(np.vstack(rows), np.concatenate(truths), np.concatenate(weights), COVER)
    return dict(zip(["intercept", *COVER], fitted.tolist(), strict=True))


async def main() -> None:
    """Fit both sets of weights and write them."""
    pairs = [case for case in load_grounding(Path(sys.argv[1])).cases if case.part == "dev"]
    folders = [Path(folder) for folder in sys.argv[2:]]
    result = {}
    for name, judge in (("meaning", RuleJudge(LocalEmbedder())), ("words", RuleJudge())):
        print(name)
        truth, supported_from = await fit_truth(judge, pairs)
        cover = await fit_cover(judge, folders)
        result[name] = {
            "truth": {feature: round(value, 4) for feature, value in truth.items() if round(value, 4)},
            "cover": {feature: round(value, 4) for feature, value in cover.items() if round(value, 4)},
            "supported_from": round(supported_from, 4),
            "covered_from": COVERED_FROM,
        }
        print(json.dumps(result[name], indent=1))
    WEIGHTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
