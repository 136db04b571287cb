"""The judge that needs no language model. A claim that its passages contain word for word is supported at once. Any
other claim is compared with the units of the passages: the signals of `features.py` and the score of a small network
are weighed in one sum. A high sum means supported, a very low one doubtful. In between, and for texts that the judge
cannot compare (another language, no words, a sentence as long as a page), the verdict is `unconfirmed`, which says
nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from lectern.domain.errors import LecternError
from lectern.domain.replies import Judgement
from lectern.grounding.claims import MAX_UNIT_CHARACTERS, Claim, read_claim, units_of
from lectern.grounding.evidence import evidence_for, with_evidence_measures
from lectern.grounding.features import NEGATORS, compare, measure
from lectern.grounding.weights import Weights, load_weights, weigh
from lectern.ports.answering import Entailment
from lectern.text.pieces import sentences_of
from lectern.text.plain import squeezed, unattributed
from lectern.text.words import FUNCTION_WORDS, content_stems, stems

log = logging.getLogger("lectern.judge")
MAX_PASSAGE_CHARACTERS = 50_000  # chunks are far smaller
CACHED_PASSAGES = 512  # many questions need the same passages
ENGLISH_WORDS = 6  # a sentence with at least as many words must look like English to be judged
ENGLISH_SHARE = 0.15  # least share of function words; English has 0.4, related languages have under 0.1
CONTEXT_WORDS = 3  # words before a quoted fragment that may reverse its meaning
CONDITIONS = frozenset("if unless except only".split())  # reverse it after the fragment, too
MAX_SUPPORT_BY_WORDS = 0.49  # support of a claim that is judged by its share of words only: below `supported`
EXPECTED_COVERAGE = 0.6  # share of a claim's words that its passages have; with fewer it is borne less
NAME_SUPPORT = 0.6  # of a claim that is only a name
MAX_NAME_WORDS = 6  # of a claim that is only a name
FULL_COVERAGE = 0.99  # all words, with a margin for rounding
HALF_COPIED, CLOSELY_COPIED = 0.5, 0.75  # shares of a claim's words that its unit has in the same order

NO_WORDS = Judgement(verdict="unconfirmed", support=0.0)
OUT_OF_CONTEXT = Judgement(verdict="unconfirmed", support=0.25)
NOT_SAID = "The passage does not seem to say this."
NUMBER_SIGNALS = ("number_missing", "number_rival", "unit_rival")
VETOES = (*NUMBER_SIGNALS, "name_missing")  # no other judge outvotes these
REASONS = {  # of a doubtful claim, by the signal that counts most against it
    "number_missing": "This number is not in the passage.",
    "number_rival": "The passage has another number.",
    "number_unbound": "The passage has another number here.",
    "unit_rival": "The passage has another unit.",
    "name_missing": "This name is not in the passage.",
    "negation_differs": "The passage seems to say the opposite.",
    "generalised": "The passage does not say this so generally.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A claim and its measurements."""

    claim: Claim
    signals: Mapping[str, float]  # see grounding/features.py
    word_coverage: float  # share of the claim's content words that the passages have
    entailed: float | None  # the network's log-odds; None if there is no working network
    evidence: str  # the unit that has most of the claim's words
    passage: int | None  # the place of the passage with this unit

    @property
    def weighed(self) -> dict[str, float]:
        """The values that enter the weighted sum, by name."""
        values = {**self.signals, "word_coverage": self.word_coverage}
        return values if self.entailed is None else {**values, "entailed": self.entailed}


class LocalJudge:
    """Judges by signals of words, numbers, names and negation, and by a network if there is one."""

    def __init__(self, entailment: Entailment | None = None) -> None:
        self._entailment = entailment

    async def judge(self, claim: str, passages: Sequence[str]) -> Judgement:
        """The verdict on one claim, given passages."""
        text = unattributed(decodable(claim).strip())
        texts = [decodable(passage[:MAX_PASSAGE_CHARACTERS]) for passage in passages]
        if not any(character.isalnum() for character in text):
            return NO_WORDS
        quotations = [quotation(text, passage) for passage in texts]
        if "whole" in quotations:
            return Judgement(verdict="supported", support=1.0, evidence=text, passage=quotations.index("whole"))
        if "torn" in quotations:
            return replace(OUT_OF_CONTEXT, passage=quotations.index("torn"))
        reading = None
        if len(text) <= MAX_UNIT_CHARACTERS and speaks_english(read_claim(text)):
            reading = await self.read(text, texts)
        if reading is None:
            share = word_coverage(text, texts) if read_claim(text).content else 1.0  # "Yes." may be right or wrong
            return Judgement(verdict="unconfirmed", support=MAX_SUPPORT_BY_WORDS * share)
        judgement = decide(reading)
        return replace(judgement, evidence=reading.evidence, passage=reading.passage)

    async def vetoes(self, claim: str, passages: Sequence[str]) -> bool:
        """Whether a number, unit or name of a claim is not the passages'."""
        units = [unit for passage in passages for unit in units_of(passage[:MAX_PASSAGE_CHARACTERS])]
        statement = read_claim(unattributed(decodable(claim).strip()))
        comparison = compare(statement, units)
        signals = measure(comparison) if comparison is not None else {}
        # in other languages than English any noun may have a capital
        names = VETOES if speaks_english(statement) else NUMBER_SIGNALS
        return any(signals.get(name) for name in names)

    async def read(self, text: str, passages: Sequence[str]) -> Reading | None:
        """Compare a claim with passages; None if there is nothing to compare."""
        claim = read_claim(text)
        units_by_passage = [units_of(passage) for passage in passages]
        units = [unit for part in units_by_passage for unit in part]
        comparison = compare(claim, units)
        if comparison is None:
            return None
        best = comparison.best
        return Reading(
            claim=claim,
            signals=measure(comparison),
            word_coverage=word_coverage(text, passages),
            entailed=await self._log_odds(claim, units),
            evidence=best.text,
            passage=next(place for place, part in enumerate(units_by_passage) if any(unit is best for unit in part)),
        )

    async def _log_odds(self, claim: Claim, units: Sequence[Claim]) -> float | None:
        if self._entailment is None:
            return None
        try:
            return await self._entailment.log_odds(with_evidence_measures(claim, units), evidence_for(claim, units))
        except LecternError as exc:  # a broken network must not break the reply: from now on the rules decide
            self._entailment = None
            log.warning("claims are judged by rules alone: %s", exc)
            return None


def decide(reading: Reading) -> Judgement:
    """The verdict for the measurements. Words outvote the network: support needs most of the claim's words in the
    passages. Without a network nothing in other words is supported: signals do not know what words mean. The support is
    scaled so that it is at least 0.5 for a supported claim."""
    if bare_name(reading):
        return Judgement(verdict="supported", support=NAME_SUPPORT)
    weights = load_weights(entailed=reading.entailed is not None)
    total, threshold = weigh(weights.sum, reading.weighed), weights.supported_from
    another_number = has_another_number(reading.signals)
    bearing = total * min(1.0, reading.word_coverage / EXPECTED_COVERAGE)
    if another_number or misquoted(reading.signals) or reading.entailed is None:
        bearing = min(bearing, threshold / 2)
    if bearing >= threshold:
        return Judgement(verdict="supported", support=0.5 + (bearing - threshold) / (1 - threshold) / 2)
    support = bearing / threshold / 2
    if another_number or total < weights.doubtful_below:
        return Judgement(verdict="doubtful", support=support, reason=_reason(reading, weights))
    return Judgement(verdict="unconfirmed", support=support)


def _reason(reading: Reading, weights: Weights) -> str:
    """Why a claim is doubtful: the signal that counts most against it."""
    terms = {name: weights.sum.get(name, 0.0) * reading.signals[name] for name in REASONS}
    name, term = min(terms.items(), key=lambda entry: entry[1])
    return REASONS[name] if term < 0 else NOT_SAID


def bare_name(reading: Reading) -> bool:
    """Whether a claim is only a few names that the evidence has, such as an item of a list."""
    words = reading.claim.text.split()
    all_names = all(word[:1].isupper() or word[:1].isdigit() for word in words)
    return all_names and len(words) <= MAX_NAME_WORDS and reading.word_coverage >= FULL_COVERAGE


def misquoted(signals: Mapping[str, float]) -> bool:
    """Whether a close copy has a number or name that the passages lack or have differently. A network may overlook a
    single word, so no score outweighs this."""
    facts = ("number_missing", "number_rival", "name_missing")
    return signals["copied"] >= CLOSELY_COPIED and any(signals[name] for name in facts)


def has_another_number(signals: Mapping[str, float]) -> bool:
    """Whether a copy has a number or unit that the passages lack or have differently. A network may overlook a single
    sign, so no score outweighs this."""
    return signals["copied"] >= HALF_COPIED and any(signals[name] for name in NUMBER_SIGNALS)


def quotation(sentence: str, passage: str) -> Literal["none", "torn", "whole"]:
    """Whether the passage contains the sentence word for word: "torn" means only inside a text that may reverse its
    meaning."""
    fragment = squeezed(sentence)
    if fragment not in _squeezed(passage):
        return "none"
    if fragment in _squeezed_sentences(passage):
        return "whole"
    containing = [unit for unit in _squeezed_units(passage) if fragment in unit]
    return "whole" if not containing or any(_stands_alone(fragment, unit) for unit in containing) else "torn"


def _stands_alone(fragment: str, unit: str) -> bool:
    before, _, after = unit.partition(fragment)
    turned = NEGATORS & set(before.split()[-CONTEXT_WORDS:]) or CONDITIONS & set(before.split()[-CONTEXT_WORDS:])
    return not turned and not CONDITIONS & set(after.split()[:1])


def word_coverage(text: str, passages: Sequence[str]) -> float:
    """The share of a sentence's content words that the passages have; this works for a text of any kind."""
    words = content_stems(text)
    shared = [word for word in words if any(word in _stems(passage) for passage in passages)]
    return len(shared) / len(words) if words else 0.0


@lru_cache(maxsize=CACHED_PASSAGES)
def _stems(passage: str) -> frozenset[str]:
    return frozenset(stems(passage))


@lru_cache(maxsize=CACHED_PASSAGES)
def _squeezed(passage: str) -> str:
    return squeezed(passage)


@lru_cache(maxsize=CACHED_PASSAGES)
def _squeezed_sentences(passage: str) -> frozenset[str]:
    return frozenset(squeezed(sentence) for sentence in sentences_of(passage))


@lru_cache(maxsize=CACHED_PASSAGES)
def _squeezed_units(passage: str) -> tuple[str, ...]:
    return tuple(squeezed(unit.text) for unit in units_of(passage))


def speaks_english(claim: Claim) -> bool:
    """Whether a claim looks like English: mostly ASCII letters, and enough function words."""
    letters = [character for character in claim.text if character.isalpha()]
    if sum(character.isascii() for character in letters) * 2 < len(letters):
        return False
    little = sum(word.text in FUNCTION_WORDS for word in claim.words)
    return len(claim.words) < ENGLISH_WORDS or little >= ENGLISH_SHARE * len(claim.words)


def decodable(text: str) -> str:
    """The text without lone surrogates, which no model can read."""
    return text.encode("utf-8", "replace").decode("utf-8")
