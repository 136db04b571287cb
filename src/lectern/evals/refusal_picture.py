"""Draws two charts of refusals as SVG: reliability (is the confidence the share of covered questions?), and risk
against coverage (what share of the answered questions is uncovered, by how many are answered?)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np

from lectern.confidence.scores import BINS, Numbers, bins
from lectern.domain.evidence import LOW

SIDE, GAP, MARGIN_LEFT, MARGIN_TOP, MARGIN_BOTTOM = (
    260,
    84,
    56,
    62,
    52,
)  # a chart's side, the space between the two, and margins
BLUE, ORANGE, GREY = "#1b4f8a", "#d98c21", "#dddddd"


def draw_chart(title: str, chances: Numbers, labels: Numbers, *, cut: float = LOW) -> str:
    """Reliability on the left, risk against coverage on the right."""
    width, height = MARGIN_LEFT + 2 * SIDE + GAP + 24, MARGIN_TOP + SIDE + MARGIN_BOTTOM
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    second = MARGIN_LEFT + SIDE + GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            _text(MARGIN_LEFT, 20, title, anchor="start"),
            _text(MARGIN_LEFT, 46, "reliability: share covered by confidence", anchor="start"),
            *_frame(MARGIN_LEFT, "confidence", 1.0),
            *_reliability(chances, labels),
            _text(second, 46, "risk: share uncovered among the answered", anchor="start"),
            *_frame(second, "share of questions answered", _worst(labels)),
            *_risk(second, chances, labels, cut),
            "</svg>\n",
        ]
    )


def _worst(labels: Numbers) -> float:
    """The top of the risk axis: the share of uncovered questions, rounded up to a tenth."""
    return float(np.ceil(10 * (1 - labels.mean())) / 10) or 0.1


def _frame(x0: float, below: str, top: float) -> list[str]:
    lines = []
    for fifth in range(6):
        share = fifth / 5
        y, x = MARGIN_TOP + SIDE * (1 - share), x0 + SIDE * share
        lines.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + SIDE}" y2="{y:.1f}" stroke="{GREY}"/>')
        lines.append(_text(x0 - 6, y + 4, f"{share * top:.2f}".rstrip("0").rstrip("."), anchor="end"))
        lines.append(_text(x, MARGIN_TOP + SIDE + 16, f"{share:.1f}"))
    lines.append(_text(x0 + SIDE / 2, MARGIN_TOP + SIDE + 34, below))
    return lines


def _reliability(chances: Numbers, labels: Numbers) -> list[str]:
    """One dot for each bin, sized by its questions. On the diagonal, the confidence equals the share covered."""
    diagonal = f"M{MARGIN_LEFT} {MARGIN_TOP + SIDE}L{MARGIN_LEFT + SIDE} {MARGIN_TOP}"
    parts = [f'<path d="{diagonal}" stroke="#999999" stroke-dasharray="4 4"/>']
    for number, inside in enumerate(bins(chances)):
        count = int(inside.sum())
        if count:
            mean_confidence, covered_share = float(chances[inside].mean()), float(labels[inside].mean())
            x, y = MARGIN_LEFT + SIDE * mean_confidence, MARGIN_TOP + SIDE * (1 - covered_share)
            size = 3 + 9 * (count / len(chances)) ** 0.5
            words = f"{number / BINS:.1f}-{(number + 1) / BINS:.1f}: {count} questions, {covered_share:.3f} covered"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" '
                f'fill="{BLUE}" fill-opacity="0.75"><title>{escape(words)}</title></circle>'
            )
    return parts


def _risk(x0: float, chances: Numbers, labels: Numbers, cut: float) -> list[str]:
    order = np.argsort(-chances, kind="stable")
    wrong = np.cumsum(1 - labels[order]) / np.arange(1, len(order) + 1)
    top, count = _worst(labels), len(order)

    def point(answered: int) -> str:
        return f"{x0 + SIDE * answered / count:.1f} {MARGIN_TOP + SIDE * (1 - min(wrong[answered - 1] / top, 1)):.1f}"

    steps: Sequence[int] = sorted({*range(1, count + 1, max(1, count // 200)), count})
    parts = [f'<path d="M{"L".join(point(step) for step in steps)}" fill="none" stroke="{BLUE}" stroke-width="1.6"/>']
    answered = int((chances >= cut).sum())
    if answered:
        x, y = point(answered).split()
        words = f"answered at {cut:g}: {answered / count:.0%}, of them {wrong[answered - 1]:.1%} uncovered"
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{ORANGE}"><title>{escape(words)}</title></circle>')
        parts.append(_text(x0 + 6, MARGIN_TOP + 12, words, anchor="start"))
    return parts


def _text(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222222">{escape(words)}</text>'
