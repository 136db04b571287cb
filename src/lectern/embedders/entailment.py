"""The trained half of the judge: a small network that reads a statement and its evidence together and says how likely
the one follows from the other. Made from the local embedder's own weights; it needs no key and no network, and gives
the same number for the same texts on every machine of a kind.

It says two things of the statement: one about the whole, and for each word piece how wrong that piece is. The
statement is as wrong as its pieces together."""

from __future__ import annotations

import asyncio
import math
import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from lectern.domain.errors import ModelDamaged
from lectern.embedders.sealed import WEIGHTS, WINDOW, cores, session, tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

JUDGE = WEIGHTS / "judge"
MODEL = "lectern-judge-int8.onnx"
LONGEST = 80  # word pieces of a statement; about 60 words
OPENS, PARTS = "[CLS]", "[SEP]"  # before the first text; after each
MARKS = 3
MOST = 20.0  # log-odds beyond this say no more


@dataclass(frozen=True, slots=True)
class LocalEntailment:
    """Reads statements against evidence. Networks are shared: a second one over the same folder costs nothing."""

    folder: Path = JUDGE

    async def log_odds(self, statement: str, evidence: str) -> float | None:
        """The log-odds that the evidence bears the statement out; None where the statement is too long to be read.
        Evidence that is too long is cut: what is not read can bear nothing out."""
        process = os.getpid()
        run = asyncio.get_running_loop().run_in_executor
        return await run(_pool(process), _log_odds, self.folder, process, statement, evidence)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Tokenizer and network of one process; both may be used by many threads at once."""

    tokenizer: Tokenizer
    session: Any  # onnxruntime ships no types
    opens: int
    parts: int

    def pieces(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def log_odds(self, statement: str, evidence: str) -> float | None:
        import numpy as np

        mine = self.pieces(statement)
        if not mine or len(mine) > LONGEST:
            return None
        theirs = self.pieces(evidence)[: WINDOW - MARKS - len(mine)]
        ids = [self.opens, *mine, self.parts, *theirs, self.parts]
        second = [0] * (len(mine) + 2) + [1] * (len(theirs) + 1)
        try:
            (made,) = self.session.run(None, {"input_ids": np.array([ids]), "second": np.array([second])})
        except Exception as exc:  # the runtime's errors have no type of their own
            raise ModelDamaged(f"the judge's network cannot be run ({exc}); install lectern anew") from exc
        whole, wrong = float(made[0, 0, 0]), made[0, 1 : len(mine) + 1, 1].tolist()
        return _bounded(whole - _together(wrong))


def _together(wrong: Sequence[float]) -> float:
    """The soft maximum: one piece that is surely wrong, or several that may be."""
    most = max(wrong)
    return most + math.log(math.fsum(math.exp(one - most) for one in wrong))


def _bounded(log_odds: float) -> float:
    if not math.isfinite(log_odds):
        raise ModelDamaged("the judge's network gave no number; install lectern anew")
    return max(-MOST, min(MOST, log_odds))


def _log_odds(folder: Path, process: int, statement: str, evidence: str) -> float | None:
    with _loading(process):  # many first sentences at once must not load many networks
        reader = _reader(folder, process)
    return reader.log_odds(statement, evidence)


@cache
def _loading(process: int) -> Lock:  # a lock that a fork took over might be held for ever
    return Lock()


@cache
def _reader(folder: Path, process: int) -> _Reader:  # each process has its own
    rules = tokenizer(WEIGHTS, process)
    opens, parts = rules.token_to_id(OPENS), rules.token_to_id(PARTS)
    if opens is None or parts is None:
        raise ModelDamaged(f"the local tokenizer lacks {OPENS} or {PARTS}; install lectern anew")
    return _Reader(rules, session(folder, MODEL), opens, parts)


@cache
def _pool(process: int) -> Executor:  # a fork has no threads of its parent's
    return ThreadPoolExecutor(cores(), thread_name_prefix="lectern-judge")
