"""The judge that needs no language model. A sentence that stands in its passages word for word is supported at once.
Any other is held against the units it rests on; what was found is weighed. It prefers silence to a wrong yes: where the
rules do not reach (another language, a text without words, a page-long sentence) the verdict is `unverified`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from lectern.answering.alignment import Alignment, Signals, align
from lectern.answering.claims import LONGEST, Claim, read_claim, units_of
from lectern.answering.meaning import Meaning
from lectern.answering.plain import squeezed, unattributed
from lectern.answering.polarity import NEGATORS
from lectern.answering.sentences import sentences_of
from lectern.answering.weighing import Weights, features, load_weights, weigh
from lectern.answering.wording import FUNCTION_WORDS
from lectern.domain.errors import LecternError
from lectern.domain.replies import Judgement, Verdict
from lectern.ports import Embedder

MOST_PASSAGE = 50_000  # characters; chunks are far smaller
ENGLISH_WORDS = 6  # from this many on, a sentence must look like English to be judged by English rules
ENGLISH_SHARE = 0.15  # of function words; English has 0.4, its neighbours under 0.1
LOOK_BACK = 3  # words before a quoted fragment that may turn it round
CONDITIONS = frozenset("if unless except only".split())  # after it, too
BY_TRUTH = 0.2  # share of `truth` in the support; more orders statements about other kinds of text worse
SEVERAL = 0.8  # more than one of what is counted
HALF_COPIED, COPIED, CLOSELY_COPIED = 0.5, 0.6, 0.75  # shares of a sentence's words in the order of its unit

NOTHING = Judgement(verdict="unverified", support=0.0)
WORD_FOR_WORD = Judgement(verdict="supported", support=1.0)
OUT_OF_CONTEXT = Judgement(verdict="unverified", support=0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A sentence, what it rests on, and how near the two are."""

    alignment: Alignment
    cosine: float
    with_meaning: bool


class RuleJudge:
    """Judges by rules on words, numbers, names and polarity, with the help of an embedder where there is one."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._meaning = Meaning(embedder) if embedder is not None else None

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
        if len(text) > LONGEST or not speaks_english(read_claim(text)):
            return NOTHING
        reading = await self.read(text, cited)
        return decide(reading) if reading else NOTHING

    async def read(self, text: str, passages: Sequence[str]) -> Reading | None:
        """Hold a sentence against passages; None where there is nothing to hold."""
        claim = read_claim(text)
        units = [unit for passage in passages for unit in units_of(passage)]
        found = align(claim, units)
        if found is None:
            return None
        if self._meaning is None:
            return Reading(alignment=found, cosine=0.0, with_meaning=False)
        try:
            meant = await self._meaning.of(claim, found)
        except LecternError:  # an embedder that fails must not fail the reply: words alone decide
            return Reading(alignment=found, cosine=0.0, with_meaning=False)
        return Reading(alignment=align(claim, units, meant.near) or found, cosine=meant.cosine, with_meaning=True)


def decide(reading: Reading) -> Judgement:
    """Weigh what was found."""
    weights = load_weights(meaning=reading.with_meaning)
    signals = reading.alignment.signals
    found = features(signals, reading.cosine)
    truth, cover = weigh(weights.truth, found), weigh(weights.cover, found)
    verdict = _verdict(signals, truth, cover, weights)
    return Judgement(verdict=verdict, support=_support(verdict, truth, cover))


def _verdict(signals: Signals, truth: float, cover: float, weights: Weights) -> Verdict:
    if truth >= weights.supported_from and cover >= weights.covered_from and not barred(signals):
        return "supported"
    if against(signals):
        return "contradicted"
    return "unverified"


def _support(verdict: Verdict, truth: float, cover: float) -> float:
    """From a half on supported, below it not; within each, how much of it is there and how little was changed."""
    sure = cover * (1 - BY_TRUTH + BY_TRUTH * truth)
    return (1 + sure) / 2 if verdict == "supported" else sure / 2


def barred(signals: Signals) -> bool:
    """What no weight outweighs: a number or a name that the passages do not have or have differently, cells of two rows
    in one clause, and a copy with a word of its own moved or taken from the next sentence."""
    if signals.number_missing or signals.number_rival or signals.name_missing or against(signals):
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


@lru_cache(maxsize=128)
def _squeezed(passage: str) -> str:
    return squeezed(passage)


@lru_cache(maxsize=128)
def _own_sentences(passage: str) -> frozenset[str]:
    return frozenset(squeezed(sentence) for sentence in sentences_of(passage))


@lru_cache(maxsize=128)
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
