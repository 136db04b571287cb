"""Reads the files of a question set. Every line is validated, and an error names the file and the line. Unknown keys
are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from lectern.domain.errors import SourceError
from lectern.domain.scope import QUERY_LENGTH

QUERIES, CORPUS, QRELS = "queries.jsonl", "corpus.jsonl", "qrels.tsv"
QREL_COLUMNS = 3


class GoldLine(BaseModel):
    """A document that answers a question; `grade` says how well, `span` where in its text."""

    doc: str = Field(min_length=1)
    score: float = 1
    grade: float | None = None
    span: tuple[int, int] | None = None

    @field_validator("span")
    @classmethod
    def _check_span(cls, span: tuple[int, int] | None) -> tuple[int, int] | None:
        """Reject spans that are empty or reversed, and negative ones, which would count from the document's end."""
        if span is not None and not 0 <= span[0] < span[1]:
            raise PydanticCustomError("span", "{span} must be 0 <= start < end", {"span": str(list(span))})
        return span


class QueryLine(BaseModel):
    """One line of `queries.jsonl`."""

    id: str = Field(alias="_id", min_length=1)
    text: str
    answerable: bool = True
    gold: list[GoldLine] = []
    meta: dict[str, Any] | None = None


class DocumentLine(BaseModel):
    """One line of `corpus.jsonl`."""

    id: str = Field(alias="_id", min_length=1)
    title: str | None = None
    text: str


Line = TypeVar("Line", QueryLine, DocumentLine)


def line_error(file: Path, number: int, message: str) -> SourceError:
    """An error that names the file and the line."""
    return SourceError(f"{file}, line {number}: {message}")


def read_queries(folder: Path) -> dict[int, QueryLine]:
    """Every question, by its line number."""
    file = folder / QUERIES
    queries = dict(_records(file, QueryLine))
    low, high = QUERY_LENGTH
    for number, line in queries.items():
        if line.answerable and not low <= len(line.text.strip()) <= high:
            raise line_error(file, number, f"text must have {low} to {high} characters, not {len(line.text.strip())}")
    return queries


def read_corpus(folder: Path) -> dict[int, DocumentLine]:
    """Every document, by its line number."""
    return dict(_records(folder / CORPUS, DocumentLine))


def read_qrels(folder: Path) -> dict[int, tuple[str, str, float]]:
    """Query, document and score by line number; none if there is no such file. A first line without a score is a
    header."""
    file = folder / QRELS
    qrels: dict[int, tuple[str, str, float]] = {}
    if not file.exists():
        return qrels
    for number, raw in _lines(file):
        cells = raw.split("\t")
        if len(cells) != QREL_COLUMNS:
            raise line_error(file, number, f"there must be {QREL_COLUMNS} columns between tabs, not {len(cells)}")
        try:
            qrels[number] = (cells[0], cells[1], float(cells[2]))
        except ValueError:
            if number > 1:
                raise line_error(file, number, f"the score must be a number, not {cells[2]!r}") from None
    return qrels


def _records(file: Path, kind: type[Line]) -> Iterator[tuple[int, Line]]:
    line_of_id: dict[str, int] = {}
    for number, raw in _lines(file):
        try:
            line = kind.model_validate_json(raw)
        except ValidationError as exc:
            first = exc.errors(include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            raise line_error(file, number, f"{where}: {first['msg']}" if where else first["msg"]) from None
        if line.id in line_of_id:
            raise line_error(file, number, f"_id {line.id!r} was used on line {line_of_id[line.id]} already")
        line_of_id[line.id] = number
        yield number, line


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        raw = file.read_bytes()
    except OSError as exc:
        raise SourceError(f"{file} cannot be read ({exc.strerror}); a question set has {QUERIES}") from exc
    for number, line in enumerate(raw.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError as exc:
            raise line_error(file, number, f"byte {line[exc.start]:#04x} is not valid UTF-8") from exc
        if text.strip():
            yield number, text
