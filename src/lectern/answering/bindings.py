"""What a sentence ties together that its evidence does not: the key of one row with the cells of another, a name with
what is said of its neighbour, first with last, a word in a slot that the source fills with another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from lectern.answering.claims import Claim, Word
from lectern.text.quantities import same
from lectern.text.wording import kindred, stem

MOST_WORDS = 120
MOST_ROWS = 60
CONTEXT = 2  # equal words on either side of a replaced one that make it a slot
SLOT = 2  # content words that fill a slot
REACH = 3  # content words on each side of an order word

_PIVOT = re.compile(r"\b(?:before|after|then|until|finally|first|last)\b")
_BACK = frozenset("after once".split())
_SPLITS = frozenset("while whereas but and or because so which although though if when unless".split())


def pieces_of(unit: Claim) -> Iterator[Claim]:
    """A unit between its commas and conjunctions; of a row, its cells."""
    start, prose = 0, unit.kind == "prose"
    for number, word in enumerate(unit.words):
        ends = word.opens or (prose and word.text in _SPLITS)
        told = any(one.kind != "function" for one in unit.words[start:number])
        if number > start and ends and (told or not prose):
            yield unit.part(start, number)
            start = number
    yield unit.part(start, len(unit.words)) if start else unit


def has(piece: Claim, word: Word) -> bool:
    """Whether a piece has a word, or one that may stand for it."""
    return word.stem in piece.stems or any(kindred(word.stem, other) for other in piece.stems)


def rest_of(clause: Claim, pieces: Sequence[Claim]) -> Claim | None:
    """The piece that has most of a clause's words; the first of equals."""
    scored = [(_shared(clause, piece), -place) for place, piece in enumerate(pieces)]
    best = max(scored, default=(0, 0))
    return pieces[-best[1]] if best[0] else None


def _shared(clause: Claim, piece: Claim) -> int:
    return sum(has(piece, word) for word in clause.content[:MOST_WORDS])


def order_turned(sentence: Claim, evidence: Sequence[Claim], units: Sequence[Claim]) -> bool:
    """Whether something comes first here and last there."""
    held = {id(unit) for unit in evidence}
    theirs: list[str] = []
    for unit in units:
        if id(unit) in held:
            theirs += _in_time(unit)
    for mark in _PIVOT.finditer(sentence.lower):
        left = [word.stem for word in sentence.content if word.start < mark.start()][-REACH:]
        right = [word.stem for word in sentence.content if word.start >= mark.end()][:REACH]
        if mark[0] in _BACK:
            left, right = right, left
        one = [theirs.index(stem_) for stem_ in left if stem_ in theirs and stem_ not in right]
        other = [theirs.index(stem_) for stem_ in right if stem_ in theirs and stem_ not in left]
        if one and other and min(one) > max(other):
            return True
    return False


def _in_time(unit: Claim) -> list[str]:
    """Content words in the order of what happens."""
    for number, word in enumerate(unit.words):
        if word.text in _BACK and number:
            turned = (*unit.words[number + 1 :], *unit.words[:number])
            return [one.stem for one in turned if one.kind != "function"]
    return [one.stem for one in unit.content]


def other_key(clause: Claim, units: Sequence[Claim]) -> bool:
    """The cells of one row under the key of another."""
    rows = [unit for unit in units if unit.kind == "row"][:MOST_ROWS]
    if len(rows) < 2:  # noqa: PLR2004  # nothing to confuse it with
        return False
    said = {word.text for word in clause.words} | {word.stem for word in clause.words}
    numbers = {one.raw for one in clause.quantities}
    keys = [_key(row) for row in rows]
    common = set.intersection(*keys)
    held = [
        sum(has(row, word) for word in clause.content if word.stem not in key)
        for row, key in zip(rows, keys, strict=True)
    ]
    best = max(held)
    if not best:
        return False

    def named(key: set[str]) -> bool:
        own = key - common
        return bool(own) and all(one in said or _number(one) in numbers for one in own)

    fitting = [place for place, count in enumerate(held) if count == best]
    called = [place for place, key in enumerate(keys) if named(key)]
    return bool(called) and not set(called) & set(fitting) and max(held[place] for place in called) < best


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _key(row: Claim) -> set[str]:
    """Words and numbers of a row's first cell."""
    first = row.text.split(", ", 1)[0].lower().replace("`", "")
    return {stem(word) for word in re.findall(r"[\w./-]+", first)}


def other_name(clause: Claim, names: set[str], pieces: Sequence[Claim]) -> bool:
    """The pieces that have most of the clause's words have another name than the sentence."""
    plain = [word for word in clause.content if word.kind != "name"]
    if not names or not plain:
        return False
    counts = [sum(has(piece, word) for word in plain) for piece in pieces]
    most = max(counts, default=0)
    if not most:
        return False
    best = [piece for piece, count in zip(pieces, counts, strict=True) if count == most]
    if any(name in word.text for piece in best for word in piece.words for name in names):
        return False
    return any(word.kind == "name" for piece in best for word in piece.content)


def other_number(clause: Claim, pieces: Sequence[Claim]) -> bool:
    """The piece that has most of the clause's words has other numbers."""
    mine = [one for one in clause.quantities if one.hard]
    if not mine or not clause.content:
        return False
    best = max(pieces, key=lambda piece: _shared(clause, piece), default=None)
    if best is None or not best.quantities or not _shared(clause, best):
        return False
    return not any(same(one, other) for one in mine for other in best.quantities)


def other_subject(sentence: Claim, best: Claim, units: Sequence[Claim]) -> bool:
    """Begins with what the unit does not speak of, though the passage does; and the unit's own beginning is gone."""
    if not sentence.content or not best.content:
        return False
    mine, theirs = sentence.content[0], best.content[0]
    if has(best, mine) or has(sentence, theirs):
        return False
    return any(mine.stem in unit.stems for unit in units)


def slot(sentence: Claim, unit: Claim) -> bool:
    """Whether something else stands between equal words."""
    mine, theirs = sentence.words[:MOST_WORDS], unit.words[: 2 * MOST_WORDS]
    matcher = SequenceMatcher(None, [word.stem for word in mine], [word.stem for word in theirs], autojunk=False)
    codes = matcher.get_opcodes()
    for place, (tag, start, end, low, high) in enumerate(codes):
        if tag != "replace":
            continue
        before = codes[place - 1][2] - codes[place - 1][1] if place else CONTEXT
        after = codes[place + 1][2] - codes[place + 1][1] if place + 1 < len(codes) else CONTEXT
        ours = [word for word in mine[start:end] if word.kind != "function"]
        others = [word for word in theirs[low:high] if word.kind != "function"]
        if before + after < 2 * CONTEXT or not (0 < len(ours) <= SLOT and 0 < len(others) <= SLOT):
            continue
        if not any(kindred(one.stem, two.stem) or one.stem == two.stem for one in ours for two in others):
            return True
    return False


def torn(clause: Claim, rest: Claim | None, evidence: Sequence[Claim]) -> float:
    """The share of a clause's words that its piece lacks and other evidence has."""
    if rest is None or not clause.content:
        return 0.0
    absent = [word for word in clause.content if not has(rest, word)]
    held = [word for word in absent if any(word.stem in unit.stems for unit in evidence)]
    return len(held) / len(clause.content)
