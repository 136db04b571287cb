"""How a sentence lies on the passage it cites, as numbers between 0 and 1 that a judge can weigh. First the units are
found that hold most of its words; then everything is compared with these alone: the words that are missing, what
stands in their place, numbers, names, negations, opposites, and who does what to whom. A sentence of several clauses
is also compared clause by clause, each with its own best unit: true words from two places can make a falsehood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from lectern.answering.claims import Claim, Word
from lectern.answering.clauses import clauses_of, crossed
from lectern.answering.contrasts import Contrast, contrast
from lectern.text.quantities import Quantity, rivals, same
from lectern.text.wording import kindred

MOST_WORDS = 120  # of a sentence that are looked at: comparing two orders is quadratic
EVIDENCE = 3  # units that one sentence may rest on
KIN_VALUE = 0.9  # a word of the same group, against the word itself
COUNTS = (0.0, 0.7, 0.9, 1.0)  # none, one, two, more: the first contradiction says most
NEIGHBOUR = 0.3  # of a word: what a sentence rests on mostly stands together
HOME = 1.1  # of a word: a clause of two words rests where its sentence does, unless another unit has clearly more of it
NUMBER = 1.0  # a number found counts like a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the comparison found. Shares are 0…1, and so are counts: see COUNTS."""

    covered: float  # share of the sentence's content words in the best unit
    covered_by_evidence: float  # in the few units it may rest on
    covered_anywhere: float
    weakest_clause: float  # the least covered clause, each by its own best unit
    used: float  # share of the best unit's content words that the sentence has
    run: float  # the longest run of words in the unit's order, as a share of the sentence
    sequence: float  # share of the sentence's words that stand in the unit in the same order
    replaced: float  # content words that stand where the unit has others
    inserted: float  # content words that the unit lacks altogether, nothing in their place
    left_out: float  # content words of the unit between matched ones
    moved: float  # content words that stand elsewhere in an otherwise equal unit
    edited: float  # places where a negation, a limit or a quantifier came or went
    strayed: float  # content words of a clause that its best unit lacks and another has
    borrowed: float  # the same, from the sentence beside it
    unbound: float  # names and numbers that the best unit ties to something else, or lacks
    apart: float  # share of neighbours that the unit has far from each other
    number_missing: float
    number_elsewhere: float  # in the passage, not in the evidence
    number_rival: float
    number_same: float
    name_missing: float
    name_elsewhere: float
    name_same: float
    negation_added: float
    negation_lost: float
    flipped: float  # an odd number of negations and opposites lies between them
    limit_differs: float
    opposites: float
    swapped: float
    crossed: float  # two clauses that each take half of one thing and half of another
    disorder: float  # share of pairs of shared words in the other order
    words: float  # content words of the sentence, by 20
    not_prose: float  # the best unit is a table's row or code


SIGNALS = tuple(field.name for field in fields(Signals))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The units that a sentence rests on, and what was found."""

    evidence: tuple[Claim, ...]  # the best unit first
    consulted: tuple[Claim, ...]  # these and the ones that its clauses rest on
    signals: Signals


def align(sentence: Claim, units: Sequence[Claim]) -> Alignment | None:
    """Hold a sentence against a passage's units; None where either says nothing."""
    content = sentence.content[:MOST_WORDS]
    if not units or not (content or sentence.quantities):
        return None
    grid = Grid(content, units)
    order = grid.evidence([NUMBER * _numbers(sentence, unit) for unit in units])
    evidence = [units[place] for place in order]
    clauses = clauses_of(sentence)
    home = [HOME if place == order[0] else 0.0 for place in range(len(units))]
    rests = [[units[place] for place in grid.narrowed(clause).evidence(home)] for clause in clauses]
    contrasts = [contrast(clause, rest, units) for clause, rest in zip(clauses, rests, strict=True)]
    consulted = tuple({id(unit): unit for rest in (evidence, *rests) for unit in rest}.values())
    signals = _signals(sentence, grid, order, contrasts)
    return Alignment(
        evidence=tuple(evidence),
        consulted=consulted,
        signals=replace(signals, crossed=float(crossed(clauses, consulted))),
    )


class Grid:
    """How far each unit has each content word of a sentence."""

    def __init__(self, content: Sequence[Word], units: Sequence[Claim], rows: list[list[float]] | None = None) -> None:
        self.content, self.units = content, units
        self.rows = rows if rows is not None else _rows(content, units)

    def narrowed(self, clause: Claim) -> Grid:
        """The same for one clause of the sentence."""
        meant = {word.place for word in clause.content}
        columns = [number for number, word in enumerate(self.content) if word.place in meant]
        return Grid(
            [self.content[column] for column in columns],
            self.units,
            [[row[column] for column in columns] for row in self.rows],
        )

    def evidence(self, bonus: Sequence[float]) -> list[int]:
        """The best unit, words and bonus taken together, and those that add words to it."""
        scores = [
            sum(row) + bonus[place] - 0.01 * len(self.units[place].content) for place, row in enumerate(self.rows)
        ]
        chosen = [max(range(len(scores)), key=lambda place: (scores[place], -place))]
        covered = list(self.rows[chosen[0]])
        while len(chosen) < EVIDENCE:
            gains = [
                sum(max(new - old, 0.0) for new, old in zip(row, covered, strict=True))
                + NEIGHBOUR * (abs(place - chosen[0]) == 1)
                for place, row in enumerate(self.rows)
            ]
            best = max(range(len(gains)), key=lambda place: (gains[place], -place))
            if best in chosen or gains[best] < KIN_VALUE:
                break
            chosen.append(best)
            covered = [max(pair) for pair in zip(covered, self.rows[best], strict=True)]
        return chosen

    def best(self, places: Sequence[int]) -> list[float]:
        """For each word, how far any of these units has it."""
        return [max(self.rows[place][word] for place in places) for word in range(len(self.content))]


def _rows(content: Sequence[Word], units: Sequence[Claim]) -> list[list[float]]:
    kin = {word.stem: {} for word in content}  # type: dict[str, dict[str, bool]]
    rows = []
    for unit in units:
        stems = unit.stems
        row = []
        for word in content:
            if word.stem in stems:
                row.append(1.0)
            elif word.kind == "name":
                row.append(float(len(word.text) > 2 and word.text in unit.lower))  # noqa: PLR2004  # `ros2` in `ros2 run`
            else:
                known = kin[word.stem]
                for other in stems - known.keys():
                    known[other] = kindred(word.stem, other)
                row.append(KIN_VALUE if any(known[other] for other in stems) else 0.0)
        rows.append(row)
    return rows


def _numbers(sentence: Claim, unit: Claim) -> int:
    return sum(any(same(one, other) for other in unit.quantities) for one in sentence.quantities if one.hard)


def _signals(sentence: Claim, grid: Grid, order: Sequence[int], contrasts: Sequence[Contrast]) -> Signals:
    content = grid.content
    anywhere, by_evidence = grid.best(range(len(grid.units))), grid.best(order)
    evidence = [grid.units[place] for place in order]
    mine = {word.stem for word in content}
    missing, elsewhere, rival, agree = _compare_numbers(sentence, evidence, grid.units)
    names = [place for place, word in enumerate(content) if word.kind == "name"]
    whole = contrast(sentence, evidence, grid.units) if len(contrasts) != 1 else contrasts[0]
    return Signals(
        covered=_mean(grid.rows[order[0]]),
        covered_by_evidence=_mean(by_evidence),
        covered_anywhere=_mean(anywhere),
        weakest_clause=min((one.covered for one in contrasts), default=1.0),
        used=_mean([float(word.stem in mine) for word in evidence[0].content]),
        run=whole.run,
        sequence=whole.sequence,
        replaced=_count(max(one.replaced for one in contrasts)),
        inserted=_count(max(one.inserted for one in contrasts)),
        left_out=_count(max(one.left_out for one in contrasts)),
        moved=_count(max(whole.moved, *(one.moved for one in contrasts))),
        edited=_count(whole.edited),
        strayed=_count(max(one.strayed for one in contrasts)),
        borrowed=_count(max(one.borrowed for one in contrasts)),
        unbound=_count(max(one.unbound for one in contrasts)),
        apart=max(one.apart for one in contrasts),
        number_missing=_count(missing),
        number_elsewhere=_count(elsewhere),
        number_rival=_count(rival),
        number_same=_count(agree),
        name_missing=_count(sum(anywhere[place] == 0.0 for place in names)),
        name_elsewhere=_count(sum(by_evidence[place] == 0.0 < anywhere[place] for place in names)),
        name_same=_count(sum(by_evidence[place] > 0.0 for place in names)),
        negation_added=_count(max(one.negation_added for one in contrasts)),
        negation_lost=_count(max(one.negation_lost for one in contrasts)),
        flipped=float(any(one.flipped for one in contrasts)),
        limit_differs=float(any(one.limit_differs for one in contrasts)),
        opposites=_count(max(one.opposites for one in contrasts)),
        swapped=_count(max(one.swapped for one in contrasts)),
        crossed=0.0,
        disorder=whole.disorder,
        words=min(len(content) / 20, 1.0),
        not_prose=float(evidence[0].kind != "prose"),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0


def _count(number: int) -> float:
    return COUNTS[min(number, len(COUNTS) - 1)]


def _compare_numbers(sentence: Claim, evidence: Sequence[Claim], units: Sequence[Claim]) -> tuple[int, int, int, int]:
    """Numbers that are missing altogether, that stand elsewhere only, that have a rival, and that agree."""
    missing = elsewhere = rival = agree = 0
    ours = [one for unit in evidence for one in unit.quantities]
    every = [one for unit in units for one in unit.quantities]
    for one in sentence.quantities:
        if any(same(one, other) for other in ours):
            agree += 1
            rival += _misplaced(one, ours)
            continue
        rival += any(rivals(one, other) for other in ours)
        if one.hard:
            elsewhere += any(same(one, other) for other in every)
            missing += not any(same(one, other) for other in every)
    return missing, elsewhere, rival, agree


def _misplaced(one: Quantity, ours: Sequence[Quantity]) -> bool:
    """`category 2` where the units have `category 0`, though a 2 stands there too, for something else."""
    labelled = [other for other in ours if one.label and other.label == one.label and not one.kind]
    return bool(labelled) and not any(same(one, other) for other in labelled)
