"""Real books, as their authors wrote them: nothing is dropped, nothing is lost, and it is quick."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lectern.domain.books import Survey
from lectern.domain.chunks import Chunk
from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey
from tests.conftest import SHARED_DATA
from tests.unit.reading.seen import seen_words, words_in

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not SHARED_DATA.is_dir(), reason=f"the real books are not beside the checkout ({SHARED_DATA})"),
]

#: every how-many-th file is read: the large books would take most of the suite's time
BOOKS = {
    "book-robolearn/docs": 1,
    "book-robolearn/i18n-ur": 2,
    "book-handbook/docs": 1,
    "book-agentfactory/docs": 3,
    "book-curriculum/modules": 2,
    "book-malformed": 1,
}
_markdown = MarkdownIt("commonmark")


def raw_text(path: Path) -> str:
    """A file as an editor shows it."""
    return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def fences_left_open(text: str) -> int:
    """Fences that run to the end of their container instead of being closed, as CommonMark sees it."""
    lines = text.split("\n")
    word_count = 0
    for token in _markdown.parse(text):
        if token.type == "fence" and token.map:
            last = lines[min(token.map[1], len(lines)) - 1].strip().lstrip("> \t")
            word_count += not (
                token.map[1] - token.map[0] > 1 and last.startswith(token.markup) and not last.strip("`~")
            )
    return word_count


@pytest.fixture(scope="module", params=BOOKS)
def book(request: pytest.FixtureRequest) -> tuple[Path, Survey, dict[str, tuple[Chunk, ...]], set[str]]:
    """A book's folder, its survey, the chunks of a sample of its lessons, and files that gave none."""
    root = SHARED_DATA / request.param
    book_survey = survey(root)
    results = {
        lesson.source_file: read_lesson(root, lesson, book_survey.manifest)
        for lesson in book_survey.lessons[:: BOOKS[request.param]]
    }
    failed = {problem.file for result in results.values() for problem in result.problems if problem.severity == "error"}
    return root, book_survey, {file: result.chunks for file, result in results.items() if result.chunks}, failed


def test_every_file_is_a_lesson_or_named(book) -> None:
    """Discovered is what lies there; each file is one lesson or one error, and says what to mend."""
    root, book_survey, _, _ = book
    files = {path.relative_to(root).as_posix() for pattern in ("*.md", "*.mdx") for path in root.rglob(pattern)}
    errors = {problem.file for problem in book_survey.problems if problem.severity == "error"}
    lessons = [lesson.source_file for lesson in book_survey.lessons]

    assert book_survey.files_discovered == len(files)
    assert sorted([*lessons, *errors]) == sorted(files)
    assert all(";" in problem.message or "is read as text" in problem.message for problem in book_survey.problems)


def test_places_are_told_apart(book) -> None:
    """No two lessons share a parent, and every place has a lesson with the design's own ids."""
    _, book_survey, _, _ = book
    places = [(str(lesson.place), lesson.place.suffix) for lesson in book_survey.lessons]

    assert len(set(places)) == len(places)
    assert {place for place, _ in places} == {place for place, suffix in places if not suffix}


def test_no_word_is_lost(book) -> None:
    """At least 99.5 % of the words that a reader sees are in each file's chunks."""
    root, _, chunks, _ = book
    for file, file_chunks in chunks.items():
        expected_words = seen_words(raw_text(root / file))
        lost = expected_words - words_in(" ".join(chunk.text for chunk in file_chunks))

        assert sum(lost.values()) <= 0.005 * sum(expected_words.values()), (file, list(lost)[:10])


def test_chunks_keep_their_promises(book) -> None:
    """Unique ids, a whole chain, true counts, sizes within bounds, balanced fences, true lines."""
    root, _, chunks, _ = book
    ids = [chunk.id for file_chunks in chunks.values() for chunk in file_chunks]
    assert len(set(ids)) == len(ids)
    for file, file_chunks in chunks.items():
        lines = raw_text(root / file).split("\n")
        for index, chunk in enumerate(file_chunks):
            assert (chunk.chunk_index, chunk.total_chunks) == (index, len(file_chunks))
            assert chunk.text == chunk.text.strip()
            assert 10 <= chunk.char_count == len(chunk.text) <= 9000
            assert chunk.token_count <= 900
            assert not fences_left_open(chunk.text), (file, chunk.line_start)
            assert 1 <= chunk.line_start <= chunk.line_end <= len(lines)
            added_words = words_in(chunk.text) - words_in("\n".join(lines[chunk.line_start - 1 : chunk.line_end]))
            assert sum(added_words.values()) <= 20, (
                file,
                chunk.line_start,
                added_words,
            )  # a fence's or table's repeated opening
            assert chunk.trail[0] == chunk.lesson_title
            assert chunk.section_title is None or chunk.trail[-1] == chunk.section_title
            assert chunk.url.startswith("/")


def test_only_the_malformed_book_has_errors(book) -> None:
    """Every file of a real book is indexed; of the broken ones, the empty and the binary fail and say so."""
    root, book_survey, _, failed = book
    errors = {problem.file: problem.message for problem in book_survey.problems if problem.severity == "error"}

    if root.name == "book-malformed":
        assert set(errors) == {name for name in errors if name.startswith(("empty-", "nul-"))}
        assert len(errors) == 10
        assert not failed
    else:
        assert not errors
        assert not failed


def test_a_large_book_is_surveyed_in_a_moment() -> None:
    """700 files in a second of CPU: 7,000 take a few."""
    start = time.process_time()
    book_survey = survey(SHARED_DATA / "book-agentfactory" / "docs")

    assert len(book_survey.lessons) == 713
    assert time.process_time() - start < 2


def test_history_replays_with_stable_places() -> None:
    """Between two states of a book whose files are the same, every digest is the same."""
    states = sorted((SHARED_DATA / "book-robolearn" / "history").iterdir())
    before, after = (
        {lesson.source_file: lesson.digest for lesson in survey(state / "docs", book_id="b").lessons}
        for state in states[-2:]
    )

    assert before == after
