"""Reads texts so that they can be compared: their words with stems, their names and their numbers. A passage is cut
into units that each state something: sentences, list items, table rows (each cell with its header), lines of code. A
sentence is compared with units and not with all words of a passage, because a false sentence often combines true
words from two places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from lectern.text.blocks import CACHED_PASSAGES
from lectern.text.plain import plain
from lectern.text.quantities import Quantity, quantities_of
from lectern.text.statements import statements_of
from lectern.text.words import FUNCTION_WORDS, stem

UnitKind = Literal["prose", "row", "code", "heading"]
WordKind = Literal["word", "name", "function"]

MAX_UNIT_CHARACTERS = 2_000  # a longer "sentence" is no sentence
MAX_UNITS = 600  # of one passage
CACHED_CLAIMS = 128  # a turn reads its own several times; a long one takes 70 kB
MIN_RELATED_STEM, MAX_ENDING = 5, 4  # letters: `subscrib` and `subscriber` are related
MAX_CLAUSE_WORDS = 120  # words of a sentence that are cut into clauses
MIN_CLAUSE_CONTENT = 2  # content words of a clause

_TOKEN = re.compile(
    r"`(?P<code>[^`\n]{1,200})`"
    r"|(?P<path>(?<![\w/])(?:--?|/|~/|\./|@)[A-Za-z_][\w./-]*[\w/])"
    r"|(?P<dotted>[A-Za-z_]\w*(?:(?:::|\.|_)\w+)+(?:\(\))?)"
    r"|(?P<word>\w+(?:'[a-z]{1,3}(?!\w))?)"
)
_CODE_NAME = re.compile(r"[A-Za-z_]\w{2,}(?:(?:::|[./-])[A-Za-z_]\w*)*")
_PLACEHOLDER = re.compile(r"<[^<>]*>|(?i:\b(?:my|your|foo|bar|baz|example)\w*[\w./-]*)|\{[^{}]*\}")  # `my_node`
_CAMEL = re.compile(r"[a-z][A-Z]|^[A-Z]{2,}|[A-Za-z]\d|\d[A-Za-z]")
_ABBREVIATIONS = ("e.g", "i.e", "E.g", "I.e")  # no names
_CLAUSE_STARTS = frozenset("while whereas but because which although and or if when unless".split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text."""

    text: str  # in lower case
    stem: str
    kind: WordKind
    place: int  # index among all words of the text
    start: int  # position of the first character
    opens: bool = False  # punctuation such as a comma comes before it


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The words and numbers of a sentence or of a unit of a passage."""

    text: str
    kind: UnitKind
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """The words that are not function words."""
        return tuple(word for word in self.words if word.kind != "function")

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the content words."""
        return frozenset(word.stem for word in self.content)

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """Beginnings of the content words that may be stems themselves: `subscrib` of `subscriber`."""
        return frozenset(
            stem[:size]
            for stem in self.stems
            for size in range(max(MIN_RELATED_STEM, len(stem) - MAX_ENDING), len(stem))
        )

    def has_relative(self, stem: str) -> bool:
        """Whether the claim has a word whose stem begins with this stem, or that this stem begins with."""
        shorter = (stem[:size] for size in range(max(MIN_RELATED_STEM, len(stem) - MAX_ENDING), len(stem)))
        return stem in self._beginnings or any(beginning in self.stems for beginning in shorter)

    @cached_property
    def lower(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    def part(self, start: int, end: int) -> Claim:
        """The words from `start` to `end` as a claim."""
        words = self.words[start:end]
        first = words[0].start if start and words else 0
        last = self.words[end].start if end < len(self.words) else len(self.text)
        quantities = tuple(quantity for quantity in self.quantities if first <= quantity.start < last)
        return Claim(text=self.text, kind=self.kind, words=words, quantities=quantities)


@lru_cache(maxsize=CACHED_CLAIMS)
def read_claim(text: str, kind: UnitKind = "prose") -> Claim:
    """Read the words, names and numbers of a text."""
    return _read_claim(text, kind)


def _read_claim(text: str, kind: UnitKind) -> Claim:
    clean = plain(text[:MAX_UNIT_CHARACTERS])
    quantities = quantities_of(clean)
    return Claim(text=clean, kind=kind, words=tuple(_words(clean, quantities)), quantities=quantities)


@lru_cache(maxsize=CACHED_PASSAGES)
def units_of(passage: str) -> tuple[Claim, ...]:
    """The units of a passage, in order, up to MAX_UNITS."""
    units: list[Claim] = []
    for text, kind in statements_of(passage):
        if text.strip():
            units.append(_read_claim(text, kind))  # kept with its passage
        if len(units) == MAX_UNITS:
            break
    return tuple(units)


def clauses_of(sentence: Claim) -> list[Claim]:
    """The clauses of a sentence, or the sentence itself if it has only one. `A does x, B does y` and `A does y, B does
    x` have the same words: only their clauses differ."""
    cuts = [0]
    content = 0
    for number, word in enumerate(sentence.words[:MAX_CLAUSE_WORDS]):
        if content >= MIN_CLAUSE_CONTENT and (word.text in _CLAUSE_STARTS or word.opens):
            cuts.append(number)
            content = 0
        content += word.kind != "function"
    if len(cuts) > 1 and content < MIN_CLAUSE_CONTENT:
        cuts.pop()
    if len(cuts) == 1:
        return [sentence]
    return [sentence.part(start, end) for start, end in zip(cuts, [*cuts[1:], len(sentence.words)], strict=True)]


def code_names(text: str) -> list[str]:
    """The names in the code spans of a text, in lower case, without placeholders such as `<name>` and `my_node`."""
    spans = (match["code"] for match in _TOKEN.finditer(text) if match["code"])
    return [name.lower() for span in spans for name in _CODE_NAME.findall(_PLACEHOLDER.sub(" ", span))]


def _words(text: str, quantities: Sequence[Quantity]) -> Iterator[Word]:
    spans = iter(quantities)
    span = next(spans, None)
    place, last, has_text_before = 0, 0, False
    for match in _TOKEN.finditer(text):
        while span is not None and span.end <= match.start():
            span = next(spans, None)
        has_text_before = has_text_before or match.start() > 0
        if span is not None and span.start <= match.start() < span.end:
            continue  # numbers and their units are compared as quantities
        between = text[last : match.start()]
        first = not has_text_before or any(sign in between for sign in ".!?:")
        small, stemmed, kind = _read(match, first=first)
        yield Word(small, stemmed, kind, place, match.start(), any(sign in between for sign in ".!?:;,("))
        place, last = place + 1, match.end()


def _read(match: re.Match[str], *, first: bool) -> tuple[str, str, WordKind]:
    coded = match["code"] or match["path"] or match["dotted"]
    if coded in _ABBREVIATIONS:
        return (coded, coded, "function")
    if coded:
        name = coded.strip().lower().rstrip("()")
        return (name, name, "name")
    word = match["word"]
    small = word.lower().removesuffix("'s")
    if small in FUNCTION_WORDS:
        return (small, small, "function")
    capital = word[:1].isupper() and not first
    if _CAMEL.search(word) or capital:
        return (small, stem(small), "name")
    return (small, stem(small), "word")
