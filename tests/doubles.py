"""Stand-ins that can be computed by hand: an embedder of hashed words, quick enough for thousands of books."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from lectern.ports.index import Purpose

DIMENSIONS = 32


class WordEmbedder:
    """Texts that share words are near each other; a vector is a function of its text alone. Counts what it is sent."""

    fingerprint = f"test/words/{DIMENSIONS}"
    dimensions = DIMENSIONS
    languages: frozenset[str] | None = None

    def __init__(self) -> None:
        self.sent: list[str] = []

    def passages(self, trail: Sequence[str], text: str) -> tuple[str, ...]:
        """One window, however long."""
        return (f"{' > '.join(trail)}\n{text}",)

    async def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Unit vectors of hashed words."""
        if purpose == "passage":
            self.sent += texts
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    raw = [0.001] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=2).digest()
        raw[digest[0] % DIMENSIONS] += 1 if digest[1] % 2 else -1
    length = sum(value * value for value in raw) ** 0.5
    return [value / length for value in raw]
