"""A text as something that can be held against another: its words with their stems, its names, its numbers. A passage
is cut into units that each state something by themselves: sentences, list items, table rows (each cell with its
head), lines of code. A sentence is compared with units, never with a bag of a passage's words, because a
falsehood is often made of true words from two places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from lectern.text.plain import plain, unmarked
from lectern.text.quantities import Quantity, quantities_of
from lectern.text.wording import FUNCTION_WORDS, stem

UnitKind = Literal["prose", "row", "code", "heading"]
WordKind = Literal["word", "name", "function"]
_Line = Literal["prose", "row", "code", "heading", "blank"]

LONGEST = 2_000  # characters of a unit; a longer "sentence" is no sentence
MOST_UNITS = 600  # of one passage
MIN_RELATIVE, MAX_ENDING = 5, 4  # letters of a stem that another grew from, and that were added
MAX_CLAUSE_WORDS = 120  # of a sentence that is cut into clauses
MIN_CLAUSE = 2  # content words; less is no clause of its own

_TOKEN = re.compile(
    r"`(?P<code>[^`\n]{1,200})`"
    r"|(?P<path>(?<![\w/])(?:--?|/|~/|\./|@)[A-Za-z_][\w./-]*[\w/])"
    r"|(?P<dotted>[A-Za-z_]\w*(?:(?:::|\.|_)\w+)+(?:\(\))?)"
    r"|(?P<word>\w+(?:'[a-z]{1,3}(?!\w))?)"
)
_CAMEL = re.compile(r"[a-z][A-Z]|^[A-Z]{2,}|[A-Za-z]\d|\d[A-Za-z]")
_END = re.compile(r"(?<=[.!?…])[\"')\]`]*\s+(?=[\"'(\[`]*[A-Z0-9À-ÞА-Я])|(?<=[。！？۔])\s*|;\s+")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Fig|Eq|No|Dr|Mr|Ms|Mrs|Prof|approx|resp|al|St|Jr)|\b[A-Z])\.$")
_KEY_WORD = re.compile(r"[\w./-]+")
_CLAUSE_STARTS = frozenset("while whereas but because which although and or if when unless".split())
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s")
_ITEM = re.compile(r"^\s*(?:>\s*)*(?:[-*+]|\d{1,3}[.)])\s")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text."""

    text: str  # in small letters
    stem: str
    kind: WordKind
    place: int  # its number among all words of the text
    start: int  # its first character
    opens: bool = False  # a comma or stronger stands before it


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence or unit, read."""

    text: str
    kind: UnitKind
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """The words that tell something."""
        return tuple(word for word in self.words if word.kind != "function")

    @cached_property
    def stems(self) -> frozenset[str]:
        """Their stems."""
        return frozenset(word.stem for word in self.content)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each content word stands among all words."""
        return _places(self.content)

    @cached_property
    def all_places(self) -> dict[str, list[int]]:
        """Where each word stands."""
        return _places(self.words)

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """Beginnings of its content words that may be words themselves: `subscrib` of `subscriber`."""
        return frozenset(
            stem[:size] for stem in self.stems for size in range(max(MIN_RELATIVE, len(stem) - MAX_ENDING), len(stem))
        )

    def has_relative(self, stem: str) -> bool:
        """Whether it has a word that grew from this one, or that this one grew from."""
        shorter = (stem[:size] for size in range(max(MIN_RELATIVE, len(stem) - MAX_ENDING), len(stem)))
        return stem in self._beginnings or any(beginning in self.stems for beginning in shorter)

    @cached_property
    def key(self) -> frozenset[str]:
        """The words and numbers of a row's first cell."""
        first = self.text.split(", ", 1)[0].lower().replace("`", "")
        return frozenset(stem(word) for word in _KEY_WORD.findall(first))

    @cached_property
    def lower(self) -> str:
        """The text in small letters."""
        return self.text.lower()

    def part(self, start: int, end: int) -> Claim:
        """Some of its words, as a claim of their own."""
        words = self.words[start:end]
        first = words[0].start if start and words else 0
        last = self.words[end].start if end < len(self.words) else len(self.text)
        quantities = tuple(quantity for quantity in self.quantities if first <= quantity.start < last)
        return Claim(text=self.text, kind=self.kind, words=words, quantities=quantities)


def _places(words: Sequence[Word]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for word in words:
        places.setdefault(word.stem, []).append(word.place)
    return places


@lru_cache(maxsize=2_048)
def read_claim(text: str, kind: UnitKind = "prose") -> Claim:
    """A text's words, names and numbers."""
    clean = plain(text[:LONGEST])
    quantities = quantities_of(clean)
    return Claim(text=clean, kind=kind, words=tuple(_words(clean, quantities)), quantities=quantities)


@lru_cache(maxsize=128)
def units_of(passage: str) -> tuple[Claim, ...]:
    """What a passage states, piece by piece."""
    units: list[Claim] = []
    for text, kind in _pieces(passage):
        if text.strip():
            units.append(read_claim(text, kind))
        if len(units) == MOST_UNITS:
            break
    return tuple(units)


def clauses_of(sentence: Claim) -> list[Claim]:
    """The sentence's clauses; the sentence itself where it has but one. `A does x, B does y` has all the words of `A
    does y, B does x`: only their company tells the two apart."""
    cuts = [0]
    content = 0
    for number, word in enumerate(sentence.words[:MAX_CLAUSE_WORDS]):
        if content >= MIN_CLAUSE and (word.text in _CLAUSE_STARTS or word.opens):
            cuts.append(number)
            content = 0
        content += word.kind != "function"
    if len(cuts) > 1 and content < MIN_CLAUSE:
        cuts.pop()
    if len(cuts) == 1:
        return [sentence]
    return [sentence.part(start, end) for start, end in zip(cuts, [*cuts[1:], len(sentence.words)], strict=True)]


def _words(text: str, quantities: Sequence[Quantity]) -> Iterator[Word]:
    spans = iter(quantities)
    span = next(spans, None)
    place, last, seen = 0, 0, False
    for match in _TOKEN.finditer(text):
        while span is not None and span.end <= match.start():
            span = next(spans, None)
        seen = seen or match.start() > 0
        if span is not None and span.start <= match.start() < span.end:
            continue  # a number or its unit: compared as a quantity
        between = text[last : match.start()]
        first = not seen or any(sign in between for sign in ".!?:")
        small, stemmed, kind = _read(match, first=first)
        yield Word(small, stemmed, kind, place, match.start(), any(sign in between for sign in ".!?:;,("))
        place, last = place + 1, match.end()


def _read(match: re.Match[str], *, first: bool) -> tuple[str, str, WordKind]:
    coded = match["code"] or match["path"] or match["dotted"]
    if coded:
        name = coded.strip().lower().rstrip("()")
        return (name, name, "name")
    written = match["word"]
    small = written.lower().removesuffix("'s")
    if small in FUNCTION_WORDS:
        return (small, small, "function")
    capital = written[:1].isupper() and not first
    if _CAMEL.search(written) or capital:
        return (small, stem(small), "name")
    return (small, stem(small), "word")


def _pieces(passage: str) -> Iterator[tuple[str, UnitKind]]:
    """Lines of one kind go together; each run of them becomes units in its own way."""
    run: list[str] = []
    running: _Line = "blank"
    fence = ""
    for line in passage.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            kind: _Line = "blank" if mark and line.strip().startswith(fence) else "code"
            fence = fence if kind == "code" else ""
        else:
            kind = "blank" if mark else _kind(line)
            fence = mark[1] if mark else ""
        if run and (kind != running or kind == "code" or _ITEM.match(line)):
            yield from _units(run, running)
            run = []
        running = kind
        if kind != "blank":
            run.append(line)
    yield from _units(run, running)


def _kind(line: str) -> _Line:
    bare = line.strip()
    if not bare or bare == "$$" or bare.startswith(":::") or not set(bare) - set("*= "):
        return "blank"
    if bare.startswith("|"):
        return "row"
    if _is_rule(bare):
        return "blank"
    return "heading" if _HEADING.match(line) else "prose"


def _is_rule(bare: str) -> bool:
    return "--" in bare and not set(bare) - set("-:| ")


def _units(lines: Sequence[str], kind: _Line) -> Iterator[tuple[str, UnitKind]]:
    if kind == "row":
        yield from _cells(lines)
    elif kind == "prose":
        yield from _sentences(" ".join(unmarked(line) for line in lines))
    elif kind != "blank":
        for line in lines:
            yield (unmarked(line) if kind == "heading" else line.strip()), kind


def _sentences(lines: str) -> Iterator[tuple[str, UnitKind]]:
    paragraph, start = plain(lines), 0
    for end in _END.finditer(paragraph):
        if _ABBREVIATION.search(paragraph[max(start, end.start() - 12) : end.start()].rstrip()):
            continue
        yield paragraph[start : end.end()].strip(), "prose"
        start = end.end()
    yield paragraph[start:].strip(), "prose"


def _cells(table: Sequence[str]) -> Iterator[tuple[str, UnitKind]]:
    """What a table states: its rows, each cell with its column's head; or, where the corner is empty and the heads name
    the things compared, its columns, each cell with its row's head."""
    bare = [line.strip() for line in table]
    rows = [
        [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
        for line in bare
        if not _is_rule(line)
    ]
    if not rows:
        return
    if not rows[0][0]:
        width = max(len(row) for row in rows)
        rows = [list(column) for column in zip(*(row + [""] * (width - len(row)) for row in rows), strict=True)]
    head, *body = rows
    if not body:
        yield ", ".join(head), "row"
    for row in body:
        named = [f"{head[place]} {cell}" if place < len(head) else cell for place, cell in enumerate(row)]
        yield ", ".join(named), "row"
