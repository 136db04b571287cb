"""A run: the metric values of every question, with the recipe of the run. Runs are stored as numbered JSON files, so
any two can be compared later. With values for each question, the comparison is a paired one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from lectern.domain.errors import BadInput
from lectern.evals.metrics import Interval, intervals, means

Kind = Literal["retrieval", "chunking"]
Figures = dict[str, float]  # metric → mean


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValues:
    """The values of one search mode: one for each metric and question."""

    metrics: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]  # question → one value a metric

    def figures(self) -> Figures:
        """The mean over all questions."""
        return dict(zip(self.metrics, means(list(self.values.values())), strict=True))

    def intervals(self) -> dict[str, Interval]:
        """The 95 % interval of each mean."""
        return dict(zip(self.metrics, intervals(list(self.values.values())), strict=True))

    def for_questions(self, questions: Iterable[str]) -> MetricValues:
        """The values of some of the questions."""
        return replace(self, values={question: self.values[question] for question in questions})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """The result of one question set."""

    name: str
    documents: int
    chunks: int
    left_out: dict[str, int]
    failed: tuple[str, ...]  # documents that the reader rejected
    kinds: dict[str, str]  # question → kind, if the set has kinds
    modes: dict[str, MetricValues]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One evaluation of one or several sets. Number 0: not stored yet."""

    kind: Kind
    at: str
    recipe: dict[str, str | int | float]
    sets: tuple[SetResult, ...]
    number: int = 0


_RUN = TypeAdapter(Run)


def store(run: Run, folder: Path) -> Run:
    """Store a run under the next number; runs that end at the same time get different numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    number = max((int(file.stem) for file in folder.glob("*.json") if file.stem.isdecimal()), default=0)
    while True:
        number += 1
        try:
            with (folder / f"{number:04}.json").open("xb") as handle:
                numbered = replace(run, number=number)
                handle.write(_RUN.dump_json(numbered))
                return numbered
        except FileExistsError:
            continue


def load(name: str, folder: Path) -> Run:
    """A run by its number, or from a file."""
    file = folder / f"{int(name):04}.json" if name.isdecimal() else Path(name)
    try:
        return _RUN.validate_json(file.read_bytes())
    except OSError as exc:
        numbers = ", ".join(
            sorted(str(int(run_file.stem)) for run_file in folder.glob("*.json") if run_file.stem.isdecimal())
        )
        raise BadInput(f"there is no run {name!r} ({exc.strerror}); there are: {numbers or 'none yet'}") from exc
    except ValidationError as exc:
        raise BadInput(f"{file} is not a run ({exc.errors(include_url=False)[0]['msg']})") from None


def summary(run: Run) -> dict[str, Any]:
    """The figures as JSON: those of every set and mode, and for each mode the mean over all sets."""
    sets = [_of_set(result) for result in run.sets]
    modes: dict[str, Figures] = {}
    for mode, measured in run.sets[0].modes.items():
        rows = [tuple(entry["modes"][mode].values()) for entry in sets]
        modes[mode] = dict(zip(measured.metrics, means(rows), strict=True))
    return {"run": run.number, "kind": run.kind, "at": run.at, "modes": modes, "sets": sets, "recipe": run.recipe}


def _of_set(result: SetResult) -> dict[str, Any]:
    kinds = sorted(set(result.kinds.values()))
    return {
        "set": result.name,
        "n": len(next(iter(result.modes.values())).values),
        "documents": result.documents,
        "chunks": result.chunks,
        "left_out": result.left_out,
        "failed": list(result.failed),
        "seconds": result.seconds,
        "modes": {mode: measured.figures() for mode, measured in result.modes.items()},
        "intervals": {mode: measured.intervals() for mode, measured in result.modes.items()},
        "kinds": {kind: _of_kind(result, kind) for kind in kinds} if len(kinds) > 1 else {},
    }


def _of_kind(result: SetResult, kind: str) -> dict[str, Any]:
    questions = {question for question, question_kind in result.kinds.items() if question_kind == kind}
    modes = {
        mode: measured.for_questions(questions & measured.values.keys()) for mode, measured in result.modes.items()
    }
    return {
        "n": len(questions),
        "modes": {mode: measured.figures() for mode, measured in modes.items() if measured.values},
    }


def compare(before: Run, after: Run) -> dict[str, Any]:
    """What changed from one run to another, over the questions that both asked."""
    if before.kind != after.kind:
        raise BadInput(f"run {before.number} is of {before.kind}, run {after.number} of {after.kind}")
    old = {result.name: result for result in before.sets}
    sets = [_change(old[result.name], result) for result in after.sets if result.name in old]
    if not any(set_change["n"] for set_change in sets):
        raise BadInput(f"runs {before.number} and {after.number} have no question in common")
    names = sorted(before.recipe.keys() | after.recipe.keys())
    recipe = {name: [before.recipe.get(name), after.recipe.get(name)] for name in names}
    return {
        "runs": [before.number, after.number],
        "recipe": {name: pair for name, pair in recipe.items() if pair[0] != pair[1]},
        "sets": [set_change for set_change in sets if set_change["n"]],
    }


def _change(old: SetResult, new: SetResult) -> dict[str, Any]:
    modes, count = {}, 0
    for mode in old.modes.keys() & new.modes.keys():
        old_values, new_values = old.modes[mode], new.modes[mode]
        shared = [question for question in old_values.values if question in new_values.values]
        count = max(count, len(shared))
        if shared and old_values.metrics == new_values.metrics:
            modes[mode] = _differences(old_values.for_questions(shared), new_values.for_questions(shared))
    return {"set": new.name, "n": count, "modes": {mode: modes[mode] for mode in new.modes if mode in modes}}


def _differences(old: MetricValues, new: MetricValues) -> dict[str, Any]:
    rows = [
        tuple(after - before for before, after in zip(old.values[question], new.values[question], strict=True))
        for question in old.values
    ]
    bounds: Mapping[str, Interval] = dict(zip(old.metrics, intervals(rows), strict=True))
    before, after = old.figures(), new.figures()
    return {
        metric: {
            "before": before[metric],
            "after": after[metric],
            "change": after[metric] - before[metric],
            "interval": list(bounds[metric]),
        }
        for metric in old.metrics
    }
