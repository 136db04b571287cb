"""Front matter: what an author says of a lesson in the YAML at its top. Broken YAML costs the metadata and never the
text; YAML that means harm costs the file. Only the keys named here are looked at, so no other can reach a chunk.

The values a lesson may carry, in the many shapes that real books write them. What has one obvious meaning is taken
(`"Tier 1"`, `a2`, `CEFR A2`, `Layer 2`, a list, a range by its lower end); anything else is None, and is reported.
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
_NOTE = r"(?:\s*[(:,;].*|\s+[-–—]\s.*)?"  # what the author says of it: "1 (a laptop)", but not "4 GB"
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
_KNOWN = frozenset(
    "title id slug description module chapter lesson hardware_tier proficiency_level layer sidebar_position "
    "sidebar_label".split()
) | frozenset(_ALIASES)


def whole_number(text: str) -> int | None:
    """A number as people write one (`3`, `"3"`, `09`); None for 1.1, -2, words and what no book has."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


def tier(texts: list[str]) -> int | None:
    """A hardware tier 1-4, the lowest where several are named; None where any of it is something else, such as the
    number of a board or of gigabytes."""
    found = [_lowest(_whole(text.strip(), _TIER, _SHORT_TIER, _BARE)) for text in texts]
    return min((number for number in found if number), default=None) if all(found) else None


def _whole(text: str, *shapes: re.Pattern[str]) -> re.Match[str] | None:
    return next((match for shape in shapes if (match := shape.fullmatch(text))), None)


def _lowest(match: re.Match[str] | None) -> int | None:
    return min(int(number) for number in match.groups() if number) if match else None


def level(texts: list[str]) -> str | None:
    """A proficiency level A1-C2; the lowest where several are named."""
    return min((match.upper() for text in texts for match in _LEVEL.findall(text)), default=None)


def layer(texts: list[str]) -> str | None:
    """A teaching layer L1-L4; the lowest where several are named. A number without its letter must stand alone."""
    found = [int(match) for text in texts for match in _LAYER.findall(text)]
    found += [number for text in texts if (number := _lowest(_BARE.fullmatch(text.strip())))]
    return f"L{min(found)}" if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """What a lesson says of itself, already in our shapes. None: it says nothing usable."""

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
    claims: dict[str, tuple[str, int]] = field(
        default_factory=dict
    )  # chapter/lesson that are no whole number, and line


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A file's front matter, the number of lines before its body, and what is wrong."""

    front: FrontMatter = FrontMatter()
    body_line: int = 0
    problems: tuple[Problem, ...] = ()


def open_front_matter(file: str, text: str, limit: int) -> Opened:
    """Take a file's text apart. Raises Unreadable where the front matter means harm."""
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
        node = composed(inside, first_line=2)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None) or getattr(exc, "context_mark", None)
        why = " ".join(str(getattr(exc, "problem", None) or "it cannot be read").split())[:120]
        message = f"the front matter is not valid YAML ({why}), so its values are ignored; mend this line"
        problem = warning(file, mark.line + 2 if mark else 1, message)
        return Opened(body_line=_yaml_lines(inside, body_line), problems=(problem,))
    if isinstance(node, yaml.MappingNode):
        front, problems = _taken(file, node)
        return Opened(front=front, body_line=body_line, problems=tuple(problems))
    if not inside.strip():
        return Opened(body_line=body_line)
    message = "what stands between the first two --- lines is no front matter (key: value), so it is read as text"
    return Opened(problems=(warning(file, 1, message),))


def _yaml_lines(inside: str, body_line: int) -> int:
    """How many lines of broken front matter to leave out: those that look like YAML. What follows them may be text."""
    lines = inside.split("\n")
    for at, line in enumerate(lines):
        after_blank = at > 0 and not lines[at - 1].strip()
        if line.strip() and (not _YAML_LINE.match(line) or (after_blank and _HEADING_LINE.match(line))):
            return at + 1
    return body_line


def _taken(file: str, node: yaml.MappingNode) -> tuple[FrontMatter, list[Problem]]:
    taker = _Taker(file)
    for name, value, line in pairs(node):
        if name in _KNOWN:
            taker.see(name, texts(value), line + 2)
    front = FrontMatter(
        title=taker.text("title"),
        id=taker.text("id"),
        slug=taker.text("slug"),
        description=taker.text("description"),
        module=taker.text("module"),
        chapter=taker.number("chapter"),
        lesson=taker.number("lesson"),
        hardware_tier=taker.value("hardware_tier", tier, "1, 2, 3 or 4"),
        proficiency_level=taker.value("proficiency_level", level, "A1, A2, B1, B2, C1 or C2"),
        layer=taker.value("layer", layer, "L1, L2, L3 or L4"),
        sidebar_position=taker.position("sidebar_position"),
        sidebar_label=taker.text("sidebar_label"),
        claims=taker.claims,
    )
    return front, taker.problems


class _Taker:
    """Known keys as written, on their way into a FrontMatter; collects what is odd about them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.seen: dict[str, tuple[list[str] | None, int]] = {}
        self.problems: list[Problem] = []
        self.claims: dict[str, tuple[str, int]] = {}

    def see(self, name: str, written: list[str] | None, line: int) -> None:
        first = self.seen.get(name)
        if first is None:
            self.seen[name] = (written, line)
        elif first[0] != written:
            self.warn(line, f"{name!r} is written twice in the front matter; the first value is taken, remove one")

    def warn(self, line: int, message: str) -> None:
        self.problems.append(warning(self.file, line, message))

    def text(self, name: str) -> str | None:
        written, line = self.seen.get(name, ([], 0))
        if written is None or len(written) > 1:
            self.warn(line, f"{name!r} in the front matter is not a single text and is ignored; write one line")
            return None
        return one_line(written[0]) or None if written else None

    def number(self, name: str) -> int | None:
        written, line = self.seen.get(name, ([], 0))
        if not written:
            return None
        number = whole_number(written[0]) if len(written) == 1 else None
        if number is None:
            self.claims[name] = (", ".join(written)[:80], line)
        return number

    def position(self, name: str) -> float | None:
        written, _ = self.seen.get(name, ([], 0))
        try:
            position = float(written[0]) if written and len(written) == 1 else None
        except ValueError:
            return None
        return position if position is not None and abs(position) < MAX_POSITION else None

    def value(self, name: str, normalise: Callable[[list[str]], T | None], wanted: str) -> T | None:
        keys = [name, *(alias for alias, target in _ALIASES.items() if target == name)]
        odd: tuple[str, int] | None = None
        for key in keys:
            written, line = self.seen.get(key, ([], 0))
            if written == []:
                continue
            found = normalise(written) if written is not None else None
            if found is not None:
                return found
            odd = odd or (f"{key!r} is {', '.join(written or ['a nested value'])[:60]!r}", line)
        if odd:
            self.warn(odd[1], f"{odd[0]} and is ignored, so the book's default holds; write {wanted}")
        return None
