"""Measures how well the judge recognises what passages support. There are two kinds of sets: statements about a
context, labelled `supported`, `partial` or `unsupported` (a partial one counts as unsupported), and sentences of
lessons that are true or were falsified on purpose. Word coverage is scored in the same run as the baseline.

The shipped judge was fitted on the `fit` half of a set, so the figures use only the other half. Thresholds too: each
tenth of that half is classified with the threshold that is best on the other nine. The hash of a context decides its
half and its tenth, so that statements about one context stay together."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ValidationError

from lectern.domain.errors import SourceError
from lectern.domain.replies import Judgement, Verdict
from lectern.evals.goldfiles import line_error
from lectern.evals.metrics import LEVEL, RESAMPLES, SEED, Interval, intervals, means
from lectern.ports.answering import Judge
from lectern.text.words import content_stems, stems

Half = Literal["fit", "report"]
TENTHS = 10
VERDICTS: tuple[Verdict, ...] = ("supported", "doubtful", "unconfirmed")
DATA_FILE = "data.jsonl"  # in the folder of a set

Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


class StatementLine(BaseModel):
    """A line with a statement and the texts it is about."""

    context: list[str]
    response: str
    label: Literal["supported", "partial", "unsupported"]


class PairLine(BaseModel):
    """A line with a sentence and the passage it cites."""

    passage: str
    sentence: str
    label: Literal["supported", "falsified"]
    kind: str
    split: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One sentence to judge."""

    sentence: str
    passages: tuple[str, ...]
    true: bool
    kind: str  # of a pair: verbatim, paraphrase, or how it was falsified
    part: str  # fit or report; dev or test


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundingSet:
    """A file of labelled sentences."""

    name: str
    pairs: bool
    cases: tuple[Case, ...]


def load_grounding(path: Path) -> GroundingSet:
    """Read a set: the file, or the folder that holds `data.jsonl`."""
    file = path / DATA_FILE if path.is_dir() else path
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{file} cannot be read ({exc}); a grounding set is a file of JSON lines") from exc
    pairs = any('"passage"' in line for line in lines[:1])
    cases = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            cases.append(_pair(line) if pairs else _statement(line))
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            raise line_error(file, number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if not cases:
        raise SourceError(f"{file} holds no sentence to judge")
    return GroundingSet(name=path.stem if path.is_file() else path.name, pairs=pairs, cases=tuple(cases))


def _statement(line: str) -> Case:
    statement = StatementLine.model_validate_json(line)
    return Case(
        sentence=statement.response,
        passages=tuple(statement.context),
        true=statement.label == "supported",
        kind=statement.label,
        part=half_of(statement.context),
    )


def _pair(line: str) -> Case:
    pair = PairLine.model_validate_json(line)
    true = pair.label == "supported"
    return Case(sentence=pair.sentence, passages=(pair.passage,), true=true, kind=pair.kind, part=pair.split)


def half_of(context: Sequence[str]) -> Half:
    """Which half the statements about a context belong to."""
    digest = hashlib.sha256((context[0] if context else "").encode()).digest()
    return "report" if digest[-1] % 2 else "fit"


def tenth_of(context: Sequence[str]) -> int:
    """Which tenth of its half a context belongs to, by another byte of the hash that decides the half."""
    return hashlib.sha256((context[0] if context else "").encode()).digest()[-2] % TENTHS


def word_coverage(case: Case) -> float:
    """The baseline: the share of the sentence's content words that the passages contain."""
    sentence_stems = content_stems(case.sentence)
    passage_stems = {word for passage in case.passages for word in stems(passage)}
    return len(sentence_stems & passage_stems) / len(sentence_stems) if sentence_stems else 0.0


async def grounding_figures(
    data: GroundingSet, judge: Judge, advance: Callable[[int, int], None] = lambda _count, _total: None
) -> dict[str, Any]:
    """Judge every sentence of a set and compute the figures."""
    judgements: list[Judgement] = []
    durations_ms: list[float] = []
    for number, case in enumerate(data.cases, start=1):
        start = time.perf_counter()
        judgements.append(await judge.judge(case.sentence, case.passages))
        durations_ms.append((time.perf_counter() - start) * 1000)
        advance(number, len(data.cases))
    figures = _pair_figures(data.cases, judgements) if data.pairs else _statement_figures(data.cases, judgements)
    p50, p95 = np.quantile(durations_ms, [0.5, 0.95])
    return {"set": data.name, "n": len(data.cases), **figures, "ms": {"p50": float(p50), "p95": float(p95)}}


def _pair_figures(cases: Sequence[Case], judgements: Sequence[Judgement]) -> dict[str, Any]:
    truth = np.array([case.true for case in cases], dtype=bool)
    areas = {
        "judge": auroc(np.array([judgement.support for judgement in judgements]), truth),
        "word_coverage": auroc(np.array([word_coverage(case) for case in cases]), truth),
    }
    parts = {part: _part(cases, judgements, part) for part in sorted({case.part for case in cases})}
    return {"parts": parts, "auroc": areas}


def _part(cases: Sequence[Case], judgements: Sequence[Judgement], part: str) -> dict[str, Any]:
    """The shares of supported, doubtful and unconfirmed sentences of each kind."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for case, judgement in zip(cases, judgements, strict=True):
        if case.part == part:
            kinds[case.kind].append(judgement.verdict)
            if not case.true:
                kinds["falsified"].append(judgement.verdict)
    return {kind: _shares(verdicts) for kind, verdicts in sorted(kinds.items())}


def _shares(verdicts: Sequence[str]) -> dict[str, Any]:
    shares: dict[str, Any] = {"n": len(verdicts)}
    for verdict in VERDICTS:
        hits = [[float(actual == verdict)] for actual in verdicts]
        (shares[verdict],), (bounds,) = means(hits), intervals(hits)
        shares[f"{verdict}_interval"] = list(bounds)
    return shares


def _statement_figures(cases: Sequence[Case], judgements: Sequence[Judgement]) -> dict[str, Any]:
    held_out = [place for place, case in enumerate(cases) if case.part == "report"]
    truth = np.array([cases[place].true for place in held_out], dtype=bool)
    tenths = np.array([tenth_of(cases[place].passages) for place in held_out])
    scores = {
        "judge": np.array([judgements[place].support for place in held_out]),
        "word_coverage": np.array([word_coverage(cases[place]) for place in held_out]),
    }
    if truth.all() or not truth.any():
        raise SourceError("the half that figures are of holds supported statements only, or none; it needs both")
    predicted = {name: predict_by_tenth(score, truth, tenths) for name, score in scores.items()}
    verdicts = np.array([judgements[place].verdict == "supported" for place in held_out])
    return {
        "reported": len(held_out),
        "scores": {name: _score_figures(scores[name], predicted[name], truth) for name in scores},
        "better_by": _lead(scores, predicted, truth),
        "verdict_supported": {
            "balanced_accuracy": balanced_accuracy(verdicts, truth),
            "share": float(verdicts.mean()),
        },
    }


def predict_by_tenth(score: Floats, truth: Bools, tenths: np.ndarray[Any, Any]) -> Bools:
    """The predicted label of each statement, with the threshold that is best on the other tenths."""
    predicted = np.zeros(len(score), dtype=bool)
    for tenth in range(TENTHS):
        in_tenth = tenths == tenth
        if in_tenth.any() and not in_tenth.all():
            predicted[in_tenth] = score[in_tenth] >= best_threshold(score[~in_tenth], truth[~in_tenth])
    return predicted


def _score_figures(score: Floats, predicted: Bools, truth: Bools) -> dict[str, Any]:
    """AUROC and balanced accuracy, with intervals."""
    return {
        "auroc": auroc(score, truth),
        "auroc_interval": list(_bootstrap_interval(lambda rows: auroc(score[rows], truth[rows]), len(truth))),
        "balanced_accuracy": balanced_accuracy(predicted, truth),
        "balanced_accuracy_interval": list(
            _bootstrap_interval(lambda rows: balanced_accuracy(predicted[rows], truth[rows]), len(truth))
        ),
    }


def _lead(scores: Mapping[str, Floats], predicted: Mapping[str, Bools], truth: Bools) -> dict[str, Any]:
    """The judge's lead over word coverage, on identical resamples."""

    def lead_auroc(rows: Any) -> float:  # noqa: ANN401  # an index of numpy
        judge_auroc, baseline_auroc = (auroc(scores[name][rows], truth[rows]) for name in ("judge", "word_coverage"))
        return judge_auroc - baseline_auroc

    def lead_accuracy(rows: Any) -> float:  # noqa: ANN401  # an index of numpy
        judge_accuracy, baseline_accuracy = (
            balanced_accuracy(predicted[name][rows], truth[rows]) for name in ("judge", "word_coverage")
        )
        return judge_accuracy - baseline_accuracy

    all_rows = np.arange(len(truth))
    return {
        "auroc": lead_auroc(all_rows),
        "auroc_interval": list(_bootstrap_interval(lead_auroc, len(truth))),
        "balanced_accuracy": lead_accuracy(all_rows),
        "balanced_accuracy_interval": list(_bootstrap_interval(lead_accuracy, len(truth))),
    }


def auroc(score: Floats, truth: Bools) -> float:
    """How often a supported statement scores above an unsupported one; ties count half."""
    positive, negative = score[truth], score[~truth]
    if not len(positive) or not len(negative):
        return 0.5
    order = np.sort(negative)
    below = np.searchsorted(order, positive, side="left")
    up_to = np.searchsorted(order, positive, side="right")
    return float((below + up_to).sum() / (2 * len(positive) * len(negative)))


def balanced_accuracy(predicted: Bools, truth: Bools) -> float:
    """The mean of two shares: supported statements that are recognised, and other statements that are rejected."""
    right = [predicted[truth].mean() if truth.any() else 0.5, (~predicted[~truth]).mean() if (~truth).any() else 0.5]
    return float(sum(right) / 2)


def best_threshold(score: Floats, truth: Bools) -> float:
    """The threshold with the best balanced accuracy; the lowest of several equal ones."""
    thresholds = np.unique(score)
    return float(max(thresholds, key=lambda threshold: (balanced_accuracy(score >= threshold, truth), -threshold)))


def _bootstrap_interval(figure: Callable[[Any], float], count: int) -> Interval:
    """The 95 % interval of a figure over 1,000 resamples of the cases."""
    rng = np.random.default_rng(SEED)
    drawn = [figure(rng.integers(0, count, count)) for _ in range(RESAMPLES)]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def grounding_text(figures: Mapping[str, Any]) -> str:
    """The figures as text for a terminal."""
    lines = [f"{figures['set']}: {figures['n']} sentences, {figures['ms']['p50']:.1f} ms each (median)"]
    if "parts" in figures:
        for part, kinds in figures["parts"].items():
            lines.append(f"  {part:<12}{'n':>5}  supported            doubtful             unconfirmed")
            lines += [f"    {kind:<10}{shares['n']:>5}  {_row(shares)}" for kind, shares in kinds.items()]
        areas = figures["auroc"]
        lines.append(f"  auroc: judge {areas['judge']:.3f}, word coverage {areas['word_coverage']:.3f}")
        return "\n".join(lines)
    lines.append(f"  figures of the {figures['reported']} that nothing was fitted on")
    for name, scored in {**figures["scores"], "better by": figures["better_by"]}.items():
        cells = [
            f"{metric} {scored[metric]:.3f} ({low:.3f} to {high:.3f})"
            for metric in ("balanced_accuracy", "auroc")
            for low, high in [scored[f"{metric}_interval"]]
        ]
        lines.append(f"    {name:<14} {'  '.join(cells)}")
    verdict = figures["verdict_supported"]
    lines.append(
        f"    verdict        balanced_accuracy {verdict['balanced_accuracy']:.3f}, {verdict['share']:.0%} supported"
    )
    return "\n".join(lines)


def _row(shares: Mapping[str, Any]) -> str:
    cells = []
    for verdict in VERDICTS:
        low, high = shares[f"{verdict}_interval"]
        cells.append(f"{shares[verdict]:.3f} ({low:.3f}-{high:.3f})")
    return "  ".join(cells)
