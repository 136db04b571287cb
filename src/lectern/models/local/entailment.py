"""The trained half of the judge: a small network that reads a statement and its evidence together and says how likely
the one follows from the other. Made from the local embedder's own weights; it needs no key and no network, and gives
the same number for the same texts on every machine of a kind.

It says two things of the statement: one about the whole, and for each word piece how wrong that piece is. The
statement is as wrong as its pieces together."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lectern.models.local.packaged_models import WEIGHTS, WINDOW
from lectern.models.local.pairs import PairReader, pool, reader

if TYPE_CHECKING:
    from collections.abc import Sequence

JUDGE = WEIGHTS / "judge"
MODEL = "lectern-judge-int8.onnx"
LONGEST = 80  # word pieces of a statement; about 60 words
MARKS = 3
MOST = 20.0  # log-odds beyond this say no more


@dataclass(frozen=True, slots=True)
class LocalEntailment:
    """Reads statements against evidence. Networks are shared: a second one over the same folder costs nothing."""

    folder: Path = JUDGE

    async def log_odds(self, statement: str, evidence: str) -> float | None:
        """The log-odds that the evidence bears the statement out; None where the statement is too long to be read.
        Evidence that is too long is cut: what is not read can bear nothing out."""
        run = asyncio.get_running_loop().run_in_executor
        return await run(pool(MODEL), _loaded, self.folder, statement, evidence)


def _loaded(folder: Path, statement: str, evidence: str) -> float | None:
    return log_odds(reader(folder, MODEL), statement, evidence)


def log_odds(network: PairReader, statement: str, evidence: str) -> float | None:
    """What the network says of the two."""
    mine = network.pieces(statement)
    if not mine or len(mine) > LONGEST:
        return None
    theirs = network.pieces(evidence)[: WINDOW - MARKS - len(mine)]
    ids = [network.opens, *mine, network.parts, *theirs, network.parts]
    made = network.scores(ids, len(mine) + 2)
    whole, wrong = float(made[0, 0]), made[1 : len(mine) + 1, 1].tolist()
    return max(-MOST, min(MOST, whole - _together(wrong)))


def _together(wrong: Sequence[float]) -> float:
    """The soft maximum: one piece that is surely wrong, or several that may be."""
    most = max(wrong)
    return most + math.log(math.fsum(math.exp(one - most) for one in wrong))
