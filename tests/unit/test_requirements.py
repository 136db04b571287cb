"""What a text must contain to answer a question, and what is said of a sibling answers nothing."""

from __future__ import annotations

import pytest

from lectern.confidence.requirements import Requirement, marks_of


@pytest.mark.parametrize(
    ("question", "text", "is_another"),
    [
        ("How much memory does the Unitree H1 have?", "The G1 has 16 GB.", True),
        ("speed of unitree h1", "Unitree says that the G1 walks at 2 m/s.", True),
        ("What did RT-1 learn from?", "RT-2 learnt from web pages.", True),
        ("Does it run on ros1?", "It was made for ros2 alone.", True),
        ("How much memory does the Unitree H1 have?", "The H1 has more than the G1.", False),
        ("How much memory does the Unitree H1 have?", "It has 47 kB and walks for 2h at 30Hz.", False),  # units
        ("How do I install ros2?", "sudo apt install python3", False),  # words with a number, not siblings
        ("Does the H1 have a D435i?", "The D435i sees depth.", False),  # one of both
        ("How much memory does the robot have?", "The G1 has 16 GB.", False),  # nothing was named
    ],
)
def test_models_of_one_kind_are_told_apart(question: str, text: str, is_another: bool) -> None:
    """A text about a sibling that says nothing of the model that was named cannot answer."""
    assert Requirement(question).met_by(text) != is_another
    assert Requirement(question).met_by(text, before=question)


def test_the_heading_may_name_it() -> None:
    """Below its own heading a thing need not be named again."""
    assert Requirement("How tall is the H1?").met_by("Unlike the G1 it is 1.8 m tall.", titles=["Unitree H1"])


def test_a_quantity_must_be_of_the_model_that_was_named() -> None:
    """A price says nothing where nobody says of what; without a model in the question it may be anybody's."""
    assert Requirement("price of the H1").met_by("It costs $900.", titles=["Unitree H1"])
    assert not Requirement("price of the H1").met_by("Robots cost $900.", titles=["Prices"])
    assert Requirement("price of a robot").met_by("Robots cost $900.", titles=["Prices"])


def test_marks_are_names_with_digits() -> None:
    """Numbers with units are none, and neither are words and numbers alone."""
    assert marks_of("The RT-2, a D435i and v3 at 16GB, 2.5m, 30Hz in 3D for ROS 2 in 2024") == {"rt-2", "d435i", "v3"}


@pytest.mark.parametrize(
    ("question", "title", "is_another"),
    [
        ("What is the concentration of formic acid?", "Oxalic acid", True),
        ("What is the concentration of formic acid?", "Formic acid", False),
        ("What is the concentration of the acid?", "Oxalic acid", False),  # neither is named
        ("Is formic acid stronger than oxalic acid?", "Oxalic acid", False),  # both are
        ("How do formic acid and smoke differ?", "Smoke", False),  # no siblings
        ("What is in part 2?", "Honey part 1", False),  # numbers tell nothing apart here
    ],
)
def test_lessons_with_sibling_titles_are_told_apart(question: str, title: str, is_another: bool) -> None:
    """Where two titles differ in one word, what stands below the other answers nothing, unless it names this one."""
    titles = ["Oxalic acid", "Formic acid", "Smoke", "Honey part 1", "Honey part 2", ""]
    requirement = Requirement(question, titles)
    assert requirement.met_by("Concentration: 3.5 %", titles=[title]) != is_another
    assert requirement.met_by("Unlike formic acid, part 2, it is mild.", titles=[title])


@pytest.mark.parametrize(
    ("question", "price"),
    [
        ("How much does the Orin NX cost?", True),
        ("What does the Orin NX cost?", True),
        ("How much is a RealSense camera?", False),  # not a name alone
        ("How much is a RealSense D455?", True),
        ("How expensive is it?", True),
        ("What is the price of a hive?", True),
        ("what does a d455 cost", True),
        ("What does reliable delivery cost?", False),  # perhaps time
        ("What is the cost of a cell beside an obstacle?", False),  # a number on a map
        ("How much memory is free?", False),
    ],
)
def test_a_price_is_asked_for_in_plain_words(question: str, price: bool) -> None:
    """Money is required where nothing else can be meant, and not where a cost may be time or effort."""
    requirement = Requirement(question)

    assert requirement.met_by("The Orin NX, the D455 and a hive cost 99 euros.")
    assert requirement.met_by("The Orin NX, the D455 and a hive take 99 seconds.") != price
