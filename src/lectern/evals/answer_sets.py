"""Question sets with known answers: `queries.jsonl` whose questions have `answers`, and the book they are asked of. A
question that needs the talk before it is asked as `meta.standalone` has it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from lectern.domain.errors import BadInput, SourceError
from lectern.domain.queries import QUERY_LENGTH
from lectern.evals.corpora import EvalBook, book_of_documents, book_of_folder
from lectern.evals.goldfiles import CORPUS, QUERIES, read_corpus, wrong
from lectern.reading.slugs import slugged

DOCS = "docs"  # a set's own book

Half = Literal["fitted", "other"]


class AnswerLine(BaseModel):
    """One question."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    answers: list[str] = []
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question with its answers."""

    id: str
    text: str
    answers: tuple[str, ...]
    kind: str = ""
    article: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSet:
    """Questions and the book they are asked of."""

    name: str
    asked: tuple[Asked, ...]
    book: EvalBook

    def sampled(self, count: int, seed: int) -> AnswerSet:
        """Some of the questions, by chance; all where there are no more."""
        if count >= len(self.asked):
            return self
        return replace(self, asked=tuple(random.Random(seed).sample(self.asked, count)))  # noqa: S311  # no secret

    def half(self, which: Half) -> AnswerSet:
        """One half of the set: every second article by name, or every second question where none names its article."""
        articles = sorted({one.article for one in self.asked})
        if len(articles) > 1:
            mine = set(articles[0::2] if which == "fitted" else articles[1::2])
            return replace(self, asked=tuple(one for one in self.asked if one.article in mine))
        return replace(self, asked=self.asked[0::2] if which == "fitted" else self.asked[1::2])


def load_answers(folder: Path, book: Path | None = None) -> AnswerSet:
    """The answerable questions of the set in a folder."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    asked = tuple(_questions(folder / QUERIES))
    if not asked:
        raise SourceError(f"{folder / QUERIES} holds no question with `answers`")
    return AnswerSet(name=folder.resolve().name, asked=asked, book=_book(folder, book))


def _book(folder: Path, book: Path | None) -> EvalBook:
    name = slugged(folder.resolve().name)
    if book is not None or (folder / DOCS).is_dir():
        return book_of_folder(name, book or folder / DOCS)
    if (folder / CORPUS).exists():
        return book_of_documents(name, read_corpus(folder).values())
    raise SourceError(f"{folder} has neither {DOCS} nor {CORPUS}; name the book's folder: --book PATH")


def _questions(file: Path) -> Iterator[Asked]:
    try:
        raw = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{file} cannot be read ({exc}); a question set has {QUERIES}") from exc
    for number, text in enumerate(raw.splitlines(), start=1):
        if not text.strip():
            continue
        try:
            line = AnswerLine.model_validate_json(text)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            raise wrong(file, number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        meta = line.meta or {}
        question = str(meta.get("standalone") or line.text).strip()
        low, high = QUERY_LENGTH
        if line.answerable and line.answers and low <= len(question) <= high:
            yield Asked(
                id=line.id,
                text=question,
                answers=tuple(line.answers),
                kind=str(meta.get("type") or ""),
                article=str(meta.get("article") or ""),
            )
