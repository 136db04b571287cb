"""Runs for people: a table on the terminal, and two runs side by side.

Gates: figures below which a run fails, so that a build can stop a change that finds less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lectern.domain.errors import BadInput
from lectern.evals.metrics import METRICS, TOKEN_METRICS
from lectern.evals.runs import Kind, Measured, Run, SetResult, summary

GAP = "  "
GATED = "hybrid"  # what readers are served with


def run_text(run: Run) -> str:
    """A run as a table, set by set, with the mean of the sets where there are several."""
    made = run.recipe
    lines = [f"run {run.number} · {run.kind} · {made['embedder']} · reader {made['reader']}"]
    lines[0] += f" · {made['lexical_weight']} of BM25, {made['candidates']} candidates"
    for result in run.sets:
        lines += ["", _about(result), *_table(result)]
    if len(run.sets) > 1:
        means = summary(run)["modes"]
        rows = [[mode, *(f"{value:.3f}" for value in figures.values())] for mode, figures in means.items()]
        head = ["", *next(iter(means.values()))]
        lines += ["", f"mean of {len(run.sets)} sets", *_aligned([head, *rows])]
    return "\n".join(lines)


def _about(result: SetResult) -> str:
    asked = len(next(iter(result.modes.values())).values)
    parts = [
        f"{asked} questions",
        f"{result.documents} documents",
        f"{result.chunks} chunks",
        f"{result.seconds:.0f} s",
    ]
    parts += [f"{count} {reason} left out" for reason, count in result.left_out.items()]
    if result.failed:
        parts.append(f"{len(result.failed)} documents could not be read")
    return f"{result.name}: {', '.join(parts)}"


def _table(result: SetResult) -> list[str]:
    """Modes with the same metrics share a head."""
    lines: list[str] = []
    for metrics in dict.fromkeys(measured.metrics for measured in result.modes.values()):
        rows = [[mode, *_cells(its)] for mode, its in result.modes.items() if its.metrics == metrics]
        lines += _aligned([["", *metrics], *rows])
    return lines


def _cells(measured: Measured) -> list[str]:
    """A mean with its interval, each."""
    figures, bounds = measured.figures(), measured.intervals()
    return [f"{figures[name]:.3f} ({low:.3f}-{high:.3f})" for name, (low, high) in bounds.items()]


def comparison_text(compared: dict[str, Any]) -> str:
    """What changed; a star where the interval of the change leaves out zero."""
    before, after = compared["runs"]
    lines = [f"run {before} → run {after}"]
    lines += [f"  {name}: {old} → {new}" for name, (old, new) in compared["recipe"].items()]
    if not compared["recipe"]:
        lines.append("  the same recipe")
    for one in compared["sets"]:
        lines += ["", f"{one['set']}: {one['n']} questions in both"]
        rows = [
            [mode, metric, *_change(values)]
            for mode, metrics in one["modes"].items()
            for metric, values in metrics.items()
        ]
        lines += _aligned(rows)
    return "\n".join(lines)


def _change(values: dict[str, Any]) -> list[str]:
    low, high = values["interval"]
    star = " *" if low > 0 or high < 0 else ""
    moved = f"{values['before']:.3f} → {values['after']:.3f}"
    return [moved, f"{values['change']:+.3f} ({low:+.3f} to {high:+.3f}){star}"]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [GAP + GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def parse_gates(text: str, kind: Kind) -> dict[str, float]:
    """`recall@5=0.8,mrr@10=0.6` as metric and least value."""
    known = METRICS if kind == "retrieval" else TOKEN_METRICS
    gates: dict[str, float] = {}
    for part in text.split(","):
        metric, equals, value = part.partition("=")
        if not equals or metric.strip() not in known:
            raise BadInput(f"--fail-under takes METRIC=VALUE, not {part!r}; metrics are {', '.join(known)}")
        try:
            gates[metric.strip()] = float(value)
        except ValueError:
            raise BadInput(f"--fail-under {metric.strip()}: {value!r} is not a number") from None
        if not 0 <= gates[metric.strip()] <= 1:
            raise BadInput(f"--fail-under {metric.strip()}: {value} is not between 0 and 1")
    return gates


def shortfalls(run: Run, gates: Mapping[str, float]) -> list[str]:
    """One line for every set and gate that is not reached."""
    found = []
    for result in run.sets:
        figures = result.modes[GATED].figures()
        found += [
            f"{result.name}: {GATED} {metric} is {figures[metric]:.4f}, below {least:g}"
            for metric, least in gates.items()
            if figures[metric] < least
        ]
    return found
