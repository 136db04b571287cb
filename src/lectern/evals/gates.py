"""Gates: figures below which a run fails, so that a build can stop a change that finds less."""

from __future__ import annotations

from collections.abc import Mapping

from lectern.domain.errors import BadInput
from lectern.evals.metrics import METRICS, TOKEN_METRICS
from lectern.evals.runs import Kind, Run

GATED = "hybrid"  # what readers are served with


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
