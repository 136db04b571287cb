"""Questions about the book's own structure, answered from its outline; all others are left alone."""

from __future__ import annotations

import pytest

from lectern.answering.book_parts import BookParts
from lectern.answering.outline_answers import structure_lines
from lectern.domain.outline import Outline, OutlineChapter, OutlineLesson, OutlineModule


def lesson(number: int, title: str) -> OutlineLesson:
    """A lesson of the outline."""
    return OutlineLesson(
        lesson=number, title=title, url="/x", parent_doc_id=title, source_file=f"{title}.md", chunk_count=1
    )


def chapter(number: int, title: str, *titles: str) -> OutlineChapter:
    """A chapter with an overview and lessons."""
    lessons = [lesson(0, title), *(lesson(n, lesson_title) for n, lesson_title in enumerate(titles, start=1))]
    return OutlineChapter(chapter=number, title=title, lessons=tuple(lessons))


BOOK = Outline(
    book_id="b",
    title="Robots",
    modules=(
        OutlineModule(
            module="ros2",
            title="The Nervous System",
            chapters=(chapter(1, "The Graph", "Nodes and Topics", "Services", "Quality of Service"),),
        ),
        OutlineModule(
            module="gazebo",
            title="The Digital Twin",
            chapters=(chapter(2, "Worlds", "SDF Worlds", "Physics"), chapter(3, "Sensing", "Lidar")),
        ),
    ),
)
ANSWERED = {
    "How many modules does the book have?": "The book has 2 modules.",
    "How many chapters are there?": "The book has 3 chapters.",
    "What comes after the lesson on Quality of Service?": "“SDF Worlds” comes after “Quality of Service”.",
    "Which lesson comes just before the one on lidar?": "“Physics” comes before “Lidar”.",
    "What is the last lesson of the book?": "The last lesson is “Lidar”.",
    "What is lesson 2.1 called?": "Lesson 2.1 is called “SDF Worlds”.",
    "What is chapter 3 called?": "Chapter 3 is called “Sensing”.",
    "List the lessons of chapter 2.": "- SDF Worlds",
    "Which lessons are in the last chapter?": "- Lidar",
    "Which chapters belong to the module about gazebo?": "- Worlds",
    "What are the modules?": "- The Nervous System",
    "Which modules does the book have?": "- The Nervous System",
    "What chapters are there?": "- The Graph",
    "Could you list all chapters of this book in order, please?": "- The Graph",
    "Which lessons does the second chapter contain, in order?": "- SDF Worlds",
    "Show me the table of contents.": "- The Graph",
    "Which lessons are in module 2?": "- SDF Worlds",
    "List the lessons of the module about gazebo.": "- SDF Worlds",
    "What comes before chapter 1?": "“The Graph” is the first chapter of the book.",
    "What comes after chapter 2?": "“Sensing” comes after “Worlds”.",
    "Which lesson comes after the one on lidar?": "“Lidar” is the last lesson of the book.",
    "In which chapter is lidar taught?": "“Lidar” is in the chapter “Sensing”.",
}
WEEKS = Outline(
    book_id="w",
    title="Twelve Weeks",
    modules=(
        OutlineModule(
            module="week-1", title="Week 1: Numbers", chapters=(chapter(1, "Counting", "Day 1: Ones", "Day 2: Twos"),)
        ),
        OutlineModule(module="week-two", title="Week Two — Shapes", chapters=(chapter(1, "Lines", "Day 1: Points"),)),
        OutlineModule(module="iii", title="Week III", chapters=(chapter(1, "Solids", "Cubes"),)),
    ),
)
NAMED = {
    "week 1": ["Week 1: Numbers"],
    "Week two": ["Week Two — Shapes"],
    "the third week": ["Week III"],
    "week 3": ["Week III"],
    "week 4": [],
    "day 2 of week 1": ["Day 2: Twos"],
    "day 1 of week two": ["Day 1: Points"],
    "day 1": ["Day 1: Ones", "Day 1: Points"],
    "chapter 1 of week 2": ["Lines"],
    "lesson 1.2 of week 1": ["Day 2: Twos"],
    "the last lesson of the second week": ["Day 1: Points"],
    "the chapter on solids": ["Solids"],
    "the solids chapter": ["Solids"],
    "the week of rain": [],
    "module 2": ["Week Two — Shapes"],
    "page 2": [],
    "lesson 1 about": [],
}
LEFT_ALONE = (
    "What is a node?",
    "How many images does the camera publish?",
    "What comes after the handshake of the client?",
    "Which lesson did the engineers learn from the crash?",
    "In which chapter is the price of bread discussed?",
    "How many chapters does the module on cooking have?",
    "List the parameters of the camera.",
    "What is the first step of the algorithm?",
    "Which lessons are in module 7?",
    "What type of surveys show the location of stratigraphic units in the subsurface?",
    "What are the units of mass?",
    "What pattern should you follow when worlds are large?",
    "What are most public schools not a part of?",
    "Which lesson of module 2 can be done on a laptop only?",
    "Which of the five powers from chapter 1 does a digital twin enable?",
    "Name the lessons that the engineers learned.",
    "What comes after the lidar pulse was sent?",
    "I want the official tutorial on paper; how many pages does it have?",
)


@pytest.mark.parametrize("question", ANSWERED)
def test_the_outline_answers(question: str) -> None:
    """Counts, neighbours, ends, titles, contents and places."""
    assert structure_lines(question, BOOK)[0].text == ANSWERED[question]


@pytest.mark.parametrize("question", LEFT_ALONE)
def test_other_questions_are_left_to_retrieval(question: str) -> None:
    """A question that only sounds alike, or that no title answers."""
    assert structure_lines(question, BOOK) == []


def test_every_line_has_its_lesson() -> None:
    """What is named is cited by a lesson of its own."""
    lines = structure_lines("How many modules does the book have?", BOOK)

    assert [line.text for line in lines[1:]] == ["- The Nervous System", "- The Digital Twin"]
    assert [line.lesson.title for line in lines] == ["The Graph", "The Graph", "Worlds"]


def test_a_long_list_says_how_much_is_left_out() -> None:
    """Nobody takes thirty of forty lessons for all of them."""
    long = Outline(book_id="b", title="B", modules=(OutlineModule(module="m", title="M", chapters=(
        chapter(1, "C", *(f"Number {number}" for number in range(40))),)),))  # fmt: skip
    lines = structure_lines("List the lessons of chapter 1.", long)
    assert len(lines) == 30
    assert lines[-1].text == "… and 11 more."


@pytest.mark.parametrize("name", NAMED)
def test_parts_are_named_by_labels_numbers_and_titles(name: str) -> None:
    """With digits, words or Roman numerals, inside another part, or by words of the title."""
    assert [part.title for part in BookParts(WEEKS).named(name)] == NAMED[name]
