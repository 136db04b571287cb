"""The local embedder: all-MiniLM-L6-v2 in int8 on the CPU, shipped with the package. A vector is a function of its text
alone, bit for bit. Dynamic int8 takes its scales from all that runs together, so each text runs alone on one thread,
and speed comes from as many such runs at once as there are cores.

Nothing heavy is imported before the first text, and a process that was forked or spawned loads a model of its own.
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
from lectern.models.windows import Span, fitting, windows
from lectern.ports.index import Purpose

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Encoding, Tokenizer

MODEL = "all-MiniLM-L6-v2-int8.onnx"
DIMENSIONS = 384
SPECIAL = 2  # of them, the marks before and after each text
ROUNDING = 1e-3  # how far from 1 the square of a vector's length may be


@dataclass(frozen=True, slots=True)
class LocalEmbedder:
    """Needs no key and no network. Models are shared: a second embedder over the same folder costs nothing."""

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
        """English, as it was trained on."""
        return frozenset({"en"})

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """What is embedded for one chunk: trail and text, in as many windows as the model needs to read all of it."""
        model = _model(self.folder, os.getpid())
        return windows(trail, text, limit=WINDOW - SPECIAL, pieces=model.pieces)

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[Vector]:
        """One vector a text, in the same order."""
        process = os.getpid()
        pool, run = _pool(purpose, process), asyncio.get_running_loop().run_in_executor
        if len(texts) > 1:
            await run(pool, _model, self.folder, process)  # once, before many ask for it together
        make = partial(_passage if purpose == "passage" else _question, self.folder, process)
        longest_first = sorted(range(len(texts)), key=lambda place: -len(texts[place]))  # so that no core waits long
        runs = [run(pool, make, texts[place]) for place in longest_first]
        try:
            made = await asyncio.gather(*runs)
        finally:
            for one in runs:
                one.cancel()  # after an error the rest is not wanted; after success this does nothing
        vectors = dict(zip(longest_first, made, strict=True))
        return [vectors[place] for place in range(len(texts))]


def _passage(folder: Path, process: int, text: str) -> Vector:
    vector: Vector = _model(folder, process).vector(text).tolist()
    return vector


def _question(folder: Path, process: int, text: str) -> Vector:
    """The direction of all windows together where a question is longer than one."""
    import numpy as np

    model = _model(folder, process)
    try:
        return _passage(folder, process, text)
    except TooLong:
        parts = fitting(text, WINDOW - SPECIAL, model.pieces)
    total = np.sum([model.vector(part) for part in parts], axis=0)
    vector: Vector = checked(total / np.linalg.norm(total)).tolist()
    return vector


class TooLong(ValueError):
    """More word pieces than the model reads at once."""


@dataclass(frozen=True, slots=True)
class Model:
    """Tokenizer and network of one process. Both may be used by many threads at once."""

    tokenizer: Tokenizer
    session: Any  # onnxruntime ships no types

    def pieces(self, text: str) -> Sequence[Span]:
        """Where each word piece of a text begins and ends."""
        spans: Sequence[Span] = self._encoded(text, special=False).offsets
        return spans

    def vector(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The text's vector; a text that is over the window is the caller's mistake, and not cut."""
        import numpy as np

        ids = self._encoded(text, special=True).ids
        if len(ids) > WINDOW:
            raise TooLong(f"a text of {len(ids)} word pieces is over the window of {WINDOW}; embed its passages()")
        (made,) = self.session.run(None, {"input_ids": np.array([ids], dtype=np.int64)})
        return checked(made[0])

    def _encoded(self, text: str, *, special: bool) -> Encoding:
        try:
            return self.tokenizer.encode(text, add_special_tokens=special)
        except TypeError:
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise BadInput("the text holds half a character (a lone surrogate), which no model reads") from None
            raise


def checked(vector: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The vector, if it is fit for the index: right in length, finite, of size 1."""
    if vector.shape != (DIMENSIONS,):
        raise ModelDamaged(f"the local model gave a vector of shape {vector.shape}; install lectern anew")
    if not abs(float(vector @ vector) - 1) < ROUNDING:  # so written that NaN does not pass
        raise ModelDamaged(
            f"the local model gave a vector of length {float(vector @ vector) ** 0.5:g}; install lectern anew"
        )
    return vector


@cache
def _pool(purpose: Purpose, process: int) -> Executor:  # a fork has no threads of its parent's
    """A pool each, so that a question never waits behind a book."""
    return ThreadPoolExecutor(cores(), thread_name_prefix=f"lectern-{purpose}")


@cache
def _model(folder: Path, process: int) -> Model:  # each process has its own
    return Model(tokenizer(folder, process), session(folder, MODEL))
