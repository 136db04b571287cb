"""Runs as text for a terminal: a table of one run, or the differences between two.

Gates are the lowest figures that a run may have; below them a run fails, so a build can reject the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lectern.domain.errors import BadInput
from lectern.evals.metrics import METRICS, TOKEN_METRICS
from lectern.evals.runs import Kind, MetricValues, Run, SetResult, summary

GAP = "  "
GATED_MODE = "hybrid"  # the mode that readers get


def run_text(run: Run) -> str:
    """A run as a table, set by set, with the mean of the sets where there are several."""
    recipe = run.recipe
    lines = [f"run {run.number} · {run.kind} · {recipe['embedder']} · reader {recipe['reader']}"]
    lines[0] += f" · {recipe['lexical_weight']} of BM25, {recipe['candidates']} candidates"
    for result in run.sets:
        lines += ["", _about(result), *_table(result)]
    if len(run.sets) > 1:
        means = summary(run)["modes"]
        rows = [[mode, *(f"{value:.3f}" for value in figures.values())] for mode, figures in means.items()]
        head = ["", *next(iter(means.values()))]
        lines += ["", f"mean of {len(run.sets)} sets", *_aligned([head, *rows])]
    return "\n".join(lines)


def _about(result: SetResult) -> str:
    question_count = len(next(iter(result.modes.values())).values)
    parts = [
        f"{question_count} questions",
        f"{result.documents} documents",
        f"{result.chunks} chunks",
        f"{result.seconds:.0f} s",
    ]
    parts += [f"{count} {reason} left out" for reason, count in result.left_out.items()]
    if result.failed:
        parts.append(f"{len(result.failed)} documents could not be read")
    return f"{result.name}: {', '.join(parts)}"


def _table(result: SetResult) -> list[str]:
    """The figures of a set; modes with equal metrics share a header."""
    lines: list[str] = []
    for metrics in dict.fromkeys(measured.metrics for measured in result.modes.values()):
        rows = [[mode, *_cells(measured)] for mode, measured in result.modes.items() if measured.metrics == metrics]
        lines += _aligned([["", *metrics], *rows])
    return lines


def _cells(measured: MetricValues) -> list[str]:
    """Each metric's mean with its interval."""
    figures, bounds = measured.figures(), measured.intervals()
    return [f"{figures[name]:.3f} ({low:.3f}-{high:.3f})" for name, (low, high) in bounds.items()]


def comparison_text(compared: dict[str, Any]) -> str:
    """What changed between two runs; a star marks a change whose interval does not contain zero."""
    before, after = compared["runs"]
    lines = [f"run {before} → run {after}"]
    lines += [f"  {name}: {old} → {new}" for name, (old, new) in compared["recipe"].items()]
    if not compared["recipe"]:
        lines.append("  the same recipe")
    for set_change in compared["sets"]:
        lines += ["", f"{set_change['set']}: {set_change['n']} questions in both"]
        rows = [
            [mode, metric, *_change(values)]
            for mode, metrics in set_change["modes"].items()
            for metric, values in metrics.items()
        ]
        lines += _aligned(rows)
    return "\n".join(lines)


def _change(values: dict[str, Any]) -> list[str]:
    low, high = values["interval"]
    star = " *" if low > 0 or high < 0 else ""
    before_after = f"{values['before']:.3f} → {values['after']:.3f}"
    return [before_after, f"{values['change']:+.3f} ({low:+.3f} to {high:+.3f}){star}"]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [GAP + GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def parse_gates(text: str, kind: Kind) -> dict[str, float]:
    """Parse gates such as `recall@5=0.8,mrr@10=0.6` into metrics and lowest values."""
    metrics = METRICS if kind == "retrieval" else TOKEN_METRICS
    gates: dict[str, float] = {}
    for part in text.split(","):
        metric, equals, value = part.partition("=")
        if not equals or metric.strip() not in metrics:
            raise BadInput(f"--fail-under takes METRIC=VALUE, not {part!r}; metrics are {', '.join(metrics)}")
        try:
            gates[metric.strip()] = float(value)
        except ValueError:
            raise BadInput(f"--fail-under {metric.strip()}: {value!r} is not a number") from None
        if not 0 <= gates[metric.strip()] <= 1:
            raise BadInput(f"--fail-under {metric.strip()}: {value} is not between 0 and 1")
    return gates


def shortfalls(run: Run, gates: Mapping[str, float]) -> list[str]:
    """One line for every set and gate that is not reached."""
    lines = []
    for result in run.sets:
        figures = result.modes[GATED_MODE].figures()
        lines += [
            f"{result.name}: {GATED_MODE} {metric} is {figures[metric]:.4f}, below {minimum:g}"
            for metric, minimum in gates.items()
            if figures[metric] < minimum
        ]
    return lines
