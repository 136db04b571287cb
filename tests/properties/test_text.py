"""One reading of a passage, on random texts and on real books: nothing is lost, nothing is invented, and everything is
where it says it is."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.reading.chunking import DEFAULT_RULES
from lectern.reading.lessons import read_lesson
from lectern.reading.survey import survey
from lectern.text.blocks import blocks_of
from lectern.text.pieces import cells_of, read
from tests.conftest import SAMPLE_BOOK, SHARED_DATA

MOST_LESSONS = 40  # of a book, by chance: all of them agree as well, but take minutes

BOOKS = {
    "sample": SAMPLE_BOOK,
    "agentfactory": SHARED_DATA / "book-agentfactory",
    "curriculum": SHARED_DATA / "book-curriculum",
    "handbook": SHARED_DATA / "book-handbook",
    "robolearn": SHARED_DATA / "book-robolearn" / "docs",
    "robolearn in Urdu": SHARED_DATA / "book-robolearn" / "i18n-ur",
    "malformed": SHARED_DATA / "book-malformed",
}
shared = pytest.mark.skipif(
    not SHARED_DATA.is_dir(), reason=f"the real books are not beside the checkout ({SHARED_DATA})"
)


@pytest.fixture(
    scope="module",
    params=[name if name == "sample" else pytest.param(name, marks=[pytest.mark.data, shared]) for name in BOOKS],
)
def passages(request: pytest.FixtureRequest) -> list[str]:
    """The texts of chunks of one book."""
    return list(_passages(BOOKS[request.param]))


def _passages(root: Path) -> Iterator[str]:
    book_survey = survey(root, book_id="book")
    lessons = random.Random(7).sample(list(book_survey.lessons), min(MOST_LESSONS, len(book_survey.lessons)))
    for lesson in lessons:
        yield from (chunk.text for chunk in read_lesson(root, lesson, book_survey.manifest, DEFAULT_RULES).chunks)


marks = st.text(alphabet="`~<>{}[]()#*_-=|$\\!:.?•✅ \n\tab1A\u3042\u3002\ufeff\u2028\x0b\x0c&;,", max_size=300)


def holds_up(passage: str) -> None:
    """What is true of any passage."""
    blocks, pieces = blocks_of(passage), read(passage)
    for block in blocks:
        assert all(passage[line.start : line.end] == line.text for line in block.lines)
        assert all(block.start <= line.start <= line.end <= block.end for line in block.lines)
    for before, after in pairwise(blocks):
        assert before.end < after.start
    for piece in pieces:
        assert piece.block.start <= piece.start < piece.end <= piece.block.end or not piece.text
        assert piece.text in piece.block.text
        quoted = passage[piece.start : piece.end]
        if "\n" in quoted:
            assert (quoted.split()[:1], quoted.split()[-1:]) == (piece.text.split()[:1], piece.text.split()[-1:])
        else:
            assert (cells_of(quoted) if piece.kind == "row" else quoted) == piece.text
    for before, after in pairwise(pieces):
        assert before.end <= after.start
    assert not _words_in_no_block(passage)


def _words_in_no_block(passage: str) -> list[str]:
    """Lines with words that are in no block, the rims of boxes aside."""
    remaining = list(passage)
    for block in blocks_of(passage):
        remaining[block.start : block.end] = " " * (block.end - block.start)
    rims = (":::", "!!!", "???")
    return [
        line for line in "".join(remaining).split("\n") if _has_words(line) and not line.strip(" \t>").startswith(rims)
    ]


@given(marks)
def test_any_text_is_read_whole(text: str) -> None:
    """Spans are true and in order, words are the passage's own, and no line with words is left out."""
    holds_up(text)


def test_books_are_read_whole(passages: list[str]) -> None:
    """The same for what authors really write."""
    for passage in passages:
        holds_up(passage)


def _has_words(text: str) -> bool:
    return re.search(r"[^\W_]", text) is not None
