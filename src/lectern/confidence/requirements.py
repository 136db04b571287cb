"""What an answer must contain. Code is quoted only if the question asks for it. A question about the H1 is not answered
by a sentence about the G1, and one about oxalic acid not by a section “Formic acid”. The answer to a price must contain
money, to a height a length, to a weight a mass, and be about the thing in the question: a data sheet has many numbers,
and most of them answer something else. Everything else is left to the ranking."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import permutations

from lectern.text.words import content_stems, stems

MIN_TITLE_WORDS = 2  # a title of one word has no sibling
MAX_COMPARED_WORDS = 5  # that only one of two compared things has; more are a clause, not a name
WORD_LETTERS = 3  # H1 and G1 are siblings; ros2 and python3 are not, because their letters are words

# A name of letters and digits, as models and versions have: H1, RT-2, D435i, v3.
_MODEL_MARK = re.compile(r"(?<![\w.])(?:[^\W\d_]+-?\d+|\d+[^\W\d_])[^\W_]*(?![\w])")
_NUMBER_WITH_UNIT = re.compile(
    r"\d+(?:[kmgt]?b|[cmk]?m|[mnµ]?s|[km]?g|[kmg]?hz|k|x|d|v|w|a|h|th|st|nd|rd|px|fps|dof)", re.IGNORECASE
)
_CAPITALISED = re.compile(r"(?<=\s)[A-Z]\w")


def _any_case(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PRICE_ASKED = _any_case(
    r"\bprices? of\b|\bhow (?:expensive|cheap)\b|\bhow much\b.*\b(?:cost|pay)\b"
    r"|^\W*how much (?:is|are) (?:(?:an?|the) )?(?-i:[A-Z]\S*\s?)+$"  # a name and nothing else
)
_COST_ASKED = _any_case(r"\bwhat (?:do|does|did)\b.*\bcosts?\b|\bcosts? of\b")  # asks for money if it has a name
_PRICE = _any_case(
    r"[$€£¥₹]\s?\d[\d,.]*(?:\s|[.,;)]|$)|\d\s?(?:USD|EUR|GBP|dollars?|euros?|pounds?|cents?)\b|\bfree\b"
    r"|(?:\b(?:USD|EUR|GBP|dollars?|euros?|pounds?)|[$€£¥₹])\)?:\s*\d"  # a cell of a column with this head
    r"|\b(?:costs?|priced?) (?:about|around|roughly|approximately|nothing|less|more|between|from|over|under|as much)\b"
)
_AMOUNT = (
    r"(?:\d[\d.,]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|half|several|many|hundreds|thousands|dozens))"
    r"(?:[\s-](?:hundreds?|thousands?|millions?|billions?|an?|of)\b(?: of)?)?[\s-]?"
)
_HEIGHT_ASKED = _any_case(r"^\W*how tall\b")
_HEIGHT = _any_case(
    rf"{_AMOUNT}(?:(?-i:[mck]?m)|(?:\w*met(?:er|re)|inch|ft|feet|foot|yard|mile|storey|story|stories|floor)(?:e?s)?)"
    r"(?![\w/])|\b(?:height\b.*\d|as tall as|taller than)"
)
_WEIGHT_ASKED = _any_case(r"^\W*how heavy\b|^\W*how much (?:does|do|did|will|can)\b.*\bweigh\b")
_WEIGHT = _any_case(
    rf"{_AMOUNT}(?:(?-i:[mk]?g|t|lbs?|oz)|(?:\w*gram(?:me)?|kilo|ton|tonne|pound|ounce)s?)(?![\w/])"
    r"|\b(?:(?:weigh\w*|mass)\b.*\d|as heavy as|heavier than|lighter than)"
)


_ASKS = re.compile(
    r"(?i)\?|^\W*(?:and |but |so |ok(?:ay)?,? |hi,? )?(?:what|why|how|when|where|which|who|whom|whose"
    r"|is|are|was|were|do|does|did|can|could|should|would|will|has|have|may|must|am)\b"
)
_TOOLS = "command|code|syntax|snippet|listing|script|flag|switch|import|cli|terminal|shell|topic name|config"
_CALLS = "line|call|options?|function|method|parameters?|arguments?"
_CODE_ASKED = _any_case(
    rf"\b(?:{_TOOLS})s?\b|\b(?:which|what) (?:{_CALLS})\b|\b(?:from|in) which module\b"
    r"|\bhow (?:(?:do|can|could|would|should) )?(?:i|you|we|one|to)\b|\bshow me\b|\bexamples?\b"
    r"|\bwhat (?:do|can|should|must|would) (?:i|you|we) (?:(?:have|need) to )?"
    r"(?:do|need|use|install|change|enter|set|run)\b"
)
_IDENTIFIER = re.compile(r"\w[_/]\w|\w\(|\w\.\w|(?:^|\s)--?\w")


_ALL_ASKED = _any_case(
    r"\b(?:list|enumerate|name) (?:all|the|every|some|of)\b|^\W*list\b|\ball (?:the |of )?\w+s\b"
    r"|\b(?:what|which) (?:\w+ )?(?:are|were) (?!the difference)|\b(?:what|which) \w+s (?:can|do|does|should|must)\b"
    r"|\b(?:types|kinds|ways|options|steps|features|requirements|rules|principles|benefits|reasons|examples|stages)\b"
)


_THING = r"[^,.;:?!]{1,80}?"
_THING_ENDS = r"(?=[,.;:?!]|\s+(?:and|when|if|in|for|on|with|which|that|as|then)\b|\s*$)"
_SECOND_ENDS = rf"{_THING}){_THING_ENDS}"
_COMPARED = _any_case(
    rf"\bdifferences? between (?P<first_between>{_THING}) and (?P<second_between>{_SECOND_ENDS}"
    rf"|\bhow (?:does|do|is|are) (?P<first_differs>{_THING}) (?:differ|different) (?:from|to) "
    rf"(?P<second_differs>{_SECOND_ENDS}"
    rf"|^\W*compare (?P<first_compared>{_THING}) (?:and|with|to) (?P<second_compared>{_SECOND_ENDS}"
    rf"|(?:^|[,:]\s)\W*(?P<first_versus>{_THING})\s+(?:(?-i:vs)\.?|versus)\s+(?P<second_versus>{_SECOND_ENDS}"
)


def asks_for_all(question: str) -> bool:
    """Whether a question asks for several things, so that a whole list or table answers it."""
    return _ALL_ASKED.search(question) is not None


def compared_in(question: str) -> tuple[set[str], set[str]] | None:
    """The stems that only the one and only the other thing has, where a question compares two things."""
    match = _COMPARED.search(question)
    if match is None:
        return None
    first, second = (
        content_stems(next(text for key, text in match.groupdict().items() if text and key.startswith(side)))
        for side in ("first", "second")
    )
    own = first - second, second - first
    return own if all(0 < len(words) <= MAX_COMPARED_WORDS for words in own) else None


def asks_for_code(question: str) -> bool:
    """Whether a question asks for a command or a listing."""
    return _CODE_ASKED.search(question) is not None


def names_identifier(question: str) -> bool:
    """Whether a question contains an identifier, such as `use_sim_time` or `--qos`."""
    return _IDENTIFIER.search(question) is not None


def asks(text: str) -> bool:
    """Whether a text is a question, not a subject or an instruction."""
    return _ASKS.search(text) is not None


def with_code(question: str) -> bool:
    """Whether a listing may answer a question: it asks for code or names an identifier, or it is no question but says
    what is to be done (`sort a list in place`) or names a subject."""
    return asks_for_code(question) or names_identifier(question) or not asks(question)


class Requirement:
    """What a text must contain to answer a question; `titles` are those of the pages and sections of the hits."""

    def __init__(self, question: str, titles: Iterable[str] = ()) -> None:
        self._quantity = _quantity_of(question)
        self._marks = marks_of(question)
        self._shapes = {_shape(mark) for mark in self._marks}
        self._siblings = _sibling_titles(question, titles)

    def met_by(self, text: str, *, before: str = "", titles: Sequence[str] = ()) -> bool:
        """Whether a text may answer; `titles` are above it, and `before` is the text before it."""
        if self._quantity is not None and not self._quantity.search(text):
            return False
        if any(
            title in self._siblings and self._siblings[title].isdisjoint(stems(f"{before} {text}")) for title in titles
        ):
            return False
        marks = set().union(*map(marks_of, (*titles, before, text)))
        if not self._marks or not self._marks.isdisjoint(marks):
            return True
        names_sibling = any(_shape(mark) in self._shapes for mark in marks)
        return self._quantity is None and not names_sibling


def marks_of(text: str) -> set[str]:
    """The model marks in a text, in lower case. A number with a unit is not a mark."""
    return {mark.lower() for mark in _MODEL_MARK.findall(text) if not _NUMBER_WITH_UNIT.fullmatch(mark)}


def _quantity_of(question: str) -> re.Pattern[str] | None:
    """The pattern that an answer must match if the question asks for a price, a height or a weight."""
    if _PRICE_ASKED.search(question) or (
        _COST_ASKED.search(question) and (_CAPITALISED.search(question) or marks_of(question))
    ):
        return _PRICE
    if _HEIGHT_ASKED.search(question):
        return _HEIGHT
    return _WEIGHT if _WEIGHT_ASKED.search(question) else None


def _sibling_titles(question: str, titles: Iterable[str]) -> dict[str, set[str]]:
    """Titles that differ in one word from a title in the question, each with the word that the question has instead."""
    asked_words = stems(question)
    siblings: dict[str, set[str]] = {}
    for title, sibling in permutations({title for title in titles if title}, 2):
        difference = _difference(title, sibling)
        if difference is not None and difference[0] <= asked_words and not difference[1] & asked_words:
            siblings.setdefault(sibling, set()).update(difference[0])
    return siblings


def _difference(title: str, sibling: str) -> tuple[set[str], set[str]] | None:
    """The one word in which two titles differ, from each title; None if they are not siblings."""
    words, sibling_words = title.split(), sibling.split()
    if len(words) != len(sibling_words) or len(words) < MIN_TITLE_WORDS:
        return None
    pairs = [pair for pair in zip(words, sibling_words, strict=True) if pair[0].casefold() != pair[1].casefold()]
    if len(pairs) != 1:
        return None
    difference = stems(pairs[0][0]), stems(pairs[0][1])
    if any(not title_stems or any(word.isdigit() for word in title_stems) for title_stems in difference):
        return None
    return difference


def _shape(mark: str) -> str:
    """The form of a mark. H1 and G1, RT-1 and GR-2, ros1 and ros2 have the same; ros2 and python3 do not."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", _letters, mark))


def _letters(match: re.Match[str]) -> str:
    return match.group() if len(match.group()) >= WORD_LETTERS else "a" * len(match.group())
