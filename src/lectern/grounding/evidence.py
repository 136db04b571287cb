"""Selects the text that the network reads beside a statement. Passages that are too long for the network are reduced
to the units that have most of the statement's words, in the order of the book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lectern.grounding.claims import Claim
from lectern.text.quantities import same

MAX_EVIDENCE_WORDS = 135  # with the statement this nearly always fits the network's window; longer texts are cut there
REPEATED_WORD_WEIGHT = 0.3  # the weight of a word that another selected unit has already
NEIGHBOUR_BONUS, LEAD_IN_BONUS = 0.05, 0.02  # a unit beside a selected one, or before it, explains it
LENGTH_OFFSET = 12  # words; damps the preference for short units
_ENDS = (".", "!", "?", ":")


def evidence_for(statement: Claim, units: Sequence[Claim], budget: int = MAX_EVIDENCE_WORDS) -> str:
    """The units with most of the statement's words, as one text of about `budget` words."""
    sizes = [len(unit.text.split()) for unit in units]
    if sum(sizes) <= budget:
        return _join(units)
    frequency = Counter(stem for unit in units for stem in unit.stems)
    weights = {stem: frequency[stem] ** -0.5 for stem in statement.stems if stem in frequency}
    totals = [sum(weights.get(stem, 0.0) for stem in unit.stems) for unit in units]
    uncovered, selection, word_count = dict(weights), set[int](), 0
    while True:
        best, best_gain = -1, 0.0
        for place, unit in enumerate(units):
            if place in selection or (selection and word_count + sizes[place] > budget):
                continue
            gain = sum(uncovered.get(stem, 0.0) for stem in unit.stems) + REPEATED_WORD_WEIGHT * totals[place]
            is_neighbour = place - 1 in selection or place + 1 in selection
            gain += NEIGHBOUR_BONUS * is_neighbour + LEAD_IN_BONUS * (place + 1 in selection)
            gain /= (sizes[place] + LENGTH_OFFSET) ** 0.5
            if gain > best_gain:
                best, best_gain = place, gain
        if best < 0:
            return _join([units[place] for place in sorted(selection)])
        selection.add(best)
        word_count += sizes[best]
        for stem in units[best].stems:
            uncovered.pop(stem, None)


def with_evidence_measures(statement: Claim, units: Sequence[Claim]) -> str:
    """The statement with its quantities written as the units write them, if they are equal: `720 seconds` becomes `12
    minutes`. The network reads texts and does not calculate."""
    text = statement.text
    for quantity in reversed(statement.quantities):  # from the end, so that earlier positions stay valid
        measure = text[quantity.start : quantity.end]
        matches = [
            (unit, candidate)
            for unit in units
            for candidate in unit.quantities
            if candidate.kind == quantity.kind and same(quantity, candidate)
        ]
        measures = [unit.text[candidate.start : candidate.end] for unit, candidate in matches]
        # Only the same kind counts: `12` without a unit is not `12 minutes`.
        if quantity.kind and measures and measure not in measures:
            text = f"{text[: quantity.start]}{measures[0]}{text[quantity.end :]}"
    return text


def _join(units: Sequence[Claim]) -> str:
    texts = (unit.text.strip() for unit in units)
    return " ".join(text if text.endswith(_ENDS) else f"{text}." for text in texts if text)
