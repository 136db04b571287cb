"""Draws a run as a bar chart in SVG: a bar for each set and mode, with its interval. A chart of a few rectangles needs
no plotting library."""

from __future__ import annotations

from xml.sax.saxutils import escape

from lectern.evals.runs import Run, SetResult

COLOURS = ("#1b4f8a", "#d98c21", "#5b8c5a", "#8a4f7d", "#777777")  # distinguishable for colour-blind people
MARGIN_LEFT, MARGIN_TOP, MARGIN_RIGHT, MARGIN_BOTTOM = 44, 56, 16, 46  # margins
BAR, SPACE, HEIGHT = 22, 26, 240  # a bar's width, the space between two sets, the height of 1.0
LETTER_WIDTH = 6.2  # roughly; a set's name must fit below its bars


def draw_chart(run: Run, metric: str) -> str:
    """A bar chart of one metric, as SVG."""
    modes = [mode for mode, measured in run.sets[0].modes.items() if metric in measured.metrics]
    widths = [max(BAR * len(modes), LETTER_WIDTH * len(result.name)) for result in run.sets]
    title = f"{metric} by set and mode, with 95 % intervals · {run.recipe['embedder']}"
    width = (
        max(MARGIN_LEFT + sum(widths) + SPACE * len(run.sets), MARGIN_LEFT + LETTER_WIDTH * len(title)) + MARGIN_RIGHT
    )
    parts = [*_frame(width), *_legend(modes)]
    at = float(MARGIN_LEFT + SPACE / 2)
    for result, set_width in zip(run.sets, widths, strict=True):
        middle = at + set_width / 2
        parts += _bars(result, modes, metric, middle - BAR * len(modes) / 2)
        parts.append(_text(middle, MARGIN_TOP + HEIGHT + 18, result.name))
        at += set_width + SPACE
    height = MARGIN_TOP + HEIGHT + MARGIN_BOTTOM
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
            _text(MARGIN_LEFT, 20, title, anchor="start"),
            *parts,
            "</svg>\n",
        ]
    )


def _frame(width: float) -> list[str]:
    lines = []
    for tenth in range(0, 11, 2):
        y = _height(tenth / 10)
        lines.append(
            f'<line x1="{MARGIN_LEFT}" y1="{y:.1f}" x2="{width - MARGIN_RIGHT:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
        )
        lines.append(_text(MARGIN_LEFT - 6, y + 4, f"{tenth / 10:.1f}", anchor="end"))
    return lines


def _legend(modes: list[str]) -> list[str]:
    parts, x = [], float(MARGIN_LEFT)
    for mode, colour in zip(modes, COLOURS, strict=False):
        parts.append(f'<rect x="{x:.1f}" y="30" width="11" height="11" fill="{colour}"/>')
        parts.append(_text(x + 16, 40, mode, anchor="start"))
        x += 34 + LETTER_WIDTH * len(mode)
    return parts


def _bars(result: SetResult, modes: list[str], metric: str, x0: float) -> list[str]:
    parts = []
    for number, mode in enumerate(modes):
        measured = result.modes[mode]
        value, (low, high) = measured.figures()[metric], measured.intervals()[metric]
        x, colour = x0 + BAR * number, COLOURS[number % len(COLOURS)]
        top, middle = _height(value), x + BAR / 2 - 1
        parts.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{_height(0) - top:.1f}" fill="{colour}">'
            f"<title>{escape(f'{result.name}, {mode}: {value:.3f} ({low:.3f}-{high:.3f})')}</title></rect>"
        )
        parts.append(
            f'<path d="M{middle:.1f} {_height(low):.1f}V{_height(high):.1f}" stroke="#222222" stroke-width="1.2"/>'
        )
    return parts


def _height(value: float) -> float:
    return MARGIN_TOP + HEIGHT * (1 - value)


def _text(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222222">{escape(words)}</text>'
