"""Finds answers: a small network that reads a question with the pieces of a passage and says of each how likely it is
that this piece, and not none, answers. Made from the local embedder's own weights like the judge's, and as reliable: no
key, no network, the same numbers for the same texts."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from lectern.models.local.packaged_models import WEIGHTS, WINDOW
from lectern.models.local.pairs import PairReader, pool, reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lectern.ports.answering import Pieces

LOCATOR = WEIGHTS / "finder"
MODEL = "lectern-finder-int8.onnx"
QUESTION, HEADING, PIECE, MOST = 48, 24, 110, 40  # word pieces of each that are read; pieces a window
KEPT = 64  # passages whose numbers are kept: a turn looks at the same ones twice


class LocalAnswerLocator:
    """Reads questions against passages. Networks are shared: a second one over the same folder costs nothing."""

    def __init__(self, folder: Path = LOCATOR) -> None:
        self._folder = folder
        self._known: OrderedDict[tuple[str, Pieces], tuple[float, ...]] = OrderedDict()

    async def find(self, question: str, passages: Sequence[Pieces]) -> list[tuple[float, ...]]:
        """For each piece of each passage the log-odds that it answers, against none of them."""
        # taken before anything is awaited: another question may push it out meanwhile
        known = {one: self._known[question, one] for one in passages if (question, one) in self._known}
        new = [one for one in dict.fromkeys(passages) if one not in known]
        run = asyncio.get_running_loop().run_in_executor
        made = await asyncio.gather(*(run(pool(MODEL), _loaded, self._folder, question, one) for one in new))
        known |= dict(zip(new, made, strict=True))
        for one in known:
            self._known[question, one] = known[one]
            self._known.move_to_end((question, one))
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return [known[one] for one in passages]


def _loaded(folder: Path, question: str, passage: Pieces) -> tuple[float, ...]:
    return log_odds(reader(folder, MODEL), question, passage)


def log_odds(network: PairReader, question: str, passage: Pieces) -> tuple[float, ...]:
    """What the network says of each piece."""
    found: list[float] = []
    for ids, second, marks in _windows(network, question, passage):
        made = network.scores(ids, second)
        found += (made[marks, 1] - made[0, 0]).tolist()
    return tuple(found)


def _windows(network: PairReader, question: str, passage: Pieces) -> Iterator[tuple[list[int], int, list[int]]]:
    """The question, the heading, then pieces with a mark before each, as many as fit; the others in further windows.
    Word pieces, where the passage begins, and where the marks are."""
    heading, pieces = passage
    asked = network.pieces(question)[:QUESTION]
    before = [network.opens, *asked, network.parts, *network.pieces(heading)[:HEADING]]
    ids, marks = [*before], list[int]()
    for text in pieces:
        piece = network.pieces(text)[:PIECE]
        if marks and (len(ids) + len(piece) + 2 > WINDOW or len(marks) == MOST):
            yield [*ids, network.parts], len(asked) + 2, marks
            ids, marks = [*before], []
        marks.append(len(ids))
        ids += [network.parts, *piece]
    if marks:
        yield [*ids, network.parts], len(asked) + 2, marks
