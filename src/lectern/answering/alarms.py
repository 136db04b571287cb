"""What makes a sentence suspect, however freely it is worded. A falsehood is mostly one small turn inside a sentence
that otherwise follows its source: a negation that came or went, `always` for `usually`, another unit, the name of the
row beside. Each is looked for in the smallest piece of the evidence that a clause rests on, because a negation two
clauses away turns nothing round. One alarm alone is often false, so that groups of them are weighed (`GROUPS`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from lectern.answering.bindings import (
    has,
    order_turned,
    other_key,
    other_name,
    other_number,
    other_subject,
    pieces_of,
    rest_of,
    slot,
    torn,
)
from lectern.answering.claims import Claim, Word
from lectern.answering.clauses import clauses_of
from lectern.answering.polarity import LIMITS, negations, opposite
from lectern.text.quantities import measures
from lectern.text.wording import stem

MOST_CLAUSES, MOST_PIECES = 8, 60
AFTER, BEFORE = 6, 4  # words that a negation reaches

_UNIVERSAL = frozenset(
    """always every all any each never none entirely completely perfectly fully totally everything everyone everywhere
    whatever whichever guaranteed certainly invariably absolutely constantly whenever nothing nobody""".split()
)
PARTIAL = frozenset(
    """some sometimes usually often mostly most many nearly almost about roughly typically generally partly may might
    can could few several hardly rarely seldom occasionally probably likely tends approximately""".split()
)
_MUST = frozenset("must required requires shall mandatory necessary".split())
# Words that deny without a negator: what is `missing` does `not exist`.
_DENYING = frozenset(
    stem(word)
    for word in """lack lacking missing miss absent absence fail failure refuse reject avoid prevent forbid exclude
    except unless otherwise only instead rather unable impossible unknown invisible unlike deny stop ignore omit skip
    prohibit ban lose lost drop discard leave alone too hide hidden different differ free protect keep idle cease merely
    unloaded unsafe wrong false bad empty without besides beyond limit little few nobody disable off nothing
    neglect irrespective regardless independent unnecessary useless superfluous suffice enough""".split()
)
_ORDER = frozenset("before after first last then finally until later earlier end begin start next once".split())
_COMPARE = frozenset(
    """than better worse best worst faster slower higher lower longer shorter larger smaller bigger stronger weaker
    greater cheaper wider narrower heavier lighter beats outweighs exceeds stronger fewer""".split()
)
_PASSIVE = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|got)\s+(?:\w+ly\s+)?\w+(?:ed|en|t|wn)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """Each 0…1."""

    unit_rival: float  # a unit that the evidence lacks, where it has another of the same measure
    turned: float  # one side is negated, and nothing explains it
    turned_explained: float  # one side is negated, and a word such as `missing` may say the same
    denied: float  # share of what the sentence negates that the evidence states
    undenied: float  # share of what the evidence negates that the sentence states
    denials: float  # negations of the sentence
    universal_added: float  # `always` where the evidence has nothing of the kind
    partial_lost: float  # `usually`, `may` gone
    limit_added: float
    limit_lost: float
    must_added: float
    comparison: float
    comparison_added: float  # the sentence compares, the evidence does not
    order_added: float
    order_turned: float  # what comes first here comes last there
    other_key: float  # of a table: the key of one row with the cells of another
    other_name: float  # the piece that has the words has another name
    other_number: float
    other_subject: float
    slot: float  # a word in a slot of the copy that the unit fills with another
    voice: float  # one is passive, the other not
    torn: float  # words of a clause that its piece lacks and other evidence has


ALARMS = tuple(field.name for field in fields(Alarms))
# Alarms and signals (`alignment.py`) of one sort, counted together, and how many make it full.
GROUPS = {
    "polarity": (
        ("turned", "turned_explained", "denied", "undenied", "negation_added", "negation_lost", "flipped"),
        4,
    ),
    "binding": (("other_key", "other_name", "other_subject", "other_number", "unbound", "strayed"), 3),
    "scale": (
        ("universal_added", "partial_lost", "limit_added", "limit_lost", "limit_differs", "must_added"),
        3,
    ),
    "order": (("comparison", "comparison_added", "order_added", "order_turned"), 3),
}


def alarms(sentence: Claim, evidence: Sequence[Claim], units: Sequence[Claim]) -> Alarms:
    """Everything suspect about a sentence, given the units that it rests on, the best one first."""
    clauses = clauses_of(sentence)[:MOST_CLAUSES]
    pieces = [piece for unit in evidence for piece in pieces_of(unit)][:MOST_PIECES]
    rests = [rest_of(clause, pieces) for clause in clauses]
    turns = [_turned(clause, rest) for clause, rest in zip(clauses, rests, strict=True)]
    names = {word.stem for word in sentence.content if word.kind == "name"}
    mine, theirs = _texts([sentence]), _texts(evidence)
    resting = _texts([rest for rest in rests if rest])
    return Alarms(
        unit_rival=_unit_rival(sentence, evidence),
        turned=float("plain" in turns),
        turned_explained=float("explained" in turns),
        denied=_stated(clauses, pieces),
        undenied=_stated(pieces, clauses),
        denials=min(sum(_denials(clause) for clause in clauses), 3) / 3,
        universal_added=float(bool(mine & _UNIVERSAL) and not theirs & _UNIVERSAL),
        partial_lost=float(bool(resting & PARTIAL) and not mine & PARTIAL),
        limit_added=float(bool(mine & LIMITS) and not theirs & LIMITS),
        limit_lost=float(bool(resting & LIMITS) and not mine & LIMITS),
        must_added=float(bool(mine & _MUST) and not theirs & _MUST),
        comparison=float(bool(mine & _COMPARE)),
        comparison_added=float(bool(mine & _COMPARE) and not theirs & _COMPARE),
        order_added=float(bool(mine & _ORDER) and not theirs & _ORDER),
        order_turned=float(order_turned(sentence, evidence, units)),
        other_key=float(any(other_key(clause, units) for clause in clauses)),
        other_name=float(any(other_name(clause, names, pieces) for clause in clauses)),
        other_number=float(any(other_number(clause, pieces) for clause in clauses)),
        other_subject=float(other_subject(sentence, evidence[0], units)),
        slot=float(slot(sentence, evidence[0])),
        voice=float(bool(_PASSIVE.search(sentence.lower)) != bool(_PASSIVE.search(evidence[0].lower))),
        torn=max((torn(clause, rest, evidence) for clause, rest in zip(clauses, rests, strict=True)), default=0.0),
    )


def _texts(claims: Sequence[Claim]) -> set[str]:
    return {word.text for claim in claims for word in claim.words}


def _denials(claim: Claim) -> int:
    return len(negations([word.text for word in claim.words]))


def _turned(clause: Claim, rest: Claim | None) -> str:
    if rest is None or _denials(clause) % 2 == _denials(rest) % 2:
        return ""
    mine, theirs = {stem(word.text) for word in clause.words}, {stem(word.text) for word in rest.words}
    denied = (mine - theirs) & _DENYING or (theirs - mine) & _DENYING
    opposed = any(opposite(one, other) for one in mine - theirs for other in theirs - mine)
    return "explained" if denied or opposed else "plain"


def _denies(claim: Claim) -> bool:
    return bool(_denials(claim)) or any(stem(word.text) in _DENYING for word in claim.words)


def _stated(deniers: Sequence[Claim], staters: Sequence[Claim]) -> float:
    """Of what one side negates, the largest share that the other side states without denying it anywhere."""
    worst = 0.0
    for claim in deniers:
        for place in negations([word.text for word in claim.words]):
            scope = [word for word in claim.words[place + 1 : place + 1 + AFTER] if word.kind != "function"]
            scope = scope or [word for word in claim.words[max(0, place - BEFORE) : place] if word.kind != "function"]
            if not scope:
                continue
            stated = max((_share(scope, one) for one in staters if not _denies(one)), default=0.0)
            agreed = max((_share(scope, one) for one in staters if _denies(one)), default=0.0)
            if stated > agreed:
                worst = max(worst, stated)
    return worst


def _share(words: Sequence[Word], claim: Claim) -> float:
    return sum(has(claim, word) for word in words) / len(words)


def _unit_rival(sentence: Claim, evidence: Sequence[Claim]) -> float:
    """Units named without a number, such as `in degrees`, are compared as such; those of numbers are with these."""
    theirs = {one for unit in evidence for one in measures(unit.text, ())}
    stated = {one.kind for unit in evidence for one in unit.quantities}
    mine = measures(sentence.text, [one for one in sentence.quantities if one.kind in stated])
    kinds = {kind for kind, _ in theirs}
    return float(any(one not in theirs and one[0] in kinds for one in mine))
