"""Refusal, measured: are questions that the book covers answered, and the others refused? A set says which are which
(`answerable`) and how far off the others are (`tier`). `auroc` and `ece` are over the tiers that are surely uncovered:
where there are such, `near` (heuristic labels) and `unanswerable` (the right passage without the answer) only get their
rates."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lectern.answering.confidence import policy_for
from lectern.answering.scores import auroc, ece, interval, share_below
from lectern.answering.second_look import SecondLook
from lectern.answering.signals import FIELD
from lectern.answering_ports import ConfidencePolicy
from lectern.domain.errors import BadInput
from lectern.domain.evidence import LOW
from lectern.embedders.finding import LocalFinder
from lectern.evals.benches import Advance, Bench, open_bench
from lectern.evals.datasets import QuestionSet
from lectern.evals.pacing import in_turn
from lectern.evals.refusal_sets import Asked, RefusalSet
from lectern.evals.runner import Surroundings

HANDED = 5  # passages that a question is answered from by default
DOUBTFUL = ("near", "unanswerable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One question and what became of it."""

    id: str
    tier: str
    answerable: bool
    confidence: float
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """One set, asked through one policy."""

    name: str
    policy: str
    embedder: str
    chunks: int
    outcomes: tuple[Outcome, ...]
    seconds: float

    def counted(self) -> tuple[Outcome, ...]:
        """Those that AUROC and calibration error are taken over."""
        tiers = {one.tier for one in self.outcomes if not one.answerable}
        sure = tiers - set(DOUBTFUL) or tiers
        return tuple(one for one in self.outcomes if one.answerable or one.tier in sure)


async def measure_refusal(
    questions: RefusalSet, around: Surroundings, *, policy: str = "calibrated", second_look: bool = False
) -> Refusals:
    """Ask every question; nothing is drafted, for the decision is made before. `second_look`: as the offline model's
    readers are answered."""
    begun = time.perf_counter()
    shell = QuestionSet(name=questions.name, questions=(), books=questions.books, documents=(), left_out={})
    opened = open_bench(shell, around.settings, around.cache, fresh=around.fresh, advance=around.advance)
    async with opened as bench:
        fingerprint = bench.lectern.workshop.shelf.current.embedder.fingerprint
        look = SecondLook(LocalFinder()) if second_look else None
        outcomes = await _ask(bench, questions, policy_for(policy, fingerprint), look, around.advance)
    return Refusals(
        name=questions.name,
        policy=f"{policy} and second look" if second_look else policy,
        embedder=fingerprint,
        chunks=bench.chunks,
        outcomes=tuple(outcomes),
        seconds=round(time.perf_counter() - begun, 3),
    )


async def _ask(
    bench: Bench, questions: RefusalSet, policy: ConfidencePolicy, look: SecondLook | None, advance: Advance
) -> list[Outcome]:
    async def one(asked: Asked) -> Outcome:
        found = await bench.lectern.search(asked.text, book=asked.book_id, limit=FIELD)
        handed = [hit for hit in found.hits if hit.similarity >= (policy.floor or 0.0)][:HANDED]
        metrics = policy.measure(asked.text, found.hits, handed)
        if metrics.should_answer and look is not None:
            best = [hit for hit in found.hits if hit.similarity >= (policy.floor or 0.0)]
            metrics = await look.at(asked.text, best, metrics, found.language)
        return Outcome(
            id=asked.id,
            tier=asked.tier,
            answerable=asked.answerable,
            confidence=metrics.confidence,
            refused=not metrics.should_answer,
        )

    title = f"Asking {questions.name}"
    return await in_turn(questions.asked, one, lambda done, total: advance(title, done, total))


def summary(found: Refusals) -> dict[str, Any]:
    """What programs read."""
    counted = found.counted()
    chances, labels = arrays(counted)
    tiers = _tiers(one for one in found.outcomes if not one.answerable)
    answerable = [one for one in found.outcomes if one.answerable]
    if not answerable or not tiers:
        raise BadInput("refusal needs questions that the book answers and questions that it does not; see --half")
    return {
        "set": found.name,
        "policy": found.policy,
        "embedder": found.embedder,
        "chunks": found.chunks,
        "n": len(found.outcomes),
        "answerable": len(answerable),
        "refusal_rate": {tier: _refused(some) for tier, some in tiers.items()},
        "false_refusal_rate": _refused(answerable),
        "auroc": auroc(chances, labels),
        "auroc_by_tier": {tier: auroc(*arrays([*answerable, *some])) for tier, some in tiers.items()},
        "ece": ece(chances, labels),
        "counted_tiers": sorted({one.tier for one in counted if not one.answerable}),
        "tiers": {tier: len(some) for tier, some in tiers.items()},
        "intervals": _intervals(counted, answerable, tiers),
        "cut": LOW,
        "seconds": found.seconds,
    }


def _tiers(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    by_tier: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_tier.setdefault(one.tier, []).append(one)
    return dict(sorted(by_tier.items()))


def _refused(outcomes: Sequence[Outcome]) -> float:
    return sum(one.refused for one in outcomes) / len(outcomes)


def _intervals(
    counted: Sequence[Outcome], answerable: Sequence[Outcome], tiers: Mapping[str, Sequence[Outcome]]
) -> dict[str, Any]:
    chances, labels = arrays(counted)

    def rate(some: Sequence[Outcome]) -> tuple[float, float]:
        answered = [float(not one.refused) for one in some]
        return interval(lambda kept, _: share_below(kept, LOW), answered, [1.0] * len(some))

    return {
        "false_refusal_rate": rate(answerable),
        "refusal_rate": {tier: rate(some) for tier, some in tiers.items()},
        "auroc": interval(auroc, chances.tolist(), labels.tolist()),
        "ece": interval(ece, chances.tolist(), labels.tolist()),
    }


def arrays(outcomes: Sequence[Outcome]) -> tuple[Any, Any]:
    """Confidences, and 1 for every answerable question."""
    confidences = np.array([one.confidence for one in outcomes], dtype=float)
    return confidences, np.array([float(one.answerable) for one in outcomes])


def refusal_text(told: Mapping[str, Any]) -> str:
    """The same for people."""
    bounds = told["intervals"]
    head = f"{told['set']}: {told['n']} questions, {told['chunks']} chunks · {told['policy']} · {told['embedder']}"
    rows = [("answerable", told["answerable"], told["false_refusal_rate"], bounds["false_refusal_rate"])]
    rows += [
        (tier, told["tiers"][tier], rate, bounds["refusal_rate"][tier]) for tier, rate in told["refusal_rate"].items()
    ]
    lines = [
        f"  {name:<14} {count:>5}  {rate:6.1%} refused ({low:.1%}-{high:.1%})"
        for name, count, rate, (low, high) in rows
    ]
    counted = ", ".join(told["counted_tiers"])
    for name in ("auroc", "ece"):
        low, high = bounds[name]
        lines.append(f"  {name:<14} {told[name]:.4f} ({low:.4f}-{high:.4f}), answerable against {counted}")
    return "\n".join([head, *lines])
