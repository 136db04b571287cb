"""What the network is given to read: units of the passages and nothing else, and measures that it need not convert."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lectern.grounding.claims import read_claim, units_of
from lectern.grounding.evidence import MAX_EVIDENCE_WORDS, evidence_for, with_evidence_measures
from lectern.text.quantities import quantities_of, same

WORDS = st.sampled_from("pump valve tank starts opens litres red green slowly never 12 40 minutes the a of in".split())
SENTENCES = st.lists(WORDS, min_size=1, max_size=40).map(lambda words: f"{' '.join(words)}.".capitalize())
PASSAGES = st.lists(st.lists(SENTENCES, min_size=1, max_size=6).map("\n\n".join), min_size=1, max_size=5)

LONG = "\n\n".join(
    f"Lesson {number} tells of the {thing}. " + "It goes on about many other matters for quite a while. " * 4
    for number, thing in enumerate(["pump", "valve", "tank", "gardener", "greenhouse"], start=1)
)


def units(*passages: str) -> list[str]:
    """The texts of all units."""
    return [unit.text for passage in passages for unit in units_of(passage)]


def evidence(statement: str, *passages: str, budget: int = MAX_EVIDENCE_WORDS) -> str:
    """What is read for a statement."""
    return evidence_for(read_claim(statement), [unit for passage in passages for unit in units_of(passage)], budget)


def measured(statement: str, passage: str) -> str:
    """The statement in the passage's measures."""
    return with_evidence_measures(read_claim(statement), units_of(passage))


def test_everything_is_read_where_it_fits() -> None:
    """All units, also those that have no word of the statement; what ends without a stop gets one."""
    assert evidence("Basil is green.", "# The pump\n\nIt starts at six.", "- The valve opens") == (
        "The pump. It starts at six. The valve opens."
    )


def test_nothing_is_read_of_nothing() -> None:
    """No passage, no evidence, no error."""
    assert evidence("The pump starts.") == evidence("The pump starts.", "") == ""


def test_what_bears_on_the_statement_is_read() -> None:
    """Of passages that are too long, the units with its words, wherever they stand."""
    units = evidence("The valve is told of before the greenhouse.", LONG, budget=40)

    assert "tells of the valve." in units
    assert "tells of the greenhouse." in units
    assert "gardener" not in units


def test_units_come_in_the_order_of_the_book() -> None:
    """Whatever the order in which the statement names them: "then" and "it" look back."""
    units = evidence("The greenhouse, the tank and the pump.", LONG, budget=60)

    assert units.index("pump") < units.index("tank") < units.index("greenhouse")


def test_one_unit_is_read_even_if_it_is_too_long() -> None:
    """A page-long sentence is better evidence than none; the network cuts it."""
    passage = "The pump " + "and the valve " * MAX_EVIDENCE_WORDS + "start.\n\nThe tank is green."

    assert evidence("The pump and the valve start.", passage).startswith("The pump and the valve")


@settings(max_examples=150, deadline=None)
@given(statement=SENTENCES, passages=PASSAGES, budget=st.integers(5, 120))
def test_evidence_is_units_in_order_within_the_budget(statement: str, passages: list[str], budget: int) -> None:
    """Never a word that no passage has, never two units in another order, never more than the budget, but for one unit
    that is larger by itself."""
    rest = evidence(statement, *passages, budget=budget)
    whole, units_taken = rest, []
    for text in (f"{unit.strip().removesuffix('.')}." for unit in units(*passages)):
        if rest.startswith(text):
            units_taken.append(text)
            rest = rest[len(text) :].lstrip()

    assert rest == ""
    assert len(whole.split()) <= budget or len(units_taken) == 1
    assert evidence(statement, *passages, budget=budget) == whole


@settings(max_examples=80, deadline=None)
@given(statement=SENTENCES, passages=PASSAGES)
def test_passages_that_fit_are_read_whole(statement: str, passages: list[str]) -> None:
    """A budget of all their words leaves nothing out."""
    everything = units(*passages)
    budget = sum(len(unit.split()) for unit in everything)

    assert evidence(statement, *passages, budget=budget).split() == " ".join(everything).split()


@pytest.mark.parametrize(
    ("statement", "passage", "expected"),
    [
        ("It runs for 720 seconds.", "The pump runs for 12 minutes.", "It runs for 12 minutes."),
        ("It runs for 12 minutes.", "The pump runs for 720 seconds.", "It runs for 720 seconds."),
        ("It takes 0.6 s, then 2 km.", "After 2000 m come 600 ms.", "It takes 600 ms, then 2000 m."),
        ("It runs for 12 minutes.", "That is 720 seconds, or 12 minutes.", "It runs for 12 minutes."),
    ],
)
def test_a_measure_is_said_as_the_passage_says_it(statement: str, passage: str, expected: str) -> None:
    """Where it is the same; one that the passage has, too, stays as it is."""
    assert measured(statement, passage) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "It runs for 721 seconds.",
        "It runs for 12 hours.",
        "It runs for 12 litres.",
        "It has 720 valves.",
        "It runs.",
    ],
)
def test_another_value_is_never_changed(statement: str) -> None:
    """A falsehood must stay one: only what is equal may be said otherwise, and a bare number is equal to no measure."""
    assert measured(statement, "The pump runs for 12 minutes. It has 12 valves, numbered 1 to 721.") == statement


AMOUNTS = st.tuples(
    st.integers(1, 5000), st.sampled_from(["seconds", "minutes", "hours", "ms", "m", "km", "mm", "kg", "g"])
)


@settings(max_examples=200, deadline=None)
@given(first_measures=st.lists(AMOUNTS, min_size=1, max_size=3), theirs=st.lists(AMOUNTS, min_size=1, max_size=4))
def test_measures_keep_their_values(first_measures: list[tuple[int, str]], theirs: list[tuple[int, str]]) -> None:
    """Whatever is written for whatever: as many measures as before, each of the same value."""
    statement = f"It has {' and '.join(f'{value} {unit}' for value, unit in first_measures)} of it."
    passage = " ".join(f"One has {value} {unit} and {value} of them." for value, unit in theirs)
    before, after = quantities_of(statement), quantities_of(measured(statement, passage))

    assert len(before) == len(after)
    assert all(
        same(before_quantity, after_quantity) for before_quantity, after_quantity in zip(before, after, strict=True)
    )
