"""The local embedder: all-MiniLM-L6-v2 in int8 on the CPU, shipped with the package. A vector depends on its text
alone, bit for bit. Dynamic int8 takes its scales from the whole batch, so each text runs alone on one thread. For
speed, as many texts run at the same time as there are cores.

Nothing heavy is imported before the first text. A process that was forked or spawned loads its own model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lectern.domain.chunks import Vector
from lectern.domain.errors import BadInput, ModelDamaged
from lectern.models.local.packaged_models import WEIGHTS, WINDOW, cores, session, tokenizer
from lectern.models.windows import Span, split_to_fit, windows
from lectern.ports.index import Purpose

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Encoding, Tokenizer

MODEL = "all-MiniLM-L6-v2-int8.onnx"
DIMENSIONS = 384
SPECIAL_TOKENS = 2  # [CLS] before a text and [SEP] after it
NORM_TOLERANCE = 1e-3  # how far from 1 the square of a vector's length may be


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """Needs no key and no connection. The model is shared: a second embedder over the same folder loads nothing."""

    folder: Path = WEIGHTS

    @property
    def fingerprint(self) -> str:
        """Provider, model and dimensions."""
        return f"local/all-MiniLM-L6-v2-int8/{DIMENSIONS}"

    @property
    def dimensions(self) -> int:
        """The length of every vector."""
        return DIMENSIONS

    @property
    def languages(self) -> frozenset[str] | None:
        """English, the language of the model's training."""
        return frozenset({"en"})

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """The texts that are embedded for one chunk: trail and text, in as many windows as the model needs to read it
        all."""
        model = _model(self.folder, os.getpid())
        return windows(trail, text, limit=WINDOW - SPECIAL_TOKENS, pieces=model.pieces)

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[Vector]:
        """One vector for each text, in the same order."""
        process = os.getpid()
        pool, run = _pool(purpose, process), asyncio.get_running_loop().run_in_executor
        if len(texts) > 1:
            await run(pool, _model, self.folder, process)  # load it once, before many threads need it
        embed = partial(_passage if purpose == "passage" else _question, self.folder, process)
        # longest first, so that no core is idle at the end
        longest_first = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        runs = [run(pool, embed, texts[place]) for place in longest_first]
        try:
            results = await asyncio.gather(*runs)
        finally:
            for future in runs:
                future.cancel()  # after an error the rest is not needed; after success this does nothing
        vectors = dict(zip(longest_first, results, strict=True))
        return [vectors[place] for place in range(len(texts))]


def _passage(folder: Path, process: int, text: str) -> Vector:
    vector: Vector = _model(folder, process).vector(text).tolist()
    return vector


def _question(folder: Path, process: int, text: str) -> Vector:
    """The vector of a question. If it needs several windows, the normalised sum of their vectors."""
    import numpy as np

    model = _model(folder, process)
    try:
        return _passage(folder, process, text)
    except TooLong:
        parts = split_to_fit(text, WINDOW - SPECIAL_TOKENS, model.pieces)
    total = np.sum([model.vector(part) for part in parts], axis=0)
    vector: Vector = check_vector(total / np.linalg.norm(total)).tolist()
    return vector


class TooLong(ValueError):
    """The text has more word pieces than the model reads."""


@dataclass(frozen=True, slots=True)
class Model:
    """Tokenizer and network of one process. Both may be used by many threads at once."""

    tokenizer: Tokenizer
    session: Any  # onnxruntime ships no types

    def pieces(self, text: str) -> Sequence[Span]:
        """The span of each word piece of a text."""
        spans: Sequence[Span] = self._encode(text, special=False).offsets
        return spans

    def vector(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The vector of a text. A text that is too long raises; it is not cut."""
        import numpy as np

        ids = self._encode(text, special=True).ids
        if len(ids) > WINDOW:
            raise TooLong(f"a text of {len(ids)} word pieces is over the window of {WINDOW}; embed its passages()")
        (output,) = self.session.run(None, {"input_ids": np.array([ids], dtype=np.int64)})
        return check_vector(output[0])

    def _encode(self, text: str, *, special: bool) -> Encoding:
        try:
            return self.tokenizer.encode(text, add_special_tokens=special)
        except TypeError:
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BadInput("the text holds half a character (a lone surrogate), which no model reads") from None
            raise


def check_vector(vector: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The vector, if the index can store it: of the right dimensions, finite, of length 1."""
    if vector.shape != (DIMENSIONS,):
        raise ModelDamaged(f"the local model gave a vector of shape {vector.shape}; install lectern anew")
    if not abs(float(vector @ vector) - 1) < NORM_TOLERANCE:  # written so that NaN fails
        raise ModelDamaged(
            f"the local model gave a vector of length {float(vector @ vector) ** 0.5:g}; install lectern anew"
        )
    return vector


@cache
def _pool(purpose: Purpose, process: int) -> Executor:  # a forked process does not have its parent's threads
    """A pool for each purpose, so that a question does not queue behind the passages of a book."""
    return ThreadPoolExecutor(cores(), thread_name_prefix=f"lectern-{purpose}")


@cache
def _model(folder: Path, process: int) -> Model:  # each process loads its own
    return Model(tokenizer(folder, process), session(folder, MODEL))
