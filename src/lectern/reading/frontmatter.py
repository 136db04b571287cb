"""Reads front matter, the YAML at the top of a lesson. If the YAML is invalid, its values are ignored and the text is
read; if it is hostile, the file is refused. Keys that are not listed here are ignored, so they cannot reach a chunk.

Books write values in many forms. A value with one obvious meaning is accepted (`"Tier 1"`, `a2`, `CEFR A2`, `Layer 2`,
a list, a range by its lower end); any other value becomes None and is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from lectern.domain.books import Problem
from lectern.reading.configs import composed, pairs, texts
from lectern.reading.names import one_line
from lectern.reading.problems import Unreadable, warning

_WHOLE = re.compile(r"\+?\d{1,9}")
_TO = r"\s*(?:[-–—/,&]|to|and|or)\s*"
_NOTE = r"(?:\s*[(:,;].*|\s+[-–—]\s.*)?"  # a remark after the value: "1 (a laptop)", but not "4 GB"
_BARE = re.compile(rf"([1-4])(?:{_TO}([1-4]))?\+?{_NOTE}", re.IGNORECASE | re.DOTALL)
_TIER_WORD = r"(?:hardware[\s_:-]*)?tiers?[\s_:#-]*"
_TIER = re.compile(
    rf"{_TIER_WORD}([1-4])(?:{_TO}(?:{_TIER_WORD})?([1-4]))?\+?(?:\s.*|{_NOTE})", re.IGNORECASE | re.DOTALL
)
_SHORT_TIER = re.compile(rf"t[\s_:#-]*([1-4])(?:{_TO}t?([1-4]))?\+?{_NOTE}", re.IGNORECASE | re.DOTALL)  # not "T4 GPU"
_LEVEL = re.compile(r"(?<![a-z0-9])([abc][12])(?![a-z0-9])", re.IGNORECASE)
_LAYER = re.compile(r"(?<![a-z0-9])(?:l|layer)[ _:-]{0,3}([1-4])(?!\.?\d)", re.IGNORECASE)
T = TypeVar("T")

_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_YAML_LINE = re.compile(r"[\w.-]+[ \t]*:(?:[ \t]|$)|[ \t]|-[ \t]|-$|#|[\]}\"']", re.MULTILINE)
_HEADING_LINE = re.compile(r"#{1,6}[ \t]")
MAX_POSITION = 1e6
_ALIASES = {
    "cefr_level": "proficiency_level",
    "cefr": "proficiency_level",
    "proficiency": "proficiency_level",
    "primary_layer": "layer",
    "teaching_layer": "layer",
}
_HIDING_KEYS = ("draft", "unlisted")
_KEYS = frozenset(
    "title id slug description module chapter lesson hardware_tier proficiency_level layer sidebar_position "
    "sidebar_label draft unlisted".split()
) | frozenset(_ALIASES)


def whole_number(text: str) -> int | None:
    """A whole number such as `3`, `"3"` or `09`; None for 1.1, -2, words and numbers of more than nine digits."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def tier(texts: list[str]) -> int | None:
    """A hardware tier from 1 to 4, the lowest of several; None if any of the texts is something else, such as a board's
    number or gigabytes."""
    tiers = [_lowest(_whole(text.strip(), _TIER, _SHORT_TIER, _BARE)) for text in texts]
    return min((number for number in tiers if number), default=None) if all(tiers) else None


def _whole(text: str, *shapes: re.Pattern[str]) -> re.Match[str] | None:
    return next((match for shape in shapes if (match := shape.fullmatch(text))), None)


def _lowest(match: re.Match[str] | None) -> int | None:
    return min(int(number) for number in match.groups() if number) if match else None


def level(texts: list[str]) -> str | None:
    """A proficiency level from A1 to C2, the lowest of several."""
    return min((match.upper() for text in texts for match in _LEVEL.findall(text)), default=None)


def layer(texts: list[str]) -> str | None:
    """A teaching layer from L1 to L4, the lowest of several. A number without `L` or `layer` must be the whole text."""
    layers = [int(match) for text in texts for match in _LAYER.findall(text)]
    layers += [number for text in texts if (number := _lowest(_BARE.fullmatch(text.strip())))]
    return f"L{min(layers)}" if layers else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The normalised values of a lesson's front matter; None for a value that is absent or unusable."""

    title: str | None = None
    id: str | None = None
    slug: str | None = None
    description: str | None = None
    module: str | None = None
    chapter: int | None = None
    lesson: int | None = None
    hardware_tier: int | None = None
    proficiency_level: str | None = None
    layer: str | None = None
    sidebar_position: float | None = None
    sidebar_label: str | None = None
    hidden: str | None = None  # the key that says that the page is not published
    claims: dict[str, tuple[str, int]] = field(
        default_factory=dict
    )  # `chapter` and `lesson` values that are no whole number, with their lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The front matter of a file, the number of lines before its body, and the problems."""

    front: FrontMatter = FrontMatter()
    body_line: int = 0
    problems: tuple[Problem, ...] = ()


def open_front_matter(file: str, text: str, limit: int) -> Opened:
    """Read the front matter of a file. Raises Unreadable if it is hostile or too large."""
    opening = _OPENING.match(text)
    if not opening:
        return Opened()
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        message = "the front matter that begins here is never closed, so it is read as text; close it with a --- line"
        return Opened(problems=(warning(file, 1, message),))
    inside = text[opening.end() : closing.start()]
    if len(inside) > limit or len(inside.encode()) > limit:
        if _YAML_LINE.match(inside):
            raise Unreadable(f"the front matter is larger than {limit:,} bytes; move its content into the text", 1)
        return Opened()
    return _read(file, inside, text.count("\n", 0, closing.start()) + 1)


def _read(file: str, inside: str, body_line: int) -> Opened:
    try:
        node = composed(inside, first_line=2, called="the front matter")
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
        why = " ".join(str(getattr(exc, "problem", None) or "it cannot be read").split())[:120]
        message = f"the front matter is not valid YAML ({why}), so its values are ignored; mend this line"
        problem = warning(file, mark.line + 2 if mark else 1, message)
        return Opened(body_line=_yaml_lines(inside, body_line), problems=(problem,))
    if isinstance(node, yaml.MappingNode):
        front, problems = _front_matter(file, node)
        return Opened(front=front, body_line=body_line, problems=tuple(problems))
    if not inside.strip():
        return Opened(body_line=body_line)
    message = "what stands between the first two --- lines is no front matter (key: value), so it is read as text"
    return Opened(problems=(warning(file, 1, message),))


def _yaml_lines(inside: str, body_line: int) -> int:
    """The number of lines of invalid front matter to skip: those that look like YAML. Lines after them may be text."""
    lines = inside.split("\n")
    for at, line in enumerate(lines):
        after_blank = at > 0 and not lines[at - 1].strip()
        if line.strip() and (not _YAML_LINE.match(line) or (after_blank and _HEADING_LINE.match(line))):
            return at + 1
    return body_line


def _front_matter(file: str, node: yaml.MappingNode) -> tuple[FrontMatter, list[Problem]]:
    values = _KeyValues(file)
    for name, value, line in pairs(node):
        if name in _KEYS:
            values.add(name, texts(value), line + 2)
    front = FrontMatter(
        title=values.text("title"),
        id=values.text("id"),
        slug=values.text("slug"),
        description=values.text("description"),
        module=values.text("module"),
        chapter=values.number("chapter"),
        lesson=values.number("lesson"),
        hardware_tier=values.value("hardware_tier", tier, "1, 2, 3 or 4"),
        proficiency_level=values.value("proficiency_level", level, "A1, A2, B1, B2, C1 or C2"),
        layer=values.value("layer", layer, "L1, L2, L3 or L4"),
        sidebar_position=values.position("sidebar_position"),
        sidebar_label=values.text("sidebar_label"),
        hidden=next((name for name in _HIDING_KEYS if values.flag(name)), None),
        claims=values.claims,
    )
    return front, values.problems


class _KeyValues:
    """The values of known keys as texts. Converts them for a FrontMatter and collects problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.entries: dict[str, tuple[list[str] | None, int]] = {}
        self.problems: list[Problem] = []
        self.claims: dict[str, tuple[str, int]] = {}

    def add(self, name: str, parts: list[str] | None, line: int) -> None:
        first = self.entries.get(name)
        if first is None:
            self.entries[name] = (parts, line)
        elif first[0] != parts:
            self.warn(line, f"{name!r} is written twice in the front matter; the first value is taken, remove one")

    def warn(self, line: int, message: str) -> None:
        self.problems.append(warning(self.file, line, message))

    def text(self, name: str) -> str | None:
        parts, line = self.entries.get(name, ([], 0))
        if parts is None or len(parts) > 1:
            self.warn(line, f"{name!r} in the front matter is not a single text and is ignored; write one line")
            return None
        return one_line(parts[0]) or None if parts else None

    def flag(self, name: str) -> bool:
        parts, _ = self.entries.get(name, ([], 0))
        return parts is not None and [part.lower() for part in parts] in (["true"], ["yes"], ["on"])

    def number(self, name: str) -> int | None:
        parts, line = self.entries.get(name, ([], 0))
        if not parts:
            return None
        number = whole_number(parts[0]) if len(parts) == 1 else None
        if number is None:
            self.claims[name] = (", ".join(parts)[:80], line)
        return number

    def position(self, name: str) -> float | None:
        parts, _ = self.entries.get(name, ([], 0))
        try:
            position = float(parts[0]) if parts and len(parts) == 1 else None
        except ValueError:
            return None
        return position if position is not None and abs(position) < MAX_POSITION else None

    def value(self, name: str, normalise: Callable[[list[str]], T | None], expected: str) -> T | None:
        keys = [name, *(alias for alias, target in _ALIASES.items() if target == name)]
        odd: tuple[str, int] | None = None
        for key in keys:
            parts, line = self.entries.get(key, ([], 0))
            if parts == []:
                continue
            result = normalise(parts) if parts is not None else None
            if result is not None:
                return result
            odd = odd or (f"{key!r} is {', '.join(parts or ['a nested value'])[:60]!r}", line)
        if odd:
            self.warn(odd[1], f"{odd[0]} and is ignored, so the book's default holds; write {expected}")
        return None
