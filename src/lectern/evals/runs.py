"""A run: what was measured, question by question, with the recipe it was made with. Runs are kept as numbered JSON
files, so that any two can be laid side by side later; per-question values make the comparison a paired one."""

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
class Measured:
    """One way of looking (a search mode): a value for each metric and question."""

    metrics: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]  # question → one value a metric

    def figures(self) -> Figures:
        """The mean over all questions."""
        return dict(zip(self.metrics, means(list(self.values.values())), strict=True))

    def intervals(self) -> dict[str, Interval]:
        """The 95 % interval of each mean."""
        return dict(zip(self.metrics, intervals(list(self.values.values())), strict=True))

    def only(self, questions: Iterable[str]) -> Measured:
        """The same for some of the questions."""
        return replace(self, values={question: self.values[question] for question in questions})


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    """One question set."""

    name: str
    documents: int
    chunks: int
    left_out: dict[str, int]
    failed: tuple[str, ...]  # documents that the reader refused
    kinds: dict[str, str]  # question → kind, where its makers sort them
    modes: dict[str, Measured]
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
    """The run under the next number; two that end together get two numbers."""
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
        known = ", ".join(sorted(str(int(one.stem)) for one in folder.glob("*.json") if one.stem.isdecimal()))
        raise BadInput(f"there is no run {name!r} ({exc.strerror}); there are: {known or 'none yet'}") from exc
    except ValidationError as exc:
        raise BadInput(f"{file} is not a run ({exc.errors(include_url=False)[0]['msg']})") from None


def summary(run: Run) -> dict[str, Any]:
    """What programs read: figures of every set and mode, and over all sets the mean of the sets."""
    sets = [_of_set(one) for one in run.sets]
    modes: dict[str, Figures] = {}
    for mode, measured in run.sets[0].modes.items():
        rows = [tuple(one["modes"][mode].values()) for one in sets]
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
    asked = {question for question, its in result.kinds.items() if its == kind}
    modes = {mode: measured.only(asked & measured.values.keys()) for mode, measured in result.modes.items()}
    return {"n": len(asked), "modes": {mode: its.figures() for mode, its in modes.items() if its.values}}


def compare(before: Run, after: Run) -> dict[str, Any]:
    """What changed from one run to the other, over the questions that both asked."""
    if before.kind != after.kind:
        raise BadInput(f"run {before.number} is of {before.kind}, run {after.number} of {after.kind}")
    old = {result.name: result for result in before.sets}
    sets = [_change(old[result.name], result) for result in after.sets if result.name in old]
    if not any(one["n"] for one in sets):
        raise BadInput(f"runs {before.number} and {after.number} have no question in common")
    names = sorted(before.recipe.keys() | after.recipe.keys())
    recipe = {name: [before.recipe.get(name), after.recipe.get(name)] for name in names}
    return {
        "runs": [before.number, after.number],
        "recipe": {name: pair for name, pair in recipe.items() if pair[0] != pair[1]},
        "sets": [one for one in sets if one["n"]],
    }


def _change(old: SetResult, new: SetResult) -> dict[str, Any]:
    modes, count = {}, 0
    for mode in old.modes.keys() & new.modes.keys():
        one, two = old.modes[mode], new.modes[mode]
        shared = [question for question in one.values if question in two.values]
        count = max(count, len(shared))
        if shared and one.metrics == two.metrics:
            modes[mode] = _differences(one.only(shared), two.only(shared))
    return {"set": new.name, "n": count, "modes": {mode: modes[mode] for mode in new.modes if mode in modes}}


def _differences(one: Measured, two: Measured) -> dict[str, Any]:
    rows = [
        tuple(late - early for early, late in zip(one.values[question], two.values[question], strict=True))
        for question in one.values
    ]
    changed: Mapping[str, Interval] = dict(zip(one.metrics, intervals(rows), strict=True))
    before, after = one.figures(), two.figures()
    return {
        metric: {
            "before": before[metric],
            "after": after[metric],
            "change": after[metric] - before[metric],
            "interval": list(changed[metric]),
        }
        for metric in one.metrics
    }
