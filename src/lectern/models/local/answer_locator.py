"""Locates answers in passages. A small neural network reads a question with the pieces of a passage and gives the
log-odds of each piece that it answers the question, against none of them. Like the judge's network it was trained from
the local embedder's weights. It needs no key and no connection, and gives the same numbers for the same texts."""

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
MAX_QUESTION_TOKENS, MAX_HEADING_TOKENS, MAX_PIECE_TOKENS = 48, 24, 110  # the rest is not read
MAX_WINDOW_PIECES = 40
CACHE_SIZE = 256  # sections whose log-odds are cached: a turn reads the same ones twice


class LocalAnswerLocator:
    """Locates answers in passages. The network is shared: a second locator over the same folder loads nothing."""

    def __init__(self, folder: Path = LOCATOR) -> None:
        self._folder = folder
        self._cache: OrderedDict[tuple[str, Pieces], tuple[float, ...]] = OrderedDict()

    async def find(self, question: str, passages: Sequence[Pieces]) -> list[tuple[float, ...]]:
        """For each piece of each passage the log-odds that it answers the question, against none of them."""
        # read before the first await: another question may remove entries meanwhile
        odds = {passage: self._cache[question, passage] for passage in passages if (question, passage) in self._cache}
        uncached = [passage for passage in dict.fromkeys(passages) if passage not in odds]
        run = asyncio.get_running_loop().run_in_executor
        results = await asyncio.gather(
            *(run(pool(MODEL), _load_and_run, self._folder, question, passage) for passage in uncached)
        )
        odds |= dict(zip(uncached, results, strict=True))
        for passage in odds:
            self._cache[question, passage] = odds[passage]
            self._cache.move_to_end((question, passage))
        while len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return [odds[passage] for passage in passages]


def _load_and_run(folder: Path, question: str, passage: Pieces) -> tuple[float, ...]:
    return log_odds(reader(folder, MODEL), question, passage)


def log_odds(network: PairReader, question: str, passage: Pieces) -> tuple[float, ...]:
    """The log-odds of each piece of a passage, by the network."""
    odds: list[float] = []
    for ids, second, marks in _windows(network, question, passage):
        scores = network.scores(ids, second)
        odds += (scores[marks, 1] - scores[0, 0]).tolist()
    return tuple(odds)


def _windows(network: PairReader, question: str, passage: Pieces) -> Iterator[tuple[list[int], int, list[int]]]:
    """A passage in windows: the question, the heading, then as many pieces as fit, with a separator before each. Yields
    the token ids of a window, the position where the passage begins, and the positions of the separators."""
    heading, pieces = passage
    question_ids = network.token_ids(question)[:MAX_QUESTION_TOKENS]
    start = [network.cls_id, *question_ids, network.sep_id, *network.token_ids(heading)[:MAX_HEADING_TOKENS]]
    ids, marks = [*start], list[int]()
    for text in pieces:
        piece_ids = network.token_ids(text)[:MAX_PIECE_TOKENS]
        if marks and (len(ids) + len(piece_ids) + 2 > WINDOW or len(marks) == MAX_WINDOW_PIECES):
            yield [*ids, network.sep_id], len(question_ids) + 2, marks
            ids, marks = [*start], []
        marks.append(len(ids))
        ids += [network.sep_id, *piece_ids]
    if marks:
        yield [*ids, network.sep_id], len(question_ids) + 2, marks
