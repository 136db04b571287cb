"""A run as a picture: bars for each set and mode, with their intervals. SVG written by hand; a chart of a few
rectangles needs no plotting library."""

from __future__ import annotations

from xml.sax.saxutils import escape

from lectern.evals.runs import Run, SetResult

COLOURS = ("#1b4f8a", "#d98c21", "#5b8c5a", "#8a4f7d", "#777777")  # told apart by eyes that see few colours
LEFT, TOP, RIGHT, BOTTOM = 44, 56, 16, 46  # margins
BAR, SPACE, HEIGHT = 22, 26, 240  # a bar's width, what is between two sets, the height of 1.0
CHARACTER = 6.2  # the width of a letter, about: a set's name must fit below its bars


def drawn(run: Run, metric: str) -> str:
    """A bar chart of one metric, as SVG."""
    modes = [mode for mode, measured in run.sets[0].modes.items() if metric in measured.metrics]
    widths = [max(BAR * len(modes), CHARACTER * len(result.name)) for result in run.sets]
    title = f"{metric} by set and mode, with 95 % intervals · {run.recipe['embedder']}"
    width = max(LEFT + sum(widths) + SPACE * len(run.sets), LEFT + CHARACTER * len(title)) + RIGHT
    parts = [*_frame(width), *_legend(modes)]
    at = float(LEFT + SPACE / 2)
    for result, room in zip(run.sets, widths, strict=True):
        middle = at + room / 2
        parts += _bars(result, modes, metric, middle - BAR * len(modes) / 2)
        parts.append(_text(middle, TOP + HEIGHT + 18, result.name))
        at += room + SPACE
    height = TOP + HEIGHT + BOTTOM
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
            _text(LEFT, 20, title, anchor="start"),
            *parts,
            "</svg>\n",
        ]
    )


def _frame(width: float) -> list[str]:
    lines = []
    for tenth in range(0, 11, 2):
        y = _height(tenth / 10)
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{width - RIGHT:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        lines.append(_text(LEFT - 6, y + 4, f"{tenth / 10:.1f}", anchor="end"))
    return lines


def _legend(modes: list[str]) -> list[str]:
    parts, x = [], float(LEFT)
    for mode, colour in zip(modes, COLOURS, strict=False):
        parts.append(f'<rect x="{x:.1f}" y="30" width="11" height="11" fill="{colour}"/>')
        parts.append(_text(x + 16, 40, mode, anchor="start"))
        x += 34 + CHARACTER * len(mode)
    return parts


def _bars(result: SetResult, modes: list[str], metric: str, left: float) -> list[str]:
    parts = []
    for number, mode in enumerate(modes):
        measured = result.modes[mode]
        value, (low, high) = measured.figures()[metric], measured.intervals()[metric]
        x, colour = left + BAR * number, COLOURS[number % len(COLOURS)]
        top, middle = _height(value), x + BAR / 2 - 1
        parts.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{TOP + HEIGHT - top:.1f}" fill="{colour}">'
            f"<title>{escape(f'{result.name}, {mode}: {value:.3f} ({low:.3f}-{high:.3f})')}</title></rect>"
        )
        parts.append(
            f'<path d="M{middle:.1f} {_height(low):.1f}V{_height(high):.1f}" stroke="#222222" stroke-width="1.2"/>'
        )
    return parts


def _height(value: float) -> float:
    return TOP + HEIGHT * (1 - value)


def _text(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222222">{escape(words)}</text>'
