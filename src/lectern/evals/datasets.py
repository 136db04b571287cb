"""A question set: questions, the documents that answer them, and the books to search. A question's own gold comes
first; `qrels.tsv` has the gold of questions without it. Questions without an answer, without a judgement, or with gold
that is marked as noisy are left out and counted.

Books are made from a corpus of documents or from a folder. A document of a corpus becomes one lesson, whose file name
is a number, so that no id can be an unsafe path. From a folder come all files that the reader would read, without
those that would distort the measurement. The content is hashed, so an index can be stored for exactly this content.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lectern.domain.errors import BadInput, SourceError
from lectern.evals.goldfiles import (
    CORPUS,
    QRELS,
    QUERIES,
    DocumentLine,
    QueryLine,
    line_error,
    read_corpus,
    read_qrels,
    read_queries,
)
from lectern.evals.metrics import Gold
from lectern.reading.names import slugged

READ_SUFFIXES = frozenset({".md", ".mdx", ".toml", ".yml", ".yaml", ".json"})  # lessons, and the settings of their site
LESSON_SUFFIXES = (".md", ".mdx")
QUIZ_TAG = b"<Quiz"  # a quiz contains the questions of the set
SUMMARY_SUFFIX = ".summary.md"  # a summary repeats its lesson, so a hit in it would count as a miss
SET_PREFIX, BOOK_PREFIX = "qa-", "book-"  # the questions of `qa-x` are about `book-x` in the same folder

Judgements = Mapping[str, Gold]  # by question


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalBook:
    """A book to be ingested."""

    book_id: str
    files: Mapping[str, bytes]  # by their path in the book
    documents: Mapping[str, str]  # source_file → the document as gold names it


def book_of_documents(book_id: str, documents: Iterable[DocumentLine]) -> EvalBook:
    """A book with one lesson for each document; the document's title is the heading."""
    files, names = {}, {}
    for number, document in enumerate(documents, start=1):
        name = f"{number:06}.md"
        files[name] = f"{head_of(document)}{document.text}\n".encode("utf-8", "replace")
        names[name] = document.id
    return EvalBook(book_id=book_id, files=files, documents=names)


def head_of(document: DocumentLine) -> str:
    """The heading before a document's text; without a title a line break, so that `---` does not begin front matter."""
    title = " ".join((document.title or "").split())
    return f"# {title}\n\n" if title else "\n"


def book_of_folder(book_id: str, folder: Path, *, prefix: str = "") -> EvalBook:
    """A book from the files below a folder; gold names a lesson by this prefix and its path."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the one that holds the book's Markdown files")
    files: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        hidden = any(step.startswith(".") or step == "node_modules" for step in path.parts)
        if hidden or file.is_symlink() or not file.is_file() or file.suffix.lower() not in READ_SUFFIXES:
            continue
        content = file.read_bytes()
        if not file.name.endswith(SUMMARY_SUFFIX) and QUIZ_TAG not in content:
            files[path.as_posix()] = content
    documents = {path: f"{prefix}{path}" for path in files if path.lower().endswith(LESSON_SUFFIXES)}
    return EvalBook(book_id=book_id, files=files, documents=documents)


def digest(books: Iterable[EvalBook]) -> str:
    """A hash of everything that will be ingested."""
    hasher = hashlib.sha256()
    for book in books:
        for path, content in sorted(book.files.items()):
            for part in (book.book_id.encode(), path.encode("utf-8", "surrogateescape"), content):
                hasher.update(hashlib.sha256(part).digest())
    return hasher.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """The part of a document that answers a question: characters `start` to `end` of its text."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with the documents that answer it."""

    id: str
    text: str
    book_id: str
    gold: Gold
    excerpts: tuple[Excerpt, ...] = ()
    kind: str | None = None  # the set's own category


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """Questions, their books, and how many questions were left out for which reason."""

    name: str
    questions: tuple[Question, ...]
    books: tuple[EvalBook, ...]
    documents: tuple[DocumentLine, ...]  # of corpus.jsonl; none where the books are folders
    left_out: Mapping[str, int]


def load_set(folder: Path, book: Path | None = None) -> QuestionSet:
    """Read the set in a folder; `book` is the folder of its gold documents, if that is not found automatically."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    name = folder.resolve().name
    queries = read_queries(folder)
    judgements = _judgements(folder, queries)
    reasons = {number: _unusable(line, judgements) for number, line in queries.items()}
    usable_queries = {number: line for number, line in queries.items() if not reasons[number]}
    if not usable_queries:
        raise SourceError(f"{folder / QUERIES} holds no question with a gold document; add `gold`, or {QRELS}")
    documents: tuple[DocumentLine, ...] = ()
    if book is None and (folder / CORPUS).exists():
        documents = tuple(read_corpus(folder).values())
        books = {"": book_of_documents(slugged(name), documents)}
    else:
        books = _folders(folder, book, usable_queries, judgements)
    return QuestionSet(
        name=name,
        questions=tuple(_questions(folder, usable_queries, judgements, books)),
        books=tuple(books.values()),
        documents=documents,
        left_out=Counter(reason for reason in reasons.values() if reason),
    )


def _judgements(folder: Path, queries: Mapping[int, QueryLine]) -> Judgements:
    """The documents that answer each question, with their grades; a document of grade 0 does not answer."""
    line_gold = {
        line.id: {gold.doc: gold.score if gold.grade is None else gold.grade for gold in line.gold}
        for line in queries.values()
    }
    qrels: dict[str, dict[str, float]] = defaultdict(dict)
    for number, (question, document, score) in read_qrels(folder).items():
        if question not in line_gold:
            raise line_error(folder / QRELS, number, f"{QUERIES} has no question {question!r}")
        qrels[question][document] = score
    grades = {question: gold or qrels.get(question, {}) for question, gold in line_gold.items()}
    return {question: {doc: grade for doc, grade in gold.items() if grade > 0} for question, gold in grades.items()}


def _unusable(line: QueryLine, judgements: Judgements) -> str:
    """Why a question is left out; empty if it is asked."""
    if not line.answerable:
        return "unanswerable"
    if not judgements[line.id]:
        return "unjudged"
    return "noisy gold" if (line.meta or {}).get("noisy_gold") else ""


def _folders(
    folder: Path, book: Path | None, queries: Mapping[int, QueryLine], judgements: Judgements
) -> dict[str, EvalBook]:
    """The books by the name that questions use; a single book has an empty name."""
    if book is not None:
        return {"": book_of_folder(slugged(book.resolve().name), book)}
    book_names = {str((line.meta or {}).get("book") or "") for line in queries.values()}
    if all(name and (folder / name).is_dir() for name in book_names):
        return {name: book_of_folder(slugged(name), folder / name, prefix=f"{name}/") for name in sorted(book_names)}
    example = next(iter(judgements[next(iter(queries.values())).id]))
    beside = folder.resolve().parent / f"{BOOK_PREFIX}{folder.resolve().name.removeprefix(SET_PREFIX)}"
    below = sorted(path for path in beside.iterdir() if path.is_dir()) if beside.is_dir() else []
    for place in (folder, beside, *below):
        if (place / example).is_file():
            return {"": book_of_folder(slugged(beside.name), place)}
    raise SourceError(
        f"{folder} has no {CORPUS}, and {example!r} is neither in it nor in {beside.name!r} beside it; "
        "name the book's folder: --book PATH"
    )


def _questions(
    folder: Path, queries: Mapping[int, QueryLine], judgements: Judgements, books: Mapping[str, EvalBook]
) -> Iterator[Question]:
    documents = {name: frozenset(book.documents.values()) for name, book in books.items()}
    for number, line in queries.items():
        meta = line.meta or {}
        name = "" if "" in books else str(meta["book"])
        for document in judgements[line.id]:
            if document not in documents[name]:
                raise line_error(folder / QUERIES, number, f"the gold document {document!r} is not in the corpus")
        yield Question(
            id=line.id,
            text=line.text,
            book_id=books[name].book_id,
            gold=judgements[line.id],
            excerpts=tuple(
                Excerpt(document=gold.doc, start=gold.span[0], end=gold.span[1]) for gold in line.gold if gold.span
            ),
            kind=str(meta["type"]) if meta.get("type") else None,
        )
