"""What a network is given to read: the statement, and of its passages, where they are longer than it reads at once, the
units that have most of the statement's words, in the order of the book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lectern.grounding.claims import Claim
from lectern.text.quantities import same

BUDGET = 135  # words; with the statement they fit the network's window but for rare texts, which it cuts
AGAIN = 0.3  # what a word counts that another chosen unit has already
BESIDE, BEFORE = 0.05, 0.02  # a unit next to a chosen one, and one that leads to it, explain it
SHORT = 12  # words; shorter units are not preferred for being short
_ENDS = (".", "!", "?", ":")


def evidence_for(statement: Claim, units: Sequence[Claim], budget: int = BUDGET) -> str:
    """The units that bear on the statement, as one text."""
    sizes = [len(unit.text.split()) for unit in units]
    if sum(sizes) <= budget:
        return _joined(units)
    spread = Counter(stem for unit in units for stem in unit.stems)
    worth = {stem: spread[stem] ** -0.5 for stem in statement.stems if stem in spread}
    in_all = [sum(worth.get(stem, 0.0) for stem in unit.stems) for unit in units]
    missing, chosen, used = dict(worth), set[int](), 0
    while True:
        best, most = -1, 0.0
        for place, unit in enumerate(units):
            if place in chosen or (chosen and used + sizes[place] > budget):
                continue
            gain = sum(missing.get(stem, 0.0) for stem in unit.stems) + AGAIN * in_all[place]
            gain += BESIDE * bool({place - 1, place + 1} & chosen) + BEFORE * (place + 1 in chosen)
            gain /= (sizes[place] + SHORT) ** 0.5
            if gain > most:
                best, most = place, gain
        if best < 0:
            return _joined([units[place] for place in sorted(chosen)])
        chosen.add(best)
        used += sizes[best]
        for stem in units[best].stems:
            missing.pop(stem, None)


def in_its_measures(statement: Claim, units: Sequence[Claim]) -> str:
    """The statement with every measure written as the units write it, where it is the same: 720 seconds become 12
    minutes. A network that reads texts does not calculate."""
    text = statement.text
    for mine in reversed(statement.quantities):  # from the end, so that what was found before stays where it was
        written = text[mine.start : mine.end]
        alike = [(unit, one) for unit in units for one in unit.quantities if one.kind == mine.kind and same(mine, one)]
        theirs = [unit.text[one.start : one.end] for unit, one in alike]  # a bare 12 is no 12 minutes
        if mine.kind and theirs and written not in theirs:
            text = f"{text[: mine.start]}{theirs[0]}{text[mine.end :]}"
    return text


def _joined(units: Sequence[Claim]) -> str:
    texts = (unit.text.strip() for unit in units)
    return " ".join(text if text.endswith(_ENDS) else f"{text}." for text in texts if text)
