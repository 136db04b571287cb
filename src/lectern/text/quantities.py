"""Reads numbers with their units and converts them to base units: 0.6 s equals 600 ms, `thirty` is 30, `50-200 ms` is
two numbers of milliseconds. Two texts that give different numbers for the same thing cannot both be right."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lectern.text.words import FUNCTION_WORDS, stem

RELATIVE_TOLERANCE = 1e-6  # only for rounding in conversions: 2006 and 2007 are different years
MAX_ROUNDING = 0.05  # of a number after `about`; less where its digits are more exact

_ZERO_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
)
_ZERO_TO_NINETEEN += " seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_WORDS: dict[str, float] = {word: float(value) for value, word in enumerate(_ZERO_TO_NINETEEN.split())}
_WORDS |= {word: 10.0 * value for value, word in enumerate(_TENS.split(), start=2)}
_WORDS |= {word: float(value) for value, word in enumerate(_ORDINALS.split()) if word != "second"}  # mostly the unit
_WORDS |= {"once": 1.0, "twice": 2.0, "half": 0.5}
_WORDS |= {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
NUMBER_WORDS = frozenset(_WORDS)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
# These are often no numbers (`one of them`, `the two`, `once it runs`), so it proves nothing if they are absent.
_SOFT = frozenset("one two first third zeroth once twice half".split())

_PREFIXES = {"n": 1e-9, "µ": 1e-6, "μ": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "d": 1e-1, "": 1.0, "k": 1e3, "K": 1e3}
_PREFIXES |= {"M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BASES = {
    "s": ("time", "nµμum"), "m": ("length", "nµμumcdk"), "g": ("mass", "nµμumk"), "N": ("force", "mkM"),
    "Nm": ("torque", "mk"), "J": ("energy", "mkMG"), "Wh": ("energy.h", "mkMG"), "W": ("power", "nµμumkMG"),
    "V": ("voltage", "nµμumk"), "A": ("current", "nµμumk"), "Ah": ("charge", "mk"), "Ω": ("resistance", "mkM"),
    "Hz": ("/time", "mkMGT"), "Pa": ("pressure", "mkMG"), "F": ("capacity", "nµμum"), "L": ("volume", "mcd"),
    "l": ("volume", "mcd"), "rad": ("angle", "mµ"), "bit": ("bit", "kKMGT"), "bps": ("bit/time", "kKMGT"),
    "B": ("byte", "kKMGT"), "eV": ("eV", "kMGT"), "px": ("pixel", "M"), "dB": ("dB", ""), "K": ("kelvin", "m"),
}  # fmt: skip
_UNIT_NAMES: dict[str, tuple[str, float]] = {
    "%": ("%", 1.0), "percent": ("%", 1.0), "°": ("angle", math.pi / 180), "deg": ("angle", math.pi / 180),
    "°C": ("celsius", 1.0), "°F": ("fahrenheit", 1.0), "celsius": ("celsius", 1.0), "kelvin": ("kelvin", 1.0),
    "fahrenheit": ("fahrenheit", 1.0), "min": ("time", 60.0), "h": ("time", 3600.0), "hr": ("time", 3600.0),
    "sec": ("time", 1.0), "fps": ("/time", 1.0), "FPS": ("/time", 1.0), "rpm": ("/time", 1 / 60),
    "kbps": ("bit/time", 1e3), "Mbps": ("bit/time", 1e6), "Gbps": ("bit/time", 1e9), "dpi": ("dpi", 1.0),
    "€": ("euro", 1.0), "$": ("dollar", 1.0), "dollar": ("dollar", 1.0), "euro": ("euro", 1.0), "t": ("mass", 1e6),
    "ton": ("mass", 1e6), "tonne": ("mass", 1e6), "mile": ("length", 1609.344), "foot": ("length", 0.3048),
    "feet": ("length", 0.3048), "ft": ("length", 0.3048), "inch": ("length", 0.0254), "inches": ("length", 0.0254),
    "yard": ("length", 0.9144), "minute": ("time", 60.0), "hour": ("time", 3600.0), "day": ("time", 86400.0),
    "week": ("time", 604800.0), "month": ("time", 2629800.0), "year": ("time", 31557600.0),
    "decade": ("time", 315576000.0), "century": ("time", 3155760000.0), "centuries": ("time", 3155760000.0),
    "acre": ("acre", 1.0), "pound": ("pound", 1.0), "lb": ("pound", 1.0),
}  # fmt: skip
_SPELT = {
    "second": ("time", 1.0), "metre": ("length", 1.0), "meter": ("length", 1.0), "gram": ("mass", 1.0),
    "newton": ("force", 1.0), "joule": ("energy", 1.0), "watt": ("power", 1.0), "volt": ("voltage", 1.0),
    "ampere": ("current", 1.0), "amp": ("current", 1.0), "ohm": ("resistance", 1.0), "hertz": ("/time", 1.0),
    "pascal": ("pressure", 1.0), "byte": ("byte", 1.0), "bit": ("bit", 1.0), "radian": ("angle", 1.0),
    "degree": ("angle", math.pi / 180), "litre": ("volume", 1.0), "liter": ("volume", 1.0), "pixel": ("pixel", 1.0),
}  # fmt: skip
_SPELT_PREFIXES = {"nano": 1e-9, "micro": 1e-6, "milli": 1e-3, "centi": 1e-2, "": 1.0, "kilo": 1e3, "mega": 1e6}
_SPELT_PREFIXES |= {"giga": 1e9, "tera": 1e12, "kibi": 2.0**10, "mebi": 2.0**20, "gibi": 2.0**30}


def _units() -> dict[str, tuple[str, float]]:
    table = dict(_UNIT_NAMES)
    for base, (kind, prefixes) in _BASES.items():
        table |= {prefix + base: (kind, _PREFIXES[prefix]) for prefix in ("", *prefixes)}
    for base, kind in (("B", "byte"), ("bit", "bit")):
        table |= {prefix + base: (kind, factor) for prefix, factor in _BINARY.items()}
    for word, (kind, factor) in _SPELT.items():
        table |= {prefix + word: (kind, factor * scale) for prefix, scale in _SPELT_PREFIXES.items()}
    return table


UNITS = _units()
_DIGITS = r"\d{1,3}(?:[,  ]\d{3})++(?!\d)(?:\.\d++)?+|\d++(?:\.\d++)?+(?:[eE][+-]?\d{1,2})?+"
_POWER = r"(?:\s?[×x·*]\s?10\s?\^?\s?(?P<power>[+-]?\d{1,2}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))?"
_RAISED_POWER = r"(?:\^?(?P<exponent>(?<=\^)[+-]?\d{1,2}|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}))?"
_SMALL = "|".join([*_ZERO_TO_NINETEEN.split(), *(word for word in _ORDINALS.split() if word != "second")])
_BELOW_HUNDRED = rf"(?:(?:{'|'.join(_TENS.split())})(?:[ -](?:{_SMALL}))?|{_SMALL})"
_MAGNITUDES = rf"(?:{'|'.join(_SCALES)})(?:[ -](?:{'|'.join(_SCALES)}))*"
_SPELLED = (  # `one hundred and twenty-eight`
    rf"(?:(?:{_BELOW_HUNDRED}|half)[ -])?{_MAGNITUDES}(?:(?:[ -]and)?[ -]{_BELOW_HUNDRED}(?:[ -]{_MAGNITUDES})?)*"
    rf"|{_BELOW_HUNDRED}|once|twice|half"
)
_PARTS = "half third quarter fifth sixth seventh eighth ninth tenth hundredth thousandth".split()
_SHARES = dict(zip(_PARTS, (2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000), strict=True)) | {"halve": 2}
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>[-+±]?)(?P<money>[$€]?)(?:(?P<top>[1-9])/(?P<bottom>[2-9]|1[0-2])(?![\w/.])|(?P<digits>{_DIGITS}){_POWER}{_RAISED_POWER}"
    rf"(?:k(?P<thousands>)(?![A-Za-z])|[ -]?(?P<scale>thousand|million|billion|trillion)(?![a-z])|st|nd|rd|th)?"
    r"(?![A-Za-z]{4})"
    rf"|(?P<count>an?|one|two|three|four|five|seven|nine)[ -](?P<share>{'|'.join(_SHARES)})s?(?!\w)"
    rf"|(?P<word>{_SPELLED})(?!\w))(?P<more> and an? half(?!\w))?(?!\.\d)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(?:\s?-?\s?)(?P<unit>per\scent|°\s?[CFK](?!\w)|[°%€$]|[A-Za-zµμΩ]{1,14})")
_RATE = re.compile(r"\s?(?:/|per\s|an?\s|each\s|every\s|in\san?\s)\s?(?P<unit>[A-Za-zµμ]{1,12})(?!\w)")
_COUNT_RATE = re.compile(
    r"\s?(?P<noun>[A-Za-z]{1,20})\s?(?:/|per\s|an?\s|each\s|every\s)\s?(?P<unit>[A-Za-z]{1,12})(?!\w)"
)
_OF = re.compile(r"\s(?:of\s)?an?(?=\s)")
_JOIN = re.compile(r"\s?(?:-|–|to|and|or|,|×|x|\.\.|…)\s?", re.IGNORECASE)
_NEXT = re.compile(r"[\s-]*([A-Za-z]{2,40})")
_BEFORE = re.compile(r"([A-Za-z]{2,40})(?:\s(?:of|is|was|are|be|=|≈|about|at|to|by|number|id))*[\s(:=≈]*$")
_ROUNDED = re.compile(
    r"(?i)(?:\b(?:about|roughly|around|approximately|approx\.?|nearly|almost|some|circa)\s|[~≈]\s?)\Z"
)
_PERIOD = re.compile(r"(?i)\b(?:every|each|period of)\s\Z")
_OPERATOR = re.compile(r"\s?[/÷·×*+−-]\s?")
_RESULT = re.compile(r"\s?[=≈]\s?")
_TEMPERATURE = re.compile(r"(?i)\s(?P<unit>celsius|fahrenheit)(?!\w)")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_LABEL_REACH = 48  # characters before a number that are searched for its label
_MAX_QUANTITIES = 400  # in one text; a text with more is no prose


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number in a text, and what it measures."""

    value: float  # in the base unit of its kind
    raw: float  # as written in the text
    kind: str  # time, length, byte/time, …; empty for a bare number
    label: str  # the stem before it: `category 0`, `version 2`
    counted_noun: str  # the stem after it: `three services`
    hard: bool  # certainly a number, unlike `one` in `one of them`
    rounding: float = 0.0  # how far a number after `about` may be from the exact one, as a share
    is_period: bool = False  # `every 20 ms` is 50 Hz
    start: int
    end: int


def quantities_of(text: str) -> tuple[Quantity, ...]:
    """The numbers of a plain text, in order, up to a limit."""
    quantities: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        if match.start() < (quantities[-1].end if quantities else 0):
            continue
        quantity = _read(text, match)
        if quantity is not None:
            quantities.append(quantity)
        if len(quantities) == _MAX_QUANTITIES:
            break
    return tuple(_results(text, _shared_units(text, quantities)))


def same(first: Quantity, second: Quantity) -> bool:
    """Whether two quantities are equal in the same unit; a number without a unit equals it in any unit."""
    rounding = max(first.rounding, second.rounding)
    if first.kind and second.kind:
        if {first.kind, second.kind} == {"time", "/time"} and (first.is_period or second.is_period):
            return _close(first.value * second.value, 1.0, rounding)
        return first.kind == second.kind and _close(first.value, second.value, rounding)
    if "%" in (first.kind, second.kind) and _close(*((_share_of(quantity)) for quantity in (first, second))):
        return True  # 0.95 and 95 %
    return _close(first.raw, second.raw, rounding)


def _share_of(quantity: Quantity) -> float:
    return quantity.value / 100 if quantity.kind == "%" else quantity.raw


def rivals(first: Quantity, second: Quantity) -> bool:
    """Whether two quantities differ but measure the same thing: the same kind, label or noun with another number, or
    the same number with another unit."""
    if same(first, second):
        return False
    if first.kind and second.kind:
        return first.kind == second.kind or _close(first.raw, second.raw)
    if first.kind or second.kind:
        return False
    if first.label and first.label == second.label:
        return True
    return bool(first.counted_noun) and first.counted_noun == second.counted_noun


def _close(first: float, second: float, rounding: float = 0.0) -> bool:
    return abs(first - second) <= max(RELATIVE_TOLERANCE, rounding) * max(abs(first), abs(second))


def _read(text: str, match: re.Match[str]) -> Quantity | None:
    raw, hard = _value(match)
    if raw is None or not math.isfinite(raw):
        return None
    share = match["share"] or match["top"]
    of = _OF.match(text, match.end()) if match["share"] or match["word"] else None  # `a tenth of a second`
    kind, factor, end = _unit_after(text, of.end() if of else match.end())
    if of and not kind:
        end = match.end()
    if share and not kind:
        kind, factor = "%", 100.0
    if match["money"]:
        kind, factor, end = _UNIT_NAMES[match["money"]][0], 1.0, match.end()
    text_before = text[max(0, match.start() - _LABEL_REACH) : match.start()]
    after, before = _NEXT.match(text, end), _BEFORE.search(text_before)
    return Quantity(
        value=raw * factor,
        raw=raw,
        kind=kind,
        label=_neighbour_stem(before),
        counted_noun=_neighbour_stem(after),
        hard=hard or (bool(kind) and not (share and kind == "%")),
        start=match.start(),
        end=end,
        rounding=_rounding(match["digits"]) if match["digits"] and _ROUNDED.search(text_before) else 0.0,
        is_period=kind == "time" and _PERIOD.search(text_before) is not None,
    )


def _rounding(digits: str) -> float:
    """How far a rounded number may be from the exact one, as a share: half of its last digit that is not zero."""
    figures = re.sub(r"[^\d]", "", digits.lower().partition("e")[0]).strip("0")
    return min(MAX_ROUNDING, 0.5 / int(figures)) if figures else 0.0


def _neighbour_stem(match: re.Match[str] | None) -> str:
    """The stem of the word beside a number, or "" if that is a function word such as `of` or `is`."""
    word = match[1].lower() if match else ""
    return "" if word in FUNCTION_WORDS else stem(word)


def _value(match: re.Match[str]) -> tuple[float | None, bool]:
    if match["digits"]:
        value = float(re.sub(r"[,  ]", "", match["digits"]))
        if match["power"]:
            value *= 10.0 ** int(match["power"].translate(_RAISED))
        if match["exponent"]:
            value = _power(value, int(match["exponent"].translate(_RAISED)))
        value *= 1e3 if match["thousands"] is not None else _SCALES.get((match["scale"] or "").lower(), 1.0)
        value += 0.5 if match["more"] else 0.0
        return (-value if match["sign"] == "-" else value), True
    if match["top"]:
        return float(match["top"]) / float(match["bottom"]), False
    if match["share"]:
        return _WORDS.get(match["count"].lower(), 1.0) / _SHARES[match["share"].lower()], False
    words = re.split(r"[ -]", match["word"].lower())
    total = part = 0.0
    for word in words:
        if _SCALES.get(word, 0.0) >= _SCALES["thousand"]:
            total, part = total + (part or 1.0) * _SCALES[word], 0.0
        elif word in _SCALES:
            part = (part or 1.0) * _SCALES[word]
        elif word != "and":
            part += _WORDS[word]
    return total + part + (0.5 if match["more"] else 0.0), len(words) > 1 or words[0] not in _SOFT


def _unit_after(text: str, end: int) -> tuple[str, float, int]:
    """The kind, factor and end of the unit after a number; the kind is "" if there is no unit."""
    match = _UNIT.match(text, end)
    unit = _find_unit(match["unit"]) if match else None
    if match and unit:
        kind, factor = unit
        if kind == "angle" and (scale := _TEMPERATURE.match(text, match.end())):
            return UNITS[scale["unit"].lower()][0], 1.0, scale.end()
        rate = _RATE.match(text, match.end())
        over = _find_unit(rate["unit"]) if rate else None
        if rate and over and over[0] == "time" and kind != "time":
            return f"{kind}/time", factor / over[1], rate.end()
        return kind, factor, match.end()
    count_rate = _RATE.match(text, end) or _COUNT_RATE.match(text, end)
    over = _find_unit(count_rate["unit"]) if count_rate else None
    if count_rate and over and over[0] == "time":
        return "/time", 1 / over[1], count_rate.end()
    return "", 1.0, end


def _find_unit(unit: str) -> tuple[str, float] | None:
    if unit.lower().replace(" ", "") in ("percent", "percentage"):
        return UNITS["%"]
    unit = unit.replace("° ", "°")
    if unit == "°K":
        unit = "K"
    plural = unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit  # noqa: PLR2004  # `ms` is no plural
    for name in (unit, plural, unit.lower(), plural.lower()):
        if name in UNITS and (len(name) > 1 or name == unit):
            return UNITS[name]
    return None


def _shared_units(text: str, quantities: Sequence[Quantity]) -> list[Quantity]:
    """Give both numbers the unit in `50-200 ms` and `640 × 480 pixels`."""
    shared = list(quantities)
    for place in range(len(shared) - 2, -1, -1):
        quantity, after = shared[place], shared[place + 1]
        if quantity.kind or not after.kind or quantity.end > after.start:
            continue
        if _JOIN.fullmatch(text, quantity.end, after.start):
            factor = after.value / after.raw if after.raw else 1.0
            shared[place] = replace(
                quantity, kind=after.kind, value=quantity.raw * factor, counted_noun=after.counted_noun, hard=True
            )
    return shared


def _results(text: str, quantities: Sequence[Quantity]) -> list[Quantity]:
    """Give the result of `the ratio is 1 / 2.5 = 0.4` the label of its first number, which loses it: the ratio is not
    1."""
    results = list(quantities)
    first = None  # of the numbers that are calculated with
    for place, (quantity, after) in enumerate(pairwise(quantities)):
        between = text[quantity.end : after.start]
        if _OPERATOR.fullmatch(between):
            first = place if first is None else first
            continue
        if first is not None and _RESULT.fullmatch(between):
            results[place + 1] = replace(after, label=results[first].label or after.label)
            results[first] = replace(results[first], label="")
        first = None
    return results


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except (OverflowError, ZeroDivisionError):
        return math.nan


_RANKS = {word: float(value) for value, word in enumerate(_ORDINALS.split())}
_PORTIONS = {part: 1 / size for part, size in _SHARES.items() if part not in ("third", "halve")}
_PORTIONS |= {"twice": 2.0, "double": 2.0, "triple": 3.0, "thrice": 3.0}
_RANKED = re.compile(
    rf"(?<![\w.])(?P<word>{'|'.join((*_RANKS, *_PORTIONS))})"
    r"(?:[\s-](?:of|the|an?|its|that|this))*[\s-](?P<noun>[a-z]{3,40})",
    re.IGNORECASE,
)
_UNIT_BEFORE = re.compile(r"(?i)(?:\d|\b(?:per|an?|one|each|every))[\s-]*\Z")  # `per second`


def ranks_of(text: str) -> frozenset[tuple[str, str, float]]:
    """The ordinals and fractions of a text with the word that they are about: `second order`, `half the error`. Each is
    a kind, the stem of that word, and a value."""
    ranks = set()
    for match in _RANKED.finditer(text):
        word, noun = match["word"].lower(), match["noun"].lower()
        is_unit = word == "second" and _UNIT_BEFORE.search(text[max(0, match.start() - 10) : match.start()])
        if noun not in FUNCTION_WORDS and not is_unit:
            kind, value = ("rank", _RANKS[word]) if word in _RANKS else ("portion", _PORTIONS[word])
            ranks.add((kind, stem(noun), value))
    return frozenset(ranks)


_UNIT_WORD = re.compile(r"[A-Za-z]{3,16}|[A-Za-z]{1,4}/s\b")
_NO_UNIT_WORDS = frozenset("bit bits second deg min sec pound pounds foot lit yard".split())  # ambiguous


def measures(text: str, quantities: Sequence[Quantity]) -> frozenset[tuple[str, float]]:
    """The units that a text names (`in radians`, `per hour`), as kind and factor, without those in `quantities`."""
    units = set()
    for match in _UNIT_WORD.finditer(text):
        if any(quantity.start <= match.start() < quantity.end for quantity in quantities):
            continue
        if match[0].lower() not in _NO_UNIT_WORDS and (unit := _find_unit(match[0])):
            units.add(unit)
    return frozenset(units)
