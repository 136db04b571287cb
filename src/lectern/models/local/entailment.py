"""The trained part of the judge: a small neural network reads a statement with its evidence and says how likely the
evidence supports the statement. It was trained from the local embedder's weights. It needs no key and no connection,
and gives the same number for the same texts on machines of the same kind.

The network scores the whole statement, and for each word piece how wrong that piece is. The log-odds are the score of
the whole less the soft maximum over the pieces."""

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
MAX_STATEMENT_TOKENS = 80  # about 60 words
SPECIAL_TOKENS = 3  # [CLS] before the statement, [SEP] after it and after the evidence
MAX_LOG_ODDS = 20.0  # larger values carry no more information


@dataclass(frozen=True, slots=True)
class LocalEntailment:
    """Scores statements against evidence. The network is shared: a second instance over the same folder loads
    nothing."""

    folder: Path = JUDGE

    async def log_odds(self, statement: str, evidence: str) -> float | None:
        """The log-odds that the evidence supports the statement; None if the statement is empty or too long. Evidence
        that is too long is cut: a part that is not read cannot support the statement."""
        run = asyncio.get_running_loop().run_in_executor
        return await run(pool(MODEL), _load_and_run, self.folder, statement, evidence)


def _load_and_run(folder: Path, statement: str, evidence: str) -> float | None:
    return log_odds(reader(folder, MODEL), statement, evidence)


def log_odds(network: PairReader, statement: str, evidence: str) -> float | None:
    """The log-odds that the evidence supports the statement, by the network."""
    statement_ids = network.token_ids(statement)
    if not statement_ids or len(statement_ids) > MAX_STATEMENT_TOKENS:
        return None
    evidence_ids = network.token_ids(evidence)[: WINDOW - SPECIAL_TOKENS - len(statement_ids)]
    ids = [network.cls_id, *statement_ids, network.sep_id, *evidence_ids, network.sep_id]
    scores = network.scores(ids, len(statement_ids) + 2)
    whole, wrong = float(scores[0, 0]), scores[1 : len(statement_ids) + 1, 1].tolist()
    return max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, whole - _soft_maximum(wrong)))


def _soft_maximum(scores: Sequence[float]) -> float:
    """The soft maximum of the scores: high if one piece is surely wrong, or if several may be."""
    highest = max(scores)
    return highest + math.log(math.fsum(math.exp(score - highest) for score in scores))
