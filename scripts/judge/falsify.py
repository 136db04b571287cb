"""Statements made false by small changes that a program can make: a negation, an opposite, another number, unit or
name, two things that change places."""
# ruff: noqa: PLR2004  # shares and sizes of the recipe stand where they are used

from __future__ import annotations

import re
from random import Random

from judge.opposites import OPPOSITES

from lectern.grounding.claims import Claim, Word, read_claim, units_of

Spots = list[tuple[int, int, Word]]  # where words of a statement begin and end

_VERB = re.compile(r"\b(is|are|was|were|can|could|may|must|should|will|would|does|do) (?!not\b)")
_ACTS = re.compile(
    r"\b([a-z]{3,}?)(s|es) (?=(?:the|a|an|its|their|to|from|in|on|at|with|no|of|two|three|only|by|all)\b)"
)
_NOUN_BEFORE = re.compile(r"\b(the|a|an|of|two|three|four|and|or|its|in|with|by|all|these|many|several|\d+)\s*$")
_NO_VERB = frozenset("thi it wa i ha doe alway".split())
_NUMBER = re.compile(r"(?<![\w.`])\d+(?:\.\d+)?(?![\w`])")
_NO_OPPOSITE = frozenset("on in one over up his he may must can should light even right with all every".split())
_OTHER_COUNT = dict(
    pair.split(":")
    for pair in (
        "two:three three:four four:six five:four six:eight seven:nine eight:six nine:seven ten:twenty half:a_third "
        "twice:three_times first:second third:second"
    ).split()
)
_UNITS = """nanoseconds microseconds milliseconds seconds minutes hours days|millimetres centimetres metres kilometres
grams kilograms|degrees radians|bytes kilobytes megabytes gigabytes|watts kilowatts|millisecond second minute hour day
millimetre centimetre metre kilometre|gram kilogram|degree radian"""
_SYMBOLS = """ns µs ms s min h|mm cm m km|g kg|kHz Hz MHz|KB MB GB|kB MB GB|rad deg|rad/s deg/s|m/s cm/s km/h|N kN|W kW
V mV|° rad|% ‰|weeks days|weeks months|KiB MiB"""
_PIVOTS = (" than ", " before ", " after ", ", while ", ", whereas ", " instead of ", " rather than ")
_DERIVED = ("ly", "ed", "ing")  # words that rarely fit where another stood
NEAR = 2  # units that lie so far from each other are still plausible
FEWEST, TRIES = 3, 2  # words to exchange two of; draws of two


def _groups(table: str) -> list[list[str]]:
    return [group.split() for group in table.replace("\n", "|").split("|") if group.strip()]


def _opposites() -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for first_word, second_word in _groups(OPPOSITES):
        table.setdefault(first_word, []).append(second_word)
        table.setdefault(second_word, []).append(first_word)
    return table


_OPPOSITE = _opposites()


def negated(text: str, _: str, r: Random) -> list[str]:
    """A negation added or taken away, a limit moved."""
    variants = []
    if verbs := list(_VERB.finditer(text)):
        end = r.choice(verbs).end()
        variants.append(f"{text[:end]}not {text[end:]}")
    variants.append(re.sub(r" (not|never)\b", "", text.replace("cannot", "can").replace("n't", ""), count=1))
    acts = [act for act in _ACTS.finditer(text) if act[1] not in _NO_VERB and text[: act.start()].strip()]
    if acts := [act for act in acts if not _NOUN_BEFORE.search(text[: act.start()].lower())]:
        act = r.choice(acts)
        variants.append(f"{text[: act.start()]}does not {act[1]} {text[act.end() :]}")
    variants.append(re.sub(r"\bwithout\b", "with", text))
    only = re.sub(r"\bonly\b", "not only", text) if r.random() < 0.5 else re.sub(r"\bonly ", "", text)
    if only != text and r.random() < 0.5:
        variants.append(only)

    def surely(word: re.Match[str]) -> str:
        always = r.choice(["always", "never"])
        return {"may": "must", "can": "must"}.get(word[0], always)

    sure = re.sub(r"\b(usually|often|mostly|sometimes|may|can)\b", surely, text, count=1)
    if sure != text and r.random() < 0.6:
        variants.append(sure)
    negations = {"always": "never", "every": "no", "all": "none of"}
    variants.append(re.sub(r"\b(always|every|all)\b", lambda word: negations[word[0]], text, count=1))
    variants.append(re.sub(r"\bno\b", r.choice(["a", "every"]), text, count=1))
    return variants


def opposed(text: str, _: str, r: Random) -> list[str]:
    """A word turned into its opposite."""
    words = [word for word in re.finditer(r"[A-Za-z]+", text) if word[0].lower() in _OPPOSITE.keys() - _NO_OPPOSITE]
    return [_replace_match(text, word := r.choice(words), r.choice(_OPPOSITE[word[0].lower()]))] if words else []


def renumbered(text: str, passage: str, r: Random) -> list[str]:
    """Another number: reckoned, or one of the passage's."""
    if not (numbers := list(_NUMBER.finditer(text))):
        words = [word for word in re.finditer(r"\b[a-z]+\b", text) if word[0] in _OTHER_COUNT]
        return [_replace_match(text, word := r.choice(words), _OTHER_COUNT[word[0]].replace("_", " "))] if words else []
    number = r.choice(numbers)
    value = float(number[0])
    other_numbers = [
        candidate
        for candidate in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", passage)
        if candidate != number[0] and candidate not in text
    ]
    new = r.choice([value * 2, value * 10, value / 2, value + 1, value + 2, value * 1.5])
    variants = [_replace_match(text, number, str(int(new)) if new == int(new) else f"{new:.3g}")]
    return [*variants, _replace_match(text, number, r.choice(other_numbers))] if other_numbers else variants


def remeasured(text: str, _: str, r: Random) -> list[str]:
    """Another unit of the same kind."""
    variants = []
    for table, pattern, near in ((_UNITS, r"\b{}\b", NEAR), (_SYMBOLS, r"(?<=\d )\s?{}(?!\w)", len(_SYMBOLS))):
        for group in _groups(table):
            for place, unit in enumerate(group):
                if re.search(unit_pattern := pattern.format(re.escape(unit)), text):
                    other_units = [
                        candidate for at, candidate in enumerate(group) if candidate != unit and abs(at - place) <= near
                    ]
                    variants.append(re.sub(unit_pattern, r.choice(other_units), text, count=1))
                    break
    return variants[:2]


def renamed(text: str, passage: str, r: Random) -> list[str]:
    """A name, and a word, of the passage for another."""
    claim = read_claim(text)
    units, spots, variants = units_of(passage), _spots(claim), []
    other_words = [(w.kind, unit.text[a:b]) for unit in units for a, b, w in _spots(unit) if w.stem not in claim.stems]
    name_spots, names = (
        [spot for spot in spots if spot[2].kind == "name"],
        [raw for kind, raw in other_words if kind == "name"],
    )
    if name_spots and names:
        variants.append(_instead(claim.text, r.choice(name_spots), r.choice(names)))
    plain = [spot for spot in _held_by_passage(spots, units) if spot[2].kind == "word"]
    words = [raw for kind, raw in other_words if kind == "word" and len(raw) > 3 and not raw.endswith(_DERIVED)]
    if plain and words:
        variants.append(_instead(claim.text, r.choice(plain), r.choice(words)))
    return variants


def swapped(text: str, passage: str, r: Random) -> list[str]:
    """Two words that change places, also around "than" and its kin; the key of one row for another's."""
    claim, units, variants = read_claim(text), units_of(passage), []
    spots, text = _held_by_passage(_spots(claim), units), claim.text
    for _ in range(TRIES if len(spots) >= FEWEST else 0):
        first, second = sorted(r.sample(range(len(spots)), 2))
        (a, b, first_spot), (c, d, second_spot) = spots[first], spots[second]
        if (second - first >= NEAR or second_spot.kind == "name") and first_spot.stem != second_spot.stem:
            variants.append(text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:])
    for pivot in _PIVOTS:
        if pivot in text:
            left_words, right = (side.split() for side in text.rstrip(".").split(pivot, 1))
            if len(left_words) > NEAR and right:
                variants.append(
                    f"{' '.join([*left_words[:-1], right[-1]])}{pivot}{' '.join([*right[:-1], left_words[-1]])}."
                )
    return variants + _other_row(text, [unit.text.split(", ")[0] for unit in units if unit.kind == "row"], r)


def _other_row(text: str, keys: list[str], r: Random) -> list[str]:
    if len(keys) < 2 or not all(key.strip() for key in keys):
        return []
    head = keys[0].split()[0] + " "
    keys = [key.removeprefix(head) for key in keys] if all(key.startswith(head) for key in keys) else keys
    for key in keys:
        plain = re.escape(key.replace("`", ""))
        if plain and re.search(rf"\b{plain}\b", text, re.IGNORECASE):
            other_keys = [candidate for candidate in keys if candidate != key and candidate.lower() not in text.lower()]
            if other_keys:
                match = re.compile(rf"`?\b{plain}\b`?", re.IGNORECASE).search(text)
                return [_replace_match(text, match, r.choice(other_keys))] if match else []
    return []


def _spots(claim: Claim) -> Spots:
    ticks = 2  # around code
    ends = [word.start + len(word.text) + ticks * (claim.text[word.start] == "`") for word in claim.content]
    return [(word.start, end, word) for word, end in zip(claim.content, ends, strict=True)]


def _held_by_passage(spots: Spots, units: tuple[Claim, ...]) -> Spots:
    stems = {stem for unit in units for stem in unit.stems}
    return [spot for spot in spots if spot[2].stem in stems and not spot[2].text.endswith(_DERIVED)]


def _replace_match(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _instead(text: str, spot: tuple[int, int, Word], new: str) -> str:
    return text[: spot[0]] + new + text[spot[1] :]


WAYS = {
    "negation": negated,
    "opposite": opposed,
    "number": renumbered,
    "unit": remeasured,
    "name": renamed,
    "swap": swapped,
}


def falsified(text: str, passage: str, seed: int) -> list[tuple[str, str]]:
    """Every falsehood that was found, with its kind."""
    r = Random(seed)
    variants = [(kind, variant) for kind, way in WAYS.items() for variant in way(text, passage, r)]
    return [(kind, variant) for kind, variant in variants if variant.strip() != text.strip()]
