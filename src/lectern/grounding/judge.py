"""The judge that needs no language model. A claim that its passages contain word for word is supported at once. Any
other claim is compared with the units of the passages: the signals of `features.py` and the score of a small network
are weighed in one sum. A high sum means supported. A very low one means doubtful, if something concrete is against the
claim (a number, unit, name or negation) or if most of its words are the passages'. In between, and for texts that the
judge cannot compare (free words, another language, a sentence as long as a page), the verdict is `unconfirmed`, which
says nothing."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from lectern.domain.errors import LecternError
from lectern.domain.replies import Judgement
from lectern.grounding.claims import MAX_UNIT_CHARACTERS, Claim, read_claim, units_of
from lectern.grounding.evidence import evidence_for, with_evidence_measures
from lectern.grounding.features import NEGATORS, compare, measure
from lectern.grounding.weights import Weights, load_weights, weigh
from lectern.ports.answering import Entailment
from lectern.text.pieces import sentences_of
from lectern.text.plain import plain, squeezed, unattributed
from lectern.text.statements import rows_as_written, rows_of
from lectern.text.words import FUNCTION_WORDS, content_stems, stems, words_of

log = logging.getLogger("lectern.judge")
MAX_PASSAGE_CHARACTERS = 50_000  # chunks are far smaller
CACHED_PASSAGES = 512  # many questions need the same passages
ENGLISH_WORDS = 6  # a sentence with at least as many words must look like English to be judged
ENGLISH_SHARE = 0.15  # least share of function words; English has 0.4, related languages have under 0.1
CONTEXT_WORDS = 3  # words before a quoted fragment that may reverse its meaning
QUANTIFIERS = frozenset("all any both every least less more most never no none not only some".split())
CONDITIONS = frozenset("if unless except only".split())  # reverse it after the fragment, too
MAX_SUPPORT = 0.99  # of a claim that is no quotation
MAX_SUPPORT_BY_WORDS = 0.49  # support of a claim that is judged by its share of words only: below `supported`
EXPECTED_COVERAGE = 0.6  # share of a claim's words that its passages have; with fewer it is borne less
NAME_SUPPORT = 0.6  # of a claim that is only a name
MAX_NAME_WORDS = 6  # of a claim that is only a name
MAX_LABEL_WORDS = 8  # before a colon
QUOTED = 1.0  # the support of a quotation
FULL_COVERAGE = 0.99  # all words, with a margin for rounding
MAX_QUOTED_UNITS = 4  # sentences that one quotation runs over
MIN_RELATED_SHARE = 0.3  # of a claim's words in what the book says about the same
COMPARABLE_COVERAGE = 0.4  # share of a claim's words in the passages; with fewer it may be true in other words
# of a claim that only a negation, or its sum, is against: paraphrases are often just below the other bound
MAX_SUM_WITHOUT_FACT = 0.145
HALF_COPIED, CLOSELY_COPIED = 0.5, 0.75  # shares of a claim's words that its unit has in the same order

_SIGN = re.compile(r"!=|[€$£¥₹√±×÷∈∉≠∀∃∧∨¬&^~∂∑∏∫⊂⊃⊆⊇]|(?<=\d)[ \u202f]?[A-Za-zµμΩ°]{1,3}\b")
NO_WORDS = Judgement(verdict="unconfirmed", support=0.0)
OUT_OF_CONTEXT = Judgement(verdict="unconfirmed", support=0.25)
NOT_SAID = "The passage does not seem to say this."
NUMBER_SIGNALS = ("number_missing", "number_rival", "rank_rival", "unit_rival")
VETOES = (*NUMBER_SIGNALS, "name_missing", "name_swapped")  # no other judge outvotes these
FACT_SIGNALS = (*NUMBER_SIGNALS, "number_unbound", "name_missing")  # concrete evidence against a claim
SOFT_SIGNALS = ("generalised",)
REASONS = {  # of a doubtful claim, by the signal that counts most against it
    "number_missing": "This number is not in the passage.",
    "number_rival": "The passage has another number.",
    "number_unbound": "The passage has another number here.",
    "rank_rival": "The passage has another number.",
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
    evidence: str  # the book's words in the unit that has most of the claim's words
    is_related: bool  # that unit is about the same: worth showing beside a doubtful claim
    passage: int | None  # the place of the passage with this unit
    is_misplaced: bool = False  # that unit is no statement that could bear the claim: code, or another column of a row

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
            place = quotations.index("whole")
            return Judgement(
                verdict="supported", support=QUOTED, evidence=book_words(text, texts[place]), passage=place
            )
        if "torn" in quotations:
            return replace(OUT_OF_CONTEXT, passage=quotations.index("torn"))
        reading = None
        if len(text) <= MAX_UNIT_CHARACTERS and speaks_english(read_claim(text)):
            reading = await self.read(text, texts)
        if reading is None:
            share = word_coverage(text, texts) if read_claim(text).content else 1.0  # "Yes." may be right or wrong
            return Judgement(verdict="unconfirmed", support=MAX_SUPPORT_BY_WORDS * share)
        judgement = decide(reading)
        if judgement.verdict == "doubtful" and "fragment" in quotations:
            judgement = OUT_OF_CONTEXT  # its words are the book's
        if judgement.verdict == "doubtful" and not reading.is_related:
            return replace(judgement, passage=reading.passage)
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
            evidence=_shown(best, passages),
            is_related=best.kind != "heading" and _shared(claim, best) >= MIN_RELATED_SHARE,
            passage=next(place for place, part in enumerate(units_by_passage) if any(unit is best for unit in part)),
            is_misplaced=best.kind == "code" or (best.kind == "row" and _is_of_another_column(claim, best, passages)),
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


def _shared(claim: Claim, unit: Claim) -> float:
    stems_of_claim = claim.stems
    return len(stems_of_claim & unit.stems) / len(stems_of_claim) if stems_of_claim else 0.0


def book_words(quoted: str, passage: str) -> str:
    """The sentences of a passage that have these words, as the passage writes them; "" if they run over too many."""
    fragment, units = squeezed(quoted), units_of(passage)
    for row in rows_as_written(passage):
        if squeezed(plain(row)) == fragment:
            return _shown_row(row, [passage])
    for length in range(1, MAX_QUOTED_UNITS + 1):
        runs = [units[start : start + length] for start in range(len(units) - length + 1)]
        fitting = [run for run in runs if fragment in squeezed(" ".join(unit.text for unit in run))]
        if fitting:
            shortest = min(fitting, key=lambda run: sum(len(unit.text) for unit in run))
            return " ".join(_shown(unit, [passage]) for unit in shortest)
    return ""


def _shown(unit: Claim, passages: Sequence[str]) -> str:
    """A unit as a reader sees it."""
    return _shown_row(unit.text, passages) if unit.kind == "row" else unit.text


def _shown_row(text: str, passages: Sequence[str]) -> str:
    """The row of a table with its cells alone, without the heads that were added."""
    words = set(squeezed(text).split())
    lines = [line for passage in passages for line in passage.split("\n")]
    rows = [line for line, below in pairwise([*lines, ""]) if "|" in line and not _is_rule(below)]
    fitting = [row for row in rows if (cells := squeezed(row.replace("|", " ")).split()) and set(cells) <= words]
    return " | ".join(cell.strip() for cell in max(fitting, key=len).strip(" |").split("|")) if fitting else text


def _is_rule(line: str) -> bool:
    """Whether a line is the rule below the head of a table."""
    return "-" in line and not line.strip(" \t|:-")


def decide(reading: Reading) -> Judgement:
    """The verdict for the measurements. Words outvote the network: support needs most of the claim's words in the
    passages. Without a network nothing in other words is supported: signals do not know what words mean. A low sum is a
    doubt if a number, unit or name is against the claim; a negation, or nothing but the sum, needs a very low one and
    most words of the passages, because a claim may be true in free words. The support is scaled so that it is at least
    0.5 for a supported claim."""
    if bare_name(reading):
        return Judgement(verdict="supported", support=NAME_SUPPORT)
    weights = load_weights(entailed=reading.entailed is not None)
    total, threshold = weigh(weights.sum, reading.weighed), weights.supported_from
    another_number = has_another_number(reading.signals)
    bearing = total * min(1.0, reading.word_coverage / EXPECTED_COVERAGE)
    if another_number or misquoted(reading.signals) or reading.is_misplaced or reading.entailed is None:
        bearing = min(bearing, threshold / 2)
    if bearing >= threshold:
        support = min(MAX_SUPPORT, 0.5 + (bearing - threshold) / (1 - threshold) / 2)
        return Judgement(verdict="supported", support=support)
    support = bearing / threshold / 2
    if not another_number and total >= weights.doubtful_below:
        return Judgement(verdict="unconfirmed", support=support)
    against: tuple[str, ...] = FACT_SIGNALS
    if not any(reading.signals[name] for name in FACT_SIGNALS):
        if reading.word_coverage < COMPARABLE_COVERAGE or total >= MAX_SUM_WITHOUT_FACT:
            return Judgement(verdict="unconfirmed", support=support, is_soft=True)
        against = ("negation_differs",) if reading.signals["negation_differs"] else SOFT_SIGNALS
    reason = _reason(reading, weights, against)
    return Judgement(verdict="doubtful", support=support, reason=reason, is_soft=against is SOFT_SIGNALS)


def _reason(reading: Reading, weights: Weights, signals: Sequence[str]) -> str:
    """Why a claim is doubtful: the signal that counts most against it."""
    raised = [name for name in signals if reading.signals[name]]
    name = min(raised, key=lambda name: weights.sum.get(name, 0.0) * reading.signals[name], default="")
    return REASONS.get(name, NOT_SAID)


def bare_name(reading: Reading) -> bool:
    """Whether a claim is only a few names that the evidence has, such as an item of a list."""
    words = reading.claim.text.split()
    all_names = all(word[:1].isupper() for word in words) and not any(map(str.isdigit, reading.claim.text))
    in_one_unit = word_coverage(reading.claim.text, [reading.evidence]) >= FULL_COVERAGE
    return all_names and len(words) <= MAX_NAME_WORDS and in_one_unit


def misquoted(signals: Mapping[str, float]) -> bool:
    """Whether a close copy has a number or name that the passages lack or have differently. A network may overlook a
    single word, so no score outweighs this."""
    facts = ("number_missing", "number_rival", "name_missing")
    is_close = signals["copied"] >= CLOSELY_COPIED and any(signals[name] for name in facts)
    return is_close or (signals["copied"] >= HALF_COPIED and bool(signals["name_swapped"]))


def has_another_number(signals: Mapping[str, float]) -> bool:
    """Whether a copy has a number or unit that the passages lack or have differently. A network may overlook a single
    sign, so no score outweighs this."""
    return signals["copied"] >= HALF_COPIED and any(signals[name] for name in NUMBER_SIGNALS)


def _is_of_another_column(claim: Claim, row: Claim, passages: Sequence[str]) -> bool:
    """Whether a claim names a column of a row, but says what another column has: `the default is best effort`, where
    that is only a possible value."""
    rows = ((text, cells) for passage in passages for text, cells in rows_of(passage).items())
    cells = next((cells for text, cells in rows if plain(text) == row.text), [])
    stated = _telling_stems(claim.text)
    heads, texts = [_telling_stems(head) for head, _ in cells], [_telling_stems(cell) for _, cell in cells]
    shared = {word for word, count in Counter(word for head in heads for word in head).items() if count > 1}
    named = [place for place, head in enumerate(heads) if place and stated & head - shared]
    if not named:
        return False
    fitting = set[str]().union(*heads, texts[0], *(texts[place] for place in named))
    return bool(stated & set[str]().union(*texts) - fitting)


def _telling_stems(text: str) -> set[str]:
    return content_stems(plain(text)) | {word for word in words_of(text.lower()) if word in QUANTIFIERS}


def quotation(sentence: str, passage: str) -> Literal["none", "torn", "fragment", "whole"]:
    """Whether the passage contains the sentence word for word: "torn" means only inside a text that may reverse or
    limit its meaning, and "fragment" as the beginning of a longer sentence."""
    fragment = squeezed(sentence)
    is_unit = fragment in _squeezed_units(passage)  # a row with its heads is one, though it is nowhere in one piece
    if not (is_unit or fragment in _squeezed(passage)) or not _has_signs(sentence, passage):
        return "none"
    if is_unit or fragment in _squeezed_sentences(passage):
        return "whole"
    containing = [unit for unit in _squeezed_units(passage) if fragment in unit]
    if not containing:
        return "whole"
    return "fragment" if any(_stands_alone(fragment, unit) for unit in containing) else "torn"


def _has_signs(sentence: str, passage: str) -> bool:
    """Whether the sentences with these words have the same currencies, operators and units: comparing words alone takes
    `€5` for `$5`, `x ∉ A` for `x ∈ A` and `5 mW` for `5 MW`."""
    signs = _SIGN.findall(plain(sentence))
    if not signs and not _SIGN.search(plain(passage)):
        return True
    place = book_words(sentence, passage) or passage
    there = _SIGN.findall(plain(place))
    runs = [there[start : start + len(signs)] for start in range(len(there) - len(signs) + 1)]
    return signs in runs if len(there) == len(signs) or squeezed(place) != squeezed(sentence) else False


def _stands_alone(fragment: str, unit: str) -> bool:
    before, _, after = unit.partition(fragment)
    turned = (NEGATORS | CONDITIONS) & set(before.split()[-CONTEXT_WORDS:])
    limited = set(before.split()) - FUNCTION_WORDS  # `for a fixed arm it is the safest stop`
    return not turned and not limited and not CONDITIONS & set(after.split()[:1])


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
    """The units of a passage, the rows of its tables as they are written, and what units say after a label:
    `Detection in front: send audio only …`."""
    texts = [*(unit.text for unit in units_of(passage)), *map(plain, rows_as_written(passage))]
    labelled = [text.partition(": ") for text in texts]
    said = [rest for label, _, rest in labelled if rest and len(label.split()) <= MAX_LABEL_WORDS]
    return tuple(map(squeezed, (*texts, *said)))


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
