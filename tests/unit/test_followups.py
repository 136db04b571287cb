"""Follow-ups without a model: what depends on earlier turns takes their topic along, others stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.followups import depends_on_history, standalone_by_rules
from lectern.domain.replies import Exchange
from lectern.domain.scope import QUERY_LENGTH

CONVERSATION = (Exchange(question="How strong is the gripper?", answer="40 newtons. [1]"),)


@pytest.mark.parametrize(
    "question",
    ["Tell me more", "And in Python?", "Why does it do that?", "Give an example of that.", "What about the left one?"],
)
def test_what_leans_takes_the_topic_along(question: str) -> None:
    """What the last question was about is added in brackets behind the question."""
    assert depends_on_history(question)
    assert standalone_by_rules(question, CONVERSATION) == f"{question} (about strong, gripper)"


@pytest.mark.parametrize(
    "question",
    [
        "How do ROS 2 nodes communicate with the motor drivers?",
        "When was the last episode of Vampire Diaries aired?",
        "Where does the gripper keep the calibration that the wrist needs?",
        "Which sensors of the humanoid have more than one encoder?",
    ],
)
def test_what_stands_alone_is_left(question: str) -> None:
    """A question that names its subject is searched as it is, however it begins and whatever small words it has;
    without a conversation every question is."""
    assert not depends_on_history(question)
    assert standalone_by_rules(question, CONVERSATION) == question
    assert standalone_by_rules("Why?", ()) == "Why?"


@pytest.mark.parametrize(
    "question",
    [
        "Is there something special to do for a small child?",
        "What should I do if I lose the job?",
        "Sorry, I meant Mars",
    ],
)
def test_what_names_no_subject_leans(question: str) -> None:
    """Everyday words alone do not say what a question is about, and who mends a question still asks it."""
    assert depends_on_history(question)


def test_the_topic_is_carried_from_turn_to_turn() -> None:
    """Where the last question leans itself, the one before it says what the conversation is about."""
    conversation = (*CONVERSATION, Exchange(question="And the wrist?", answer="…"))

    assert standalone_by_rules("Why?", conversation) == "Why? (about strong, gripper, wrist)"


def test_the_subject_stays_however_many_follow_ups_name_none() -> None:
    """Earlier questions are read until one has a rare word."""
    asked = ("What is URDF?", "Tell me more", "Can you give an example?", "And why?", "What else?", "Go on")
    conversation = [Exchange(question=question, answer="…") for question in asked]

    assert standalone_by_rules("How do I check it?", conversation) == "How do I check it? (about URDF)"
    assert standalone_by_rules("And in Gazebo?", conversation) == "And in Gazebo? (about URDF)"
    assert standalone_by_rules("How does it differ from SDF?", conversation) == (
        "How does it differ from SDF? (about URDF)"
    )


def test_names_stay_whole_and_no_word_is_said_twice() -> None:
    """Words that are side by side are one phrase; what the question says itself is not carried."""
    conversation = (Exchange(question="How do I train a walking policy with Isaac Lab?", answer="…"),)

    assert standalone_by_rules("And how do I test the policy?", conversation) == (
        "And how do I test the policy? (about train, walking, Isaac Lab)"
    )


def test_a_question_asked_twice_is_carried_once() -> None:
    """Who asks again, or says a word twice, has no other topic."""
    conversation = (Exchange(question="Does quality of service help a service?", answer="…"),) * 2

    assert standalone_by_rules("Why?", conversation) == "Why? (about quality of service)"


def test_only_the_most_telling_words_are_carried() -> None:
    """A long question before must not drown the one that is asked now."""
    before = (
        "What should a good new team first do about gimbal lock, quaternions, odometry, lidar, URDF and xacro files?"
    )

    standalone = standalone_by_rules("Why is that?", (Exchange(question=before, answer="…"),))

    assert standalone == "Why is that? (about gimbal, quaternions, odometry, lidar, URDF, xacro)"


def test_a_conversation_that_tells_nothing_adds_nothing() -> None:
    """Greetings and numbers are no topic."""
    assert standalone_by_rules("And then?", (Exchange(question="What is 42?", answer="…"),)) == "And then?"


@given(st.text(max_size=1000), st.text(min_size=1, max_size=1000))
def test_the_whole_fits_a_search(before: str, question: str) -> None:
    """However long conversation and question are, the search text is within bounds and begins with the question."""
    whole = standalone_by_rules(question, (Exchange(question=before, answer="x"),))

    assert len(whole) <= max(QUERY_LENGTH[1], len(question))
    assert whole.startswith(question.strip()) or whole == question


@pytest.mark.parametrize(
    ("before", "question", "expected"),
    [
        ("What is a topic?", "And a service?", "What is a service?"),
        ("What is a topic?", "what about quality of service?", "What is quality of service?"),
        ("What are parameters?", "and actions?", "What are actions?"),
        ("What is a URDF file?", "And what is xacro?", "What is xacro?"),
    ],
)
def test_the_same_is_asked_of_another_thing(before: str, question: str, expected: str) -> None:
    """After the question what something is, `And …?` asks that of something else, and not about both."""
    assert standalone_by_rules(question, [Exchange(question=before, answer="It is.")]) == expected


@pytest.mark.parametrize("question", ["And in Python?", "And why?", "And this one?", "What about it?"])
def test_what_is_no_thing_is_not_put_in_its_place(question: str) -> None:
    """A circumstance or a pronoun is no other thing to ask the same of."""
    standalone = standalone_by_rules(question, [Exchange(question="What is a topic?", answer="A channel.")])

    assert not standalone.lower().startswith("what is")
    assert "topic" in standalone
