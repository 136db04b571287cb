"""Numbers with their units, in one measure: 0.6 s is 600 ms, `thirty` is 30, `50-200 ms` is two numbers of
milliseconds. Two texts that give one number for one thing agree; two that give different ones cannot both be right."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lectern.text.words import FUNCTION_WORDS, stem

CLOSE = 1e-6  # relative, for the sake of conversions alone: 2006 and 2007 are different years

_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_ONES += " seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_WORDS: dict[str, float] = {word: float(value) for value, word in enumerate(_ONES.split())}
_WORDS |= {word: 10.0 * value for value, word in enumerate(_TENS.split(), start=2)}
_WORDS |= {word: float(value) for value, word in enumerate(_ORDINALS.split()) if word != "second"}  # mostly the unit
_WORDS |= {"once": 1.0, "twice": 2.0, "half": 0.5}
_WORDS |= {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
# Often no number at all (`one of them`, `the two`, `once it runs`), so that their absence proves nothing.
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
_NAMED: dict[str, tuple[str, float]] = {
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
    table = dict(_NAMED)
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
_SMALL = "|".join([*_ONES.split(), *(word for word in _ORDINALS.split() if word != "second")])
_SPELLED = (
    rf"(?:(?:{'|'.join(_TENS.split())})(?:[ -](?:{_SMALL}))?|{_SMALL}|once|twice|half)(?:[ -](?:{'|'.join(_SCALES)}))*"
    rf"|(?:{'|'.join(_SCALES)})(?:[ -](?:{'|'.join(_SCALES)}))*"
)
_PARTS = "half third quarter fifth sixth seventh eighth ninth tenth hundredth thousandth".split()
_SHARES = dict(zip(_PARTS, (2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000), strict=True)) | {"halve": 2}
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<sign>[-+±]?)(?P<money>[$€]?)(?:(?P<top>[1-9])/(?P<bottom>[2-9]|1[0-2])(?![\w/.])|(?P<digits>{_DIGITS}){_POWER}(?:st|nd|rd|th)?(?![A-Za-z]{{4}})"
    rf"|(?P<count>an?|one|two|three|four|five|seven|nine)[ -](?P<share>{'|'.join(_SHARES)})s?(?!\w)"
    rf"|(?P<word>{_SPELLED})(?!\w))(?P<more> and an? half(?!\w))?(?!\.\d)",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(?:\s?-?\s?)(?P<unit>per\scent|°\s?[CFK](?!\w)|[°%€$]|[A-Za-zµμΩ]{1,14})")
_RATE = re.compile(r"\s?(?:/|per\s|an?\s|each\s|every\s|in\san?\s)\s?(?P<unit>[A-Za-zµμ]{1,12})(?!\w)")
_COUNTED = re.compile(
    r"\s?(?P<noun>[A-Za-z]{1,20})\s?(?:/|per\s|an?\s|each\s|every\s)\s?(?P<unit>[A-Za-z]{1,12})(?!\w)"
)
_OF = re.compile(r"\s(?:of\s)?an?(?=\s)")
_JOIN = re.compile(r"\s?(?:-|–|to|and|or|,|×|x|\.\.|…)\s?", re.IGNORECASE)
_NEXT = re.compile(r"[\s-]*([A-Za-z]{2,40})")
_BEFORE = re.compile(r"([A-Za-z]{2,40})(?:\s(?:of|is|was|are|be|=|≈|about|at|to|by|number|id))*[\s(:=≈]*$")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_LOOK_BACK = 48
_MOST = 400  # quantities in one text; more is no prose


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number as it stands in a text, and what it measures."""

    value: float  # in the base of its kind
    raw: float  # as written
    kind: str  # time, length, byte/time, …; empty for a bare number
    label: str  # the stem before it: `category 0`, `version 2`
    counted: str  # the stem after it: `three services`
    hard: bool  # surely meant as a number
    start: int
    end: int


def quantities_of(text: str) -> tuple[Quantity, ...]:
    """Every number of a plain text, in order."""
    found: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        if match.start() < (found[-1].end if found else 0):
            continue
        quantity = _read(text, match)
        if quantity is not None:
            found.append(quantity)
        if len(found) == _MOST:
            break
    return tuple(_shared_units(text, found))


def same(one: Quantity, other: Quantity) -> bool:
    """Whether both give the same number of the same thing; a bare number meets any unit."""
    if one.kind and other.kind:
        return one.kind == other.kind and _close(one.value, other.value)
    if "%" in (one.kind, other.kind) and _close(*((_share_of(each)) for each in (one, other))):
        return True  # 0.95 and 95 %
    return _close(one.raw, other.raw)


def _share_of(one: Quantity) -> float:
    return one.value / 100 if one.kind == "%" else one.raw


def rivals(one: Quantity, other: Quantity) -> bool:
    """Whether both speak of the same thing and differ: another number of its kind, or the same number of another."""
    if same(one, other):
        return False
    if one.kind and other.kind:
        return one.kind == other.kind or _close(one.raw, other.raw)
    if one.kind or other.kind:
        return False
    if one.label and one.label == other.label:
        return True
    return bool(one.counted) and one.counted == other.counted


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE * max(abs(one), abs(other))


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
        kind, factor, end = _NAMED[match["money"]][0], 1.0, match.end()
    after, before = _NEXT.match(text, end), _BEFORE.search(text[max(0, match.start() - _LOOK_BACK) : match.start()])
    return Quantity(
        value=raw * factor,
        raw=raw,
        kind=kind,
        label=_told(before),
        counted=_told(after),
        hard=hard or (bool(kind) and not (share and kind == "%")),
        start=match.start(),
        end=end,
    )


def _told(found: re.Match[str] | None) -> str:
    """The stem of a neighbour that tells what is numbered; `of`, `is` and their like do not."""
    word = found[1].lower() if found else ""
    return "" if word in FUNCTION_WORDS else stem(word)


def _value(match: re.Match[str]) -> tuple[float | None, bool]:
    if match["digits"]:
        value = float(re.sub(r"[,  ]", "", match["digits"]))
        if match["power"]:
            value *= 10.0 ** int(match["power"].translate(_RAISED))
        value += 0.5 if match["more"] else 0.0
        return (-value if match["sign"] == "-" else value), True
    if match["top"]:
        return float(match["top"]) / float(match["bottom"]), False
    if match["share"]:
        return _WORDS.get(match["count"].lower(), 1.0) / _SHARES[match["share"].lower()], False
    words = re.split(r"[ -]", match["word"].lower())
    total = part = 0.0
    for word in words:
        if word in _SCALES:
            part = (part or 1.0) * _SCALES[word]
            total, part = total + part, 0.0
        else:
            part += _WORDS[word]
    return total + part + (0.5 if match["more"] else 0.0), len(words) > 1 or words[0] not in _SOFT


def _unit_after(text: str, end: int) -> tuple[str, float, int]:
    """Kind, factor and end of the unit that follows a number; a bare number has none."""
    found = _UNIT.match(text, end)
    unit = _known(found["unit"]) if found else None
    if found and unit:
        kind, factor = unit
        rate = _RATE.match(text, found.end())
        over = _known(rate["unit"]) if rate else None
        if rate and over and over[0] == "time" and kind != "time":
            return f"{kind}/time", factor / over[1], rate.end()
        return kind, factor, found.end()
    counted = _RATE.match(text, end) or _COUNTED.match(text, end)
    over = _known(counted["unit"]) if counted else None
    if counted and over and over[0] == "time":
        return "/time", 1 / over[1], counted.end()
    return "", 1.0, end


def _known(unit: str) -> tuple[str, float] | None:
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


def _shared_units(text: str, found: Sequence[Quantity]) -> list[Quantity]:
    """In `50-200 ms` and `640 × 480 pixels` the unit is of both."""
    shared = list(found)
    for place in range(len(shared) - 2, -1, -1):
        one, after = shared[place], shared[place + 1]
        if one.kind or not after.kind or one.end > after.start:
            continue
        if _JOIN.fullmatch(text, one.end, after.start):
            factor = after.value / after.raw if after.raw else 1.0
            shared[place] = replace(one, kind=after.kind, value=one.raw * factor, counted=after.counted, hard=True)
    return shared


_UNIT_WORD = re.compile(r"[A-Za-z]{3,16}|[A-Za-z]{1,4}/s\b")
_NO_UNIT_WORDS = frozenset("bit bits second deg min sec pound pounds foot lit yard".split())  # mean other things too


def measures(text: str, numbered: Sequence[Quantity]) -> frozenset[tuple[str, float]]:
    """Units that are named (`in radians`, `per hour`), as kind and factor, but for those of the quantities given."""
    found = set()
    for match in _UNIT_WORD.finditer(text):
        if any(one.start <= match.start() < one.end for one in numbered):
            continue
        if match[0].lower() not in _NO_UNIT_WORDS and (unit := _known(match[0])):
            found.add(unit)
    return frozenset(found)
