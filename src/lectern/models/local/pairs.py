"""Networks that read two texts together: the judge's, and the one that finds answers. Each gives two numbers for every
word piece; what they mean is told where they are used. One of each a process, shared by all who ask for it."""

from __future__ import annotations

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from lectern.domain.errors import ModelDamaged
from lectern.models.local.packaged_models import WEIGHTS, cores, session, tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

OPENS, PARTS = "[CLS]", "[SEP]"  # before the first text; after each


@dataclass(frozen=True, slots=True)
class PairReader:
    """Tokenizer and network of one process; both may be used by many threads at once."""

    model: str  # its file
    tokenizer: Tokenizer
    session: Any  # onnxruntime ships no types
    opens: int
    parts: int

    def pieces(self, text: str) -> Sequence[int]:
        """A text's word pieces."""
        ids: Sequence[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def scores(self, ids: Sequence[int], second: int) -> Any:  # noqa: ANN401  # an array, whose package loads late
        """Two numbers for each word piece; the second text begins at `second`."""
        import numpy as np

        belongs = np.zeros((1, len(ids)), np.int64)
        belongs[0, second:] = 1
        try:
            (made,) = self.session.run(None, {"input_ids": np.array([ids], np.int64), "second": belongs})
        except Exception as exc:  # the runtime's errors have no type of their own
            raise ModelDamaged(f"the network {self.model!r} cannot be run ({exc}); install lectern anew") from exc
        if not np.isfinite(made).all():
            raise ModelDamaged(f"the network {self.model!r} gave no number; install lectern anew")
        return made[0]


def reader(folder: Path, model: str) -> PairReader:
    """The network in a folder, loaded once a process; to be called where waiting harms nobody."""
    process = os.getpid()
    with _loading(process):  # many first questions at once must not load many networks
        return _reader(folder, model, process)


def pool(model: str) -> Executor:
    """Threads for a network to run in: passages of one question must not stand before sentences of another."""
    return _pool(model, os.getpid())


@cache
def _loading(process: int) -> Lock:  # a lock that a fork took over might be held for ever
    return Lock()


@cache
def _reader(folder: Path, model: str, process: int) -> PairReader:  # each process has its own
    rules = tokenizer(WEIGHTS, process)
    opens, parts = rules.token_to_id(OPENS), rules.token_to_id(PARTS)
    if opens is None or parts is None:
        raise ModelDamaged(f"the local tokenizer lacks {OPENS} or {PARTS}; install lectern anew")
    return PairReader(model, rules, session(folder, model), opens, parts)


@cache
def _pool(model: str, process: int) -> Executor:  # a fork has no threads of its parent's
    return ThreadPoolExecutor(cores(), thread_name_prefix=Path(model).stem)
