"""What a field of hits tells about a question. The field is always the same (the first hits of the hybrid ranking,
whatever a reader asked for), and nothing here depends on how large the book is: cosines, and how much of the question's
wording stands together in one passage. A misspelt or compounded word still counts in part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import NamedTuple

from lectern.domain.evidence import Hit
from lectern.text.everyday import telling
from lectern.text.words import one_edit, parts_of, stem, telling_stems

CONFIDENCE_HITS = 10  # hits that the signals are taken from
WINDOW = 40  # words that stand "together": two or three sentences
SOFT_WEIGHT = 0.7  # of a word that is there in another shape
NEIGHBOURS = 2  # words apart, at most, for a pair to be a pair
EDITABLE, STEMMED, COMPOUND = 4, 5, 6  # letters that a word needs before another shape of it counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Each 0…1, and each speaks for the book as it rises."""

    best: float  # the nearest hit's similarity
    covered: float  # of the question's wording, the most that one hit holds
    together: float  # the same within a few sentences
    joint: float  # the best product of that and the hit's similarity: near in meaning and in words
    pairs: float  # of the question's neighbouring words, the most that are neighbours in one hit


NAMES = tuple(field.name for field in fields(Signals))
NOTHING = Signals(best=0, covered=0, together=0, joint=0, pairs=0)


_Index = Mapping[str, Sequence[int]]  # of a text: where each stem stands


class _Shape(NamedTuple):
    """A word of the question as a passage may write it."""

    word: str
    weight: float


class _Place(NamedTuple):
    """A word of the question in a passage."""

    at: int
    word: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    """A question's telling words."""

    order: tuple[str, ...]
    weights: dict[str, float]
    total: float

    def share(self, weight: float) -> float:
        return weight / self.total if self.total else 0.0


def signals_of(question: str, field: Sequence[Hit], *, zero: float = 0.0, one: float = 1.0) -> Signals:
    """The signals of a question; cosines are stretched so that `zero` counts 0 and `one` 1."""
    hits = field[:CONFIDENCE_HITS]
    if not hits:
        return NOTHING
    similarities = [min(max((hit.similarity - zero) / (one - zero), 0.0), 1.0) for hit in hits]
    wording = _wording(question)
    texts = [_index(hit) for hit in hits]
    shapes = _shapes(wording, texts)
    places = [_places(text, shapes) for text in texts]
    together = [wording.share(_together(one)) for one in places]
    return Signals(
        best=max(similarities),
        covered=max(wording.share(_held(one)) for one in places),
        together=max(together),
        joint=max(near * close for near, close in zip(similarities, together, strict=True)),
        pairs=_pairs(wording, places),
    )


def signal_values(signals: Signals, names: Iterable[str]) -> tuple[float, ...]:
    """Some of the signals, in this order."""
    by_name = dict(zip(NAMES, astuple(signals), strict=True))
    return tuple(by_name[name] for name in names)


def _wording(question: str) -> _Wording:
    words = parts_of(question.lower())  # of `cmd_vel` a part may be asked for
    order = tuple(stem(word) for word in words if (len(word) > 1 or word.isdigit()) and telling_stems(word))
    weights = {word: telling(word) for word in order}
    return _Wording(order=order, weights=weights, total=sum(weights.values()))


def _index(hit: Hit) -> _Index:
    """Where each word of the hit, and of the headings above it, stands."""
    return _index_of(" ".join([*hit.chunk.trail, hit.chunk.text]))


@lru_cache(maxsize=1024)  # the passages that readers ask for come up again and again
def _index_of(text: str) -> _Index:
    places: dict[str, list[int]] = {}
    for at, word in enumerate(parts_of(text.lower())):
        places.setdefault(stem(word), []).append(at)
    return places


def _shapes(wording: _Wording, texts: Sequence[_Index]) -> dict[str, _Shape]:
    """How the field writes each word of the question: as it stands, else in the nearest shape."""
    here = {word for word in wording.weights if any(word in text for text in texts)}
    shapes = {word: _Shape(word, weight) for word, weight in wording.weights.items() if word in here}
    if len(here) < len(wording.weights):
        held = set().union(*texts)
        for word, weight in wording.weights.items():
            if word not in here and (other := _other_shape(word, held)):
                shapes.setdefault(other, _Shape(word, weight * SOFT_WEIGHT))
    return shapes


def _other_shape(word: str, held: set[str]) -> str | None:
    """The same word misspelt (one letter more, less, other or swapped), else a longer or shorter form of it."""
    size = len(word)
    if size >= EDITABLE:
        near = (one for one in held if one[0] == word[0] and len(one) >= EDITABLE)
        misspelt = [one for one in near if one_edit(word, one)]
        if misspelt:
            return min(misspelt)  # sets have no order; a confidence has
    if size >= COMPOUND:
        longer = [one for one in held if len(one) >= STEMMED and (word.startswith(one) or one.startswith(word))]
        return min(longer, default=None)
    return None


def _places(text: _Index, shapes: dict[str, _Shape]) -> list[_Place]:
    return sorted(_Place(at, *shape) for word, shape in shapes.items() for at in text.get(word, ()))


def _held(places: Sequence[_Place]) -> float:
    return sum({place.word: place.weight for place in places}.values())


def _together(places: Sequence[_Place]) -> float:
    """The most weight that different words have within a window."""
    best = now = 0.0
    count: dict[str, int] = {}
    begin = 0
    for place in places:
        if not count.get(place.word):
            now += place.weight
        count[place.word] = count.get(place.word, 0) + 1
        while places[begin].at <= place.at - WINDOW:
            left = places[begin]
            count[left.word] -= 1
            if not count[left.word]:
                now -= left.weight
            begin += 1
        best = max(best, now)
    return best


def _pairs(wording: _Wording, texts: Sequence[Sequence[_Place]]) -> float:
    """Against one more than there are: a single pair that happens to be there must not count as all of them."""
    asked = {pair for pair in zip(wording.order, wording.order[1:], strict=False) if pair[0] != pair[1]}
    weights = {pair: min(wording.weights[pair[0]], wording.weights[pair[1]]) for pair in asked}
    most = 0.0
    for places in texts:
        found = {
            (place.word, other.word)
            for number, place in enumerate(places)
            for other in places[number + 1 : number + 1 + NEIGHBOURS]
            if other.at - place.at <= NEIGHBOURS
        }
        most = max(most, sum(weights[pair] for pair in found & asked))
    return most / (sum(weights.values()) + 1)
