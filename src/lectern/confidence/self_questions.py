"""Makes questions for a book that has no written questions. Covered questions come from the book's headings and
sentences. Any search would find these word for word, so each loses part of its words, and some are swapped for words of
another subject, because readers use other words than the author. Uncovered questions come from the sentences of other
books in the same way, and from a list of everyday and school questions. That list is used a second time with words of
the book inserted, because sharing a word with the book does not make a question covered."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lectern.domain.chunks import Chunk
from lectern.text.pieces import sentences_of
from lectern.text.words import content_stems, stem, terms_of, word_weight

FAR_QUESTIONS_FILE = Path(__file__).parent / "far_questions.txt"
MAX_SELF_QUESTIONS = 200  # of each kind; more take longer
SEED = 11
KEPT_SHARE = 0.6  # of a sentence's telling words
SWAPPED_SHARE = 0.25  # of these, swapped for words of another subject
INSERTED_WORDS = 2  # of the book, in a question that is not about it
MIN_QUESTION_WORDS, MAX_QUESTION_WORDS = 3, 12  # telling words


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfQuestion:
    """A question, and the chunk that it was made from if the book covers it."""

    text: str
    chunk_id: str | None = None

    @property
    def covered(self) -> bool:
        """Whether it was made from this book."""
        return self.chunk_id is not None


def covered_questions(chunks: Sequence[Chunk]) -> list[SelfQuestion]:
    """Questions from the book's headings and sentences, spread over the whole book."""
    draw = random.Random(SEED)  # noqa: S311  # no secret
    order = draw.sample(list(chunks), len(chunks))
    questions = []
    for number, chunk in enumerate(order):
        text = _of_heading(chunk, draw) if number % 3 == 0 else None  # a third of the questions are like titles
        text = text or _of_sentence(chunk, draw)
        if text:
            questions.append(SelfQuestion(text=text, chunk_id=chunk.id))
        if len(questions) == MAX_SELF_QUESTIONS:
            break
    return questions


def mixed_questions(chunks: Sequence[Chunk]) -> list[SelfQuestion]:
    """The shipped questions, each with two words swapped for words of the book; they are still not about the book."""
    draw = random.Random(SEED)  # noqa: S311  # no secret
    sample = draw.sample(list(chunks), min(len(chunks), MAX_SELF_QUESTIONS))
    book_words = [word for chunk in sample for word in _telling_of(chunk.text)]
    if not book_words:
        return []
    questions = []
    for question in far_questions():
        words = question.rstrip("?.").split()
        places = [place for place, word in enumerate(words) if _telling_of(word)]
        for place in draw.sample(places, min(INSERTED_WORDS, len(places))):
            words[place] = draw.choice(book_words)
        questions.append(SelfQuestion(text=" ".join(words)))
    return questions


def foreign_questions(chunks: Sequence[Chunk], limit: int) -> list[SelfQuestion]:
    """Questions from the sentences of another book, made like the covered ones."""
    draw = random.Random(SEED)  # noqa: S311  # no secret
    texts = (_of_sentence(chunk, draw) for chunk in draw.sample(list(chunks), min(len(chunks), 2 * limit)))
    return [SelfQuestion(text=text) for text in texts if text][:limit]


@cache
def far_questions() -> tuple[str, ...]:
    """The shipped questions on everyday life, history, arts, biology …, which hardly any textbook covers."""
    return tuple(FAR_QUESTIONS_FILE.read_text(encoding="utf-8").splitlines())


def _of_heading(chunk: Chunk, draw: random.Random) -> str | None:
    """A question from the titles of the lesson and section; None for headings such as "Summary" that say too little."""
    words = _telling_words([chunk.lesson_title, chunk.section_title or ""])
    if sum(word_weight(stem(word.lower())) for word in words) < MIN_QUESTION_WORDS:
        return None
    return " ".join(_reword(words[:MAX_QUESTION_WORDS], draw))


def _of_sentence(chunk: Chunk, draw: random.Random) -> str | None:
    long_enough = [
        words for words in map(_telling_of, sentences_of(chunk.text)) if len(words) >= 2 * MIN_QUESTION_WORDS
    ]
    if not long_enough:
        return None
    words = draw.choice(long_enough)
    places = sorted(draw.sample(range(len(words)), max(MIN_QUESTION_WORDS, round(KEPT_SHARE * len(words)))))
    return " ".join(_reword([words[place] for place in places][:MAX_QUESTION_WORDS], draw))


def _reword(words: Sequence[str], draw: random.Random) -> list[str]:
    """The words, with a quarter of them, at least one, swapped for words of another subject."""
    swapped_places = set(draw.sample(range(len(words)), max(1, round(SWAPPED_SHARE * len(words)))))
    return [draw.choice(_foreign_words()) if place in swapped_places else word for place, word in enumerate(words)]


@cache
def _foreign_words() -> tuple[str, ...]:
    return tuple(dict.fromkeys(_telling_words(far_questions())))


def _telling_words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in _telling_of(text)]


def _telling_of(text: str) -> list[str]:
    return [term[0] for term in terms_of(text) if content_stems(term[0])]
