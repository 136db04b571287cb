"""Questions about whole books, from `examples/golden/finder/books.jsonl`: what a book says and what it does not, by
authors who had not seen how they would be answered. Books other than the sample lie in `../shared/data`."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
FILE = ROOT / "examples" / "golden" / "finder" / "books.jsonl"
NO_LESSONS = ("summary", "quiz")  # in their names: near copies of lessons, which the authors were told to leave out


@dataclass(frozen=True, slots=True)
class BookQuestion:
    """One question."""

    text: str
    answerable: bool
    answer: str  # as it stands in the book, where it does


def by_book(part: str) -> dict[str, list[BookQuestion]]:
    """The questions of a part, `fitted` or `reported`, by the book's folder."""
    questions_by_book: dict[str, list[BookQuestion]] = {}
    for line in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        if line["part"] == part:
            answer = ""
            if line["answerable"]:
                raw = (_folder(line["book"]) / line["file"]).read_bytes().decode("utf-8")
                answer = raw[line["start"] : line["end"]].strip().strip("|").strip()
            question = BookQuestion(line["text"], line["answerable"], answer)
            questions_by_book.setdefault(line["book"], []).append(question)
    return questions_by_book


@contextmanager
def lessons(book: str) -> Iterator[Path]:
    """The book's folder as the authors read it."""
    with tempfile.TemporaryDirectory() as place:
        ignore = shutil.ignore_patterns(*(f"*{word}*" for word in NO_LESSONS))
        yield Path(shutil.copytree(_folder(book), Path(place) / "book", ignore=ignore))


def _folder(book: str) -> Path:
    return (ROOT if book.startswith("examples/") else SHARED) / book
