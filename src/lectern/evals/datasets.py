"""A question set: questions, the documents that answer them, and the books to look in. Where a question names its gold,
that counts; `qrels.tsv` judges the others. Left out, and counted: questions without an answer, without a judgement, and
those whose makers marked the gold as noisy.

What is searched: books, made of a corpus of documents or taken from a folder. A document becomes one lesson, named
by a number so that no id can be an unsafe path; of a folder everything is taken that the reader would look at, less
what would spoil the measurement. The content is held here and hashed, so an index can be kept for exactly it.
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
    read_corpus,
    read_qrels,
    read_queries,
    wrong,
)
from lectern.evals.metrics import Gold
from lectern.reading.names import slugged

READ = frozenset({".md", ".mdx", ".toml", ".yml", ".yaml", ".json"})  # lessons, and what sites say about them
LESSONS = (".md", ".mdx")
QUIZ = b"<Quiz"  # holds the very questions that are asked
SUMMARY = ".summary.md"  # repeats its lesson, so that finding it would count as a miss
SET_PREFIX, BOOK_PREFIX = "qa-", "book-"  # the questions of `qa-x` are about `book-x` beside it

Judgements = Mapping[str, Gold]  # by question


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalBook:
    """A book to be ingested."""

    book_id: str
    files: Mapping[str, bytes]  # by their path in the book
    documents: Mapping[str, str]  # source_file → the document as gold names it


def book_of_documents(book_id: str, documents: Iterable[DocumentLine]) -> EvalBook:
    """One lesson a document, its title as the heading."""
    files, names = {}, {}
    for number, document in enumerate(documents, start=1):
        name = f"{number:06}.md"
        files[name] = f"{head_of(document)}{document.text}\n".encode("utf-8", "replace")
        names[name] = document.id
    return EvalBook(book_id=book_id, files=files, documents=names)


def head_of(document: DocumentLine) -> str:
    """What stands before a document's text; without a title a line break, so that `---` begins no front matter."""
    title = " ".join((document.title or "").split())
    return f"# {title}\n\n" if title else "\n"


def book_of_folder(book_id: str, folder: Path, *, prefix: str = "") -> EvalBook:
    """The lessons below a folder; gold names them by their path with this prefix."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the one that holds the book's Markdown files")
    files: dict[str, bytes] = {}
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        hidden = any(step.startswith(".") or step == "node_modules" for step in path.parts)
        if hidden or file.is_symlink() or not file.is_file() or file.suffix.lower() not in READ:
            continue
        content = file.read_bytes()
        if not file.name.endswith(SUMMARY) and QUIZ not in content:
            files[path.as_posix()] = content
    documents = {path: f"{prefix}{path}" for path in files if path.lower().endswith(LESSONS)}
    return EvalBook(book_id=book_id, files=files, documents=documents)


def digest(books: Iterable[EvalBook]) -> str:
    """One hash over all that will be ingested."""
    whole = hashlib.sha256()
    for book in books:
        for path, content in sorted(book.files.items()):
            for part in (book.book_id.encode(), path.encode("utf-8", "surrogateescape"), content):
                whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Where exactly a document answers: characters `start` to `end` of its text."""

    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question with what answers it."""

    id: str
    text: str
    book_id: str
    gold: Gold
    excerpts: tuple[Excerpt, ...] = ()
    kind: str | None = None  # as the set's makers sort their questions


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """All that an evaluation needs to know."""

    name: str
    questions: tuple[Question, ...]
    books: tuple[EvalBook, ...]
    documents: tuple[DocumentLine, ...]  # of corpus.jsonl; none where the books are folders
    left_out: Mapping[str, int]


def load_set(folder: Path, book: Path | None = None) -> QuestionSet:
    """The set in a folder; `book` is the folder that its gold is in, where that is not found by itself."""
    if not folder.is_dir():
        raise BadInput(f"there is no folder {str(folder)!r}; name the folder that holds {QUERIES}")
    name = folder.resolve().name
    queries = read_queries(folder)
    judged = _judgements(folder, queries)
    reasons = {number: _unusable(line, judged) for number, line in queries.items()}
    asked = {number: line for number, line in queries.items() if not reasons[number]}
    if not asked:
        raise SourceError(f"{folder / QUERIES} holds no question with a gold document; add `gold`, or {QRELS}")
    documents: tuple[DocumentLine, ...] = ()
    if book is None and (folder / CORPUS).exists():
        documents = tuple(read_corpus(folder).values())
        books = {"": book_of_documents(slugged(name), documents)}
    else:
        books = _folders(folder, book, asked, judged)
    return QuestionSet(
        name=name,
        questions=tuple(_questions(folder, asked, judged, books)),
        books=tuple(books.values()),
        documents=documents,
        left_out=Counter(reason for reason in reasons.values() if reason),
    )


def _judgements(folder: Path, queries: Mapping[int, QueryLine]) -> Judgements:
    """What answers each question, with its grade; a grade of 0 says that it does not."""
    own = {
        line.id: {gold.doc: gold.score if gold.grade is None else gold.grade for gold in line.gold}
        for line in queries.values()
    }
    judged: dict[str, dict[str, float]] = defaultdict(dict)
    for number, (question, document, score) in read_qrels(folder).items():
        if question not in own:
            raise wrong(folder / QRELS, number, f"{QUERIES} has no question {question!r}")
        judged[question][document] = score
    chosen = {question: gold or judged.get(question, {}) for question, gold in own.items()}
    return {question: {doc: grade for doc, grade in gold.items() if grade > 0} for question, gold in chosen.items()}


def _unusable(line: QueryLine, judged: Judgements) -> str:
    """Why a question is not asked, or nothing."""
    if not line.answerable:
        return "unanswerable"
    if not judged[line.id]:
        return "unjudged"
    return "noisy gold" if (line.meta or {}).get("noisy_gold") else ""


def _folders(
    folder: Path, book: Path | None, asked: Mapping[int, QueryLine], judged: Judgements
) -> dict[str, EvalBook]:
    """The books by the name that questions know them under; a single book answers to any."""
    if book is not None:
        return {"": book_of_folder(slugged(book.resolve().name), book)}
    named = {str((line.meta or {}).get("book") or "") for line in asked.values()}
    if all(name and (folder / name).is_dir() for name in named):
        return {name: book_of_folder(slugged(name), folder / name, prefix=f"{name}/") for name in sorted(named)}
    example = next(iter(judged[next(iter(asked.values())).id]))
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
    folder: Path, asked: Mapping[int, QueryLine], judged: Judgements, books: Mapping[str, EvalBook]
) -> Iterator[Question]:
    known = {name: frozenset(book.documents.values()) for name, book in books.items()}
    for number, line in asked.items():
        meta = line.meta or {}
        name = "" if "" in books else str(meta["book"])
        for document in judged[line.id]:
            if document not in known[name]:
                raise wrong(folder / QUERIES, number, f"the gold document {document!r} is not in the corpus")
        yield Question(
            id=line.id,
            text=line.text,
            book_id=books[name].book_id,
            gold=judged[line.id],
            excerpts=tuple(
                Excerpt(document=gold.doc, start=gold.span[0], end=gold.span[1]) for gold in line.gold if gold.span
            ),
            kind=str(meta["type"]) if meta.get("type") else None,
        )
