"""Question sets about refusing: the questions, which of them the book answers, and the book. The shapes are those of
retrieval sets with two keys that count here, `answerable` and `tier`; gold is only needed to find the book, and to know
which documents to leave out for `half`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from lectern.domain.errors import BadInput, SourceError
from lectern.domain.queries import QUERY_LENGTH
from lectern.evals.corpora import EvalBook, book_of_documents, book_of_folder
from lectern.evals.datasets import BOOK_PREFIX, SET_PREFIX
from lectern.evals.goldfiles import CORPUS, QUERIES, GoldLine, read_corpus, wrong
from lectern.reading.slugs import slugged

REFUSAL_PREFIX = "refusal-"  # the questions of `qa-refusal-x` are about `book-x` too
COVERED, UNCOVERED, UNANSWERABLE, FOREIGN = "answerable", "uncovered", "unanswerable", "foreign"


class AskedLine(BaseModel):
    """One question of a refusal set."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    tier: str | None = None
    gold: list[GoldLine] = []
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question."""

    id: str
    text: str
    book_id: str
    answerable: bool
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSet:
    """Questions and the books they are asked of."""

    name: str
    asked: tuple[Asked, ...]
    books: tuple[EvalBook, ...]


def load_refusal(folder: Path, book: Path | None = None, *, half: bool = False) -> RefusalSet:
    """The set in a folder. With `half` every second article is left out of the book: its questions are uncovered."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    lines = read_labelled(folder / QUERIES)
    name = folder.resolve().name
    if half:
        return _half(name, folder, lines)
    books = _books(folder, book, lines)
    asked = tuple(
        Asked(
            id=line.id,
            text=line.text,
            book_id=books.get(str((line.meta or {}).get("book") or ""), next(iter(books.values()))).book_id,
            answerable=line.answerable,
            tier=_tier(line),
        )
        for line in lines
    )
    return RefusalSet(name=name, asked=asked, books=tuple(books.values()))


def with_foreign(questions: RefusalSet, lines: Iterable[AskedLine]) -> RefusalSet:
    """The same, with the questions of another set as ones that no book here covers."""
    book_id = questions.books[0].book_id
    more = tuple(
        Asked(id=f"{FOREIGN}-{line.id}", text=line.text, book_id=book_id, answerable=False, tier=FOREIGN)
        for line in lines
    )
    return replace(questions, asked=(*questions.asked, *more))


def read_labelled(file: Path) -> list[AskedLine]:
    """Every question of a `queries.jsonl` that can be searched for."""
    try:
        raw = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SourceError(f"{file} cannot be read ({exc}); a question set has {QUERIES}") from exc
    low, high = QUERY_LENGTH
    lines = []
    for number, line in enumerate(raw.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            asked = AskedLine.model_validate_json(line)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise wrong(file, number, f"{where}: {first['msg']}" if where else first["msg"]) from None
        if not low <= len(asked.text.strip()) <= high:
            raise wrong(file, number, f"text must have {low} to {high} characters, not {len(asked.text.strip())}")
        lines.append(asked)
    if not lines:
        raise SourceError(f"{file} holds no question")
    return lines


def _tier(line: AskedLine) -> str:
    meta = line.meta or {}
    if line.answerable:
        return line.tier or COVERED
    return line.tier or str(meta.get("tier") or meta.get("type") or UNANSWERABLE)


def _books(folder: Path, book: Path | None, lines: Sequence[AskedLine]) -> dict[str, EvalBook]:
    """By the name that questions know them under; a single book answers to any."""
    if book is not None:
        return {"": book_of_folder(slugged(book.resolve().name), book)}
    name = folder.resolve().name
    if (folder / CORPUS).exists():
        return {"": book_of_documents(slugged(name), read_corpus(folder).values())}
    named = {str((line.meta or {}).get("book") or "") for line in lines if line.answerable}
    if all(one and (folder / one).is_dir() for one in named):
        return {one: book_of_folder(slugged(one), folder / one) for one in sorted(named)}
    gold = next((line.gold[0].doc for line in lines if line.answerable and line.gold), "")
    for beside, place in _beside(folder):
        if any((place / suffix).is_file() for suffix in _suffixes(gold)):
            return {"": book_of_folder(slugged(beside.name), place)}
    raise SourceError(f"{folder} has no {CORPUS}, and its book is not beside it; name the book's folder: --book PATH")


def _beside(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Where the book of a set may be: folders of `book-x` first, because the book's own root may hold more books."""
    stem = folder.resolve().name.removeprefix(SET_PREFIX)
    for name in dict.fromkeys((stem, stem.removeprefix(REFUSAL_PREFIX))):
        beside = folder.resolve().parent / f"{BOOK_PREFIX}{name}"
        if beside.is_dir():
            for place in (*sorted(path for path in beside.iterdir() if path.is_dir()), beside):
                yield beside, place


def _suffixes(path: str) -> Iterator[str]:
    """A path with fewer and fewer of the folders before it; a set may name more than the book has."""
    steps = PurePosixPath(path).parts
    for begin in range(len(steps)):
        yield "/".join(steps[begin:])


def _half(name: str, folder: Path, lines: Sequence[AskedLine]) -> RefusalSet:
    """Documents of one title are one article, and stay together."""
    documents = list(read_corpus(folder).values())
    article = {document.id: document.title or document.id for document in documents}
    inside = frozenset(sorted(set(article.values()))[::2])
    book = book_of_documents(slugged(f"{name}-half"), [one for one in documents if article[one.id] in inside])
    asked = []
    for line in lines:
        within = {article.get(gold.doc) in inside for gold in line.gold}
        if len(within) == 1 and (line.answerable or within == {True}):
            covered = line.answerable and within == {True}
            tier = UNANSWERABLE if not line.answerable else COVERED if covered else UNCOVERED
            asked.append(Asked(id=line.id, text=line.text, book_id=book.book_id, answerable=covered, tier=tier))
    if not asked:
        raise SourceError(f"{folder} names no gold documents of its {CORPUS}, so none can be left out")
    return RefusalSet(name=f"{name}-half", asked=tuple(asked), books=(book,))
