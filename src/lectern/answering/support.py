"""The judge that needs no language model. A sentence that stands in its passages word for word is supported at once.
Any other is held against the units it rests on, by rules, and read together with them by a small network; both are
weighed in one sum. It prefers silence to a wrong yes: where neither reaches (another language, a text without words, a
page-long sentence) the verdict is `unverified`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lectern.answering.alarms import PARTIAL, Alarms, alarms
from lectern.answering.alignment import Alignment, Signals, align
from lectern.answering.claims import LONGEST, Claim, read_claim, units_of
from lectern.answering.clauses import clauses_of
from lectern.answering.contrasts import TURNING
from lectern.answering.evidence import evidence_for, in_its_measures
from lectern.answering.polarity import NEGATORS
from lectern.answering.weighing import features, load_weights, weigh
from lectern.domain.errors import LecternError
from lectern.domain.replies import Judgement, Verdict
from lectern.ports.answering import Entailment
from lectern.text.plain import squeezed, unattributed
from lectern.text.quantities import same
from lectern.text.sentences import sentences_of
from lectern.text.wording import FUNCTION_WORDS
from lectern.text.words import stems, telling_stems

log = logging.getLogger("lectern.judge")
MOST_PASSAGE = 50_000  # characters; chunks are far smaller
REMEMBERED = 512  # passages: those that readers ask for come up again and again
ENGLISH_WORDS = 6  # from this many on, a sentence must look like English to be judged by English rules
ENGLISH_SHARE = 0.15  # of function words; English has 0.4, its neighbours under 0.1
LOOK_BACK = 3  # words before a quoted fragment that may turn it round
CONDITIONS = frozenset("if unless except only".split())  # after it, too
BY_WORDS = 0.49  # of the share of words held, where nothing else can be said: never supported
SEVERAL = 0.8  # more than one of what is counted
HALF_COPIED, COPIED, CLOSELY_COPIED = 0.5, 0.6, 0.75  # shares of a sentence's words in the order of its unit

DENIED_BY_RULE, DENIED = 0.3, 0.05  # sums below which a sentence that is not borne out is denied
LEAST_HELD = 0.2  # of the telling words; with fewer the passages are about something else, which a network may miss
FEW = 6  # words of a bare name
SAME_THING = 0.5  # share of its words in the evidence

NOTHING = Judgement(verdict="unverified", support=0.0)
ALL = 0.99  # of the words, but for rounding
WORD_FOR_WORD = Judgement(verdict="supported", support=1.0)
NAMED = Judgement(verdict="supported", support=0.9)
OUT_OF_CONTEXT = Judgement(verdict="unverified", support=0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A sentence, what it rests on, and what was found."""

    sentence: Claim
    alignment: Alignment
    alarms: Alarms
    words_held: float  # share of the sentence's telling words that the passages have
    entailed: float | None  # the network's log-odds, where there is one and it could read the sentence

    @property
    def found(self) -> dict[str, float]:
        """Everything that is weighed."""
        found = features(self.alignment.signals, self.alarms, self.words_held)
        found |= {
            "barred": float(barred(self)),
            "kept": float(kept(self)),
            "closely_copied": float(self.alignment.signals.sequence >= CLOSELY_COPIED),
            "against": float(against(self.alignment.signals)),
        }
        return found if self.entailed is None else found | {"entailed": self.entailed}


class LocalJudge:
    """Judges by rules on words, numbers, names and polarity, and by a network where there is one."""

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
        held = words_held(text, cited) if read_claim(text).content else BY_WORDS  # "Yes." may be right or wrong
        return Judgement(verdict="unverified", support=BY_WORDS * held)

    async def read(self, text: str, passages: Sequence[str]) -> Reading | None:
        """Hold a sentence against passages; None where there is nothing to hold."""
        claim = read_claim(text)
        units = [unit for passage in passages for unit in units_of(passage)]
        found = align(claim, units)
        if found is None:
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
            alignment=found,
            alarms=alarms(claim, found.consulted, units),
            words_held=words_held(text, passages),
            entailed=entailed,
        )


def decide(reading: Reading) -> Judgement:
    """Weigh what was found. From 0.5 on the sentence is supported, whatever the sum that this takes. Where rules decide
    alone, what bars a sentence bars it for good; a network may know better, and its say is in the sum."""
    weights = load_weights(entailed=reading.entailed is not None)
    weighed, least = weigh(weights.sum, reading.found), weights.supported_from
    if (reading.entailed is None and barred(reading)) or reading.words_held < LEAST_HELD:
        weighed = min(weighed, least / 2)
    if weighed >= least:
        return Judgement(verdict="supported", support=0.5 + (weighed - least) / (1 - least) / 2)
    verdict: Verdict = "contradicted" if denied(reading, weighed) else "unverified"
    return Judgement(verdict=verdict, support=weighed / least / 2)


def bare_name(reading: Reading) -> bool:
    """A few words, all of them names that the evidence has: an item of a list, which states no more than that."""
    words = reading.sentence.text.split()
    held = reading.alignment.signals.covered_by_evidence >= ALL
    return held and len(words) <= FEW and all(word[:1].isupper() or word[:1].isdigit() for word in words)


def denied(reading: Reading, weighed: float) -> bool:
    """Whether the passages say something else about the same thing: by a rule that little speaks against, or because
    nearly nothing speaks for a sentence that has the passages' words."""
    signals = reading.alignment.signals
    if against(signals) and (reading.entailed is None or weighed < DENIED_BY_RULE):
        return True
    return reading.entailed is not None and signals.covered_by_evidence >= SAME_THING and weighed < DENIED


def kept(reading: Reading) -> bool:
    """A copy that was shortened or recast: every word of it is there, nothing that turns or limits it came or went,
    numbers stand in their order; and so do the words, but for whole clauses and a change between active and passive."""
    signals = reading.alignment.signals
    if signals.covered_by_evidence < ALL or signals.replaced or signals.strayed or signals.borrowed or signals.swapped:
        return False
    best = reading.alignment.evidence[0]
    mine, other = ({word.text for word in claim.words} for claim in (reading.sentence, best))
    if signals.limit_differs or (other - mine) & PARTIAL:
        return False
    theirs = iter([one for unit in reading.alignment.evidence for one in unit.quantities])
    if not all(any(same(one, other) for other in theirs) for one in reading.sentence.quantities):
        return False
    if not signals.moved and not signals.edited:
        return True
    if mine & TURNING != other & TURNING:
        return False
    by = (" by " in reading.sentence.lower) != (" by " in best.lower)
    return signals.covered >= ALL and (
        in_order(clauses_of(reading.sentence), best) or (by and bool(reading.alarms.voice))
    )


def in_order(clauses: Sequence[Claim], unit: Claim) -> bool:
    """Whether each clause, for itself, has its words in the order of the unit."""
    for clause in clauses:
        places = [unit.places[word.stem] for word in clause.content if word.stem in unit.places]
        last = -1
        for options in places:
            later = [place for place in options if place > last]
            if not later:
                return False
            last = later[0]
    return True


def barred(reading: Reading) -> bool:
    """What speaks loudest against it: a number, unit or name that the passages do not have or have differently, cells
    of two rows in one clause, first for last, and a copy with a word moved or taken from the next sentence."""
    signals, suspect = reading.alignment.signals, reading.alarms
    if signals.number_missing or signals.number_rival or signals.name_missing or against(signals):
        return True
    if suspect.unit_rival or suspect.order_turned or suspect.other_key:
        return True
    if signals.not_prose and signals.strayed >= SEVERAL:
        return True
    return bool(signals.sequence >= CLOSELY_COPIED and (signals.moved or signals.borrowed or signals.strayed))


def against(signals: Signals) -> bool:
    """Whether the evidence says something else, not merely less. Who writes freely shares few words in order with the
    book; the more a sentence copies, the less chance there is that a difference is only wording."""
    if signals.swapped or signals.crossed:
        return True
    negated = signals.flipped and (signals.negation_added or signals.negation_lost)
    return bool(
        (signals.sequence >= HALF_COPIED and (signals.number_rival or signals.opposites))
        or (signals.sequence >= COPIED and (signals.number_missing or signals.name_missing))
        or (signals.sequence >= CLOSELY_COPIED and (signals.edited or negated))
    )


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
    asked = telling_stems(text)
    held = {word for word in asked if any(word in _stems(passage) for passage in passages)}
    return len(held) / len(asked) if asked else 0.0


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
