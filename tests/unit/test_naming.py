"""A text about the brother of what was asked for answers nothing."""

from __future__ import annotations

import pytest

from lectern.answering.naming import Meant, Siblings, marks_of


@pytest.mark.parametrize(
    ("question", "text", "another"),
    [
        ("How much does the Unitree H1 weigh?", "The G1 weighs 35 kg.", True),
        ("price of unitree h1", "Unitree prices the G1 at $16,000.", True),
        ("What did RT-1 learn from?", "RT-2 learnt from web pages.", True),
        ("Does it run on ros1?", "It was made for ros2 alone.", True),
        ("How much does the Unitree H1 weigh?", "The H1 weighs more than the G1.", False),
        ("How much does the Unitree H1 weigh?", "It weighs 47 kg and walks for 2h at 30Hz.", False),  # units
        ("How do I install ros2?", "sudo apt install python3", False),  # words with a number, not brothers
        ("Does the H1 have a D435i?", "The D435i sees depth.", False),  # one of both
        ("How much does the robot weigh?", "The G1 weighs 35 kg.", False),  # nothing was named
    ],
)
def test_brothers_are_told_apart(question: str, text: str, another: bool) -> None:
    """Of the same make, where nothing is said of the one that was named."""
    assert Meant(question).another([text]) == another
    assert not Meant(question).another([question, text])


def test_the_heading_may_name_it() -> None:
    """Below its own heading a thing need not be named again."""
    assert not Meant("How tall is the H1?").another(["Unitree H1", "Unlike the G1 it is 1.8 m tall."])


def test_a_mark_is_there_or_not() -> None:
    """Whether any text names what was asked about; what nobody named is anywhere."""
    assert Meant("price of the H1").in_any(["Unitree H1", "It costs a lot."])
    assert not Meant("price of the H1").in_any(["Prices", "Robots cost a lot."])
    assert Meant("price of a robot").in_any(["Prices"])


def test_marks_are_names_with_digits() -> None:
    """Numbers with units are none, and neither are words and numbers alone."""
    assert marks_of("The RT-2, a D435i and v3 at 16GB, 2.5m, 30Hz in 3D for ROS 2 in 2024") == {"rt-2", "d435i", "v3"}


@pytest.mark.parametrize(
    ("question", "title", "another"),
    [
        ("What is the concentration of formic acid?", "Oxalic acid", True),
        ("What is the concentration of formic acid?", "Formic acid", False),
        ("What is the concentration of the acid?", "Oxalic acid", False),  # neither is named
        ("Is formic acid stronger than oxalic acid?", "Oxalic acid", False),  # both are
        ("How do formic acid and smoke differ?", "Smoke", False),  # not of the same make
        ("What is in part 2?", "Honey part 1", False),  # numbers tell nothing apart here
    ],
)
def test_lessons_of_one_make_are_told_apart(question: str, title: str, another: bool) -> None:
    """Where two titles differ in one word, what stands below the other answers nothing, unless it names this one."""
    siblings = Siblings(question, ["Oxalic acid", "Formic acid", "Smoke", "Honey part 1", "Honey part 2", ""])
    assert siblings.another(title, ("Concentration: 3.5 %",)) == another
    assert not siblings.another(title, ("Unlike formic acid, part 2, it is mild.",))
