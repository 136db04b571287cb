"""Follow-ups without a model: what leans takes the talk's topic along, what stands alone is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.followups import leans, standalone_by_rules
from lectern.domain.queries import QUERY_LENGTH
from lectern.domain.replies import Exchange

TALK = (Exchange(question="How strong is the gripper?", answer="40 newtons. [1]"),)


@pytest.mark.parametrize(
    "question",
    ["Tell me more", "And in Python?", "Why does it do that?", "Give an example of that.", "What about the left one?"],
)
def test_what_leans_takes_the_topic_along(question: str) -> None:
    """The topic of the last question stands in the search text."""
    assert leans(question)
    assert standalone_by_rules(question, TALK) == f"How strong is the gripper? {question}"


@pytest.mark.parametrize(
    "question",
    ["How do ROS 2 nodes communicate with each of the drivers?", "Which sensors does the humanoid robot carry on its"],
)
def test_what_stands_alone_is_left(question: str) -> None:
    """A whole question is searched as it is; without a talk everything is."""
    assert standalone_by_rules(question, ()) == question
    if not leans(question):
        assert standalone_by_rules(question, TALK) == question


def test_the_topic_is_carried_from_turn_to_turn() -> None:
    """Where the last question leans itself, the one before it says what the talk is about."""
    talk = (*TALK, Exchange(question="And the wrist?", answer="…"))

    assert standalone_by_rules("Why?", talk) == "How strong is the gripper? And the wrist? Why?"


@given(st.text(max_size=1000), st.text(min_size=1, max_size=1000))
def test_the_whole_fits_a_search(before: str, question: str) -> None:
    """However long talk and question are, the search text is within bounds and ends with the question."""
    whole = standalone_by_rules(question, (Exchange(question=before, answer="x"),))

    assert len(whole) <= max(QUERY_LENGTH[1], len(question))
