"""What kind of thing a question asks for, and whether a text holds one. Rules on the question's own words: where they
are unsure the answer is `other`, which asks for nothing in particular and so prefers no text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

Asked = Literal["number", "date", "person", "place", "reason", "way", "definition", "code", "other"]

_UNITS = (
    "percent(?:age)?|number|rate|size|amount|distance|temperature|cost|price|population|speed|frequency|ratio|width"
)
_UNITS += "|height|length|weight|age|value|range|degree|proportion|share|fraction|score|area|depth|mass|density|voltage"
_MEASURES = "many|much|often|long|far|large|big|tall|fast|old|high|deep|heavy|wide|small|close|late"
_TIMES = "year|date|century|decade|month|day|era|period|time"
_PLACES = "city|country|state|place|region|town|river|continent|province|location|county|nation|street|building|island"
_PEOPLE = "person|scientist|king|queen|leader|author|president|artist|engineer|physicist|composer|emperor|chemist"
_TOOLS = "command|code|syntax|snippet|listing|script|flag|switch|import|cli|terminal|shell|topic name|config"
_CALLS = "line|call|options?|function|method|parameters?|arguments?"
_SHORT = r"(?: [\w*`'./-]+){1,4}\s*[?.]?\s*$"


def _any_case(rule: str) -> re.Pattern[str]:
    return re.compile(rule, re.IGNORECASE)


# The first that matches counts.
_RULES: tuple[tuple[Asked, re.Pattern[str]], ...] = (
    ("code", _any_case(rf"\b(?:{_TOOLS})s?\b|\b(?:which|what) (?:{_CALLS})\b|\b(?:from|in) which module\b")),
    ("code", _any_case(r"^\s*how (?:do|can|would|should) (?:i|you|we)\b")),
    ("date", _any_case(rf"\bwhen\b|\b(?:what|which) (?:\w+ )?(?:{_TIMES})s?\b|\bhow long ago\b")),
    ("number", _any_case(rf"\bhow (?:{_MEASURES})\b|\b(?:what|which)\b(?: \w+){{0,3}} (?:{_UNITS})s?\b")),
    ("person", _any_case(rf"\b(?:who|whose|whom)\b|\b(?:what|which) (?:\w+ )?(?:{_PEOPLE})s?\b")),
    ("place", _any_case(rf"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:{_PLACES}|cities|countries)s?\b")),
    ("reason", _any_case(r"\bwhy\b|\b(?:what|which) (?:\w+ )?(?:reasons?|causes?|caused)\b|\bfor what purpose\b")),
    ("way", _any_case(r"\bhow\b|\bin what way\b|\bby what means\b")),
    ("definition", _any_case(rf"^\s*(?:what(?:'s| is| are| was| were)|define|explain|describe)\b{_SHORT}")),
    ("definition", _any_case(r"\bwhat (?:does|do|did) .+ (?:mean|stand for)\b|\b(?:meaning|definition) of\b")),
)

_DIGITS = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)|\d+(?:[.,]\d+)*(?=%| ?[a-zµ°]{1,3}\b)")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_COUNTS = _any_case(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fourteen|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|half|thirds|quarters?|dozens?|twice|majority)\b"
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATES = re.compile(
    rf"\b(?:1\d{{3}}|20\d\d)s?\b|\b(?:{_MONTHS})\b|\b\d+(?:st|nd|rd|th)?[ -]centur|\bcentur|\b\d+ ?(?:BC|AD|BCE|CE)\b"
    r"|\b(?:[Yy]ears? (?:ago|later|after)|[Dd]ecades?|[Dd]uring the|[Uu]ntil|[Ss]pring|[Ss]ummer|[Aa]utumn|[Ww]inter)\b"
)
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)(?<![\"“(])\b[A-Z][\w’'-]+")
_FIRST_NAME = re.compile(r"^[\"“(*]*(?:[A-Z][\w.’'-]+\s+){1,3}[A-Z][\w’'-]+")
_WHEREABOUTS = re.compile(
    r"\b(?:in|at|near|from|to|on|across|throughout|into|between|around|outside|within|of) "
    r"(?:the |a |an )?(?:[a-z]+ )?[A-Z]"
)
_REASONS = _any_case(
    r"\b(because|since|due to|so that|so as|caus\w+|reasons?|therefore|thus|hence|in order to|as a result|result\w*"
    r"|led to|leads? to|lets?|owing|thanks to|prevent\w*|avoid\w*|allow\w*|otherwise|as it|would"
    r"|for (?:its|their|his|want))\b"
)
_WAYS = _any_case(r"\b(by|through|using|via|with|when|if|means of|first|then|into|must|can|set|use|run|call)\b")
_SUBJECT = _any_case(
    r"^\s*(?:what(?:'s| is| are| was| were| does| do| did)|define|explain|describe)\s+"
    r"(?:meant by\s+|the (?:meaning|definition) of\s+)?(?:an?\s+|the\s+)?(.+?)(?:\s+(?:mean|stand for))?\s*[?.!]*\s*$"
)
_IS = r"(?:is|are|was|were|means?|refers?|describes?|stands?|denotes?|consists?)\b|[:—–|(]"
_LIKE_CODE = re.compile(r"`[^`]+`|\w+\(|--\w|\w+_\w+|\$ ")


_PRICED = _any_case(r"\bhow (?:much|expensive|cheap)\b.*\b(?:cost|pay|price|expensive|cheap)|\b(?:price|cost)s? of\b")
_DATED = _any_case(
    r"\b(?:what|which) year\b"
    r"|^\W*when (?:was|were|did)\b.*\b(?:born|died?|founded|released|invented|published|established)\b"
)
_PRICES = _any_case(
    r"[$€£¥₹]\s?\d[\d,.]*(?:\s|[.,;)]|$)|\d\s?(?:USD|EUR|GBP|dollars?|euros?|pounds?|cents?)\b|\bfree\b"
    r"|(?:\b(?:USD|EUR|GBP|dollars?|euros?|pounds?)|[$€£¥₹])\)?:\s*\d"  # a cell below such a head
    r"|\b(?:costs?|priced?) (?:about|around|roughly|approximately|nothing|less|more|between|from|over|under|as much)\b"
)
_AMOUNT = (
    r"(?:\d[\d.,]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twenty|half|several|many|hundreds|thousands|dozens))"
    r"(?:[\s-](?:hundreds?|thousands?|millions?|billions?|an?|of)\b(?: of)?)?[\s-]?"
)
_LENGTHS = r"(?:(?-i:[mck]?m)|(?:\w*met(?:er|re)|inch|ft|feet|foot|yard|mile|storey|story|stories|floor)(?:e?s)?)"
_WEIGHTS = r"(?:(?-i:[mk]?g|t|lbs?|oz)|(?:\w*gram(?:me)?|kilo|ton|tonne|pound|ounce)s?)"
# What is asked, and what a text must hold that tells it: a number in such a unit, or a comparison with something else.
_MEASURED = tuple(
    (_any_case(asked), _any_case(rf"{_AMOUNT}{units}(?![\w/])|{said}"))
    for asked, units, said in (
        (r"^\W*how tall\b", _LENGTHS, r"\b(?:height\b.*\d|as tall as|taller than)"),
        (
            r"^\W*how heavy\b|^\W*how much (?:does|do|did|will|can)\b.*\bweigh\b",
            _WEIGHTS,
            r"\b(?:(?:weigh\w*|mass)\b.*\d|as heavy as|heavier than|lighter than)",
        ),
    )
)


def must_hold(question: str) -> Callable[[str], bool] | None:
    """What a text must hold to answer at all, where that is plain: money for a price, a date for a year, metres for
    how tall. A data sheet has many numbers, and none of them says what a thing costs."""
    if _PRICED.search(question):
        return lambda text: _PRICES.search(text) is not None
    if _DATED.search(question):
        return lambda text: _date(text, question)
    for asked, told in _MEASURED:
        if asked.search(question):
            return lambda text: told.search(text) is not None
    return None


def asked_for(question: str) -> Asked:
    """What would answer the question."""
    return next((asked for asked, rule in _RULES if rule.search(question)), "other")


def holds(asked: Asked, text: str, question: str) -> bool:
    """Whether a text holds such a thing, and one that the question does not name itself."""
    look = _LOOKS.get(asked)
    return look is not None and look(text, question)


def _number(text: str, question: str) -> bool:
    named = _words(question)
    counted = any(found not in named and not _YEAR.fullmatch(found) for found in _DIGITS.findall(text))
    return counted or _COUNTS.search(text) is not None


def _date(text: str, question: str) -> bool:
    named = _words(question)
    return any(found.lower() not in named for found in _DATES.findall(text))


def _name(text: str, question: str) -> bool:
    """Whether it names somebody or something else than the question does."""
    named = _words(question)
    if any(found.lower() not in named for found in _NAME.findall(text)):
        return True
    begins = _FIRST_NAME.match(text)
    return begins is not None and any(word.lower().strip('"“(*.') not in named for word in begins.group().split())


def _place(text: str, question: str) -> bool:
    return _WHEREABOUTS.search(text) is not None and _name(text, question)


def _definition(text: str, question: str) -> bool:
    """Whether the text opens with what the question is about and says what that is."""
    subject = _SUBJECT.match(question)
    words = re.findall(r"\w+", subject.group(1) if subject else question)
    term = r"\W+".join(map(re.escape, words))
    opening = rf"(?i)\W*(?:(?:an?|the)\b\W*)?{term}s?[*`_\"”'’]*\s*(?:{_IS})"
    return bool(words) and re.match(opening, text) is not None


def _words(question: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[\w’'-]+", question)}


_LOOKS: dict[Asked, Callable[[str, str], bool]] = {
    "number": _number,
    "date": _date,
    "person": _name,
    "place": _place,
    "reason": lambda text, _: _REASONS.search(text) is not None,
    "way": lambda text, _: _WAYS.search(text) is not None,
    "definition": _definition,
    "code": lambda text, _: _LIKE_CODE.search(text) is not None,
}
