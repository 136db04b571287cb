"""What an embedder adds to rules on words: which words are near each other (`halt` and `stop`), and how near a sentence
is to its evidence. Word vectors are kept, because a book uses the same words again and again."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from lectern.answering.alignment import Alignment
from lectern.answering.claims import Claim
from lectern.answering.contrasts import Nearness
from lectern.ports import Embedder, Vector

KEPT = 20_000  # vectors; 384 numbers each make about 60 MB
MOST_WORDS = 48  # asked for at once
UNRELATED, ALIKE, MOST = 0.4, 0.8, 0.9  # cosines of two words that count nothing and in full, and how much that is


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What the embedder says about one sentence and its evidence."""

    near: Nearness
    cosine: float


class Meaning:
    """Words and sentences as vectors, from one embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, sentence: Claim, found: Alignment) -> Meant:
        """Embed what is not known yet: the sentence, its evidence, and the words that one of them has alone."""
        evidence = [unit.text for unit in found.evidence]
        texts = [evidence[0], " ".join(evidence)] if len(evidence) > 1 else evidence
        words = _open_words(sentence, found)
        vectors = await self._vectors([sentence.text, *texts, *words])
        mine = vectors[sentence.text]
        known = {word: vectors[word] for word in words}

        def near(one: str, other: str) -> float:
            first, second = known.get(one), known.get(other)
            if first is None or second is None:
                return 0.0
            return min(max((_cosine(first, second) - UNRELATED) / (ALIKE - UNRELATED), 0.0), MOST)

        return Meant(near=near, cosine=max(_cosine(mine, vectors[text]) for text in texts))

    async def _vectors(self, texts: Sequence[str]) -> dict[str, Vector]:
        wanted = list(dict.fromkeys(texts))
        missing = [text for text in wanted if text not in self._known]
        made = await self._embedder.embed(missing, purpose="question") if missing else []  # cuts nothing, however long
        self._known.update(zip(missing, made, strict=True))
        found = {}
        for text in wanted:
            self._known.move_to_end(text)
            found[text] = self._known[text]
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return found


def _open_words(sentence: Claim, found: Alignment) -> list[str]:
    """Words that have no equal on the other side; a name is near itself alone."""
    theirs = {word.stem for unit in found.consulted for word in unit.content}
    mine = [word for word in sentence.content if word.kind == "word" and word.stem not in theirs]
    if not mine:
        return []
    stems = sentence.stems
    others = [
        word.text for unit in found.consulted for word in unit.content if word.kind == "word" and word.stem not in stems
    ]
    return list(dict.fromkeys([word.text for word in mine][: MOST_WORDS // 3] + others))[:MOST_WORDS]


def _cosine(one: Vector, other: Vector) -> float:
    """Of vectors of unit length, as every embedder here makes them."""
    return float(sum(map(operator.mul, one, other)))
