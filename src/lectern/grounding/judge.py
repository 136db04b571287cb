"""The judge that needs no language model. A sentence that its passages contain word for word is supported at once. Any
other sentence is compared with the units of the passages: the signals of `features.py` and the score of a small network
are weighed in one sum. The judge avoids a wrong yes: for texts that it cannot compare (another language, no words, a
sentence as long as a page) the verdict is `unverified`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lectern.domain.errors import LecternError
from lectern.domain.replies import Judgement, Verdict
from lectern.grounding.claims import MAX_UNIT_CHARACTERS, Claim, read_claim, units_of
from lectern.grounding.evidence import evidence_for, with_evidence_measures
from lectern.grounding.features import NEGATORS, compare, measure
from lectern.grounding.weights import load_weights, weigh
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
MAX_SUPPORT_BY_WORDS = 0.49  # support of a sentence that is judged by its share of words only: below `supported`
HALF_COPIED, COPIED, CLOSELY_COPIED, NEARLY_EQUAL = (
    0.5,
    0.6,
    0.75,
    0.8,
)  # shares of a sentence's words that its unit has in the same order
MIN_NEGATED_SHARE = 0.5  # of a negated phrase that the other side states

BARRING_SIGNALS = (
    "number_missing",
    "number_rival",
    "unit_rival",
    "name_missing",
    "order_turned",
    "exchanged",
    "other_key",
)
MAX_RULE_DENIAL_SUM, MAX_DENIAL_SUM = 0.3, 0.07  # a sentence that is not supported is contradicted below these sums
MIN_WORD_COVERAGE = 0.2  # below it the passages are about something else, which a network may miss
MAX_NAME_WORDS = 6  # of a sentence that is only a name
MIN_SHARED_WORDS = 0.5  # share of a sentence's words in the evidence
FULL_COVERAGE = 0.99  # all words, with a margin for rounding

NO_WORDS = Judgement(verdict="unverified", support=0.0)
WORD_FOR_WORD = Judgement(verdict="supported", support=1.0)
NAME_ONLY = Judgement(verdict="supported", support=0.9)
OUT_OF_CONTEXT = Judgement(verdict="unverified", support=0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A sentence and its measurements."""

    sentence: Claim
    signals: Mapping[str, float]  # see grounding/features.py
    word_coverage: float  # share of the sentence's content words that the passages have
    entailed: float | None  # the network's log-odds; None if there is no working network

    @property
    def weighed(self) -> dict[str, float]:
        """The values that enter the weighted sum, by name."""
        return {**self.signals} if self.entailed is None else {**self.signals, "entailed": self.entailed}


class LocalJudge:
    """Judges by signals of words, numbers, names and negation, and by a network if there is one."""

    def __init__(self, entailment: Entailment | None = None) -> None:
        self._entailment = entailment

    async def judge(self, sentence: str, passages: Sequence[str]) -> Judgement:
        """The verdict on one sentence, given the passages it cites."""
        text = unattributed(decodable(sentence).strip())
        cited = [decodable(passage[:MAX_PASSAGE_CHARACTERS]) for passage in passages]
        if not any(character.isalnum() for character in text):
            return NO_WORDS
        quoted = {quotation(text, passage) for passage in cited}
        if "whole" in quoted:
            return WORD_FOR_WORD
        if "torn" in quoted:
            return OUT_OF_CONTEXT
        reading = None
        if len(text) <= MAX_UNIT_CHARACTERS and speaks_english(read_claim(text)):
            reading = await self.read(text, cited)
        if reading is not None:
            return NAME_ONLY if bare_name(reading) else decide(reading)
        share = (
            word_coverage(text, cited) if read_claim(text).content else MAX_SUPPORT_BY_WORDS
        )  # "Yes." may be right or wrong
        return Judgement(verdict="unverified", support=MAX_SUPPORT_BY_WORDS * share)

    async def read(self, text: str, passages: Sequence[str]) -> Reading | None:
        """Compare a sentence with passages; None if there is nothing to compare."""
        claim = read_claim(text)
        units = [unit for passage in passages for unit in units_of(passage)]
        comparison = compare(claim, units)
        if comparison is None:
            return None
        entailed = None
        if self._entailment is not None:
            try:
                entailed = await self._entailment.log_odds(
                    with_evidence_measures(claim, units), evidence_for(claim, units)
                )
            except LecternError as exc:  # a broken network must not break the reply: from now on the rules decide
                self._entailment = None
                log.warning("sentences are judged by rules alone: %s", exc)
        return Reading(
            sentence=claim,
            signals=measure(comparison),
            word_coverage=word_coverage(text, passages),
            entailed=entailed,
        )


def decide(reading: Reading) -> Judgement:
    """The verdict for the measurements. The support is scaled so that it is at least 0.5 for a supported sentence.
    Without a network a barring signal rules support out. With a network it is only a term of the sum, because the
    network may know better."""
    weights = load_weights(entailed=reading.entailed is not None)
    total, threshold = weigh(weights.sum, reading.weighed), weights.supported_from
    ruled_out = misquoted(reading.signals) or (reading.entailed is None and barred(reading.signals))
    if ruled_out or reading.word_coverage < MIN_WORD_COVERAGE:
        total = min(total, threshold / 2)
    if total >= threshold:
        return Judgement(verdict="supported", support=0.5 + (total - threshold) / (1 - threshold) / 2)
    verdict: Verdict = "contradicted" if denied(reading, total) else "unverified"
    return Judgement(verdict=verdict, support=total / threshold / 2)


def bare_name(reading: Reading) -> bool:
    """Whether a sentence is only a few names that the evidence has, such as an item of a list."""
    words = reading.sentence.text.split()
    all_names = all(word[:1].isupper() or word[:1].isdigit() for word in words)
    return all_names and len(words) <= MAX_NAME_WORDS and reading.signals["words_covered"] >= FULL_COVERAGE


def denied(reading: Reading, total: float) -> bool:
    """Whether the passages contradict a sentence: a rule says so and the sum is low, or the sentence has the words of
    the passages and the sum is very low."""
    if against(reading.signals) and (reading.entailed is None or total < MAX_RULE_DENIAL_SUM):
        return True
    return (
        reading.entailed is not None and reading.signals["words_covered"] >= MIN_SHARED_WORDS and total < MAX_DENIAL_SUM
    )


def against(signals: Mapping[str, float]) -> bool:
    """Whether the evidence says something else, and not only less. A free wording shares few words in order with the
    book; the more a sentence copies, the less likely a difference is only one of wording."""
    copied = signals["copied"]
    turned = signals["negation_differs"] >= MIN_NEGATED_SHARE or signals["order_turned"]
    return bool(
        signals["roles_swapped"]
        or (copied >= HALF_COPIED and signals["number_rival"])
        or (copied >= COPIED and (signals["number_missing"] or signals["name_missing"]))
        or (copied >= CLOSELY_COPIED and turned)
    )


def misquoted(signals: Mapping[str, float]) -> bool:
    """Whether a close copy has a number or name that the passages lack or have differently. A network may overlook a
    single word, so no score outweighs this."""
    facts = ("number_missing", "number_rival", "name_missing")
    return signals["copied"] >= CLOSELY_COPIED and any(signals[name] for name in facts)


def barred(signals: Mapping[str, float]) -> bool:
    """Whether a signal rules support out: a number, unit or name that the passages lack or have differently, a mixture
    of two things, a reversed order, or a close copy with a word that was changed, added or moved."""
    if any(signals[name] for name in BARRING_SIGNALS) or against(signals):
        return True
    return NEARLY_EQUAL <= signals["copied"] < FULL_COVERAGE


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
