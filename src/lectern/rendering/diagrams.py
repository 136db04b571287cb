"""Diagrams as text. Nothing draws them in the browser, so the arrows of a flowchart and the messages of a sequence
become a list that can be read, above the source. Other kinds of diagrams are shown as their source."""

from __future__ import annotations

import re
from html import escape

MAX_STEPS = 60  # a longer list is no easier to read than the source
MAX_LINES = 500  # of a diagram that is parsed
MAX_LINE = 500  # characters of a line that are parsed
_FLOWCHART = re.compile(r"(?:flowchart|graph)\b")
_SEQUENCE = re.compile(r"sequenceDiagram\b")
_NO_STATEMENT = ("%%", "style ", "classDef ", "class ", "linkStyle ", "click ", "subgraph", "direction ", "end")
_NODE = re.compile(  # a name, and its text in a shape: A, A[Camera], B{"Ready?"}, C(("Done")), A:::class
    r"\s*([^\W_][\w.]*(?:-[\w.]+)*)"
    r"(?:[\[({]{1,3}(?:\"([^\"]{0,300})\"|([^\])}\"]{0,300}))[\])}]{1,3}|>([^\]]{1,300})\])?(?:@\{[^}]{0,200}\})?(?::::[\w-]+)?\s*"
)
_ARROW = re.compile(  # -->, ---, ==>, -.->, <-->, --x, with a text in the arrow or between two bars
    r"<?(?:(?:--|==|-\.)\s+([^\s-][^|]{0,200}?)\s+(?:-->|---|==>|===|\.->|\.-|--[xo])"
    r"|-{2,5}[>xo]?|={2,5}[>xo]?|-\.{1,3}-[>xo]?|~{3,5})\s*(?:\|\"?([^|\"]{0,200})\"?\|)?"
)
_MESSAGE = re.compile(
    r"([^:>\n-]{1,80}?)\s{0,9}(?:<<-{1,2}>>|-{1,2}(?:>>|>|x|\)))\s{0,9}[+-]?\s{0,9}([^:\n]{1,80}?)\s{0,9}:\s{0,9}(\S.{0,300})"
)
_PARTICIPANT = re.compile(r"(?:participant|actor)\s+(\S{1,80})\s+as\s+(\S.{0,200})")
_BREAK = re.compile(r"\s*<br\s?/?>\s*", re.IGNORECASE)


def diagram_html(language: str, source: str, attributes: str = "") -> str:
    """A diagram as a list of its steps, if it has steps that can be read, and its source."""
    steps = mermaid_steps(source) if language == "mermaid" else []
    items = "".join(f"<li>{escape(step)}</li>" for step in steps)
    listed = f"<ul>{items}</ul>" if items else ""
    name = escape(language)
    return f'<figure class="diagram" data-language="{name}"{attributes}>{listed}<pre>{escape(source)}</pre></figure>\n'


def mermaid_steps(source: str) -> list[str]:
    """The arrows of a flowchart or the messages of a sequence, such as `Camera → Planner: image`; none for other
    kinds, or if there are too many."""
    lines = [line.strip()[:MAX_LINE] for line in source.split("\n")[:MAX_LINES]]
    kind = next((line for line in lines if line and not line.startswith(("%%", "---"))), "")
    if _FLOWCHART.match(kind):
        steps = _flowchart_steps(lines)
    elif _SEQUENCE.match(kind):
        steps = _sequence_steps(lines)
    else:
        return []
    return steps if len(steps) <= MAX_STEPS else []


def _flowchart_steps(lines: list[str]) -> list[str]:
    texts: dict[str, str] = {}  # the texts of nodes by their names
    arrows: list[tuple[str, str, str]] = []
    for line in lines:
        if not line.startswith(_NO_STATEMENT):
            for statement in line.split(";"):
                arrows += _arrows(statement, texts)
    return [_step(texts.get(start, start), texts.get(end, end), label) for start, end, label in arrows]


def _arrows(statement: str, texts: dict[str, str]) -> list[tuple[str, str, str]]:
    """The arrows of a chain such as `A --> B -- yes --> C`, as far as it can be read. The texts of its nodes are added
    to `texts`."""
    arrows: list[tuple[str, str, str]] = []
    before: list[str] = []
    label, place = "", 0
    while True:
        nodes, place = _nodes(statement, place, texts)
        arrows += [(start, end, label) for start in before for end in nodes]
        arrow = _ARROW.match(statement, place) if nodes else None
        if arrow is None:
            return arrows
        before, place = nodes, arrow.end()
        label = _words(arrow[1] or arrow[2] or "")


def _nodes(statement: str, place: int, texts: dict[str, str]) -> tuple[list[str], int]:
    """The nodes at a place, such as `A & B[Camera]`, and where they end."""
    nodes: list[str] = []
    while match := _NODE.match(statement, place):
        nodes.append(match[1])
        place = match.end()
        if text := _words(match[2] or match[3] or match[4] or ""):
            texts[match[1]] = text
        if statement[place : place + 1] != "&":
            break
        place += 1
    return nodes, place


def _sequence_steps(lines: list[str]) -> list[str]:
    names: dict[str, str] = {}
    steps: list[str] = []
    for line in lines:
        if participant := _PARTICIPANT.match(line):
            names[participant[1]] = _words(participant[2])
        elif message := _MESSAGE.match(line):
            start, end = message[1].strip(), message[2].strip()
            steps.append(_step(names.get(start, start), names.get(end, end), _words(message[3])))
    return steps


def _words(text: str) -> str:
    return _BREAK.sub(", ", text).strip("/\\ \"'\t")


def _step(start: str, end: str, label: str) -> str:
    return f"{start} → {end}: {label}" if label else f"{start} → {end}"
