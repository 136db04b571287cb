"""Questions about the book itself, on three books, and questions in nearly the same words that are about something
else."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lectern.answering.book_answers import BookAnswer, book_answer
from lectern.answering.desk import TurnDesk
from lectern.answering.screening import screen
from lectern.answering.small_talk import small_talk
from lectern.app.lectern import Lectern
from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.replies import Answer, Refusal
from lectern.domain.scope import Scope
from lectern.text.strings import strings_of
from tests.answering.scripted import write_book
from tests.answering.small_books import GARDEN, LIGHT, write_files

ROBOTS = "physical-ai-robotics"
ABOUT_THE_BOOK = {
    "garden": {
        "What is this book about?": "feed a family from a small garden",
        "Hi, what's this book about?": "feed a family from a small garden",
        "Can you tell me what this book is about, please?": "feed a family from a small garden",
        "What does this book cover?": "feed a family from a small garden",
        "Summarise the book in two sentences.": "feed a family from a small garden",
        "Give me a short overview of this book": "feed a family from a small garden",
        "What is The Kitchen Garden about?": "feed a family from a small garden",
        "What will I learn from this book?": "feed a family from a small garden",
        "Who wrote it?": "Ada Field",
        "who is the author?": "Ada Field",
        "Who maintains this book?": "garden club",
        "Who is this book for?": "never grown a vegetable",
        "who should read this book?": "never grown a vegetable",
        "What is this book and who is it for?": "never grown a vegetable",
        "Where do I start?": "Start with the chapter on soil",
        "I'm new to this, which pages should I read first?": "**Soil**: Good soil is half",
        "There are many chapters here. Which one should I start with?": "Start with the chapter on soil",
        "I am brand new to this, which page should I read first?": "Start with the chapter on soil",
        "I've never gardened before. Where in this guide do I start if I have no bed?": "Start with the chapter",
        "Who writes this handbook, and may I change it?": "garden club",
        "Are there any prerequisites, and who should read this book?": "never grown a vegetable",
        "What is compost and what does this book help me with?": "feed a family from a small garden",
        "I just finished the soil chapter, which pages should I read next?": "“Water” comes after “Soil”.",
        "Could you summarise the main points of the Compost episode?": "- **Turning**: Turn the heap",
        "How is this book organised?": "**Part II: Eating**: Picking; Storing the Harvest",
        "what is the structure of the book?": "The book has 2 parts.",
        "How long is it?": "The book has 4 chapters.",
        "summarise chapter 1": "- **Compost**: Compost is rotted plant matter",
        "Please summarise chapter one for me.": "- **Mulch**: A layer of straw",
        "Summarise the chapter on storing": "A cool, dark cellar keeps carrots fresh",
        "What does part one cover?": "- **Water**: Water early in the morning",
        "what is in Part II": "- **Picking**: Pick beans",
        "what does part 2 teach?": "- **Picking**: Pick beans",
        "Give me an overview of the second part.": "- **Picking**: Pick beans",
        "What is the compost lesson about?": "- **Turning**: Turn the heap",
        "What is Compost about?": "- **Turning**: Turn the heap",
        "Chapter 4": "A cool, dark cellar",
        "what comes after the soil chapter?": "“Water” comes after “Soil”.",
        "What comes before Mulch?": "“Compost” comes before “Mulch”.",
        "which chapter follows Water?": "“Picking” comes after “Water”.",
        "Which chapters are in part one?": "- Soil",
        "How many chapters does part two have?": "“Part II: Eating” has 2 chapters.",
        "what is the last chapter?": "The last chapter is “Storing the Harvest”.",
        "What is the first lesson of chapter 1?": "The first lesson is “Compost”.",
    },
    "light": {
        "What is this course about?": "how light travels",
        "What topics does this course cover?": "- Unit 2: Lenses",
        "Who is this course for?": "comfortable with school algebra",
        "What should I know before taking this course?": "comfortable with school algebra",
        "where should I begin?": "- **Shadows**: A shadow has a soft edge",
        "How many units are there?": "The book has 3 units.",
        "What does unit 3 cover?": "- **Cameras**: A camera throws",
        "what will i learn in unit two": "- **Refraction**: Light slows down in glass",
        "Summarise Unit II": "- **Focal Length**: The focal length of a lens",
        "tell me about unit 1": "- **Mirrors**: A flat mirror",
        "which lessons are in unit 3?": "- Telescopes",
        "List the lessons of unit 1.": "- Shadows",
        "How many lessons does unit 2 have?": "“Unit 2: Lenses” has 2 lessons.",
        "What is unit 2 called?": "Unit 2 is called “Unit 2: Lenses”.",
        "what comes after unit 1": "“Unit 2: Lenses” comes after “Unit 1: Rays”.",
        "What is lesson 2 of unit 3 about?": "A camera throws",
        "What is the last lesson in unit 1?": "The last lesson is “Mirrors”.",
        "What's in the unit on lenses?": "- **Refraction**",
        "What does the lesson on shadows explain?": "- **Umbra and penumbra**: The umbra",
        "what comes after Refraction?": "“Focal Length” comes after “Refraction”.",
    },
    ROBOTS: {
        "What is this book about?": "This book teaches you to build such a system",
        "where do I start?": "Begin with Nodes and Topics.",
        "Summarise chapter 4": "- **Simulated Sensors**: A perfect sensor is a bad teacher.",
        "summarize the chapter on sensing and control": "- **Closed-Loop Control**",
        "What will I learn in lesson 2.3?": "**Coordinate Frames with tf2**",
        "What does module 2 cover?": "- **Chapter 3: Worlds and Physics**",
        "what is the gazebo module about": "**The Digital Twin**: A **digital twin**",
        "What is the last lesson?": "The last lesson is “Glossary”.",
        "What comes after the lesson on quality of service?": "“Workspaces, Packages and Launch Files” comes after",
        "Summarise Quality of Service": "**Quality of Service**:",
        "How is the book structured?": "**The Digital Twin**: Chapter 3: Worlds and Physics",
        "what are the main points of the first chapter?": "- **Nodes and Topics**",
    },
}
ABOUT_SOMETHING_ELSE = {
    "garden": (
        "What is the book of rules in scheduling?",
        "How do I start the server?",
        "Where do I start the heap?",
        "What comes after the first frost?",
        "What comes after turning the heap?",
        "Which vegetable comes after Water?",
        "How long is it kept in the cellar?",
        "How long does compost take?",
        "Who wrote the first gardening law?",
        "What does chapter 1 say about worms?",
        "Which part of the plant should I pick first?",
        "What is the best way to start seeds?",
        "What part of the bean is edible?",
        "What do I need before planting carrots?",
        "How many parts of water do I add?",
        "What are the parts of a spade?",
        "Summarise the rules for watering.",
        "What does compost contain?",
        "What is in good soil?",
        "Explain mulch.",
        "Who is the gardener for the club?",
        "What should I read on the thermometer?",
        "How is the heap organised?",
        "What is the last step of picking?",
        "What follows a dry summer?",
        "Which week is best for sowing?",
        "What happens in week 3 of composting?",
        "What should I do first?",
        "Where do I start the heap and when do I turn it?",
        "The heap will not start, so how do I start?",
        "I finished the compost. What should I do next with the heap?",
        "Do I need any experience with beans, or what do they need?",
        "Who is responsible for watering and what is it for?",
    ),
    "light": (
        "What is the unit of focal length?",
        "How many units does the lens formula use?",
        "What are the units of light?",
        "What does a lens do?",
        "What comes after the second lens?",
        "What is a camera?",
        "Tell me about cameras.",
        "How long is the focal length?",
        "Where does the light start?",
        "How do I begin the experiment with the lamp?",
        "What is covered in glass?",
        "What part of a shadow is darkest?",
        "Which part of the telescope magnifies?",
        "What does unit 2 say about diamonds?",
        "What is the purpose of the sensor?",
        "Who invented the telescope?",
        "What section of the lens is thickest?",
        "How is the image organised on the sensor?",
        "In which unit is the speed measured?",
        "What does Unit 9 cover?",
        "What lesson did Galileo learn?",
    ),
    ROBOTS: (
        "What is a node?",
        "What does the lidar section of the SDF contain?",
        "What comes after the handshake?",
        "What comes before the goal is sent?",
        "Which module of the kernel publishes frames?",
        "How do I start Gazebo?",
        "Where do I begin the calibration of the camera?",
        "How long is the timeout of a service call?",
        "Who is the safety supervisor for?",
        "What is the structure of a URDF file?",
        "How is a workspace organised?",
        "Which part of the plan is checked first?",
        "What is the last line of the launch file?",
        "Summarise how QoS works.",
        "Give me an overview of tf2.",
        "What are the parts of a URDF?",
        "How many modules does a launch file start?",
        "What should I read from the topic first?",
        "What does chapter 4 say about friction?",
        "What does the physics step in chapter 3 do?",
        "Explain the difference between chapter and lesson filters.",
        "What is the first step of the capstone?",
        "Which lessons did the team learn from the crash in chapter 8?",
        "What does module ros_gz_bridge do?",
        "What is the purpose of the book keeping node?",
    ),
}


@asynccontextmanager
async def three_books(sample_home: Path, tmp_path: Path) -> AsyncIterator[Lectern]:
    """Lectern with the sample book, the mdBook and the Docusaurus site."""
    shutil.copytree(sample_home, tmp_path / "home")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_files(tmp_path / "garden", GARDEN), book="garden")
        await lectern.ingest(write_files(tmp_path / "light", LIGHT), book="light")
        yield lectern


async def from_book(lectern: Lectern, question: str, scope: Scope) -> BookAnswer | None:
    """The answer without a search."""
    resolved = await lectern.app.library.resolve(scope)
    desk = TurnDesk(library=lectern.app.ask_deps.library, scope=resolved, top_k=5, floor=None, question=question)
    return await book_answer(question, desk, strings_of("en"))


async def test_questions_about_the_book_are_answered_from_it(sample_home: Path, tmp_path: Path) -> None:
    """From the front page, the outline and openings; each line is cited by the passage that it quotes."""
    wrong: list[str] = []
    async with three_books(sample_home, tmp_path) as lectern:
        for book, questions in ABOUT_THE_BOOK.items():
            for question, expected in questions.items():
                answer = await from_book(lectern, question, Scope(book_id=book))
                if answer is None or expected not in answer.text:
                    wrong.append(f"{book}: {question} -> {answer and answer.text}")

    assert sum(map(len, ABOUT_THE_BOOK.values())) >= 60
    assert not wrong, "\n".join(wrong)


async def test_other_questions_are_left_to_retrieval(sample_home: Path, tmp_path: Path) -> None:
    """Questions that share words with those about the book, but ask for what it explains."""
    assert sum(map(len, ABOUT_SOMETHING_ELSE.values())) >= 60
    caught: list[str] = []
    async with three_books(sample_home, tmp_path) as lectern:
        for book, questions in ABOUT_SOMETHING_ELSE.items():
            for question in questions:
                answer = await from_book(lectern, question, Scope(book_id=book))
                caught += [f"{book}: {question} -> {answer.text}"] if answer else []

    assert not caught, "\n".join(caught)


async def test_lines_quote_the_passages_that_they_cite(sample_home: Path, tmp_path: Path) -> None:
    """A summary says only what a passage says, and each statement points at its words."""
    async with three_books(sample_home, tmp_path) as lectern:
        reply = await lectern.ask("Summarise chapter 1", book="garden")

    assert isinstance(reply, Answer)
    assert reply.account.metrics.confidence_level == "high"
    assert [source.hit.chunk.lesson_title for source in reply.citations] == ["Soil", "Compost", "Mulch"]
    for statement in reply.statements:
        source = reply.citations[statement.citations[0] - 1]
        assert reply.text[statement.start : statement.end] == statement.text
        assert statement.evidence in source.hit.chunk.text
        assert statement.chunk_id == source.hit.chunk.id


async def test_answers_stay_within_the_readers_filters(sample_home: Path, tmp_path: Path) -> None:
    """Lessons that the filters hide are neither quoted nor listed."""
    async with three_books(sample_home, tmp_path) as lectern:
        scope = Scope(book_id="light", module="unit-3-instruments")
        start = await from_book(lectern, "Where do I start?", scope)
        hidden = await from_book(lectern, "Summarise unit 1", scope)
        inside = await from_book(lectern, "Summarise unit 3", scope)

    assert start is not None
    assert inside is not None
    assert {source.hit.chunk.module for source in (*start.citations, *inside.citations)} == {"unit-3-instruments"}
    assert "Shadows" not in start.text
    assert hidden is None


async def test_a_book_of_one_file_is_its_own_front_page(tmp_path: Path) -> None:
    """It has no modules and no chapters to list; what it opens with says what it is about."""
    text = (
        "# Sourdough\n\nThis guide shows how to bake bread with wild yeast.\n\n## Feeding\n\nFeed the starter daily.\n"
    )
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "bread", {"bread.md": text}), book="bread")
        about = await from_book(lectern, "What is this guide about?", Scope(book_id="bread"))
        author = await from_book(lectern, "Who wrote this guide?", Scope(book_id="bread"))
        start = await from_book(lectern, "Where do I start?", Scope(book_id="bread"))

    assert about is not None
    assert about.text == "This guide shows how to bake bread with wild yeast. [1]"
    assert author is None
    assert start is not None
    assert "wild yeast" in start.text


async def test_a_book_without_a_front_page_is_told_by_its_contents(tmp_path: Path) -> None:
    """The first of many lessons does not say what the others are about."""
    lessons = {
        "access.md": "# Access\n\nStart with the keyboard: every button has to be reached without a mouse.\n",
        "users.md": "# Users\n\nFinding users takes longer than anyone who writes a program expects.\n",
    }
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "notes", lessons), book="notes")
        about = await from_book(lectern, "What is this book about?", Scope(book_id="notes"))
        start = await from_book(lectern, "Where do I start?", Scope(book_id="notes"))

    assert about is not None
    assert about.text == "The book has 2 lessons. [1]\n- Access [1]\n- Users [2]"
    assert start is not None
    assert start.text.startswith("The first lessons, in order:\n- **Access**: Start with the keyboard")


async def test_a_part_for_the_beginning_is_where_to_start(tmp_path: Path) -> None:
    """Where no page says where to start, a part called "Getting started" does, rather than the part whose name comes
    first, and rather than a page that sets up something in particular."""
    pages = {
        "Home.md": "# Home\n\nWelcome to the help pages of the press.\n",
        "Alarms/Bells.md": "# Bells\n\nA bell rings when the paper is used up.\n",
        "Getting started/Unpack the press.md": "# Unpack the press\n\nCut the straps and lift it with two people.\n",
        "Networks/Set up a proxy.md": "# Set up a proxy\n\nThe press reaches the internet through a proxy.\n",
    }
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(write_book(tmp_path / "press", pages), book="press")
        start = await from_book(lectern, "Where do I start?", Scope(book_id="press"))

    assert start is not None
    assert start.text.startswith("Pages for the beginning:\n- **Unpack the press**: Cut the straps")
    assert "Bells" not in start.text


TALK = {
    "hi": "greeting",
    "Hello there!": "greeting",
    "good morning, how are you?": "greeting",
    "Hallo": "greeting",
    "thanks!": "thanks",
    "Thank you very much for your help": "thanks",
    "ok, thanks": "thanks",
    "bye": "farewell",
    "thanks, bye!": "farewell",
    "Who are you?": "identity",
    "hi, are you a bot?": "identity",
    "What can I ask you?": "help",
    "what can you do": "help",
    "help": "help",
    "Was kann ich fragen?": "help",
}


@pytest.mark.parametrize("message", TALK)
def test_small_talk_is_recognised(message: str) -> None:
    """Greetings, thanks and questions about the assistant; all of them are refused without a search."""
    assert small_talk(message) == TALK[message]
    assert screen(message) == "off_topic"


@pytest.mark.parametrize(
    "message",
    [
        "hi, what is a node?",
        "thanks, and what is a topic?",
        "How does this work?",
        "help command",
        "What can you do with a topic?",
        "Who are you allowed to call in an emergency?",
        "greetings protocol",
        "good soil",
        "testing",
    ],
)
def test_a_question_with_a_greeting_is_a_question(message: str) -> None:
    """Only a message that is small talk as a whole is small talk."""
    assert small_talk(message) is None
    assert screen(message) is None


async def test_a_greeting_gets_a_friendly_sentence_and_questions(sample_home: Path, tmp_path: Path) -> None:
    """It stays a refusal without sources, but says what the book is and what to ask."""
    shutil.copytree(sample_home, tmp_path / "home")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.app.warm()
        details = await lectern.book_details()
        reply = await lectern.ask("hello")
        thanks = await lectern.ask("thanks!")

    assert isinstance(reply, Refusal)
    assert isinstance(thanks, Refusal)
    assert (reply.reason, reply.considered) == ("off_topic", ())
    assert reply.text.startswith("Hello! I answer questions about “Physical AI & Humanoid Robotics”")
    assert "A language model that makes a mistake prints a wrong sentence." in reply.text
    assert reply.suggestions == details.suggestions[:3]
    assert thanks.text.startswith("You're welcome.")
