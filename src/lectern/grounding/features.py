"""The signals that the judge weighs. A sentence is compared with the units of its passages that have most of its words.
Each signal measures one way in which the two agree or differ, as a number from 0 to 1: words, numbers, units, names,
negation, generality. No signal knows synonyms or opposites. The network reads the meaning; the signals
measure what a network overlooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise

from lectern.grounding.claims import Claim, Word, clauses_of
from lectern.text.quantities import Quantity, measures, ranks_of, rivals, same

MAX_WORDS = 120  # words of a sentence that are compared: comparing two orders takes quadratic time
MAX_EVIDENCE = 3  # units that a sentence is compared with
MAX_CLAUSES, MAX_PIECES = 8, 60
HOME_BONUS = 1.1  # words: a clause is compared with its sentence's best unit, unless another has clearly more of it
NEIGHBOUR_BONUS = 0.3  # words: the evidence of a sentence is mostly in one place
LENGTH_COST = 0.01  # words: of two units with the same words, the shorter one is better
COUNTS = (0.0, 0.7, 0.9, 1.0)  # signals for none, one, two, more: the first difference matters most
NEGATION_REACH = 6  # words after a negation that it may be about
MIN_CODE_NAME = 3  # letters of a name that is searched inside longer names: `ros2` in `ros2 run`
MAX_MISSING, MAX_LENGTH = 8, 40  # words; more count the same
MIN_CLAUSE_CONTENT = 2  # content words of a clause that is looked for by itself
MAX_OWN_COUNT = 12  # that writers count themselves and spell out
MAX_PERCENT_ERROR = 0.5  # of a percentage that was calculated

NEGATORS = frozenset(
    """not no never none nobody nothing nowhere neither nor cannot without hardly scarcely barely instead non nicht kein
    keine nie pas jamais aucun sin nunca nessuno""".split()
)
_HARMLESS = frozenset("matter only merely just".split())  # `no matter`, `not only`
_UNIVERSAL = frozenset(
    """all always any certainly completely each entirely every everyone everything exclusively guaranteed guarantees
    impossible must necessarily never no none only required requires solely whole""".split()
)
_PIECE_STARTS = frozenset("while whereas but and or because so which although though if when unless".split())


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A sentence and the units that it is compared with."""

    sentence: Claim
    units: tuple[Claim, ...]  # all units of the passages
    evidence: tuple[Claim, ...]  # the units that have most of its words, the best one first
    clauses: tuple[Claim, ...]
    clause_units: tuple[Claim, ...]  # for each clause the unit that has most of its words

    @property
    def best(self) -> Claim:
        """The unit that has most words of the sentence."""
        return self.evidence[0]

    @cached_property
    def content(self) -> tuple[Word, ...]:
        """The content words of the sentence, up to MAX_WORDS."""
        return self.sentence.content[:MAX_WORDS]

    @cached_property
    def missing(self) -> tuple[bool, ...]:
        """For each content word of the sentence whether no unit has it."""
        return tuple(not any(has(unit, word) for unit in self.units) for word in self.content)

    @cached_property
    def consulted(self) -> tuple[Claim, ...]:
        """The units that the sentence or one of its clauses is compared with, each once."""
        return tuple({id(unit): unit for unit in (*self.evidence, *self.clause_units)}.values())

    @cached_property
    def pieces(self) -> tuple[Claim, ...]:
        """The consulted units, cut at commas and conjunctions; a row is cut into its cells."""
        return tuple(piece for unit in self.consulted for piece in _pieces_of(unit))[:MAX_PIECES]

    @cached_property
    def clause_pieces(self) -> tuple[Claim | None, ...]:
        """For each clause the piece that has most of its words."""
        return tuple(_best_piece(clause, self.pieces) for clause in self.clauses)

    @cached_property
    def in_order(self) -> int:
        """The number of the sentence's words that the best unit has in the same order."""
        sentence_words, unit_words = self.sentence.words[:MAX_WORDS], self.best.words[: 2 * MAX_WORDS]
        matcher = SequenceMatcher(
            None, [word.stem for word in sentence_words], [word.stem for word in unit_words], autojunk=False
        )
        return sum(block.size for block in matcher.get_matching_blocks())


def compare(sentence: Claim, units: Sequence[Claim]) -> Comparison | None:
    """Find the units to compare a sentence with; None if there are no units or the sentence has no content."""
    content = sentence.content[:MAX_WORDS]
    if not units or not (content or sentence.quantities):
        return None
    rows = [[has(unit, word) for word in content] for unit in units]
    evidence = _evidence(sentence, units, rows)
    clauses = clauses_of(sentence)[:MAX_CLAUSES]
    clause_units = []
    for clause in clauses:
        places = {word.place for word in clause.content}
        columns = [number for number, word in enumerate(content) if word.place in places]
        scores = [
            sum(row[column] for column in columns)
            + HOME_BONUS * (place == evidence[0])
            - LENGTH_COST * len(unit.content)
            for place, (row, unit) in enumerate(zip(rows, units, strict=True))
        ]
        clause_units.append(units[scores.index(max(scores))])
    return Comparison(
        sentence=sentence,
        units=tuple(units),
        evidence=tuple(units[place] for place in evidence),
        clauses=tuple(clauses),
        clause_units=tuple(clause_units),
    )


def _evidence(sentence: Claim, units: Sequence[Claim], rows: Sequence[Sequence[bool]]) -> list[int]:
    """The places of the unit with most words and numbers of the sentence, and of units that have further words."""
    numbers = [quantity for quantity in sentence.quantities if quantity.hard]
    scores = [
        sum(row) + sum(_contains(quantity, unit.quantities) for quantity in numbers) - LENGTH_COST * len(unit.content)
        for row, unit in zip(rows, units, strict=True)
    ]
    places = [scores.index(max(scores))]
    covered = list(rows[places[0]])
    while len(places) < MAX_EVIDENCE:
        gains = [
            sum(new and not old for new, old in zip(row, covered, strict=True))
            + NEIGHBOUR_BONUS * (abs(place - places[0]) == 1)
            for place, row in enumerate(rows)
        ]
        best = gains.index(max(gains))
        if best in places or gains[best] < 1:
            break
        places.append(best)
        covered = [new or old for new, old in zip(rows[best], covered, strict=True)]
    return places


def has(unit: Claim, word: Word) -> bool:
    """Whether a unit has a word or a related form of it, or a name as part of its text."""
    if word.stem in unit.stems:
        return True
    if word.kind == "name":
        return len(word.text) >= MIN_CODE_NAME and word.text in unit.lower
    return unit.has_relative(word.stem)


# Words


def words_missing(c: Comparison) -> float:
    """How many words of the sentence no unit has."""
    return min(sum(c.missing), MAX_MISSING) / MAX_MISSING


def late_words_missing(c: Comparison) -> float:
    """How many words in the second half of the sentence no unit has: what is added to a true sentence comes late."""
    late = c.missing[len(c.missing) // 2 :]
    return min(sum(late), MAX_MISSING) / MAX_MISSING


def best_unit_covers(c: Comparison) -> float:
    """The largest share of the sentence's words that one unit has."""
    return max((_share(has(unit, word) for word in c.content) for unit in c.units), default=0.0)


def worst_clause_covered(c: Comparison) -> float:
    """The share of a clause's words that one unit has, of the clause with least."""
    shares = [
        max(_share(has(unit, word) for word in clause.content) for unit in c.units)
        for clause in c.clauses
        if len(clause.content) >= MIN_CLAUSE_CONTENT
    ]
    return min(shares, default=1.0)


def generalised(c: Comparison) -> float:
    """How many words such as `always`, `every` and `only` the sentence has that its evidence has not."""
    evidence = {word.text for unit in c.consulted for word in unit.words}
    return _count(len({word.text for word in c.sentence.words} & _UNIVERSAL - evidence))


def length(c: Comparison) -> float:
    """How many content words the sentence has: a long one may differ in few of them."""
    return min(len(c.content), MAX_LENGTH) / MAX_LENGTH


def copied(c: Comparison) -> float:
    """The share of the sentence's words that the best unit has in the same order."""
    return c.in_order / max(min(len(c.sentence.words), MAX_WORDS), 1)


# Numbers and units


def number_missing(c: Comparison) -> float:
    """How many numbers of the sentence no unit has."""
    stated = [quantity for unit in c.units for quantity in unit.quantities]
    numbers = c.sentence.quantities
    missing = (number for number in numbers if number.hard and not _contains(number, stated))
    missing = (number for number in missing if not _is_own_count(number, c.sentence.text))
    return _count(sum(not _is_share(number, numbers, stated) for number in missing))


def _is_own_count(number: Quantity, text: str) -> bool:
    """Whether a number is small, in words and without a unit: writers count what the book lists, as `in three ways`."""
    return number.raw <= MAX_OWN_COUNT and not number.kind and text[number.start : number.end].isalpha()


def _is_share(percentage: Quantity, numbers: Sequence[Quantity], stated: Sequence[Quantity]) -> bool:
    """Whether a percentage is that of two numbers of the same sentence that the units have: `19 of 20, or 95 %`."""
    if percentage.kind != "%":
        return False
    known = [number.raw for number in numbers if not number.kind and _contains(number, stated)]
    shares = [100 * part / whole for part, whole in pairwise(known) if whole]
    return any(abs(share - percentage.value) <= MAX_PERCENT_ERROR for share in shares)


def number_rival(c: Comparison) -> float:
    """How many numbers of the sentence differ from the evidence's number for the same thing."""
    return _count(sum(_has_rival(quantity, _numbers(c.evidence)) for quantity in c.sentence.quantities))


def number_unbound(c: Comparison) -> float:
    """1 if the piece with most words of a clause has numbers, but none of the clause's."""
    return float(any(_other_number(clause, piece) for clause, piece in zip(c.clauses, c.clause_pieces, strict=True)))


def _other_number(clause: Claim, piece: Claim | None) -> bool:
    numbers = [quantity for quantity in clause.quantities if quantity.hard]
    if not numbers or piece is None or not piece.quantities:
        return False
    return not any(_contains(quantity, piece.quantities) for quantity in numbers)


def rank_rival(c: Comparison) -> float:
    """1 if an ordinal or fraction of the sentence differs from the evidence's for the same thing: `second order`."""
    stated = {rank for unit in c.units for rank in ranks_of(unit.text)}
    evidence = {(kind, noun) for unit in c.consulted for kind, noun, _ in ranks_of(unit.text)}
    return float(any(rank not in stated and rank[:2] in evidence for rank in ranks_of(c.sentence.text)))


def unit_rival(c: Comparison) -> float:
    """1 if the sentence names a unit of measure such as `in degrees`, and the evidence only others of the same kind."""
    evidence_units = {unit for claim in c.consulted for unit in measures(claim.text, ())}
    stated = {quantity.kind for claim in c.consulted for quantity in claim.quantities}
    sentence_units = measures(
        c.sentence.text, [quantity for quantity in c.sentence.quantities if quantity.kind in stated]
    )
    kinds = {kind for kind, _ in evidence_units}
    return float(any(unit not in evidence_units and unit[0] in kinds for unit in sentence_units))


def _numbers(claims: Sequence[Claim]) -> list[Quantity]:
    return [quantity for claim in claims for quantity in claim.quantities]


def _contains(quantity: Quantity, candidates: Sequence[Quantity]) -> bool:
    return any(same(quantity, candidate) for candidate in candidates)


def _has_rival(quantity: Quantity, candidates: Sequence[Quantity]) -> bool:
    """Whether the candidates have another number for the same thing. `category 2` also differs from `category 0` if
    there is a 2 of something else."""
    if not _contains(quantity, candidates):
        return any(rivals(quantity, candidate) for candidate in candidates)
    labelled = [
        candidate
        for candidate in candidates
        if quantity.label and candidate.label == quantity.label and not quantity.kind
    ]
    return bool(labelled) and not _contains(quantity, labelled)


# Names


def name_missing(c: Comparison) -> float:
    """How many names of the sentence no unit has."""
    return _count(sum(not any(has(unit, name) for unit in c.units) for name in _names(c.content)))


def _names(words: Sequence[Word]) -> list[Word]:
    return [word for word in words if word.kind == "name"]


def name_swapped(c: Comparison) -> float:
    """1 if a copy has another name where the best unit has one: `K_i` for `K_d`. A name for a pronoun is none."""
    sentence_words, unit_words = c.sentence.words[:MAX_WORDS], c.best.words[: 2 * MAX_WORDS]
    matcher = SequenceMatcher(
        None, [word.stem for word in sentence_words], [word.stem for word in unit_words], autojunk=False
    )
    for tag, start, end, unit_start, unit_end in matcher.get_opcodes():
        if tag != "replace" or not _names(unit_words[unit_start:unit_end]):
            continue
        if any(not has(c.best, name) for name in _names(sentence_words[start:end])):
            return 1.0
    return 0.0


# Negation


def negations(claim: Claim) -> list[int]:
    """The places of a claim's negations. `No more than five` and `not only` are none; `rather than` is one."""
    words = [word.text for word in claim.words]
    places = []
    for place, word in enumerate(words):
        after = [*words[place + 1 : place + 3], "", ""]
        harmless = after[0] in _HARMLESS or after[1] == "than"
        negates = (word in NEGATORS or word.endswith("n't")) and not harmless
        if negates or (word == "rather" and after[0] == "than"):
            places.append(place)
    return places


def negation_differs(c: Comparison) -> float:
    """The largest share of what one side negates that the other side states without a negation."""
    return max(_stated(c.clauses, c.pieces), _stated(c.pieces, c.clauses))


def _stated(deniers: Sequence[Claim], staters: Sequence[Claim]) -> float:
    """The largest share of a negated phrase of the deniers that the staters have without a negation."""
    plain = [claim for claim in staters if not negations(claim)]
    negated = [claim for claim in staters if negations(claim)]
    worst = 0.0
    for claim in deniers:
        for place in negations(claim):
            scope = [word for word in claim.words[place + 1 : place + 1 + NEGATION_REACH] if word.kind != "function"]
            scope = scope or [word for word in claim.words[max(0, place - 4) : place] if word.kind != "function"]
            stated, agreed = (
                max((_share(has(candidate, word) for word in scope) for candidate in candidates), default=0.0)
                for candidates in (plain, negated)
            )
            if scope and stated > agreed:
                worst = max(worst, stated)
    return worst


# Pieces


def _pieces_of(unit: Claim) -> Iterator[Claim]:
    start, prose = 0, unit.kind == "prose"
    for number, word in enumerate(unit.words):
        ends = word.opens or (prose and word.text in _PIECE_STARTS)
        has_content = any(earlier.kind != "function" for earlier in unit.words[start:number])
        if number > start and ends and (has_content or not prose):
            yield unit.part(start, number)
            start = number
    yield unit.part(start, len(unit.words)) if start else unit


def _best_piece(clause: Claim, pieces: Sequence[Claim]) -> Claim | None:
    counts = [sum(has(piece, word) for word in clause.content[:MAX_WORDS]) for piece in pieces]
    most = max(counts, default=0)
    return pieces[counts.index(most)] if most else None


def _share(values: Iterator[bool] | Sequence[bool]) -> float:
    flags = list(values)
    return sum(flags) / len(flags) if flags else 1.0


def _count(number: int) -> float:
    return COUNTS[min(number, len(COUNTS) - 1)]


SIGNALS: tuple[Callable[[Comparison], float], ...] = (
    words_missing,
    late_words_missing,
    best_unit_covers,
    worst_clause_covered,
    copied,
    generalised,
    length,
    number_missing,
    number_rival,
    number_unbound,
    rank_rival,
    unit_rival,
    name_missing,
    name_swapped,
    negation_differs,
)


def measure(comparison: Comparison) -> Mapping[str, float]:
    """The values of all signals, by name."""
    return {signal.__name__: signal(comparison) for signal in SIGNALS}
