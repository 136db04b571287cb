"""Questions for a book that nobody has written questions for. A book covers its own headings and sentences; taken word
for word they would be found by any search, so of each only part of the wording is kept, and some of it is swapped for
words of another subject, as readers use words that the author did not. The same is done to sentences of other books,
which with a list of everyday and school questions are what the book does not cover; and because a question that merely
shares a word with the book is no question about it, that list is asked once more with words of the book put in."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lectern.domain.chunks import Chunk
from lectern.text.everyday import telling
from lectern.text.pieces import sentences_of
from lectern.text.words import stem, telling_stems

FAR = Path(__file__).parent / "far_questions.txt"
MOST = 200  # of either kind; more change nothing and take longer
SEED = 11
KEPT = 0.6  # of a sentence's telling words
SWAPPED = 0.25  # of those, for foreign ones
PUT_IN = 2  # words of the book in a question that is not about it
LEAST, LONGEST = 3, 12  # telling words of a question

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfQuestion:
    """A question, and the chunk it was made of where the book covers it."""

    text: str
    chunk_id: str | None = None

    @property
    def covered(self) -> bool:
        """Whether the book holds what it was made of."""
        return self.chunk_id is not None


def covered_questions(chunks: Sequence[Chunk]) -> list[SelfQuestion]:
    """From the book's own headings and sentences, spread over all of it."""
    draw = random.Random(SEED)  # noqa: S311  # no secret
    order = draw.sample(list(chunks), len(chunks))
    made = []
    for number, chunk in enumerate(order):
        text = _of_heading(chunk, draw) if number % 3 == 0 else None  # a third of what is asked is asked like a title
        text = text or _of_sentence(chunk, draw)
        if text:
            made.append(SelfQuestion(text=text, chunk_id=chunk.id))
        if len(made) == MOST:
            break
    return made


def mixed_questions(chunks: Sequence[Chunk]) -> list[SelfQuestion]:
    """The shipped questions, in each of which two words were swapped for words of the book: still not about it."""
    draw = random.Random(SEED)  # noqa: S311  # no secret
    own = [word for chunk in draw.sample(list(chunks), min(len(chunks), MOST)) for word in _telling_of(chunk.text)]
    if not own:
        return []
    made = []
    for question in far_questions():
        words = question.rstrip("?.").split()
        places = [place for place, word in enumerate(words) if _telling_of(word)]
        for place in draw.sample(places, min(PUT_IN, len(places))):
            words[place] = draw.choice(own)
        made.append(SelfQuestion(text=" ".join(words)))
    return made


def foreign_questions(chunks: Sequence[Chunk], most: int) -> list[SelfQuestion]:
    """Sentences of another book, made into questions the same way."""
    draw = random.Random(SEED)  # noqa: S311  # no secret
    made = (_of_sentence(chunk, draw) for chunk in draw.sample(list(chunks), min(len(chunks), 2 * most)))
    return [SelfQuestion(text=text) for text in made if text][:most]


@cache
def far_questions() -> tuple[str, ...]:
    """Everyday life, history, arts, biology …: what hardly any textbook covers."""
    return tuple(FAR.read_text(encoding="utf-8").splitlines())


def _of_heading(chunk: Chunk, draw: random.Random) -> str | None:
    """Lesson and section, less a word, with a foreign one; headings such as "Summary" ask nothing."""
    words = _telling([chunk.lesson_title, chunk.section_title or ""])
    if sum(telling(stem(word.lower())) for word in words) < LEAST:
        return None
    return " ".join(_reworded(words[:LONGEST], draw))


def _of_sentence(chunk: Chunk, draw: random.Random) -> str | None:
    long_enough = [words for words in map(_telling_of, sentences_of(chunk.text)) if len(words) >= 2 * LEAST]
    if not long_enough:
        return None
    words = draw.choice(long_enough)
    kept = sorted(draw.sample(range(len(words)), max(LEAST, round(KEPT * len(words)))))
    return " ".join(_reworded([words[place] for place in kept][:LONGEST], draw))


def _reworded(words: Sequence[str], draw: random.Random) -> list[str]:
    """A quarter of the words, and one at least, are other words than the book's."""
    swapped = set(draw.sample(range(len(words)), max(1, round(SWAPPED * len(words)))))
    return [draw.choice(_foreign_words()) if place in swapped else word for place, word in enumerate(words)]


@cache
def _foreign_words() -> tuple[str, ...]:
    return tuple(dict.fromkeys(_telling(far_questions())))


def _telling(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in _telling_of(text)]


def _telling_of(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if telling_stems(word)]
