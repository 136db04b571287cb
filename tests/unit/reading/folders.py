"""Small books on disk, for the reader's tests."""

from __future__ import annotations

from pathlib import Path

from lectern.domain.books import LessonSource, Survey
from lectern.domain.chunks import Chunk
from lectern.reading.chunking import DEFAULT_RULES, ReadingRules
from lectern.reading.lessons import ReadLesson, read_lesson
from lectern.reading.survey import survey

BODY = "# A lesson\n\nSome words that are long enough to be a chunk.\n"


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """A folder with these files."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def surveyed(root: Path, files: dict[str, str | bytes]) -> Survey:
    """The survey of a folder with these files."""
    return survey(write(root, files), book_id="book")


def lessons_by_file(book_survey: Survey) -> dict[str, LessonSource]:
    """A survey's lessons by their files."""
    return {lesson.source_file: lesson for lesson in book_survey.lessons}


def read(root: Path, text: str, *, file: str = "a.md", rules: ReadingRules = DEFAULT_RULES) -> ReadLesson:
    """One file, surveyed and read."""
    book_survey = survey(write(root, {file: text}), book_id="book", rules=rules)
    lesson = lessons_by_file(book_survey)[file]
    return read_lesson(root, lesson, book_survey.manifest, rules)


def chunks(root: Path, text: str, *, file: str = "a.md", rules: ReadingRules = DEFAULT_RULES) -> tuple[Chunk, ...]:
    """One file's chunks."""
    return read(root, text, file=file, rules=rules).chunks


def words(count: int, stem: str = "word") -> str:
    """A sentence of this many words, each its own."""
    return " ".join(f"{stem}{number}" for number in range(count)) + "."
