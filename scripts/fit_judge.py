"""Fits the weights and thresholds in `answering/support.json`.

    python scripts/fit_judge.py PAIRS_JSONL GROUND_FOLDER...

`truth` is fitted on the sentences of PAIRS_JSONL (true paraphrases against falsified ones), on the same true sentences
against another passage, and on sentences of these passages with harmless edits; of all these, on those that no rule
decides. `cover` is fitted on the `fit` half of each folder's data.jsonl, every set counting the same. Each weight keeps
the sign that its meaning demands. The threshold comes from eight-fold cross-validation by passage, four times over
with other folds. Nothing is random.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lectern.answering.plain import unattributed
from lectern.answering.sentences import sentences_of
from lectern.answering.support import RuleJudge, against, barred, decodable, kept, weighable
from lectern.answering.weighing import FEATURES, WEIGHTS
from lectern.embedders.minilm import LocalEmbedder
from lectern.evals.grounding import Case, load_grounding

FALSIFIED_KEPT_OUT = 0.965  # in cross-validation; the bar is 95 % of others, and rules were made on these very pairs
COVERED_FROM = 0.35  # keeps out what is about something else; 0 of the foreign passages pass
FOLDS, ROUNDS = 8, 4
RIDGE = 1.0
EDITS, OTHERS = 0.1, 0.1  # what one harmless edit and one foreign passage weigh, against a pair
HELPS = {"covered", "covered_by_evidence", "covered_anywhere", "soft_cover", "weakest_clause", "used", "run"}
HELPS |= {"number_same", "name_same", "cosine", "words_held"}
# A close copy is true, or was changed on purpose; a free wording moves and leaves out whatever is true or false.
EITHER = {"sequence", "disorder", "voice", "denials", "slot_kin", "left_out", "moved", "inserted", "torn", "apart"}
TRUTH = """covered covered_by_evidence soft_cover weakest_clause used run sequence replaced inserted left_out moved
edited strayed borrowed apart number_same name_same disorder cosine slot slot_kin voice torn denials polarity binding
scale order alarmed""".split()
COVER = ["soft_cover", "words_held", "name_missing", "number_missing", "number_rival"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """What the rules say of each case."""

    weighed: Matrix  # no rule decides
    kept: Matrix  # supported by rule
    against: Matrix


async def matrix(judge: RuleJudge, cases: Sequence[Case]) -> tuple[Matrix, Ruled]:
    """One row of features a case, and what the rules say."""
    rows, ruled = [], []
    for case in cases:
        reading = await judge.read(unattributed(decodable(case.sentence)), case.passages)
        if reading is None:
            rows.append([0.0] * len(FEATURES))
            ruled.append((False, False, False))
            continue
        found, free = reading.found, not barred(reading)
        rows.append([found[name] for name in FEATURES])
        ruled.append((free and weighable(reading), free and kept(reading), against(reading.alignment.signals)))
    weighed, held, opposed = np.array(ruled).T
    return np.array(rows), Ruled(weighed=weighed, kept=held, against=opposed)


def fit(rows: Matrix, truth: Matrix, weight: Matrix, names: Sequence[str]) -> Matrix:
    """Logistic regression with signs, by accelerated projected gradients."""
    columns = np.hstack([np.ones((len(rows), 1)), rows])
    share = weight / weight.sum()
    signs = np.array([0, *(0 if name in EITHER else 1 if name in HELPS else -1 for name in names)])
    ridge = np.array([0.0, *([RIDGE / len(rows)] * len(names))])
    step = 1 / (0.25 * np.linalg.norm(columns * np.sqrt(share)[:, None], 2) ** 2 + RIDGE / len(rows))
    weights = ahead = np.zeros(columns.shape[1])
    pace = 1.0
    for _ in range(1500):
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
    """Weights on the pairs that need weighing, and the threshold from cross-validation."""
    edits, others = harmless(sorted({case.passages[0] for case in pairs})), foreign(pairs)
    cases = [*pairs, *edits, *others]
    everything, ruled = await matrix(judge, cases)
    rows = everything[:, [FEATURES.index(name) for name in TRUTH]]
    truth = np.array([float(case.true) for case in cases])
    weight = np.array([1.0] * len(pairs) + [EDITS] * len(edits) + [OTHERS] * len(others))
    passages = sorted({case.passages[0] for case in pairs})
    place = np.array([passages.index(case.passages[0]) for case in cases])
    false = (np.arange(len(cases)) < len(pairs)) & (truth == 0)
    cuts, shares = [], []
    for number in range(ROUNDS):
        fold = np.random.default_rng(number).integers(0, FOLDS, len(passages))[place]
        held_out = np.zeros(len(cases))
        for part in range(FOLDS):
            seen = ruled.weighed & (fold != part)
            weights = fit(rows[seen], truth[seen], balanced(truth[seen], weight[seen]), TRUTH)
            held_out[fold == part] = score(rows[fold == part], weights)
        held_out = np.where(ruled.kept, 1.0, np.where(ruled.weighed, held_out, 0.0))
        cuts.append(float(np.quantile(held_out[false], FALSIFIED_KEPT_OUT, method="higher")) + 1e-6)
        shares.append(held_out)
    cut = float(np.mean(cuts))
    _report(cases, np.mean([held_out >= cut for held_out in shares], axis=0), ruled.against)
    seen = ruled.weighed
    weights = fit(rows[seen], truth[seen], balanced(truth[seen], weight[seen]), TRUTH)
    return dict(zip(["intercept", *TRUTH], weights.tolist(), strict=True)), cut


def _report(cases: Sequence[Case], supported: Matrix, opposed: Matrix) -> None:
    kinds = [(case.kind, case.true) for case in cases]
    groups = {f"{kind} {true}": np.array([one == (kind, true) for one in kinds]) for kind, true in dict.fromkeys(kinds)}
    groups["falsified"] = np.array([not true and kind not in ("paraphrase", "verbatim") for kind, true in kinds])
    for name, mine in groups.items():
        print(f"  {name:<24} n {mine.sum():>4}  supported {supported[mine].mean():.3f}", end="")
        print(f"  contradicted {(opposed * (1 - supported))[mine].mean():.3f}")


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
    pairs = load_grounding(Path(sys.argv[1])).cases
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
