"""What is searched: books, made of a corpus of documents or taken from a folder. A document becomes one lesson, named
by a number so that no id can be an unsafe path; of a folder everything is taken that the reader would look at, less
what would spoil the measurement. The content is held here and hashed, so an index can be kept for exactly it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lectern.domain.errors import BadInput
from lectern.evals.goldfiles import DocumentLine

READ = frozenset({".md", ".mdx", ".toml", ".yml", ".yaml", ".json"})  # lessons, and what sites say about them
LESSONS = (".md", ".mdx")
QUIZ = b"<Quiz"  # holds the very questions that are asked
SUMMARY = ".summary.md"  # repeats its lesson, so that finding it would count as a miss


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
