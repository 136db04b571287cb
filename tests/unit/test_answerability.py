"""Answerability: near passages that do not answer lower the confidence, ones that do raise it, and what cannot be
read or is not asked is left as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.confidence.answerability import (
    MAX_PARTS,
    WEIGHTS,
    Answerability,
    confidence_of,
    fitted_levels,
    fitted_weights,
    probability,
    questions_in,
)
from lectern.confidence.policies import level_of
from lectern.confidence.requirements import asks
from lectern.confidence.signals import CONFIDENCE_HITS
from lectern.domain.evidence import HIGH, LOW, MEDIUM, ConfidenceMetrics, Hit
from lectern.models.local.answer_locator import LocalAnswerLocator
from lectern.ports.answering import Pieces
from tests.making import chunk, hit

TEXT = "The pump starts at six in the morning. It does not start when the tank holds less than 40 litres."


def sure(confidence: float = 0.99) -> ConfidenceMetrics:
    """Metrics of a policy that would answer."""
    return ConfidenceMetrics(
        average_similarity=0.5,
        min_similarity=0.4,
        max_similarity=0.6,
        num_chunks=2,
        chunk_diversity=0.3,
        confidence=confidence,
        confidence_level=level_of(confidence),
        should_answer=True,
    )


class Says:
    """An answer locator that says the same of every piece, and counts how often it is asked."""

    def __init__(self, odds: float) -> None:
        self.odds = odds
        self.asked: list[str] = []

    async def find(self, question: str, passages: Sequence[Pieces]) -> list[tuple[float, ...]]:
        """As it was told."""
        self.asked.append(question)
        return [(self.odds,) * len(pieces) for _, pieces in passages]


async def look(
    question: str, locator: Says | LocalAnswerLocator, language: str = "en", hits: Sequence[Hit] = ()
) -> ConfidenceMetrics:
    """What becomes of a sure answer."""
    return await Answerability(locator).adjust(
        question, hits or [hit(chunk(TEXT)), hit(chunk("Roses are red. Violets are blue."))], sure(), language
    )


async def test_what_the_passages_answer_is_answered() -> None:
    """The shipped network and weights: an answer that is there passes, a near miss does not."""
    covered = await look("When does the pump begin to run?", LocalAnswerLocator())
    near = await look("Who sells spare parts for the pump, and what do they cost?", LocalAnswerLocator())

    assert covered.should_answer
    assert not near.should_answer
    assert near.confidence_level == "insufficient"


async def test_what_is_said_of_a_sibling_is_no_evidence() -> None:
    """However likely the answer locator calls it; the same text is evidence for the model that it is about."""
    hits = [hit(chunk("The H1 starts at six in the morning and stops at noon."))]

    assert not (await look("When does the G1 start?", Says(6.0), hits=hits)).should_answer
    assert (await look("When does the H1 start?", Says(6.0), hits=hits)).should_answer


@given(st.floats(-12, 12), st.floats(-12, 12))
async def test_more_likely_is_never_less_sure(lower_odds: float, higher_odds: float) -> None:
    """The confidence grows with the answer locator's odds, and level, decision and number agree."""
    lower, higher = [await look("Why is that so?", Says(odds)) for odds in sorted((lower_odds, higher_odds))]

    assert lower.confidence <= higher.confidence
    for metrics in (lower, higher):
        assert metrics.confidence_level == level_of(metrics.confidence)
        assert metrics.should_answer == (metrics.confidence_level != "insufficient")


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wann läuft die Pumpe an?", "de"),
        ("پمپ کب شروع ہوتا ہے؟", "en"),
    ],
)
async def test_what_cannot_be_read_is_left_alone(question: str, language: str) -> None:
    """Another language or another script: the policy decides, the answer locator is not asked."""
    locator = Says(-9)

    assert await look(question, locator, language) == sure()
    assert locator.asked == []


@pytest.mark.parametrize("subject", ["Pump maintenance", "Explain the pump"])
async def test_a_subject_is_shown_and_not_called_sure(subject: str) -> None:
    """A reader who names a subject is shown what the book has on it, however little it answers."""
    metrics = await look(subject, Says(-9))

    assert metrics.should_answer
    assert metrics.confidence_level == "low"


async def test_a_book_in_another_language_need_not_say_so() -> None:
    """Nobody declared the language, so it counts as English; its little words tell, and the policy decides."""
    german = "Die Pumpe läuft um sechs an, wenn der Tank voll ist. Sie ist nicht laut und hat einen Motor aus Eisen."
    locator = Says(-8.0)

    assert await look("Wann startet die Pumpe?", locator, "en", [hit(chunk(german))]) == sure()
    assert await look("When does the pump start?", locator, "en") != sure()


async def test_without_passages_nothing_changes() -> None:
    """There is nothing to look at."""
    assert await Answerability(Says(-9)).adjust("Why?", [], sure(), "en") == sure()


def test_several_questions_are_looked_at_one_by_one() -> None:
    """The whole, and each of its questions; a single one only once."""
    assert questions_in("Why does it stop?") == ["Why does it stop?"]
    assert questions_in("why does it stop") == ["why does it stop"]
    assert questions_in("It stops. Why? Is it broken?") == ["It stops. Why? Is it broken?", "Is it broken?"]
    assert questions_in("What is new in 2.0? (node.js)") == ["What is new in 2.0? (node.js)", "What is new in 2.0?"]
    assert questions_in("What changed in version 2.0?") == ["What changed in version 2.0?"]
    assert len(questions_in("Is it so? " * 9)) == 1 + MAX_PARTS
    assert questions_in("The pump stops, why?\n") == ["The pump stops, why?\n"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what is a pump", True),
        ("And why is that so", True),
        ("Pumps are loud, aren't they?", True),
        ("Debug integration issues systematically", False),
        ("default pump pressure", False),
        ("Whatever", False),
    ],
)
def test_questions_are_told_from_subjects(text: str, expected: bool) -> None:
    """By a question mark or by the word they begin with."""
    assert asks(text) is expected


async def test_the_number_of_passages_does_not_move_it() -> None:
    """Confidence is the same whatever a reader asks for: ten are looked at, the best of the ranking."""
    many = [hit(chunk(f"{TEXT} Remark {number}."), rank=number) for number in range(1, 12)]
    locator = LocalAnswerLocator()

    assert await look("Who made it?", locator, hits=many) == await look(
        "Who made it?", locator, hits=many[:CONFIDENCE_HITS]
    )


async def test_the_check_never_makes_surer() -> None:
    """The policy's word is the most that is claimed."""
    hits = [hit(chunk(TEXT))]
    before = sure(0.7)

    assert (await Answerability(Says(8)).adjust("When does it start?", hits, before, "en")).confidence == 0.7


def test_the_weights_are_those_of_the_signals() -> None:
    """Every weight speaks for an answer but that of absent words, none is missing, and the file says what it was fitted
    on."""
    weights = json.loads(WEIGHTS.read_text(encoding="utf-8"))

    signals = ("best", "first", "page", "lead", "place", "pairs", "absent")
    assert fitted_weights().keys() == {"intercept", *signals}
    assert all(weight > 0 for name, weight in fitted_weights().items() if name not in ("intercept", "absent"))
    assert fitted_weights()["absent"] < 0
    assert weights["fitted_on"]["questions"] > 100
    assert probability(dict.fromkeys(signals, 0.0), {**fitted_weights(), "intercept": 0}) == 0.5


def test_levels_begin_at_their_probabilities() -> None:
    """The confidence grows with the probability, and each level begins where it was fitted."""
    for level, least in (("low", LOW), ("medium", MEDIUM), ("high", HIGH)):
        assert confidence_of(fitted_levels()[level]) == pytest.approx(least)
    confidences = [confidence_of(percent / 100) for percent in range(101)]

    assert confidences == sorted(confidences)
    assert len(set(confidences)) == len(confidences)
    assert 0 <= confidences[0] < LOW < HIGH < confidences[-1] <= 1


async def test_words_that_the_book_lacks_lower_the_confidence() -> None:
    """Each of them: what a book never names it does not explain."""
    hits, question = [hit(chunk(TEXT))], "When does the pump start in Qatar?"
    confidences = [
        (await Answerability(Says(2)).adjust(question, hits, sure(), "en", absent)).confidence for absent in range(4)
    ]

    assert confidences == sorted(confidences, reverse=True)
    assert len(set(confidences)) == len(confidences)


async def test_excerpts_of_one_page_agree() -> None:
    """A page that has several excerpts about what is asked is likelier to answer than pages that have one each."""
    texts = [TEXT, "At weekends the pump starts at eight.", "The night pump starts after ten."]
    on_one_page = [hit(chunk(text)) for text in texts]
    apart = [hit(chunk(text, source_file=f"{number}.md")) for number, text in enumerate(texts)]
    question = "When does the pump start?"

    together = (await look(question, Says(-1), hits=on_one_page)).confidence
    assert together > (await look(question, Says(-1), hits=apart)).confidence


async def test_a_book_of_one_page_is_none_the_worse_for_it() -> None:
    """What a single passage answers is answered."""
    hits = [hit(chunk("# Nodes\n\nA node is a process that computes. Nodes talk over topics."))]

    assert (await look("What is a node?", LocalAnswerLocator(), hits=hits)).should_answer
    assert not (await look("Who sells nodes in Spain?", LocalAnswerLocator(), hits=hits)).should_answer
