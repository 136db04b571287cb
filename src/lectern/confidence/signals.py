"""The signals that the hits of a search give about a question. They are measured on the first hits of the hybrid
ranking, whatever the request's limit, and none is counted over the whole book: cosines, and how much of the question's
wording is in one passage. A misspelt or compounded word still counts in part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import NamedTuple

from lectern.domain.evidence import Hit
from lectern.text.language import function_words_of, stem_in
from lectern.text.words import content_stems, is_kana_ending, one_edit, word_weight, wording_of

ENGLISH = "en"
CONFIDENCE_HITS = 10  # the first hits of the hybrid ranking
WINDOW_WORDS = 40  # two or three sentences
SOFT_WEIGHT = 0.7  # of a word that is found in another form
_INTERROGATIVES = frozenset("what who why how when where which".split())
_EMPTY_WORDS = frozenset("is are was do does did can it this that there".split())  # "is it?" is about nothing named
MAX_PAIR_DISTANCE = 2  # words, within which two words are a pair
# letters that a word needs before another form of it counts
MIN_EDITED_LETTERS, MIN_STEM_LETTERS, MIN_COMPOUND_LETTERS = 4, 5, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Signals of 0…1; a higher value means that the book more likely answers."""

    best: float  # the nearest hit's similarity
    covered: float  # the largest share of the question's wording in one hit
    together: float  # the largest share of it within a few sentences of one hit
    joint: float  # the best product of `together` and the hit's similarity
    pairs: float  # the largest share of the question's neighbouring words that are neighbours in one hit


NAMES = tuple(field.name for field in fields(Signals))
NOTHING = Signals(best=0, covered=0, together=0, joint=0, pairs=0)


_Index = Mapping[str, Sequence[int]]  # of a text: the positions of each stem


class _Shape(NamedTuple):
    """A word of the question in a form that passages use."""

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


def signals_of(
    question: str, field: Sequence[Hit], *, zero: float = 0.0, one: float = 1.0, language: str = ENGLISH
) -> Signals:
    """The signals of a question; cosines are scaled so that `zero` counts as 0 and `one` as 1. The wording is compared
    by the stemmer and function words of the book's language."""
    hits = field[:CONFIDENCE_HITS]
    if not hits:
        return NOTHING
    similarities = [min(max((hit.similarity - zero) / (one - zero), 0.0), 1.0) for hit in hits]
    wording = _wording(question, language)
    texts = [_index(hit, language) for hit in hits]
    shapes = _shapes(wording, texts)
    places = [_places(text, shapes) for text in texts]
    together = [wording.share(_window_weight(in_hit)) for in_hit in places]
    return Signals(
        best=max(similarities),
        covered=max(wording.share(_matched_weight(in_hit)) for in_hit in places),
        together=max(together),
        joint=max(near * close for near, close in zip(similarities, together, strict=True)),
        pairs=_pairs(wording, places),
    )


def signal_values(signals: Signals, names: Iterable[str]) -> tuple[float, ...]:
    """The values of the named signals, in the order of the names."""
    by_name = dict(zip(NAMES, astuple(signals), strict=True))
    return tuple(by_name[name] for name in names)


def _wording(question: str, language: str) -> _Wording:
    words = [word for word in wording_of(question.lower()) if len(word) > 1 or word.isdigit()]
    function_words = function_words_of(language)
    telling = [
        word for word in words if content_stems(word) and word not in function_words and not is_kana_ending(word)
    ]
    if not telling and (_INTERROGATIVES | _EMPTY_WORDS).isdisjoint(words):
        telling = words  # `let else`, `if`: a subject of keywords, not "how is it?"
    order = tuple(stem_in(language, word) for word in telling)
    weights = {word: word_weight(word) for word in order}
    return _Wording(order=order, weights=weights, total=sum(weights.values()))


def _index(hit: Hit, language: str) -> _Index:
    """The positions of each word of the hit and of the headings above it."""
    return _index_of(" ".join([*hit.chunk.trail, hit.chunk.text]), language)


@lru_cache(maxsize=1024)  # the same passages are found again and again
def _index_of(text: str, language: str) -> _Index:
    places: dict[str, list[int]] = {}
    for at, word in enumerate(wording_of(text.lower())):
        places.setdefault(stem_in(language, word), []).append(at)
    return places


def _shapes(wording: _Wording, texts: Sequence[_Index]) -> dict[str, _Shape]:
    """The form in which the hits have each word of the question: as it is, else the most similar form."""
    here = {word for word in wording.weights if any(word in text for text in texts)}
    shapes = {word: _Shape(word, weight) for word, weight in wording.weights.items() if word in here}
    if len(here) < len(wording.weights):
        field_stems = set().union(*texts)
        for word, weight in wording.weights.items():
            if word not in here and (shape := _other_shape(word, field_stems)):
                shapes.setdefault(shape, _Shape(word, weight * SOFT_WEIGHT))
    return shapes


def _other_shape(word: str, field_stems: set[str]) -> str | None:
    """A stem that differs from the word by one edit, else a longer or shorter form of the word."""
    size = len(word)
    if size >= MIN_EDITED_LETTERS:
        near = (
            candidate for candidate in field_stems if candidate[0] == word[0] and len(candidate) >= MIN_EDITED_LETTERS
        )
        misspelt = [candidate for candidate in near if one_edit(word, candidate)]
        if misspelt:
            return min(misspelt)  # sets have no order, and the result must not vary
    if size >= MIN_COMPOUND_LETTERS:
        longer = [
            candidate
            for candidate in field_stems
            if len(candidate) >= MIN_STEM_LETTERS and (word.startswith(candidate) or candidate.startswith(word))
        ]
        return min(longer, default=None)
    return None


def _places(text: _Index, shapes: dict[str, _Shape]) -> list[_Place]:
    return sorted(_Place(at, *shape) for word, shape in shapes.items() for at in text.get(word, ()))


def _matched_weight(places: Sequence[_Place]) -> float:
    return sum({place.word: place.weight for place in places}.values())


def _window_weight(places: Sequence[_Place]) -> float:
    """The largest weight of different words within a window."""
    best = weight = 0.0
    count: dict[str, int] = {}
    begin = 0
    for place in places:
        if not count.get(place.word):
            weight += place.weight
        count[place.word] = count.get(place.word, 0) + 1
        while places[begin].at <= place.at - WINDOW_WORDS:
            oldest = places[begin]
            count[oldest.word] -= 1
            if not count[oldest.word]:
                weight -= oldest.weight
            begin += 1
        best = max(best, weight)
    return best


def _pairs(wording: _Wording, texts: Sequence[Sequence[_Place]]) -> float:
    """The largest share of pairs in one text. One more pair is added to the total, so that a single pair that occurs by
    chance does not count as all of them."""
    question_pairs = {pair for pair in zip(wording.order, wording.order[1:], strict=False) if pair[0] != pair[1]}
    weights = {pair: min(wording.weights[pair[0]], wording.weights[pair[1]]) for pair in question_pairs}
    most = 0.0
    for places in texts:
        text_pairs = {
            (place.word, neighbour.word)
            for number, place in enumerate(places)
            for neighbour in places[number + 1 : number + 1 + MAX_PAIR_DISTANCE]
            if neighbour.at - place.at <= MAX_PAIR_DISTANCE
        }
        most = max(most, sum(weights[pair] for pair in text_pairs & question_pairs))
    return most / (sum(weights.values()) + 1)
