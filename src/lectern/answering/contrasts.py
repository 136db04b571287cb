"""One clause against the units it rests on, as an editor would mark the change: what was replaced, moved, left out,
negated, turned into its opposite, or made to change sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from lectern.answering.claims import Claim, Word
from lectern.answering.polarity import LIMITS, NEGATORS, negations, opposite
from lectern.text.quantities import same
from lectern.text.wording import kindred, stem

MOST_WORDS = 120
SCOPE = 4  # words that a negation reaches
FAR = 5  # words between two that belong together
PRONOUNS = frozenset("it its they their this these that those he his she her both such one".split())
TURNING = NEGATORS | LIMITS | frozenset("all some every each any most always sometimes must may both".split())
PIVOTS = frozenset("than before after to from into instead not on through".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The marks."""

    covered: float
    run: float
    sequence: float
    replaced: int
    inserted: int
    left_out: int
    moved: int
    edited: int
    strayed: int
    borrowed: int
    unbound: int
    apart: float
    negation_added: int
    negation_lost: int
    flipped: bool
    limit_differs: bool
    opposites: int
    swapped: int
    disorder: float


def contrast(clause: Claim, evidence: Sequence[Claim], units: Sequence[Claim]) -> Contrast:
    """Compare a clause with its units, the best one first, out of all that the passage has."""
    best = evidence[0]
    edits = _edits(clause, best)
    content = clause.content[:MOST_WORDS]
    held = [_held(word, best) for word in content]
    absent = [word for word, mine in zip(content, held, strict=True) if not mine]
    strayed, borrowed = _strays(_unresolved(absent, clause, best), best, units)
    added, lost = _negations(clause, evidence)
    opposites = _opposed(clause, evidence)
    return Contrast(
        covered=sum(held) / len(held) if held else 1.0,
        run=edits.run,
        sequence=edits.sequence,
        replaced=edits.replaced,
        inserted=edits.inserted,
        left_out=edits.left_out,
        moved=edits.moved,
        edited=edits.edited,
        strayed=strayed,
        borrowed=borrowed,
        unbound=_unbound(clause, best),
        apart=_apart(content, best),
        negation_added=added,
        negation_lost=lost,
        flipped=bool((added + lost + opposites) % 2),
        limit_differs=_limited(clause) != _limited(best),
        opposites=opposites,
        swapped=_swaps(clause, best),
        disorder=_disorder(content, best),
    )


def _held(word: Word, unit: Claim) -> bool:
    return word.stem in unit.stems or any(kindred(word.stem, other) for other in unit.stems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edits:
    run: float
    sequence: float
    replaced: int
    inserted: int
    left_out: int
    moved: int
    edited: int


def _edits(clause: Claim, unit: Claim) -> _Edits:
    """What an editor would mark who turned the unit into the clause."""
    mine, theirs = clause.words[:MOST_WORDS], unit.words[: 2 * MOST_WORDS]
    matcher = SequenceMatcher(None, [word.stem for word in mine], [word.stem for word in theirs], autojunk=False)
    replaced = inserted = left_out = moved = edited = matched = run = 0
    for tag, start, end, low, high in matcher.get_opcodes():
        if tag == "equal":
            matched, run = matched + end - start, max(run, end - start)
            continue
        ours = [word for word in mine[start:end] if word.kind != "function"]
        others = [word for word in theirs[low:high] if word.kind != "function"]
        moved += sum(word.stem in unit.stems for word in ours)
        edited += any(word.text in TURNING for word in (*mine[start:end], *theirs[low:high]))
        foreign = sum(not _held(word, unit) for word in ours)
        if others:
            replaced += foreign
        else:
            inserted += foreign
        if 0 < start < len(mine):
            left_out += len(others)
    size = max(len(mine), 1)
    return _Edits(
        run=run / size,
        sequence=matched / size,
        replaced=replaced,
        inserted=inserted,
        left_out=left_out,
        moved=moved,
        edited=edited,
    )


def _unresolved(absent: Sequence[Word], clause: Claim, unit: Claim) -> list[Word]:
    """Without the words before all that is shared, where the unit begins with a pronoun: they say what it means."""
    if not unit.words or unit.words[0].text not in PRONOUNS:
        return list(absent)
    first = min((word.place for word in clause.content if word.stem in unit.stems), default=0)
    return [word for word in absent if word.place > first]


def _strays(absent: Sequence[Word], best: Claim, units: Sequence[Claim]) -> tuple[int, int]:
    """Words that the best unit lacks: how many stand elsewhere in the passage, and how many in the very next sentence,
    from which a writer borrows a subject."""
    at = next(place for place, unit in enumerate(units) if unit is best)
    beside = [unit for unit in units[max(0, at - 1) : at + 2] if unit.kind == best.kind == "prose"]
    strayed = borrowed = 0
    for word in absent:
        if any(word.stem in unit.stems for unit in beside):
            borrowed += 1
        elif any(word.stem in unit.stems for unit in units):
            strayed += 1
    return strayed, borrowed


def _unbound(clause: Claim, unit: Claim) -> int:
    """Names and numbers that the unit ties to other words: it has another one nearer to the word that they stand by."""
    count = 0
    names = [word for word in unit.content if word.kind == "name"]
    stated = {word.stem for word in clause.content}
    for number, word in enumerate(clause.content):
        if word.kind != "name" or word.stem not in unit.places:
            continue
        beside = clause.content[max(0, number - 2) : number] + clause.content[number + 1 : number + 3]
        for anchor in beside:
            places = unit.places.get(anchor.stem, [])
            if anchor.kind == "name" or len(places) != 1:
                continue
            mine = min(abs(place - places[0]) for place in unit.places[word.stem])
            if any(name.stem not in stated and abs(name.place - places[0]) < mine for name in names):
                count += 1
                break
    count += sum(not any(same(one, other) for other in unit.quantities) for one in clause.quantities if one.hard)
    return count


def _apart(content: Sequence[Word], unit: Claim) -> float:
    """The share of the clause's neighbours that stand far from each other in the unit."""
    places = unit.places
    pairs = [
        (places[one.stem], places[two.stem])
        for one, two in _neighbours(content)
        if {one.stem, two.stem} <= places.keys()
    ]
    if not pairs:
        return 0.0
    return sum(min(abs(a - b) for a in one for b in two) > FAR for one, two in pairs) / len(pairs)


def _neighbours(content: Sequence[Word]) -> list[tuple[Word, Word]]:
    return [(one, two) for one, two in pairwise(content) if two.place - one.place <= FAR]


def _negations(clause: Claim, evidence: Sequence[Claim]) -> tuple[int, int]:
    """Negations that the clause adds to what its units say, and that it drops."""
    mine = _keys(clause)
    theirs = [key for unit in evidence for key in _keys(unit)]
    added = lost = 0
    for key in mine:
        if not theirs or (key and key in evidence[0].stems and not _any_kin(key, theirs)):
            added += 1
    for key in theirs:
        if not mine and key and key in clause.stems:
            lost += 1
    return added, lost


def _keys(claim: Claim) -> list[str]:
    """The telling word that each negation is about: the next one, or the one before where none follows."""
    words = claim.words
    found = []
    for place in negations([word.text for word in words]):
        after = [word.stem for word in words[place + 1 : place + 1 + SCOPE] if word.kind != "function"]
        before = [word.stem for word in words[max(0, place - SCOPE) : place] if word.kind != "function"]
        found.append(after[0] if after else before[-1] if before else "")
    return found


def _any_kin(one: str, others: Sequence[str]) -> bool:
    return any(one == other or kindred(one, other) for other in others)


def _opposed(clause: Claim, evidence: Sequence[Claim]) -> int:
    """Words whose opposite stands in the units, while they themselves do not."""
    mine = {stem(word.text) for word in clause.words}
    theirs = {stem(word.text) for unit in evidence for word in unit.words}
    only_mine, only_theirs = mine - theirs, theirs - mine
    return sum(any(opposite(one, other) for other in only_theirs) for one in only_mine if one not in NEGATORS)


def _swaps(clause: Claim, unit: Claim) -> int:
    """Little words such as `than` and `before` around which two others changed sides."""
    places = unit.all_places
    words, count = clause.words, 0
    for number, pivot in enumerate(words):
        if pivot.text not in PIVOTS or pivot.stem not in places:
            continue
        before = [word for word in words[max(0, number - FAR) : number] if word.stem in unit.places]
        after = [word for word in words[number + 1 : number + 1 + FAR] if word.stem in unit.places]
        if not before or not after:
            continue
        left, right = places[before[-1].stem], places[after[0].stem]
        count += any(_between(right, middle, left) for middle in places[pivot.stem]) and not any(
            _between(left, middle, right) for middle in places[pivot.stem]
        )
    return count


def _between(left: Sequence[int], middle: int, right: Sequence[int]) -> bool:
    return any(middle - FAR <= one < middle for one in left) and any(middle < one <= middle + FAR for one in right)


def _disorder(content: Sequence[Word], unit: Claim) -> float:
    places = [unit.places[word.stem][0] for word in content if word.stem in unit.places]
    pairs = len(places) * (len(places) - 1) // 2
    if not pairs:
        return 0.0
    return sum(one > other for number, one in enumerate(places) for other in places[number + 1 :]) / pairs


def _limited(claim: Claim) -> bool:
    return any(word.text in LIMITS for word in claim.words)
