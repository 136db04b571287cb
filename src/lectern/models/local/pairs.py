"""Neural networks that read two texts together: the judge's, and the answer locator's. Each gives two numbers for every
word piece; `entailment` and `answer_locator` say what they mean. A process loads each network once."""

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

CLS, SEP = "[CLS]", "[SEP]"  # CLS before the first text, SEP after each


@dataclass(frozen=True, slots=True)
class PairReader:
    """Tokenizer and network of one process; both may be used by many threads at once."""

    model: str  # the name of its file
    tokenizer: Tokenizer
    session: Any  # onnxruntime ships no types
    cls_id: int
    sep_id: int

    def token_ids(self, text: str) -> Sequence[int]:
        """The ids of a text's word pieces, without special tokens."""
        ids: Sequence[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def scores(self, ids: Sequence[int], second: int) -> Any:  # noqa: ANN401  # an array; numpy is imported late
        """Two numbers for each word piece; the second text begins at `second`."""
        import numpy as np

        segments = np.zeros((1, len(ids)), np.int64)
        segments[0, second:] = 1
        try:
            (output,) = self.session.run(None, {"input_ids": np.array([ids], np.int64), "second": segments})
        except Exception as exc:  # the runtime's errors have no type of their own
            raise ModelDamaged(f"the network {self.model!r} cannot be run ({exc}); install lectern anew") from exc
        if not np.isfinite(output).all():
            raise ModelDamaged(f"the network {self.model!r} gave no number; install lectern anew")
        return output[0]


def reader(folder: Path, model: str) -> PairReader:
    """The network in a folder, loaded once for each process. Loading blocks, so call it in a thread."""
    process = os.getpid()
    with _load_lock(process):  # many first questions at the same time must load one network
        return _reader(folder, model, process)


def pool(model: str) -> Executor:
    """The threads that a network runs in. Each network has its own, so that one does not wait for the other."""
    return _pool(model, os.getpid())


@cache
def _load_lock(process: int) -> Lock:  # a forked process might inherit a lock that is never released
    return Lock()


@cache
def _reader(folder: Path, model: str, process: int) -> PairReader:  # each process loads its own
    rules = tokenizer(WEIGHTS, process)
    cls_id, sep_id = rules.token_to_id(CLS), rules.token_to_id(SEP)
    if cls_id is None or sep_id is None:
        raise ModelDamaged(f"the local tokenizer lacks {CLS} or {SEP}; install lectern anew")
    return PairReader(model, rules, session(folder, model), cls_id, sep_id)


@cache
def _pool(model: str, process: int) -> Executor:  # a forked process does not have its parent's threads
    return ThreadPoolExecutor(cores(), thread_name_prefix=Path(model).stem)
