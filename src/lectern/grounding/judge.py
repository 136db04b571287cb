"""The judge that needs no language model. A sentence that stands in its passages word for word is supported at once.
Any other is compared with the units it rests on, signal by signal, and read together with them by a small network;
both are weighed in one sum. It prefers silence to a wrong yes: where neither reaches (another language, a text
without words, a page-long sentence) the verdict is `unverified`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lectern.domain.errors import LecternError
from lectern.domain.replies import Judgement, Verdict
from lectern.grounding.claims import LONGEST, Claim, read_claim, units_of
from lectern.grounding.evidence import evidence_for, in_its_measures
from lectern.grounding.features import NEGATORS, compare, measure
from lectern.grounding.weights import load_weights, weigh
from lectern.ports.answering import Entailment
from lectern.text.pieces import sentences_of
from lectern.text.plain import squeezed, unattributed
from lectern.text.words import FUNCTION_WORDS, content_stems, stems

log = logging.getLogger("lectern.judge")
MOST_PASSAGE = 50_000  # characters; chunks are far smaller
REMEMBERED = 512  # passages: those that readers ask for come up again and again
ENGLISH_WORDS = 6  # from this many on, a sentence must look like English to be judged by English rules
ENGLISH_SHARE = 0.15  # of function words; English has 0.4, its neighbours under 0.1
LOOK_BACK = 3  # words before a quoted fragment that may turn it round
CONDITIONS = frozenset("if unless except only".split())  # after it, too
MAX_BY_WORDS = 0.49  # support by the share of words alone, where nothing else can be said: never supported
HALF_COPIED, COPIED, CLOSELY_COPIED, NEARLY_EQUAL = (
    0.5,
    0.6,
    0.75,
    0.8,
)  # shares of a sentence's words in the order of its unit
NEGATION_SURE = 0.5  # share of what is negated here and stated there

BARRING = ("number_missing", "number_rival", "unit_rival", "name_missing", "order_turned", "exchanged", "other_key")
DENIED_BY_RULE, DENIED = 0.3, 0.07  # sums below which a sentence that is not borne out is denied
MIN_WORDS_HELD = 0.2  # with fewer the passages are about something else, which a network may miss
MAX_NAME_WORDS = 6  # of a bare name
SAME_THING = 0.5  # share of its words in the evidence
ALL = 0.99  # of the words, but for rounding

NOTHING = Judgement(verdict="unverified", support=0.0)
WORD_FOR_WORD = Judgement(verdict="supported", support=1.0)
NAMED = Judgement(verdict="supported", support=0.9)
OUT_OF_CONTEXT = Judgement(verdict="unverified", support=0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A sentence and what was measured of it."""

    sentence: Claim
    signals: Mapping[str, float]  # see grounding/features.py
    words_held: float  # share of the sentence's telling words that the passages have
    entailed: float | None  # the network's log-odds, where there is one and it could read the sentence

    @property
    def weighed(self) -> dict[str, float]:
        """Everything that is weighed."""
        return {**self.signals} if self.entailed is None else {**self.signals, "entailed": self.entailed}


class LocalJudge:
    """Judges by signals of words, numbers, names and negation, and by a network where there is one."""

    def __init__(self, entailment: Entailment | None = None) -> None:
        self._entailment = entailment

    async def judge(self, sentence: str, passages: Sequence[str]) -> Judgement:
        """The verdict on one sentence, given the passages it cites."""
        text = unattributed(decodable(sentence).strip())
        cited = [decodable(passage[:MOST_PASSAGE]) for passage in passages]
        if not any(character.isalnum() for character in text):
            return NOTHING
        quoted = {quotation(text, passage) for passage in cited}
        if "whole" in quoted:
            return WORD_FOR_WORD
        if "torn" in quoted:
            return OUT_OF_CONTEXT
        reading = None
        if len(text) <= LONGEST and speaks_english(read_claim(text)):
            reading = await self.read(text, cited)
        if reading is not None:
            return NAMED if bare_name(reading) else decide(reading)
        share = words_held(text, cited) if read_claim(text).content else MAX_BY_WORDS  # "Yes." may be right or wrong
        return Judgement(verdict="unverified", support=MAX_BY_WORDS * share)

    async def read(self, text: str, passages: Sequence[str]) -> Reading | None:
        """Hold a sentence against passages; None where there is nothing to hold."""
        claim = read_claim(text)
        units = [unit for passage in passages for unit in units_of(passage)]
        comparison = compare(claim, units)
        if comparison is None:
            return None
        entailed = None
        if self._entailment is not None:
            try:
                entailed = await self._entailment.log_odds(in_its_measures(claim, units), evidence_for(claim, units))
            except LecternError as exc:  # a network that fails must not fail the reply: from now on rules alone decide
                self._entailment = None
                log.warning("sentences are judged by rules alone: %s", exc)
        return Reading(
            sentence=claim,
            signals=measure(comparison),
            words_held=words_held(text, passages),
            entailed=entailed,
        )


def decide(reading: Reading) -> Judgement:
    """Weigh what was measured. From 0.5 on the sentence is supported, whatever the sum that this takes. Where signals
    decide alone, what bars a sentence bars it for good; a network may know better, and its say is in the sum."""
    weights = load_weights(entailed=reading.entailed is not None)
    total, least = weigh(weights.sum, reading.weighed), weights.supported_from
    never = misquoted(reading.signals) or (reading.entailed is None and barred(reading.signals))
    if never or reading.words_held < MIN_WORDS_HELD:
        total = min(total, least / 2)
    if total >= least:
        return Judgement(verdict="supported", support=0.5 + (total - least) / (1 - least) / 2)
    verdict: Verdict = "contradicted" if denied(reading, total) else "unverified"
    return Judgement(verdict=verdict, support=total / least / 2)


def bare_name(reading: Reading) -> bool:
    """A few words, all of them names that the evidence has: an item of a list, which states no more than that."""
    words = reading.sentence.text.split()
    named = all(word[:1].isupper() or word[:1].isdigit() for word in words)
    return named and len(words) <= MAX_NAME_WORDS and reading.signals["words_covered"] >= ALL


def denied(reading: Reading, total: float) -> bool:
    """Whether the passages say something else about the same thing: by a rule that little speaks against, or because
    nearly nothing speaks for a sentence that has the passages' words."""
    if against(reading.signals) and (reading.entailed is None or total < DENIED_BY_RULE):
        return True
    return reading.entailed is not None and reading.signals["words_covered"] >= SAME_THING and total < DENIED


def against(signals: Mapping[str, float]) -> bool:
    """Whether the evidence says something else, not merely less. Who writes freely shares few words in order with the
    book; the more a sentence copies, the less chance there is that a difference is only wording."""
    copied = signals["copied"]
    turned = signals["negation_differs"] >= NEGATION_SURE or signals["order_turned"]
    return bool(
        signals["roles_swapped"]
        or (copied >= HALF_COPIED and signals["number_rival"])
        or (copied >= COPIED and (signals["number_missing"] or signals["name_missing"]))
        or (copied >= CLOSELY_COPIED and turned)
    )


def misquoted(signals: Mapping[str, float]) -> bool:
    """A close copy with a number or name that the passages lack or have differently: a network may overlook one word,
    and here nothing can excuse it."""
    facts = ("number_missing", "number_rival", "name_missing")
    return signals["copied"] >= CLOSELY_COPIED and any(signals[name] for name in facts)


def barred(signals: Mapping[str, float]) -> bool:
    """What no other signal outweighs: a number, unit or name that the passages lack or have differently, parts of
    two things in one, first for last, and a close copy with a word that was changed, added or moved."""
    if any(signals[name] for name in BARRING) or against(signals):
        return True
    return NEARLY_EQUAL <= signals["copied"] < ALL


def quotation(sentence: str, passage: str) -> Literal["none", "torn", "whole"]:
    """Whether the passage has the sentence as it stands, or only as a part of something that may turn it round."""
    wanted = squeezed(sentence)
    if wanted not in _squeezed(passage):
        return "none"
    if wanted in _own_sentences(passage):
        return "whole"
    holding = [whole for whole in _squeezed_units(passage) if wanted in whole]
    return "whole" if not holding or any(_stands_alone(wanted, whole) for whole in holding) else "torn"


def _stands_alone(wanted: str, whole: str) -> bool:
    before, _, after = whole.partition(wanted)
    turned = NEGATORS & set(before.split()[-LOOK_BACK:]) or CONDITIONS & set(before.split()[-LOOK_BACK:])
    return not turned and not CONDITIONS & set(after.split()[:1])


def words_held(text: str, passages: Sequence[str]) -> float:
    """The share of a sentence's telling words that the passages have: the least that can be said of any text."""
    words = content_stems(text)
    shared = [word for word in words if any(word in _stems(passage) for passage in passages)]
    return len(shared) / len(words) if words else 0.0


@lru_cache(maxsize=REMEMBERED)
def _stems(passage: str) -> frozenset[str]:
    return frozenset(stems(passage))


@lru_cache(maxsize=REMEMBERED)
def _squeezed(passage: str) -> str:
    return squeezed(passage)


@lru_cache(maxsize=REMEMBERED)
def _own_sentences(passage: str) -> frozenset[str]:
    return frozenset(squeezed(sentence) for sentence in sentences_of(passage))


@lru_cache(maxsize=REMEMBERED)
def _squeezed_units(passage: str) -> tuple[str, ...]:
    return tuple(squeezed(unit.text) for unit in units_of(passage))


def speaks_english(claim: Claim) -> bool:
    """Whether English rules may judge it: letters of its alphabet, and its little words between the others."""
    letters = [character for character in claim.text if character.isalpha()]
    if sum(character.isascii() for character in letters) * 2 < len(letters):
        return False
    little = sum(word.text in FUNCTION_WORDS for word in claim.words)
    return len(claim.words) < ENGLISH_WORDS or little >= ENGLISH_SHARE * len(claim.words)


def decodable(text: str) -> str:
    """The text without halves of characters, which no model reads."""
    return text.encode("utf-8", "replace").decode("utf-8")
