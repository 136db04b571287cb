"""Questions from the headings of a book."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.heading_questions import MAX_QUESTION_WORDS, HeadingQuestion, heading_questions, spread
from lectern.domain.chunks import Chunk, SectionMark
from lectern.text.strings import strings_of
from tests.making import chunk as made_chunk

PROSE = (
    "A costmap is a grid of cells around the robot, and each of the cells has a price. Planners look for a cheap path "
    "through the costmap. A method called flow matching learns a field that moves noise to data, and action chunks are "
    "short plans."
)
GERMAN_PROSE = (
    "Ein Knoten ist ein Prozess, der rechnet und mit anderen Knoten spricht. Jeder Knoten hat einen Namen, der im "
    "ganzen Graphen nur einmal vorkommt, und er kann Nachrichten senden und empfangen."
)
MADE = {
    "What is a lifecycle node?": "What is a lifecycle node?",
    "3.2 What is a lifecycle node?": "What is a lifecycle node?",
    "Chapter 3: What is a lifecycle node?": "What is a lifecycle node?",
    "How to bridge camera images": "How do I bridge camera images?",
    "Costmap": "What is a costmap?",
    "**Costmap**": "What is a costmap?",
    "Flow Matching": "What is flow matching?",
    "Action Chunks": "What are action chunks?",
    "Introduction to Flow Matching": "What is flow matching?",
    "Writing Launch Files": "What does the book say about Writing Launch Files?",
}
LEFT_OUT = [
    "Summary",
    "Summary and Next Steps",
    "Exercises",
    "Introduction",
    "Learning Objectives",
    "What's next?",
    "Why does this matter for costmaps?",
    "How do I test it on a Jetson?",
    "What is the idea?",
    "Example: how far can a lidar see?",
    "Costmap, planner; controller",
    "Bipedal walking without gravity?",
    "",
    "—",
]


def of_section(title: str, text: str = PROSE, **fields: object) -> Chunk:
    """A chunk that is one section."""
    return made_chunk(text, section_title=title, lesson_title=title, sections=(), **fields)


def made_of(title: str, text: str = PROSE, language: str = "en") -> list[str]:
    """The questions from one heading."""
    return [question.text for question in heading_questions([of_section(title, text)], strings_of(language))]


@pytest.mark.parametrize("heading", MADE)
def test_a_heading_becomes_a_question(heading: str) -> None:
    """A question stays as it is; what the text explains is asked for with the text's own article and spelling."""
    assert made_of(heading) == [MADE[heading]]


@pytest.mark.parametrize("heading", LEFT_OUT)
def test_a_heading_that_says_nothing_alone_is_left_out(heading: str) -> None:
    """Headings that every book has, and those that refer to what is around them."""
    assert made_of(heading) == []


def test_a_stub_makes_no_question() -> None:
    """A heading with hardly a text below it has no answer."""
    assert made_of("What is a lifecycle node?", "See below.") == []


def test_a_german_heading_becomes_a_german_question() -> None:
    """With the article of the text; without one the heading is quoted, so that the grammar holds."""
    assert made_of("Knoten", GERMAN_PROSE, "de") == ["Was ist ein Knoten?"]
    assert made_of("Knoten und Graphen", GERMAN_PROSE, "de") == ["Was sagt das Buch zu „Knoten und Graphen“?"]
    assert made_of("Wie sprechen Knoten?", GERMAN_PROSE, "de") == ["Wie sprechen Knoten?"]
    assert made_of("Zusammenfassung", GERMAN_PROSE, "de") == []


def test_sections_that_share_a_chunk_are_told_apart() -> None:
    """Each heading with the text below it; one that has no text of its own makes no question."""
    text = f"## Costmap\n\n{PROSE}\n\n## Summary\n\nShort.\n\n## Gripper\n\nToo short."
    marks = [
        SectionMark(at=text.index(f"## {title}"), title=title, url="/") for title in ("Costmap", "Summary", "Gripper")
    ]
    chunk = made_chunk(text, sections=tuple(marks))

    assert [question.text for question in heading_questions([chunk], strings_of("en"))] == ["What is a costmap?"]


def test_questions_that_stand_alone_come_first() -> None:
    """A question that names two things, or asks what one is, comes before one that only its lesson explains."""
    headings = ["Which costmap is meant?", "What is a costmap?", "How do costmap and lidar differ?", "Costmap"]
    questions = heading_questions([of_section(heading, module="a") for heading in headings], strings_of("en"))

    assert [item.text for item in spread(questions)] == [headings[1], headings[2], headings[0]]


def test_questions_are_spread_over_the_book() -> None:
    """Each module in turn, each lesson of a module in turn, and headings that are questions before others."""

    def question(text: str, module: str, lesson: str, form: str = "question") -> HeadingQuestion:
        return HeadingQuestion(text=text, form=form, module=module, parent_doc_id=lesson, rare_words=2)  # type: ignore[arg-type]  # a str

    questions = [
        question("a1?", "a", "1", "about"),
        question("a1b?", "a", "1"),
        question("a1c?", "a", "1"),
        question("a2?", "a", "2"),
        question("b1?", "b", "3"),
    ]

    assert [item.text for item in spread(questions)] == ["a1b?", "b1?", "a2?", "a1c?", "a1?"]


@given(st.text(max_size=120), st.text(max_size=400), st.sampled_from(["en", "de"]))
def test_any_heading_is_read(heading: str, text: str, language: str) -> None:
    """Whatever an author writes: one question or none, on one line, with an end."""
    for made in made_of(heading, f"{text} {PROSE}", language):
        assert made.endswith("?")
        assert "\n" not in made
        assert len(made.split()) <= MAX_QUESTION_WORDS + 10
